//! Tests of the endpoints, on a store in memory that several servers have open.

use super::super::tests::context;
use super::*;
use crate::testing::read;

fn server(context: &HookContext, kind: EndpointReconciler, address: &str) -> Reconciler {
    let mut server = Reconciler::new(context, "test", kind, address.parse().unwrap()).unwrap();
    // A store in memory says that it is one server's.
    if kind == EndpointReconciler::Lease {
        let resource = server.client.of::<Endpoints>(NAMESPACE).unwrap().objects.resource;
        server.note = Some(Record::new(resource.clone(), &format!("{LEASES}/{}", server.own)));
        server.notes = Some(Record::new(resource, LEASES));
    }
    server
}

async fn stored(context: &HookContext) -> (Vec<String>, Vec<String>) {
    let client = context.client("test");
    let endpoints = client.of::<Endpoints>(NAMESPACE).unwrap().find(NAME).await.unwrap();
    let slice = client.of::<EndpointSlice>(NAMESPACE).unwrap().find(NAME).await.unwrap();
    let addresses = endpoints.unwrap().subsets.into_iter().flat_map(|one| one.addresses);
    let shown = slice.unwrap().endpoints.into_iter().flat_map(|one| one.addresses);
    (addresses.map(|address| address.ip).collect(), shown.collect())
}

fn both(ips: &[&str]) -> (Vec<String>, Vec<String>) {
    let ips: Vec<String> = ips.iter().map(|ip| (*ip).to_owned()).collect();
    (ips.clone(), ips)
}

async fn with_namespace() -> HookContext {
    let context = context();
    let namespace = read(r#"{"metadata":{"name":"default"}}"#);
    let namespaces = context.client("test").of::<keelson_api::core::v1::Namespace>("");
    namespaces.unwrap().create(namespace).await.unwrap();
    context
}

#[tokio::test]
async fn servers_come_and_go() {
    let context = with_namespace().await;
    let server = |address| server(&context, EndpointReconciler::Lease, address);
    let (one, two) = (server("192.0.2.9:6443"), server("192.0.2.10:6443"));
    one.reconcile().await.unwrap();
    assert_eq!(stored(&context).await, both(&["192.0.2.9"]));
    two.reconcile().await.unwrap();
    assert_eq!(
        stored(&context).await,
        both(&["192.0.2.10", "192.0.2.9"]),
        "in the order of texts"
    );
    one.leave().await.unwrap();
    assert_eq!(stored(&context).await, both(&["192.0.2.10"]));
    two.leave().await.unwrap();
    assert_eq!(stored(&context).await, both(&[]), "the last one leaves nothing behind");
    one.reconcile().await.unwrap();
    assert_eq!(stored(&context).await, both(&["192.0.2.9"]));
}

#[tokio::test]
async fn what_is_right_is_not_written_again() {
    let context = with_namespace().await;
    let server = Reconciler::new(
        &context,
        "test",
        EndpointReconciler::Lease,
        "192.0.2.9:6443".parse().unwrap(),
    );
    let server = server.unwrap();
    server.reconcile().await.unwrap();
    let before = context.backend.store.current_revision().await.unwrap();
    server.reconcile().await.unwrap();
    assert_eq!(context.backend.store.current_revision().await.unwrap(), before);
    // What others did to it is undone.
    let slices = context.client("test").of::<EndpointSlice>(NAMESPACE).unwrap();
    slices.delete(NAME, &DeleteOptions::default()).await.unwrap();
    let endpoints = context.client("test").of::<Endpoints>(NAMESPACE).unwrap();
    let spoil = |endpoints: &mut Endpoints| {
        endpoints.metadata.labels.clear();
        endpoints.subsets[0].addresses.push(address("192.0.2.1"));
    };
    endpoints.update(NAME, spoil).await.unwrap();
    server.reconcile().await.unwrap();
    assert_eq!(stored(&context).await, both(&["192.0.2.9"]));
    let found = endpoints.find(NAME).await.unwrap().unwrap();
    assert_eq!(found.metadata.labels[SKIP_MIRROR], "true");
}

#[tokio::test]
async fn so_many_servers_add_themselves() {
    let context = with_namespace().await;
    let server = |address| server(&context, EndpointReconciler::Count(2), address);
    let all = ["192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1"].map(server);
    for one in &all[..2] {
        one.reconcile().await.unwrap();
    }
    assert_eq!(stored(&context).await, both(&["192.0.2.1", "192.0.2.2"]));
    all[2].reconcile().await.unwrap();
    assert_eq!(
        stored(&context).await,
        both(&["192.0.2.2", "192.0.2.3"]),
        "the one behind it is the first"
    );
    all[2].leave().await.unwrap();
    assert_eq!(stored(&context).await, both(&["192.0.2.2"]));
}

#[tokio::test]
async fn others_may_see_to_it() {
    let context = with_namespace().await;
    let server = server(&context, EndpointReconciler::None, "192.0.2.1:1");
    server.reconcile().await.unwrap();
    server.leave().await.unwrap();
    let endpoints = context.client("test").of::<Endpoints>(NAMESPACE).unwrap();
    assert!(endpoints.find(NAME).await.unwrap().is_none());
}

#[test]
fn slices_are_of_one_family() {
    for (ips, family, shown) in [
        (&["192.0.2.1", "2001:db8::1"][..], "IPv4", &["192.0.2.1"][..]),
        (&["2001:db8::1"], "IPv6", &["2001:db8::1"]),
        (&[], "IPv4", &[]),
    ] {
        let endpoints = Endpoints {
            subsets: subsets(ips.iter().map(|ip| address(ip)).collect(), Vec::new()),
            ..Endpoints::default()
        };
        let slice = slice(&endpoints);
        let found: Vec<_> = slice.endpoints.iter().map(|one| one.addresses[0].as_str()).collect();
        assert_eq!((slice.address_type.as_str(), found.as_slice()), (family, shown));
    }
}
