//! The writers of the simulated objects, some of whom vanish amid their requests; each answer is judged by what the
//! store was given while it was asked for.

use std::sync::{Arc, Mutex};

use keelson_machinery::json;
use keelson_machinery::meta::v1::DeleteOptions;
use keelson_machinery::object::Object;
use keelson_machinery::status::StatusError;
use keelson_storage::simulation::world::World;
use keelson_storage::{Entry, Revision, Store, Version};
use tokio::time::timeout;

use super::shop::{Shop, annotation};
use super::{GROUP, MARKS, PLURALS, versions};
use crate::generic::{Objects, Resource};
use crate::simulation::slow::{Done, Slow};

/// What one writer was told of its request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    Done(Revision),
    Refused,
    /// Its store failed, or it went away.
    Unknown,
}

/// A request and what came of it.
pub struct Request {
    /// The mark of an update.
    pub mark: Option<String>,
    pub word: Word,
}

/// One client.
pub struct Writer {
    pub world: Arc<World>,
    pub shop: Arc<Shop>,
    pub store: Arc<Slow>,
    /// The resource in its stored version.
    pub stored: Arc<Resource>,
    pub objects: Objects,
    pub names: usize,
    pub number: usize,
    pub requests: Arc<Mutex<Vec<Request>>>,
}

impl Writer {
    pub async fn run(self) {
        for round in 0..self.world.dice.between(4, 12) {
            let name = format!("order-{}", self.world.dice.below(self.names));
            let begun = self.store.inner.current_revision().await.unwrap();
            let mark = format!("{}.{round}", self.number);
            let request = self.request(&name, &mark);
            let answer = match self.world.dice.chance(200) {
                true => timeout(self.world.dice.millis(25), request).await.ok(),
                false => Some(request.await),
            };
            let ended = self.store.inner.current_revision().await.unwrap();
            self.judge(&name, &mark, answer, (begun, ended));
            self.shop.pause().await;
        }
    }

    /// What is asked for, its mark, and what was answered.
    async fn request(&self, name: &str, mark: &str) -> Answered {
        match self.world.dice.below(12) {
            10 => {
                let mut updater = |stored: Option<&dyn Object>| {
                    let object = stored.ok_or_else(|| self.objects.resource.not_found(name))?;
                    Ok(object.clone_object())
                };
                (What::Keep, self.objects.update(name, &mut updater).await.map(Some))
            }
            11 => {
                let mut updater = |stored: Option<&dyn Object>| {
                    let object = stored.ok_or_else(|| self.objects.resource.not_found(name))?;
                    match object.meta().annotations.contains_key(MARKS) {
                        true => Err(StatusError::conflict(GROUP, &self.stored.plural, name, "it is marked")),
                        false => Ok(object.clone_object()),
                    }
                };
                (What::Keep, self.objects.update(name, &mut updater).await.map(Some))
            }
            0..=2 => (
                What::Create,
                self.objects
                    .create(object(&self.objects.resource, name))
                    .await
                    .map(Some),
            ),
            3..=7 => {
                let mut updater = |stored: Option<&dyn Object>| {
                    let mut object = stored
                        .ok_or_else(|| self.objects.resource.not_found(name))?
                        .clone_object();
                    let marks = format!("{} {mark}", annotation(&*object, MARKS));
                    object.meta_mut().annotations.insert(MARKS.to_owned(), marks);
                    Ok(object)
                };
                (What::Update, self.objects.update(name, &mut updater).await.map(Some))
            }
            8 => (
                What::Get,
                self.objects.get(name).await.map(|stored| Some(stored.object)),
            ),
            _ => {
                let deleted = self.objects.delete(name, &DeleteOptions::default()).await;
                (What::Delete, deleted.map(|_| None))
            }
        }
    }

