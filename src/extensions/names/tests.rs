use super::*;

fn names(plural: &str, singular: &str, short: &[&str], kind: &str, list_kind: &str) -> Names {
    Names {
        plural: plural.to_owned(),
        singular: singular.to_owned(),
        short_names: short.iter().map(|name| (*name).to_owned()).collect(),
        kind: kind.to_owned(),
        list_kind: list_kind.to_owned(),
        categories: vec!["all".to_owned()],
    }
}

fn definition(group: &str, wanted: Names, has: Names) -> CustomResourceDefinition {
    let mut definition = CustomResourceDefinition::default();
    definition.metadata.name = format!("{}.{group}", wanted.plural);
    definition.spec.group = group.to_owned();
    definition.spec.names = wanted.into();
    definition.status.accepted_names = has.into();
    definition
}

fn widgets() -> Names {
    names("widgets", "widget", &["wd", "wg"], "Widget", "WidgetList")
}

/// Reason and message of what is decided beside widgets that have their names.
fn decided(wanted: Names) -> (String, String, Names) {
    let mut accepted = Accepted::default();
    accepted.note(&definition("example.com", widgets(), widgets()));
    let decision = accepted.decide(&definition("example.com", wanted, Names::default()));
    let Decision { names, accepted, .. } = decision.unwrap();
    (accepted.reason, accepted.message, names)
}

#[test]
fn a_name_that_another_has_is_not_given() {
    for (wanted, reason, message) in [
        (names("a", "b", &["c"], "D", "E"), "NoConflicts", "no conflicts found"),
        (
            names("a", "widgets", &[], "D", "E"),
            "SingularConflict",
            "\"widgets\" is already in use",
        ),
        (
            names("widget", "b", &[], "D", "E"),
            "PluralConflict",
            "\"widget\" is already in use",
        ),
        (
            names("a", "b", &["x", "wd"], "D", "E"),
            "ShortNamesConflict",
            "\"wd\" is already in use",
        ),
        (
            names("a", "b", &["wg", "wd", "wg"], "D", "E"),
            "ShortNamesConflict",
            "[\"wg\" is already in use, \"wd\" is already in use]",
        ),
        (
            names("a", "b", &[], "WidgetList", "E"),
            "KindConflict",
            "\"WidgetList\" is already in use",
        ),
        (
            names("a", "wd", &[], "D", "Widget"),
            "ListKindConflict",
            "\"Widget\" is already in use",
        ),
    ] {
        let (told, text, given) = decided(wanted.clone());
        assert_eq!((told.as_str(), text.as_str()), (reason, message));
        assert_eq!(given.categories, wanted.categories);
        assert_eq!(given == wanted, reason == "NoConflicts");
    }
    let (_, _, given) = decided(names("a", "widgets", &["x"], "Widget", "E"));
    assert_eq!(given, names("a", "", &["x"], "", "E"), "all that is to be had is given");
}

#[test]
fn groups_and_own_names_do_not_conflict() {
    let mut accepted = Accepted::default();
    accepted.note(&definition("example.com", widgets(), widgets()));
    let other = definition("example.org", widgets(), Names::default());
    assert_eq!(accepted.decide(&other).unwrap().accepted.status, "True");
    let changed = names("widgets", "widget", &["wd", "new"], "Widget", "WidgetList");
    let own = definition("example.com", changed.clone(), widgets());
    let decision = accepted.decide(&own).unwrap();
    assert_eq!((decision.names, &*decision.accepted.status), (changed, "True"));
    assert!(
        accepted
            .decide(&definition("example.com", widgets(), widgets()))
            .is_none()
    );
}

#[test]
fn who_waits_is_told_when_names_are_let_go() {
    let mut accepted = Accepted::default();
    let clash = names("others", "other", &[], "Widget", "OtherList");
    assert!(
        accepted
            .note(&definition("example.com", widgets(), widgets()))
            .is_empty()
    );
    let mut has = clash.clone();
    has.kind.clear();
    let mut loser = definition("example.com", clash, has);
    assert!(accepted.note(&loser).is_empty());
    let decision = accepted.decide(&loser).unwrap();
    assert_eq!(
        (&*decision.accepted.reason, &*decision.established.reason),
        ("KindConflict", "NotAccepted")
    );
    loser.status.conditions = vec![decision.accepted, decision.established];
    assert!(accepted.decide(&loser).is_none(), "it knows");
    assert_eq!(accepted.release("widgets.example.com"), ["others.example.com"]);
    let decision = accepted.decide(&loser).unwrap();
    assert_eq!(
        (&*decision.accepted.reason, &*decision.established.reason),
        ("NoConflicts", "Installing")
    );
}

#[test]
fn what_is_established_stays_so() {
    let mut accepted = Accepted::default();
    accepted.note(&definition("example.com", widgets(), widgets()));
    let mut other = definition(
        "example.com",
        names("others", "widget", &[], "Other", "OtherList"),
        names("others", "other", &[], "Other", "OtherList"),
    );
    other.status.conditions = vec![condition(ESTABLISHED, true, "InitialNamesAccepted", "m")];
    let decision = accepted.decide(&other).unwrap();
    assert_eq!(
        (
            &*decision.accepted.reason,
            &*decision.established.status,
            &*decision.names.singular
        ),
        ("SingularConflict", "True", "other")
    );
}
