//! Admission: plug-ins see each attempt to write, in their order, and may wait.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use keelson_codegen_sample::api::shop_example_com::v1::Order;
use keelson_machinery::status::StatusError;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::{later, now};
use keelson_registry::{Answer, Call, Handler, Outcome, Reply};
use serde_json::{Value, json};

use crate::faulty_store::Meddled;
use crate::faulty_store::Meddling::Touched;
use crate::setting::{Client, ORDERS, Server};

const ONE: &str = "/apis/shop.example.com/v1/namespaces/default/orders/one";
const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// What plug-ins were asked, in order.
type Told = Arc<Mutex<Vec<String>>>;

/// Tells what it is asked, after a while, and leaves a label.
struct Slow(Told);

impl Slow {
    async fn tell(&self, phase: &str, attributes: &Attributes<'_>) -> Result<(), StatusError> {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let (operation, subresource) = (attributes.operation, attributes.subresource);
        let (object, old) = (attributes.object.is_some(), attributes.old.is_some());
        let name = attributes.name();
        self.0
            .lock()
            .unwrap()
            .push(format!("{phase} {operation:?} {name}/{subresource} {object} {old}"));
        match attributes.metadata().is_some_and(|m| m.labels.contains_key("refuse")) {
            true => Err(StatusError::forbidden("", "orders", name, "a plug-in says no")),
            false => Ok(()),
        }
    }

    async fn label(&self, attributes: &mut Attributes<'_>) -> Result<(), StatusError> {
        self.tell("admit", attributes).await?;
        let operation = format!("{:?}", attributes.operation);
        if let Some(metadata) = attributes.metadata_mut() {
            metadata.labels.insert("admitted".to_owned(), operation);
        }
        Ok(())
    }
}

impl Plugin for Slow {
    fn name(&self) -> &'static str {
        "Slow"
    }
    fn handles(&self, _scope: &Scope<'_>) -> Handles {
        Handles::BOTH
    }
    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
        later(self.label(attributes))
    }
    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        let label = attributes.metadata().map(|m| m.labels.contains_key("admitted"));
        // A Scale is made anew of its object.
        let kept = attributes.subresource == "scale" || label != Some(false);
        assert!(kept, "validated before it was admitted");
        later(self.tell("validate", attributes))
    }
}

/// Waits for nothing, and has nothing to do with orders themselves.
struct OfStatus(Told);

impl Plugin for OfStatus {
    fn name(&self) -> &'static str {
        "OfStatus"
    }
    fn handles(&self, scope: &Scope<'_>) -> Handles {
        Handles::MUTATES.when(scope.subresource == "status" && scope.operation == Operation::Update)
    }
    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Outcome<'a, ()> {
        self.0.lock().unwrap().push(format!("status of {}", attributes.name()));
        now(Ok(()))
    }
}

/// Cancels an order.
struct Cancel;

impl Handler for Cancel {
    fn create<'a>(
        &'a self,
        _call: &'a Call<'a>,
        _object: Box<dyn keelson_machinery::object::Kind>,
    ) -> Answer<'a, Reply> {
        Box::pin(std::future::ready(Ok(Reply::success(201))))
    }
}

struct Setting {
    _server: Server,
    client: Client,
    store: Arc<Meddled>,
    told: Told,
}

impl Setting {
    async fn new() -> Setting {
        let told = Told::default();
        let (sender, receiver) = std::sync::mpsc::channel();
        let shared = told.clone();
        let server = Server::configured(move |config| {
            sender.send(Meddled::of(config)).unwrap();
            let admission = std::mem::take(&mut config.resources.admission);
            config.resources.admission = admission.with(Slow(shared.clone())).with(OfStatus(shared));
            config.resources.code.kind::<Order>().subresource("cancel", Cancel);
        });
        let client = server.client().await;
        Setting {
            _server: server,
            client,
            store: receiver.recv().unwrap(),
            told,
        }
    }

    async fn send(&mut self, method: &str, path: &str, media_type: &str, body: &Value) -> (u16, Value) {
        self.client.send(method, path, media_type, &body.to_string()).await
    }

    fn told(&self) -> Vec<String> {
        std::mem::take(&mut self.told.lock().unwrap())
    }
}

