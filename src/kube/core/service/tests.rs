//! Services on a server without HTTP: what they are given, keep, and give back.

use std::net::IpAddr;

use keelson_registry::Client;
use tokio::task::LocalSet;

use super::testing::{Cluster, Server};
use super::*;

const PORTS: (u16, u16) = (30_000, 30_099);

fn ips(service: &Service) -> String {
    service.spec.cluster_ips.join(",")
}

fn node_ports(service: &Service) -> Vec<i32> {
    service.spec.ports.iter().map(|port| port.node_port).collect()
}

async fn names(server: &Server) -> String {
    let all = server.addresses().await;
    let shown = all.iter().map(|(ip, owner)| format!("{ip}={owner}"));
    shown.collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn addresses_are_given_kept_and_given_back() {
    LocalSet::new()
        .run_until(async {
            // Six addresses.
            let (_cluster, server) = Cluster::started("10.0.0.0/29", PORTS).await;
            let port = r#"{"ports":[{"port":80}]}"#;
            let mut given = Vec::new();
            for n in 0..6 {
                given.push(ips(&server.create(&format!("s{n}"), port).await.unwrap()));
            }
            given.sort();
            assert_eq!(given, (1..=6).map(|n| format!("10.0.0.{n}")).collect::<Vec<_>>());
            let full = server.create("full", port).await.err().unwrap();
            assert_eq!(
                (full.code, full.message.as_str()),
                (
                    500,
                    "Internal error occurred: failed to allocate a serviceIP for Service \"full\": range is full"
                )
            );
            // A range that comes is used at once.
            server.add_range("more", "10.0.9.0/30").await;
            let more = server.create("more", port).await.unwrap();
            assert!(ips(&more).starts_with("10.0.9."));
            for n in 0..6 {
                server.delete(&format!("s{n}")).await.unwrap();
            }
            assert_eq!(names(&server).await, format!("{}=more", ips(&more)));
            let changed = server
                .update("more", |service| service.spec.cluster_ip.clear())
                .await
                .unwrap();
            assert_eq!(ips(&changed), ips(&more), "what is left out is kept");
            let external = |service: &mut Service| {
                service.spec.r#type = "ExternalName".to_owned();
                service.spec.external_name = "a.example".to_owned();
            };
            let changed = server.update("more", external).await.unwrap();
            assert_eq!((ips(&changed), names(&server).await), (String::new(), String::new()));
        })
        .await;
}

#[tokio::test]
async fn an_address_that_is_asked_for_is_one_services_alone() {
    LocalSet::new()
        .run_until(async {
            let (_cluster, server) = Cluster::started("10.0.0.0/24", PORTS).await;
            let at = |ip: &str| format!(r#"{{"ports":[{{"port":80}}],"clusterIP":"{ip}"}}"#);
            server.create("one", &at("10.0.0.9")).await.unwrap();
            for (ip, why) in [
                ("10.0.0.9", "provided IP is already allocated"),
                ("10.0.1.9", "the provided network does not match the current range"),
                ("10.0.0.255", "the provided network does not match the current range"),
            ] {
                let error = server.create("other", &at(ip)).await.err().unwrap();
                assert_eq!(
                    error.message,
                    format!(
                        "Service \"other\" is invalid: spec.clusterIPs: Invalid value: [\"{ip}\"]: failed to allocate IP \
                         {ip}: {why}"
                    )
                );
            }
            // What is refused gives back what it took, before the client is told.
            let refused = server.create("x", r#"{"ports":[],"clusterIP":"10.0.0.10"}"#).await.err().unwrap();
            assert_eq!(refused.message, "Service \"x\" is invalid: spec.ports: Required value");
            assert_eq!(server.create("one", &at("10.0.0.11")).await.err().unwrap().code, 409);
            assert_eq!(names(&server).await, "10.0.0.9=one");
            let dry = Client::of_server(server.verbs.clone(), "test").dry_run(true);
            let services = dry.objects("", "services", "ns").unwrap();
            let service: Service = crate::testing::read(
                r#"{"metadata":{"name":"dry","namespace":"ns"},
                    "spec":{"type":"NodePort","ports":[{"name":"a","port":1},{"name":"b","port":2}]}}"#,
            );
            let shown = services.create(Box::new(service)).await.unwrap();
            let shown = shown.downcast_ref::<Service>().unwrap();
            assert_eq!((ips(shown).as_str(), node_ports(shown)), ("10.0.0.0", vec![32_769, 32_770]));
            assert_eq!((names(&server).await, server.ports().await.len()), ("10.0.0.9=one".to_owned(), 0));
        })
        .await;
}

#[tokio::test]
async fn a_second_address_comes_and_goes() {
    LocalSet::new()
        .run_until(async {
            let cluster = Cluster::new(ServiceOptions {
                ranges: vec![IpAddr::from([10, 0, 0, 0]), "fd00::".parse().unwrap()],
                ..ServiceOptions::default()
            });
            let server = cluster.server();
            server.prepare("10.0.0.0/24").await;
            server.add_range("v6", "fd00::/112").await;
            let single = server.create("one", r#"{"ports":[{"port":80}]}"#).await.unwrap();
            assert_eq!(single.spec.ip_families, ["IPv4"]);
            let policy = |policy: &'static str| {
                move |service: &mut Service| service.spec.ip_family_policy = Some(policy.to_owned())
            };
            let dual = server.update("one", policy("RequireDualStack")).await.unwrap();
            assert_eq!(dual.spec.ip_families, ["IPv4", "IPv6"]);
            assert_eq!(dual.spec.cluster_ips[0], single.spec.cluster_ips[0]);
            assert!(dual.spec.cluster_ips[1].starts_with("fd00::"));
            assert_eq!(server.addresses().await.len(), 2);
            let single = server.update("one", policy("SingleStack")).await.unwrap();
            assert_eq!(
                (ips(&single), server.addresses().await.len()),
                (dual.spec.cluster_ips[0].clone(), 1)
            );
            // The first address is given back where there is no second one.
            let taken = r#"{"ports":[{"port":80}],"ipFamilyPolicy":"RequireDualStack","clusterIP":"10.0.0.99",
                "clusterIPs":["10.0.0.99","fd00:1::1"]}"#;
            assert_eq!(server.create("two", taken).await.err().unwrap().code, 422);
            assert_eq!(server.addresses().await.len(), 1);
        })
        .await;
}

#[tokio::test]
async fn node_ports_are_given_kept_and_given_back() {
    LocalSet::new()
        .run_until(async {
            let (_cluster, server) = Cluster::started("10.0.0.0/24", PORTS).await;
            let spec = r#"{"type":"NodePort","ports":[{"name":"a","port":1,"nodePort":30005},{"name":"b","port":2}]}"#;
            let made = server.create("one", spec).await.unwrap();
            let given = node_ports(&made);
            assert!(given[0] == 30_005 && (30_016..=30_099).contains(&given[1]));
            let error = server.create("two", spec).await.err().unwrap();
            assert_eq!(
                error.message,
                "Service \"two\" is invalid: spec.ports[0].nodePort: Invalid value: 30005: provided port is already \
                 allocated"
            );
            let error = server.create("two", &spec.replace("30005", "80")).await.err().unwrap();
            assert!(
                error.message.ends_with("The range of valid ports is 30000-30099"),
                "{error}"
            );
            assert_eq!((server.ports().await.len(), server.addresses().await.len()), (2, 1));
            let forgetful = |service: &mut Service| service.spec.ports.iter_mut().for_each(|port| port.node_port = 0);
            assert_eq!(node_ports(&server.update("one", forgetful).await.unwrap()), given);
            let balanced = |service: &mut Service| {
                service.spec.r#type = "LoadBalancer".to_owned();
                service.spec.external_traffic_policy = "Local".to_owned();
                service.spec.allocate_load_balancer_node_ports = Some(true);
                service.spec.ports.truncate(1);
            };
            let checked = server
                .update("one", balanced)
                .await
                .unwrap()
                .spec
                .health_check_node_port;
            assert_eq!(server.ports().await, [30_005, u16::try_from(checked).unwrap()]);
            let plain = |service: &mut Service| service.spec.r#type = "ClusterIP".to_owned();
            assert_eq!(node_ports(&server.update("one", plain).await.unwrap()), [0]);
            assert!(server.ports().await.is_empty());
            server.update("one", balanced).await.unwrap();
            server.delete("one").await.unwrap();
            assert_eq!((server.ports().await.len(), server.addresses().await.len()), (0, 0));
        })
        .await;
}

/// A finalizer that goes through the status lets the service go as well.
#[tokio::test]
async fn what_a_held_service_has_is_given_back_when_it_goes() {
    LocalSet::new()
        .run_until(async {
            let (_cluster, server) = Cluster::started("10.0.0.0/24", PORTS).await;
            server
                .create("one", r#"{"type":"NodePort","ports":[{"port":1}]}"#)
                .await
                .unwrap();
            let hold = |service: &mut Service| service.metadata.finalizers = vec!["example.test/hold".to_owned()];
            server.update("one", hold).await.unwrap();
            let endpoints = server.client().objects("", "endpoints", "ns").unwrap();
            let mut object = endpoints.resource.hub.new_object();
            object.meta_mut().name = "one".to_owned();
            object.meta_mut().namespace = "ns".to_owned();
            endpoints.create(object).await.unwrap();
            server.delete("one").await.unwrap();
            assert_eq!((server.ports().await.len(), server.addresses().await.len()), (1, 1));
            let status = server
                .client()
                .objects("", "services", "ns")
                .unwrap()
                .subresource("status")
                .unwrap();
            let mut release = |old: Option<&dyn keelson_machinery::object::Object>| {
                let mut new = old.unwrap().clone_object();
                new.meta_mut().finalizers.clear();
                Ok(new)
            };
            status.update("one", &mut release).await.unwrap();
            assert_eq!((server.ports().await.len(), server.addresses().await.len()), (0, 0));
            assert!(endpoints.find("one").await.unwrap().is_none());
        })
        .await;
}