    /// Whether the answer can be: `during` is what the store was at before and behind the request.
    fn judge(&self, name: &str, mark: &str, answer: Option<Answered>, during: (Revision, Revision)) {
        let key = format!("{}default/{name}", self.stored.key_prefix);
        let moments = self.moments(&key, during);
        let there = moments.iter().any(Option::is_some);
        let absent = moments.iter().any(Option::is_none);
        self.world.say(|| {
            let shown = answer
                .as_ref()
                .map(|(what, told)| (what, told.as_ref().map(|_| ()).map_err(|e| e.code)));
            format!("writer {} {name} {mark}: {shown:?} {during:?}", self.number)
        });
        let Some((what, told)) = answer else {
            // Whatever it was.
            return self.note(Some(mark), Word::Unknown);
        };
        let word = match &told {
            Ok(object) => Word::Done(object.as_ref().map_or(during.1, |object| revision(&**object))),
            Err(error) if error.code >= 500 => Word::Unknown,
            Err(_) => Word::Refused,
        };
        let code = told.as_ref().err().map(|error| error.code);
        let marked = |seen: &Option<Seen>| seen.as_ref().is_some_and(|seen| seen.marked);
        let shown = told
            .as_ref()
            .ok()
            .and_then(Option::as_ref)
            .map(|object| revision(&**object));
        let is_shown = |seen: &Option<Seen>| seen.as_ref().map(|seen| seen.revision) == shown;
        let possible = match (what, code) {
            (What::Create, Some(409)) => there,
            (What::Update | What::Keep | What::Get | What::Delete, Some(404)) => absent,
            (What::Update, Some(409)) => false,
            (What::Keep, Some(409)) => moments.iter().any(marked),
            (What::Get | What::Keep, None) => moments.iter().any(is_shown),
            (What::Delete, None) => absent,
            _ => true,
        };
        if !possible {
            let told = format!("{what:?} of {name}: {code:?} between {during:?}");
            self.world
                .fail("an answer was true while the request was under way", told);
        }
        self.note((what == What::Update).then_some(mark), word);
    }

    fn note(&self, mark: Option<&str>, word: Word) {
        let mark = mark.map(str::to_owned);
        self.requests.lock().unwrap().push(Request { mark, word });
    }

    /// What was at the key at the beginning of `during`, and each thing that came to be there until its end.
    fn moments(&self, key: &str, during: (Revision, Revision)) -> Vec<Option<Seen>> {
        let done = self.store.done.lock().unwrap();
        let own = done.iter().filter(|done| done.key == key && done.revision <= during.1);
        let (before, amid): (Vec<&Done>, Vec<&Done>) = own.partition(|done| done.revision <= during.0);
        let first = std::iter::once(before.last().copied());
        let all = first.chain(amid.into_iter().map(Some));
        all.map(|done| self.seen(done?)).collect()
    }

    fn seen(&self, done: &Done) -> Option<Seen> {
        let object = decode(&self.stored, done)?;
        Some(Seen {
            revision: done.revision,
            marked: object.meta().annotations.contains_key(MARKS),
        })
    }
}

/// What was asked for, and what was answered.
type Answered = (What, Result<Option<Box<dyn Object>>, StatusError>);

/// An object at a moment.
struct Seen {
    revision: Revision,
    marked: bool,
}

/// `None`: it is gone.
pub fn decode(resource: &Resource, done: &Done) -> Option<Box<dyn Object>> {
    let version = Version::new(done.value.clone()?, done.revision, done.revision, 1);
    Some(resource.decode(&Entry::new(done.key.clone(), version)).unwrap())
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Create,
    Update,
    /// An update that changes nothing, or refuses.
    Keep,
    Get,
    Delete,
}

fn revision(object: &dyn Object) -> Revision {
    Revision(object.meta().resource_version.parse().unwrap())
}

/// A new object of a resource.
fn object(resource: &Resource, name: &str) -> Box<dyn Object> {
    let spec = match resource.plural == PLURALS[0] {
        true => concat!(
            r#"{"customer": "ann", "street": "s", "items": [{"article": "a"}], "price": 1, "#,
            r#""extra": {"apiVersion": "v1", "kind": "X"}}"#
        )
        .to_owned(),
        false => versions::spec(resource, name),
    };
    let text = format!(r#"{{"metadata": {{"name": "{name}", "namespace": "default"}}, "spec": {spec}}}"#);
    let mut object = resource.hub.new_object();
    json::read(text.as_bytes(), object.as_reflect_mut()).unwrap();
    object
}
