//! A message that is lazy is what it would be if it were not.

use super::*;
use crate::protobuf;
use crate::reflect::copy;
use crate::reflect::equality::{equal, identical};
use crate::sample::Part;

/// An object with a lazy part, and one whose part is not.
#[derive(Clone, Default, keelson_machinery::Message)]
#[message(name = "io.example.api.v1.Shelf")]
struct Shelf {
    #[field(json = "name", number = 1)]
    name: String,
    #[field(json = "part", number = 2)]
    part: Option<Lazy<Part>>,
}

#[derive(Clone, Default, keelson_machinery::Message)]
#[message(name = "io.example.api.v1.Table")]
struct Table {
    #[field(json = "name", number = 1)]
    name: String,
    #[field(json = "part", number = 2)]
    part: Option<Box<Part>>,
}

const TEXT: &str = r#"{"name":"a","part":{"name":"","protocol":"UDP","args":["x","y"]}}"#;

fn stored(text: &str) -> Shelf {
    let mut shelf = Shelf::default();
    json::read_stored(text.as_bytes(), &mut shelf).unwrap();
    shelf
}

fn written(shelf: &Shelf) -> String {
    let mut out = Vec::new();
    json::write(shelf, &mut out);
    String::from_utf8(out).unwrap()
}

fn is_read(shelf: &Shelf) -> bool {
    let known = &shelf.part.as_ref().unwrap().0;
    known.said.is_some() || known.read.get().is_some()
}

#[test]
fn what_is_stored_is_read_when_it_is_looked_at() {
    let shelf = stored(TEXT);
    let copied = shelf.clone();
    let mut assigned = Shelf::default();
    copy::copy_message(&mut assigned, &shelf);
    for other in [&copied, &assigned, &stored(TEXT)] {
        assert_eq!(written(other), TEXT);
        assert!(equal(&shelf, other) && identical(Value::Message(&shelf), Value::Message(other)));
        assert!(!is_read(other));
    }
    assert_eq!(shelf.part.as_ref().unwrap().protocol, "UDP");
    assert!(is_read(&shelf) && is_read(&copied));
}

#[test]
fn it_is_encoded_as_what_is_not_lazy() {
    let mut table = Table::default();
    json::read(TEXT.as_bytes(), &mut table).unwrap();
    let shelf = stored(TEXT);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    protobuf::write_message(&shelf, &mut a);
    protobuf::write_message(&table, &mut b);
    assert_eq!(a, b);
    let mut back = Shelf::default();
    protobuf::read_message(&a, &mut back).unwrap();
    assert_eq!(written(&back), TEXT);
    assert!(equal(&back, &shelf));
    let mut sent = Shelf::default();
    let problems = json::read(TEXT.replace("args", "arg").as_bytes(), &mut sent).unwrap();
    assert_eq!(problems.len(), 1, "what a client sends is read at once");
}

#[test]
fn a_change_parts_copies_and_forgets_the_text() {
    let shelf = stored(TEXT);
    let mut changed = shelf.clone();
    changed.part.as_mut().unwrap().protocol = "TCP".to_owned();
    assert_eq!(written(&changed), TEXT.replace("UDP", "TCP"));
    assert_eq!(written(&shelf), TEXT);
    assert!(!equal(&shelf, &changed));
    // What nobody else has is not copied.
    let place = std::ptr::from_ref(changed.part.as_ref().unwrap().message());
    changed.part.as_mut().unwrap().args.clear();
    assert_eq!(place, std::ptr::from_ref(changed.part.as_ref().unwrap().message()));
    assert_eq!(written(&changed), r#"{"name":"a","part":{"name":"","protocol":"TCP"}}"#);
}

#[test]
fn nothing_null_and_what_is_no_message_are_as_elsewhere() {
    for text in [r#"{"name":"a"}"#, r#"{"name":"a","part":null}"#] {
        assert!(stored(text).part.is_none());
    }
    assert_eq!(written(&stored(r#"{"part":{}}"#)), r#"{"part":{}}"#);
    let mut shelf = Shelf::default();
    for text in [r#"{"part":[]}"#, r#"{"part":{"a"}}"#, r#"{"part":{"#] {
        assert!(json::read_stored(text.as_bytes(), &mut shelf).is_err(), "{text}");
    }
    // Somebody else has put it into the store.
    let wrong = stored(r#"{"part":{"protocol":5,"args":["x"]}}"#);
    assert_eq!(wrong.part.as_ref().unwrap().args, ["x"]);
}
