//! The ranges that ServiceCIDRs name, followed in the store's memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use keelson_access::lister::{Change, Feed, Listers};
use keelson_api::networking_k8s_io::v1::ServiceCIDR;
use keelson_machinery::status::StatusError;
use keelson_registry::{ServerListers, Verbs};

use super::GROUP;
use super::range::Range;
use crate::cidr::Cidr;
use crate::core::service::families::Family;

const PLURAL: &str = "servicecidrs";

/// A range, and whether services get addresses of it now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    pub range: Range,
    /// As the API writes it.
    pub cidr: String,
    pub ready: bool,
}

/// The ranges of all ServiceCIDRs.
#[derive(Default)]
pub struct Ranges {
    feed: OnceLock<Option<Box<dyn Feed>>>,
    by_name: Mutex<BTreeMap<Box<str>, Vec<Known>>>,
}

impl Ranges {
    /// Those of a family. Two objects may name the same one: it is ready if one of them is.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn of(&self, verbs: &Arc<Verbs>, family: Family) -> Result<Vec<Known>, StatusError> {
        if let Some(resource) = verbs.registry.resource(GROUP, PLURAL) {
            resource.hold().await?;
        }
        let feed = self
            .feed
            .get_or_init(|| ServerListers::new(verbs.clone()).feed(GROUP, PLURAL));
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = feed {
            feed.catch_up(&mut |changes| changes.into_iter().for_each(|change| take(&mut by_name, change)));
        }
        let mut found: Vec<Known> = Vec::new();
        for known in by_name.values().flatten().filter(|known| known.range.family == family) {
            match found.iter_mut().find(|other| other.range == known.range) {
                Some(other) => other.ready |= known.ready,
                None => found.push(known.clone()),
            }
        }
        Ok(found)
    }
}

fn take(by_name: &mut BTreeMap<Box<str>, Vec<Known>>, change: Change) {
    match change {
        Change::Reset => by_name.clear(),
        Change::Put(place, object) => {
            let known = object.downcast_ref().map(of_object).unwrap_or_default();
            by_name.insert(place.name, known);
        }
        Change::Gone(place) => drop(by_name.remove(&place.name)),
    }
}

/// The ranges that one object names.
pub fn of_object(object: &ServiceCIDR) -> Vec<Known> {
    let ready = is_ready(object) && object.metadata.deletion_timestamp.is_none();
    let known = |text: &String| {
        Some(Known {
            range: Range::parse(text)?,
            cidr: Cidr::parse(text)?.masked().to_string(),
            ready,
        })
    };
    object.spec.cidrs.iter().filter_map(known).collect()
}

/// One of which nobody says anything is ready: whoever would say it may not run.
fn is_ready(object: &ServiceCIDR) -> bool {
    let mut conditions = object.status.conditions.iter();
    let ready = conditions.find(|condition| condition.r#type == "Ready");
    ready.is_none_or(|condition| condition.status == "True")
}
