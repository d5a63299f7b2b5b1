//! Laws that hold for all documents.

use proptest::prelude::*;

use super::owners::both;
use super::{read, text, tree, typed, widget};
use crate::json::{self, sorted};
use crate::{copy, defaults, equality};

fn text_value() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "x", "a<b", "ü", "longer than twenty-three bytes"])
        .prop_map(|text| serde_json::to_string(text).unwrap())
}

fn part() -> impl Strategy<Value = String> {
    let numbers = prop::collection::vec(any::<i32>(), 0..3);
    let args = prop::collection::vec(text_value(), 0..3);
    (text_value(), text_value(), args, numbers).prop_map(|(name, protocol, args, numbers)| {
        let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        format!(
            r#"{{"name":{name},"protocol":{protocol},"args":[{}],"numbers":[{}]}}"#,
            args.join(","),
            numbers.join(",")
        )
    })
}

fn member(name: &'static str, value: impl Strategy<Value = String>) -> impl Strategy<Value = Option<String>> {
    prop::option::of(value.prop_map(move |value| format!("\"{name}\":{value}")))
}

fn map(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec!["a", "b", "a.b/c", "\\u00fc"]);
    prop::collection::btree_map(key, value, 0..3).prop_map(|map| {
        let entries: Vec<String> = map.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        format!("{{{}}}", entries.join(","))
    })
}

/// A document of the sample that has one of everything.
fn document() -> impl Strategy<Value = String> {
    let quantity = prop::sample::select(vec![r#""1""#, r#""100m""#, r#""2Gi""#]).prop_map(str::to_owned);
    let raw = prop::sample::select(vec![r#"{"a":1.5,"z":[1,{"y":null}]}"#, "[]", r#""s""#]).prop_map(str::to_owned);
    let port = prop::sample::select(vec!["0", "8080", r#""http""#]).prop_map(str::to_owned);
    let spec = (
        (
            member("replicas", any::<i32>().prop_map(|n| n.to_string())),
            member("name", text_value()),
            member("size", any::<i64>().prop_map(|n| n.to_string())),
            member("ratio", (-1000i32..1000).prop_map(|n| (f64::from(n) / 8.0).to_string())),
            member("enabled", any::<bool>().prop_map(|b| b.to_string())),
            member(
                "parts",
                prop::collection::vec(part(), 0..3).prop_map(|p| format!("[{}]", p.join(","))),
            ),
        ),
        (
            member("selector", map(text_value())),
            member("limits", map(quantity)),
            member("path", text_value()),
            member("local", part()),
            member("port", port),
            member("raw", raw),
            member("tags", map(text_value())),
        ),
    );
    spec.prop_map(|((a, b, c, d, e, f), (g, h, i, j, k, l, m))| {
        let members: Vec<String> = [a, b, c, d, e, f, g, h, i, j, k, l, m].into_iter().flatten().collect();
        format!(
            r#"{{"metadata":{{"name":"n","labels":{{"k":"v"}}}},"spec":{{{}}}}}"#,
            members.join(",")
        )
    })
}

/// A document of some fields that have owners. Nothing is empty or null, which a tree of maps keeps.
fn applied() -> impl Strategy<Value = String> {
    let ports = prop::sample::subsequence(
        vec![
            r#"{"port":1,"name":"a"}"#,
            r#"{"port":1,"protocol":"UDP"}"#,
            r#"{"port":2}"#,
            r#"{"port":3,"name":"c"}"#,
        ],
        1..4,
    );
    let tags = prop::sample::subsequence(vec![r#""x""#, r#""y""#, r#""z""#], 1..3);
    let labels = prop::sample::subsequence(vec![r#""k":"1""#, r#""k2":"2""#, r#""m":"3""#], 1..3);
    let owner = prop::sample::select(vec![r#"{"name":"n"}"#, r#"{"team":"t"}"#]);
    let parts = (ports.prop_shuffle(), tags.prop_shuffle(), labels, owner);
    (parts, prop::collection::vec(any::<bool>(), 4)).prop_map(|((ports, tags, labels, owner), with)| {
        let parts = [
            format!(r#""ports":[{}]"#, ports.join(",")),
            format!(r#""tags":[{}]"#, tags.join(",")),
            format!(r#""labels":{{{}}}"#, labels.join(",")),
            format!(r#""owner":{owner}"#),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .zip(with)
            .filter(|(_, w)| *w)
            .map(|(p, _)| p)
            .collect();
        format!("{{{}}}", parts.join(","))
    })
}

proptest! {
    #[test]
    fn a_struct_and_its_twin_agree(document in document(), other in document()) {
        let desc = widget();
        // What a struct writes, its twin reads and writes alike, but for the order.
        let shown = text(&typed(&document));
        let twin = read(&desc, &shown);
        prop_assert_eq!(text(&*twin), String::from_utf8(sorted(shown.as_bytes())).unwrap());
        // And the struct reads from it what it was.
        prop_assert!(equality::equal(&typed(&text(&*twin)), &typed(&document)));
        // Defaults, copies and equality.
        let mut with_defaults = typed(&document);
        defaults::apply(&mut with_defaults);
        let mut twin_with_defaults = read(&desc, &shown);
        defaults::apply(&mut *twin_with_defaults);
        prop_assert!(equality::equal(&typed(&text(&*twin_with_defaults)), &with_defaults));
        let mut copied = desc.new_message();
        copy::copy_message(&mut *copied, &*twin);
        prop_assert!(equality::equal(&*copied, &*twin));
        let other_twin = read(&desc, &text(&typed(&other)));
        prop_assert_eq!(
            equality::equal(&*twin, &*other_twin),
            equality::equal(&typed(&document), &typed(&other))
        );
        copy::copy_message(&mut *copied, &*other_twin);
        prop_assert_eq!(text(&*copied), text(&*other_twin));
    }

    #[test]
    fn any_json_is_read_and_written_as_a_tree(tree_text in map(part()), flip in any::<bool>()) {
        // All of it is no field, or of other types than the table's.
        let document = if flip { format!(r#"{{"spec":{tree_text},"status":[{tree_text}]}}"#) } else { tree_text };
        let desc = super::twin::that_keeps_all(crate::sample::Widget::message_desc(), 0).unwrap();
        let message = read(&desc, &document);
        let expected = json::sorted(document.as_bytes());
        let shown = text(&*message).replace(r#""metadata":{},"#, "").replace(r#","metadata":{}"#, "").replace(r#""metadata":{}"#, "");
        prop_assert_eq!(shown, String::from_utf8(expected).unwrap());
    }

    #[test]
    fn applies_agree(steps in prop::collection::vec((0..3usize, applied(), any::<bool>()), 1..6)) {
        let [mut of_struct, mut of_twin] = both();
        for (manager, document, force) in &steps {
            let manager = ["a", "b", "c"][*manager];
            let expected = of_struct.apply(manager, document, *force);
            prop_assert_eq!(of_twin.apply(manager, document, *force), expected);
            prop_assert_eq!(of_twin.owners(), of_struct.owners());
            prop_assert_eq!(text(&*of_twin.object), tree(&*of_struct.object));
            prop_assert!(of_twin.object.rest().is_none());
        }
    }
}
