use keelson_access::authz::Authorization;
use keelson_access::user::User;
use keelson_machinery::reflect::Reflect;
use keelson_machinery::time::Time;
use keelson_machinery::{defaults as declared, json};
use keelson_registry::Warnings;
use keelson_registry::managed::Tracking;

use super::*;

/// A request at a fixed time.
pub fn context() -> Context {
    Context {
        now: Time::from_unix(1_700_000_000, 0),
        namespace: String::new(),
        user: User::anonymous(),
        asked: Default::default(),
        verbs: None,
        authorization: Authorization::default(),
        dry_run: false,
        tracking: Tracking::default(),
        warnings: Warnings::default(),
        audit: None,
    }
}

/// A definition from JSON, with all defaults. Unknown fields fail the test.
pub fn read(text: &str) -> CustomResourceDefinition {
    let mut definition = CustomResourceDefinition::default();
    let problems = json::read(text.as_bytes(), &mut definition).unwrap();
    assert!(problems.is_empty(), "{text}");
    declared::apply(&mut definition);
    defaults(&mut definition);
    definition
}

fn text(message: &dyn Reflect) -> String {
    let mut out = Vec::new();
    json::write(message, &mut out);
    String::from_utf8(out).unwrap()
}

/// One error a line.
pub fn lines(errors: &ErrorList) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn names_follow_from_the_kind() {
    let definition = read(r#"{"spec":{"names":{"plural":"things","kind":"Thing"}}}"#);
    assert_eq!(
        text(&definition.spec.names),
        r#"{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"}"#
    );
    assert_eq!(definition.spec.conversion.unwrap().strategy, "None");
}

#[test]
fn stored_versions_only_grow() {
    let mut o = read(
        r#"{"spec":{"versions":[{"name":"v1","storage":true},{"name":"v2"}]},"status":{"storedVersions":["v0"]}}"#,
    );
    CustomResourceDefinitionStrategy.prepare_for_create(&context(), &mut o);
    assert_eq!(o.status.stored_versions, ["v0", "v1"]);
    let old = o.clone();
    CustomResourceDefinitionStrategy.prepare_for_update(&context(), &mut o, &old);
    assert_eq!(o.status.stored_versions, ["v0", "v1"]);
    let o = read(r#"{"spec":{"versions":[{"name":"v1"},{"name":"v2","storage":true}]}}"#);
    assert_eq!(o.status.stored_versions, ["v2"], "an empty list is filled in");
}

#[test]
fn a_deletion_waits_for_the_objects() {
    let mut o = read(r#"{"metadata":{"name":"a","finalizers":["example.com/other"]}}"#);
    assert!(CustomResourceDefinitionStrategy.begin_deletion(&context(), &mut o));
    assert_eq!(o.metadata.deletion_timestamp, Some(context().now));
    assert_eq!(o.metadata.finalizers, ["example.com/other", CLEANUP_FINALIZER]);
    assert!(conditions::is_true(&o, TERMINATING));
    assert!(!CustomResourceDefinitionStrategy.begin_deletion(&context(), &mut o));
}

/// A definition whose schema has so many properties, with a fault that is found last.
fn of_many_parts(count: usize) -> CustomResourceDefinition {
    let properties: Vec<String> = (0..count).map(|n| format!(r#""p{n}":{{"type":"string"}}"#)).collect();
    let schema = format!(r#"{{"type":"object","properties":{{{}}}}}"#, properties.join(","));
    read(&format!(
        r#"{{"metadata":{{"name":"things.example.com"}},"spec":{{"group":"example.com","scope":"Nowhere",
        "names":{{"plural":"things","kind":"Thing"}},
        "versions":[{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{schema}}}}}]}}}}"#
    ))
}

#[test]
fn long_definitions_are_validated_on_another_thread_as_short_ones_are_here() {
    let rules = CustomResourceDefinitionStrategy;
    let (short, long) = (of_many_parts(10), of_many_parts(MANY_PARTS));
    assert!(rules.long_validation(&short, None).is_none());
    let create = rules.long_validation(&long, None).unwrap();
    let created = std::thread::spawn(create).join().unwrap();
    assert_eq!(lines(&created), lines(&rules.validate(&context(), &long, None)));
    assert_eq!(lines(&created), lines(&rules.validate(&context(), &short, None)));
    assert!(!created.is_empty());
    let update = rules.long_validation(&long, Some(&short)).unwrap();
    let updated = std::thread::spawn(update).join().unwrap();
    assert_eq!(lines(&updated), lines(&rules.validate(&context(), &long, Some(&short))));
}
