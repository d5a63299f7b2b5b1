//! Server-side apply and `managedFields` over twins.

use super::super::twin;
use super::{read, text, tree};
use crate::fieldset::FieldSet;
use crate::json;
use crate::managedfields::apply::{self, Apply, ApplyError, DocumentError, read_document};
use crate::managedfields::{Change, Managed, VersionError, Versions, Writer, track, track_new};
use crate::reflect::object::Object;
use crate::reflect::time::Time;
use crate::reflect::{Desc, Ref, Reflect};

#[derive(Clone, Default, keelson_machinery::Message)]
#[message(name = "io.example.api.v1.Shop")]
pub(super) struct Shop {
    #[field(json = "ports", number = 1, list = "map", keys("port", "protocol"))]
    ports: Vec<Port>,
    #[field(json = "tags", number = 2, list = "set")]
    tags: Vec<String>,
    #[field(json = "args", number = 3)]
    args: Vec<String>,
    #[field(json = "labels", number = 4)]
    labels: std::collections::BTreeMap<String, String>,
    #[field(json = "owner", number = 5)]
    owner: Option<Box<Owner>>,
    #[field(json = "fixed", number = 6, atomic)]
    fixed: Option<Box<Owner>>,
}

#[derive(Clone, Default, keelson_machinery::Message)]
#[message(name = "io.example.api.v1.Port")]
struct Port {
    #[field(json = "port", number = 1, always)]
    port: i32,
    #[field(json = "protocol", number = 2, default = "\"TCP\"")]
    protocol: String,
    #[field(json = "name", number = 3)]
    name: String,
}

#[derive(Clone, Default, keelson_machinery::Message)]
#[message(name = "io.example.api.v1.Owner")]
struct Owner {
    #[field(json = "name", number = 1)]
    name: String,
    #[field(json = "team", number = 2)]
    team: Option<String>,
}

struct One;

impl Versions for One {
    fn knows(&self, api_version: &str) -> bool {
        api_version == "v1"
    }
    fn convert(&self, _: &dyn Reflect, version: &str) -> Result<Box<dyn Object>, VersionError> {
        Err(VersionError::Unknown(format!("there is no {version}")))
    }
}

/// An object with its owners.
pub(super) struct Owned {
    pub(super) object: Box<dyn Reflect>,
    managed: Managed,
}

fn writer(manager: &str) -> Writer {
    Writer {
        manager: manager.into(),
        api_version: "v1".into(),
        subresource: String::new(),
        now: Some(Time::from_unix(1, 0)),
    }
}

impl Owned {
    pub(super) fn new(desc: &Desc) -> Owned {
        Owned {
            object: desc.new_message(),
            managed: Managed::default(),
        }
    }

    /// Whether something changed, or who objects.
    pub(super) fn apply(&mut self, manager: &str, document: &str, force: bool) -> Result<bool, Vec<String>> {
        let mut applied = self.object.handle().new_message();
        let document = read_document(document.as_bytes(), &mut *applied).unwrap();
        let live = self.object.clone_message();
        let apply = Apply {
            writer: &writer(manager),
            live: &*live,
            applied: &*applied,
            document: &document,
            force,
            ignored: &FieldSet::EMPTY,
            versions: &One,
        };
        let (mut managed, mut target) = (self.managed.clone(), live.clone_message());
        match apply.run(&mut managed, &mut *target) {
            Ok(changed) => {
                (self.managed, self.object) = (managed, target);
                Ok(changed)
            }
            Err(ApplyError::Conflicts(conflicts)) => Err(conflicts
                .iter()
                .flat_map(|c| c.paths().into_iter().map(|p| format!("{} {p}", c.owner)))
                .collect()),
            Err(ApplyError::Convert(why)) => Err(vec![why.to_string()]),
        }
    }

    fn update(&mut self, manager: &str, document: &str) {
        let new = read(self.object.handle(), document);
        let change = Change {
            old: &*self.object,
            new: &*new,
            ignored: &FieldSet::EMPTY,
            versions: &One,
        };
        track(&mut self.managed, change, &writer(manager)).unwrap();
        self.object = new;
    }

    pub(super) fn owners(&self) -> Vec<String> {
        let entries = self.managed.clone().write().into_iter();
        let lines = entries.map(|e| format!("{} {}", e.manager, String::from_utf8_lossy(&e.fields_v1.unwrap().0)));
        lines.collect()
    }
}

