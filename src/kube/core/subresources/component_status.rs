//! ComponentStatus: whether the store and the other parts of a control plane on this machine are well.

use keelson_api::core::v1::{ComponentCondition, ComponentStatus};
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_net::client::health;
use keelson_registry::{Answer, Call, Handler, Reply};

/// Components that are asked at a port of this machine.
const NEIGHBOURS: [(&str, u16); 2] = [("scheduler", 10259), ("controller-manager", 10257)];
const STORE: &str = "etcd-0";

pub struct Components;

impl Handler for Components {
    fn get<'a>(&'a self, call: &'a Call<'a>) -> Answer<'a, Reply> {
        Box::pin(async move {
            let name = call.name();
            let known = name == STORE || NEIGHBOURS.iter().any(|(n, _)| *n == name);
            if !known {
                return Err(StatusError::not_found("", "componentstatus", name));
            }
            Ok(Reply::Object(200, Box::new(status(call, name).await)))
        })
    }

    fn list<'a>(&'a self, call: &'a Call<'a>) -> Answer<'a, Vec<Box<dyn Object>>> {
        Box::pin(async move {
            let [(scheduler, _), (manager, _)] = NEIGHBOURS;
            let (a, b, c) = tokio::join!(status(call, scheduler), status(call, manager), status(call, STORE));
            let boxed = |status| Box::new(status) as Box<dyn Object>;
            Ok(vec![boxed(a), boxed(b), boxed(c)])
        })
    }
}

async fn status(call: &Call<'_>, name: &str) -> ComponentStatus {
    let health = match NEIGHBOURS.iter().find(|(n, _)| *n == name) {
        Some((_, port)) => health(*port).await.map_err(|error| error.to_string()),
        None => match call.backend.store.health().await {
            Ok(()) => Ok("ok".to_owned()),
            Err(error) => Err(error.to_string()),
        },
    };
    let mut component = ComponentStatus::default();
    name.clone_into(&mut component.metadata.name);
    component.conditions.push(ComponentCondition {
        r#type: "Healthy".to_owned(),
        status: if health.is_ok() { "True" } else { "False" }.to_owned(),
        message: health.unwrap_or_else(|why| why),
        ..ComponentCondition::default()
    });
    component
}
