//! Ports of services.

use std::collections::HashSet;

use keelson_api::core::v1::{ServicePort, ServiceSpec};
use keelson_machinery::field::BadValue;

use crate::faults::{Faults, Unique};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// Each port by itself, and their names.
pub fn each(f: &mut Faults<'_>, ports: &[ServicePort]) {
    let mut names = Unique::default();
    f.each("ports", ports, |f, port| {
        let name = &mut f.at("name");
        if !port.name.is_empty() {
            name.label(&port.name);
            names.check(name, &port.name);
        } else if ports.len() > 1 {
            name.required("");
        }
        f.at("port").port(port.port);
        f.at("protocol").one_of_filled(&port.protocol, &PROTOCOLS);
        f.at("targetPort").port_or_name(&port.target_port);
        f.some("appProtocol", port.app_protocol.as_ref(), |f, protocol| {
            f.qualified(protocol)
        });
    });
}

/// Node ports where the type has none, and what stands there twice.
pub fn together(f: &mut Faults<'_>, spec: &ServiceSpec) {
    let ports = || spec.ports.iter().enumerate();
    let node_ports = || ports().filter(|(_, port)| port.node_port != 0);
    if spec.r#type == "ClusterIP" {
        for (place, _) in node_ports() {
            let text = "may not be used when `type` is 'ClusterIP'";
            f.index(place).at("nodePort").forbidden(text);
        }
    }
    let mut seen = HashSet::new();
    for (place, port) in node_ports() {
        if !seen.insert((&port.protocol, port.node_port)) {
            f.index(place).at("nodePort").duplicate(port.node_port);
        }
    }
    let mut seen = HashSet::new();
    for (place, port) in ports() {
        if !seen.insert((&port.protocol, port.port)) {
            f.index(place).duplicate(shown(port));
        }
    }
}

/// Protocol and number as the API shows them together.
fn shown(port: &ServicePort) -> BadValue {
    let protocol = serde_json::Value::from(port.protocol.as_str());
    BadValue::json(format!(
        r#"{{"Name":"","Protocol":{protocol},"AppProtocol":null,"Port":{},"TargetPort":0,"NodePort":0}}"#,
        port.port
    ))
}
