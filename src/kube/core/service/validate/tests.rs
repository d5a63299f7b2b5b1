use super::*;
use crate::core::service::defaults::defaults;
use crate::testing::{lines, read_defaulted};

fn service(spec: &str) -> Service {
    let mut service = read_defaulted(&format!(r#"{{"spec":{spec}}}"#));
    defaults(&mut service);
    service
}

#[test]
fn a_service_says_nothing_twice_or_in_vain() {
    for (spec, expected) in [
        ("{}", "spec.ports: Required value"),
        (r#"{"clusterIP":"None","clusterIPs":["None"]}"#, ""),
        (r#"{"type":"ExternalName"}"#, "spec.externalName: Required value"),
        (r#"{"type":"ExternalName","externalName":"a.example."}"#, ""),
        (
            r#"{"type":"NodePort","clusterIP":"None","clusterIPs":["None"]}"#,
            "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services",
        ),
        (
            r#"{"ports":[{"port":80},{"port":81,"name":"a","targetPort":"http"},{"port":82,"name":"a","targetPort":"1"}]}"#,
            "spec.ports[0].name: Required value\nspec.ports[2].name: Duplicate value: \"a\"\n\
             spec.ports[2].targetPort: Invalid value: \"1\": must contain at least one letter (a-z)",
        ),
        (
            r#"{"ports":[{"port":70000,"targetPort":80,"protocol":"X"}]}"#,
            "spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive\n\
             spec.ports[0].protocol: Unsupported value: \"X\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
        ),
        (
            r#"{"ports":[{"name":"a","port":80,"nodePort":30001},{"name":"b","port":80,"nodePort":30001}]}"#,
            "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'\n\
             spec.ports[1].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'\n\
             spec.ports[1].nodePort: Duplicate value: 30001\n\
             spec.ports[1]: Duplicate value: {\"Name\":\"\",\"Protocol\":\"TCP\",\"AppProtocol\":null,\"Port\":80,\
             \"TargetPort\":0,\"NodePort\":0}",
        ),
        (
            r#"{"type":"X","ports":[{"port":80}],"sessionAffinity":"Y"}"#,
            "spec.sessionAffinity: Unsupported value: \"Y\": supported values: \"ClientIP\", \"None\"\n\
             spec.type: Unsupported value: \"X\": supported values: \"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \
             \"NodePort\"",
        ),
        (
            r#"{"ports":[{"port":80}],"sessionAffinity":"ClientIP",
                "sessionAffinityConfig":{"clientIP":{"timeoutSeconds":86401}}}"#,
            "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: must be greater than 0 and less \
             than 86400",
        ),
        (
            r#"{"ports":[{"port":80}],"loadBalancerSourceRanges":["10.0.0.1/24"," 10.0.0.0/24 "],
                "allocateLoadBalancerNodePorts":true,"loadBalancerClass":"a/b"}"#,
            "spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'\n\
             spec.LoadBalancerSourceRanges[0]: Invalid value: \"10.0.0.1/24\": must not have bits set beyond the prefix \
             length\n\
             spec.allocateLoadBalancerNodePorts: Forbidden: may only be used when `type` is 'LoadBalancer'\n\
             spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
        ),
        (
            r#"{"ports":[{"port":80}],"externalTrafficPolicy":"Local","healthCheckNodePort":30001,
                "internalTrafficPolicy":"X","trafficDistribution":"Y"}"#,
            "spec.externalTrafficPolicy: Invalid value: \"Local\": may only be set for externally-accessible services\n\
             spec.healthCheckNodePort: Invalid value: 30001: may only be set when `type` is 'LoadBalancer' and \
             `externalTrafficPolicy` is 'Local'\n\
             spec.internalTrafficPolicy: Unsupported value: \"X\": supported values: \"Cluster\", \"Local\"\n\
             spec.trafficDistribution: Unsupported value: \"Y\": supported values: \"PreferClose\", \"PreferSameZone\", \
             \"PreferSameNode\"",
        ),
    ] {
        assert_eq!(lines(&of_new(&service(spec))), expected, "{spec}");
    }
}

#[test]
fn addresses_are_of_their_families() {
    for (spec, expected) in [
        (
            r#"{"clusterIP":"10.0.0.5","clusterIPs":["10.0.0.5","fd00::5"],"ipFamilies":["IPv4","IPv6"]}"#,
            "",
        ),
        (r#"{"clusterIP":"10.0.0.5"}"#, "spec.clusterIPs: Required value"),
        (
            r#"{"clusterIPs":["10.0.0.5"]}"#,
            "spec.clusterIPs: Invalid value: [\"10.0.0.5\"]: must be empty when `clusterIP` is not specified",
        ),
        (
            r#"{"clusterIP":"10.0.0.5","clusterIPs":["10.0.0.6"]}"#,
            "spec.clusterIPs: Invalid value: [\"10.0.0.6\"]: first value must match `clusterIP`",
        ),
        (
            r#"{"clusterIP":"None","clusterIPs":["None","10.0.0.6"]}"#,
            "spec.clusterIPs: Invalid value: [\"None\",\"10.0.0.6\"]: 'None' must be the first and only value",
        ),
        (
            r#"{"clusterIP":"10.0.0.5","clusterIPs":["10.0.0.5","10.0.0.6"]}"#,
            "spec.clusterIPs: Invalid value: [\"10.0.0.5\",\"10.0.0.6\"]: may specify no more than one IP for each IP \
             family",
        ),
        (
            r#"{"clusterIP":"10.0.0.5","clusterIPs":["10.0.0.5"],"ipFamilies":["IPv6"]}"#,
            "spec.clusterIPs[0]: Invalid value: \"10.0.0.5\": expected an IPv6 value as indicated by `ipFamilies[0]`",
        ),
        (
            r#"{"ipFamilies":["IPv4","IPv4","X"],"ipFamilyPolicy":"Y"}"#,
            "spec.ipFamilies[1]: Duplicate value: \"IPv4\"\n\
             spec.ipFamilies[2]: Unsupported value: \"X\": supported values: \"IPv4\", \"IPv6\"\n\
             spec.ipFamilyPolicy: Unsupported value: \"Y\": supported values: \"PreferDualStack\", \"RequireDualStack\", \
             \"SingleStack\"",
        ),
    ] {
        let spec: ServiceSpec = crate::testing::read(spec);
        assert_eq!(lines(&cluster_ips(&spec, &[])), expected);
    }
}

#[test]
fn the_first_address_stays() {
    let two = r#"{"clusterIP":"10.0.0.5","clusterIPs":["10.0.0.5","fd00::5"],"ipFamilies":["IPv4","IPv6"],
        "ipFamilyPolicy":"RequireDualStack","ports":[{"port":80}]}"#;
    let at =
        |place: usize, list: &str| format!("spec.clusterIPs[{place}]: Invalid value: {list}: may not change once set");
    for (new, expected) in [
        (two.to_owned(), String::new()),
        (two.replace("fd00::5", "fd00::6"), at(1, r#"["10.0.0.5","fd00::6"]"#)),
        (two.replace("10.0.0.5", "10.0.0.6"), at(0, r#"["10.0.0.6","fd00::5"]"#)),
        (
            two.replace(",\"fd00::5\"", "")
                .replace(",\"IPv6\"", "")
                .replace("Require", "Prefer"),
            "spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be set to 'SingleStack' when releasing the \
             secondary clusterIP\n\
             spec.ipFamilyPolicy: Invalid value: \"PreferDualStack\": must be set to 'SingleStack' when releasing the \
             secondary ipFamily"
                .to_owned(),
        ),
        (
            two.replace(",\"fd00::5\"", "")
                .replace(",\"IPv6\"", "")
                .replace("RequireDual", "Single"),
            String::new(),
        ),
        (
            r#"{"type":"ExternalName","externalName":"a"}"#.to_owned(),
            String::new(),
        ),
    ] {
        assert_eq!(lines(&of_change(&service(&new), &service(two))), expected, "{new}");
    }
}

#[test]
fn a_load_balancer_keeps_its_class_and_check() {
    let balanced = r#"{"type":"LoadBalancer","ports":[{"port":80}],"loadBalancerClass":"a/b",
        "externalTrafficPolicy":"Local","healthCheckNodePort":30001}"#;
    let changed = balanced
        .replace("a/b", "C")
        .replace("30001", "30002")
        .replace("\"C\"", "\"a/c\"");
    assert_eq!(
        lines(&of_change(&service(&changed), &service(balanced))),
        "spec.loadBalancerClass: Invalid value: \"a/c\": may not change once set\n\
         spec.healthCheckNodePort: Forbidden: field is immutable"
    );
}

#[test]
fn only_load_balancers_are_reached_from_outside() {
    let with = |ty: &str, ingress: &str| -> Service {
        crate::testing::read(&format!(
            r#"{{"spec":{{"type":"{ty}"}},"status":{{"loadBalancer":{{"ingress":[{ingress}]}}}}}}"#
        ))
    };
    let none = with("LoadBalancer", "");
    let at = |field: &str| format!("status.loadBalancer.ingress[0].{field}: ");
    for (ty, ingress, expected) in [
        ("LoadBalancer", r#"{"ip":"10.0.0.5","ipMode":"VIP"}"#, String::new()),
        (
            "ClusterIP",
            r#"{"ip":"10.0.0.5","ipMode":"VIP"}"#,
            "status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is 'LoadBalancer'".to_owned(),
        ),
        (
            "LoadBalancer",
            r#"{"ip":"10.0.0.5"}"#,
            at("ipMode") + "Required value: must be specified when `ip` is set",
        ),
        (
            "LoadBalancer",
            r#"{"hostname":"a","ipMode":"VIP"}"#,
            at("ipMode") + "Forbidden: may not be specified when `ip` is not set",
        ),
        (
            "LoadBalancer",
            r#"{"ip":"10.0.0.5","ipMode":"X"}"#,
            at("ipMode") + "Unsupported value: \"X\": supported values: \"Proxy\", \"VIP\"",
        ),
        (
            "LoadBalancer",
            r#"{"hostname":"10.0.0.5"}"#,
            at("hostname") + "Invalid value: \"10.0.0.5\": must be a DNS name, not an IP address",
        ),
        (
            "LoadBalancer",
            r#"{"ip":"010.0.0.5","ipMode":"VIP"}"#,
            at("ip") + "Invalid value: \"010.0.0.5\": must not have leading 0s",
        ),
    ] {
        assert_eq!(lines(&of_status(&with(ty, ingress), &none)), expected);
    }
}