pub(super) fn both() -> [Owned; 2] {
    [
        Ref::Static(Shop::message_desc()),
        twin::of(Shop::message_desc(), 2).unwrap(),
    ]
    .map(|desc| Owned::new(&desc))
}

#[test]
fn owners_and_conflicts_are_the_same() {
    let [mut of_struct, mut of_twin] = both();
    for (manager, document, force) in [
        (
            "a",
            r#"{"ports":[{"port":80,"name":"web"},{"port":53,"protocol":"UDP"}],"tags":["x","y"]}"#,
            false,
        ),
        (
            "b",
            r#"{"ports":[{"port":443},{"port":80,"protocol":"TCP"}],"tags":["z","y"]}"#,
            false,
        ),
        (
            "c",
            r#"{"ports":[{"port":80,"name":"other"}],"labels":{"k":"1"},"owner":{"name":"n"}}"#,
            false,
        ),
        (
            "c",
            r#"{"ports":[{"port":80,"name":"other"}],"labels":{"k":"1"},"owner":{"name":"n"}}"#,
            true,
        ),
        (
            "a",
            r#"{"tags":["y"],"labels":{"k":"2"},"args":["p"],"fixed":{"name":"f","team":"t"}}"#,
            true,
        ),
        (
            "b",
            r#"{"labels":{"k":"2","l":"3"},"fixed":{"name":"f","team":"t"}}"#,
            false,
        ),
        ("c", r#"{}"#, false),
        ("a", r#"{"tags":["w"]}"#, false),
    ] {
        let expected = of_struct.apply(manager, document, force);
        assert_eq!(
            of_twin.apply(manager, document, force),
            expected,
            "{manager} {document}"
        );
        assert_eq!(of_twin.owners(), of_struct.owners(), "{manager} {document}");
        assert_eq!(text(&*of_twin.object), tree(&*of_struct.object), "{manager} {document}");
    }
    let updated = r#"{"tags":["w","v"],"labels":{"m":"4"},"owner":{"team":"t"}}"#;
    of_struct.update("d", updated);
    of_twin.update("d", updated);
    assert_eq!(of_twin.owners(), of_struct.owners());
}

#[test]
fn the_maker_owns_the_same() {
    let document =
        r#"{"ports":[{"port":1,"name":"n"}],"tags":["x"],"args":["a"],"labels":{"k":"v"},"owner":{"name":"o"}}"#;
    let made = both().map(|owned| {
        let new = read(owned.object.handle(), document);
        let change = Change {
            old: &*owned.object,
            new: &*new,
            ignored: &FieldSet::EMPTY,
            versions: &One,
        };
        let (mut at_once, mut compared) = (Managed::default(), Managed::default());
        track_new(&mut at_once, change, &writer("a")).unwrap();
        track(&mut compared, change, &writer("a")).unwrap();
        let text =
            |managed: Managed| String::from_utf8_lossy(&managed.write().remove(0).fields_v1.unwrap().0).into_owned();
        let (at_once, compared) = (text(at_once), text(compared));
        assert_eq!(at_once, compared);
        at_once
    });
    assert_eq!(made[0], made[1]);
}

#[test]
fn documents_that_do_not_fit_are_refused_in_the_same_words() {
    let desc = twin::of(Shop::message_desc(), 2).unwrap();
    for document in [
        r#"{"tags":["a","a"]}"#,
        r#"{"tags":[null]}"#,
        r#"{"ports":[{"port":1},{"port":1,"protocol":"TCP"}]}"#,
        r#"{"ports":[{"port":1,"nope":2}]}"#,
        r#"{"ports":["x"]}"#,
        r#"{"owner":[],"labels":5,"args":{}}"#,
    ] {
        let expected = read_document(document.as_bytes(), &mut Shop::default()).unwrap_err();
        let found = read_document(document.as_bytes(), &mut *desc.new_message()).unwrap_err();
        // Only the order of several is that of the document for both.
        assert_eq!(found, expected, "{document}");
        assert!(matches!(found, DocumentError::Schema(_)));
    }
}

/// Of what nothing is declared, each key of an object has its owners, and a list is owned as a whole.
#[test]
fn what_is_not_declared_has_owners_too() {
    let desc = twin::that_keeps_all(Shop::message_desc(), 1).unwrap();
    let mut owned = Owned::new(&desc);
    owned
        .apply(
            "a",
            r#"{"extra":{"x":{"y":1,"z":[1,{"q":2}]},"empty":{}},"more":null}"#,
            false,
        )
        .unwrap();
    assert_eq!(
        owned.owners(),
        [r#"a {"f:extra":{".":{},"f:empty":{},"f:x":{".":{},"f:y":{},"f:z":{}}},"f:more":{}}"#]
    );
    assert_eq!(
        text(&*owned.object),
        r#"{"extra":{"empty":{},"x":{"y":1,"z":[1,{"q":2}]}},"more":null}"#
    );
    // Another adds beside it, and may not change what is owned.
    owned.apply("b", r#"{"extra":{"x":{"w":true}}}"#, false).unwrap();
    let conflicts = owned
        .apply("b", r#"{"extra":{"x":{"w":true,"z":[]}}}"#, false)
        .unwrap_err();
    assert_eq!(conflicts, [r#""a" .extra.x.z"#]);
    owned.apply("b", r#"{"extra":{"x":{"w":true,"z":[]}}}"#, true).unwrap();
    // What its writer no longer applies goes.
    owned.apply("a", r#"{"extra":{"x":{"y":2}}}"#, false).unwrap();
    assert_eq!(text(&*owned.object), r#"{"extra":{"x":{"w":true,"y":2,"z":[]}}}"#);
    owned.apply("a", "{}", false).unwrap();
    owned.apply("b", "{}", false).unwrap();
    assert_eq!((text(&*owned.object), owned.owners().len()), ("{}".to_owned(), 0));
}

#[test]
fn an_update_of_what_is_not_declared_is_tracked() {
    let desc = twin::that_keeps_all(Shop::message_desc(), 1).unwrap();
    let mut owned = Owned::new(&desc);
    owned.update("a", r#"{"extra":{"x":1,"l":[1]},"tags":["t"]}"#);
    owned.update("b", r#"{"extra":{"x":1,"l":[2],"n":{}},"tags":["t"]}"#);
    assert_eq!(
        owned.owners(),
        [
            r#"a {"f:extra":{".":{},"f:x":{}},"f:tags":{".":{},"v:\"t\"":{}}}"#,
            r#"b {"f:extra":{"f:l":{},"f:n":{}}}"#
        ]
    );
    let fields = apply::fields_of(&*owned.object);
    let mut shown = Vec::new();
    fields.write(&mut shown);
    assert!(String::from_utf8(shown).unwrap().contains(r#""f:l":{}"#));
    // The same said again changes nothing.
    let same = read(&desc, &text(&*owned.object));
    assert!(apply::compare(&*owned.object, &*same).is_empty());
    assert!(json::validate(text(&*owned.object).as_bytes()).is_ok());
}

/// Whoever owned keys of an object owns none of them when something else takes its place, and the other way round.
#[test]
fn what_is_not_declared_may_become_another_kind_of_value() {
    let desc = twin::that_keeps_all(Shop::message_desc(), 1).unwrap();
    let mut owned = Owned::new(&desc);
    owned.apply("a", r#"{"extra":{"o":{"x":1,"l":[1]}}}"#, false).unwrap();
    let owners = |owned: &Owned| -> Vec<String> {
        let owners = owned.owners().into_iter();
        owners.filter(|owner| owner.contains("f:o")).collect()
    };
    owned.apply("b", r#"{"extra":{"o":"text"}}"#, true).unwrap();
    assert_eq!(owners(&owned), [r#"b {"f:extra":{".":{},"f:o":{}}}"#]);
    owned.update("c", r#"{"extra":{"o":{"y":1}}}"#);
    assert_eq!(owners(&owned), [r#"c {"f:extra":{"f:o":{".":{},"f:y":{}}}}"#]);
    owned.update("d", r#"{"extra":{"o":[1]}}"#);
    assert_eq!(owners(&owned), [r#"d {"f:extra":{"f:o":{}}}"#]);
}

#[test]
fn whole_numbers_are_the_same_however_they_are_written() {
    let desc = twin::that_keeps_all(Shop::message_desc(), 1).unwrap();
    let mut owned = Owned::new(&desc);
    owned
        .apply("a", r#"{"extra":{"n":1.0,"l":[2.0],"null":null}}"#, false)
        .unwrap();
    assert_eq!(text(&*owned.object), r#"{"extra":{"l":[2],"n":1,"null":null}}"#);
    assert_eq!(
        owned.apply("a", r#"{"extra":{"n":1e0,"l":[2],"null":null}}"#, false),
        Ok(false)
    );
    owned.update("b", r#"{"extra":{"n":1.0,"l":[2.0],"null":null}}"#);
    assert_eq!(owned.owners().len(), 1);
}