fn order(labels: Value) -> Value {
    json!({
        "apiVersion": "shop.example.com/v1", "kind": "Order", "metadata": {"name": "one", "labels": labels},
        "spec": {
            "customer": "ann", "street": "s", "items": [{"article": "a"}], "price": 1,
            "extra": {"apiVersion": "v1", "kind": "X"},
        },
    })
}

#[tokio::test]
async fn every_write_passes_the_chain() {
    let mut setting = Setting::new().await;
    let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 2}});
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let cancel = json!({"apiVersion": "shop.example.com/v1", "kind": "Cancellation", "metadata": {"name": "one"}});
    for (method, path, media_type, body, status, expected) in [
        ("POST", ORDERS, JSON, order(json!({})), 201, "Create one/ true false"),
        ("PATCH", ONE, MERGE_PATCH, label.clone(), 200, "Update one/ true true"),
        (
            "PATCH",
            &*format!("{ONE}?fieldManager=m&force=true"),
            APPLY,
            order(json!({})),
            200,
            "Update one/ true true",
        ),
        (
            "PATCH",
            &format!("{ONE}/scale"),
            MERGE_PATCH,
            scale,
            200,
            "Update one/scale true true",
        ),
        (
            "POST",
            &format!("{ONE}/cancel"),
            JSON,
            cancel,
            201,
            "Create one/cancel true false",
        ),
        ("DELETE", ONE, JSON, json!({}), 200, "Delete one/ false true"),
        ("POST", ORDERS, JSON, order(json!({})), 201, "Create one/ true false"),
        ("DELETE", ORDERS, JSON, json!({}), 200, "Delete one/ false true"),
        (
            "PATCH",
            &format!("{ONE}?fieldManager=m"),
            APPLY,
            order(json!({})),
            201,
            "Create one/ true false",
        ),
    ] {
        let (code, told) = setting.send(method, path, media_type, &body).await;
        assert_eq!(code, status, "{method} {path}: {told}");
        let expected = [format!("admit {expected}"), format!("validate {expected}")];
        assert_eq!(setting.told(), expected, "{method} {path}");
    }
    let (code, told) = setting
        .send("PATCH", &format!("{ONE}/status"), MERGE_PATCH, &label)
        .await;
    assert_eq!(code, 200, "{told}");
    let asked = "Update one/status true true";
    let expected = [
        format!("admit {asked}"),
        "status of one".to_owned(),
        format!("validate {asked}"),
    ];
    assert_eq!(setting.told(), expected);
}

/// What a plug-in sets is stored, and belongs to nobody.
#[tokio::test]
async fn what_plugins_set_has_no_owner() {
    let mut setting = Setting::new().await;
    let (code, told) = setting.send("POST", ORDERS, JSON, &order(json!({"own": "1"}))).await;
    assert_eq!(
        (code, &told["metadata"]["labels"]["admitted"]),
        (201, &json!("Create")),
        "{told}"
    );
    let owned = &told["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"]["f:labels"];
    assert!(owned["f:own"].is_object() && owned["f:admitted"].is_null(), "{told}");
}

/// An attempt that another writer overtakes is looked at again.
#[tokio::test]
async fn each_attempt_is_admitted_once() {
    let mut setting = Setting::new().await;
    assert_eq!(setting.send("POST", ORDERS, JSON, &order(json!({}))).await.0, 201);
    setting.told();
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    setting.store.plan([Touched, Touched]);
    assert_eq!(setting.send("PATCH", ONE, MERGE_PATCH, &label).await.0, 200);
    let attempt = ["admit Update one/ true true", "validate Update one/ true true"];
    assert_eq!(setting.told(), [attempt, attempt, attempt].concat());
    setting.store.plan([Touched]);
    assert_eq!(setting.send("DELETE", ONE, JSON, &json!({})).await.0, 200);
    let attempt = ["admit Delete one/ false true", "validate Delete one/ false true"];
    assert_eq!(setting.told(), [attempt, attempt].concat());
}

#[tokio::test]
async fn what_a_plugin_refuses_is_not_stored() {
    let mut setting = Setting::new().await;
    let (code, told) = setting.send("POST", ORDERS, JSON, &order(json!({"refuse": "1"}))).await;
    let message = "orders \"one\" is forbidden: a plug-in says no";
    assert_eq!((code, &told["message"]), (403, &json!(message)));
    assert_eq!(setting.told().len(), 1, "nothing follows a refusal");
    assert!(setting.store.entry("one").await.is_none());
}
