//! Tests of the generated code.

use std::io::Read;
use std::sync::Arc;

use keelson_machinery::field::Path;
use keelson_machinery::object::{Kind, Object};
use keelson_machinery::reflect::{Flags, Id, ListType, Patch, Reflect, Type, Value};
use keelson_machinery::scheme::{KindDesc, KindRef, NameRule, VersionDesc};
use keelson_machinery::time::Time;
use keelson_machinery::validation::declarative::{compile, validate};

use crate::api::SCHEME;
use crate::api::shop_example_com::{v1, v1alpha1};

fn version(name: &str) -> &'static VersionDesc {
    SCHEME
        .groups
        .iter()
        .flat_map(|g| g.versions)
        .find(|v| v.version == name)
        .unwrap()
}

fn kind(version_name: &str, kind: &str) -> &'static KindDesc {
    version(version_name).kinds.iter().find(|k| k.kind == kind).unwrap()
}

fn flags(json: &str) -> Flags {
    v1::OrderSpec::message_desc().field(json).unwrap().1.flags
}

#[test]
fn fields_stand_in_the_order_of_the_file_and_by_number() {
    let desc = v1::OrderSpec::message_desc();
    assert_eq!(desc.name, "com.example.shop.v1.OrderSpec");
    let names: Vec<&str> = desc.fields.iter().take(4).map(|f| f.json.as_str()).collect();
    assert_eq!(names, ["customer", "items", "boxes", "weights"]);
    let numbers: Vec<u32> = desc
        .by_number
        .iter()
        .map(|i| desc.fields[usize::from(*i)].number)
        .collect();
    assert_eq!(numbers, (1..=16).collect::<Vec<u32>>());
}

#[test]
fn options_arrive_in_the_field_table() {
    let field = |json| v1::OrderSpec::message_desc().field(json).unwrap().1;
    let items = field("items");
    assert_eq!(items.list, ListType::Map);
    assert_eq!(*items.map_keys(), ["article"]);
    assert!(items.patch.has(Patch::MERGE) && items.patch.has(Patch::RETAIN_KEYS) && !items.patch.has(Patch::REPLACE));
    assert_eq!(items.merge_key(), "article");
    assert_eq!(items.rules.max_items, Some(100));
    assert!(
        items.flags.has(Flags::ATOMIC),
        "elements of a message that says so are atomic"
    );
    assert_eq!(field("tags").rules.item_enum, ["fast", "gift"]);
    assert_eq!(field("type").rules.enum_values, ["Web", "Phone"]);
    assert_eq!(field("type").default(), Some("\"Web\""));
    assert_eq!(field("self").default(), Some("true"));
    let price = &field("price").rules;
    assert_eq!(
        (price.minimum, price.exclusive_minimum, price.multiple_of),
        (Some(-1.0), true, Some(0.5))
    );
    assert_eq!(field("customer").rules.pattern, "^[a-z]+$");
    assert!(matches!(&field("weights").ty, Type::Map(element) if matches!(element.ty, Type::Leaf(_))));
    assert!(matches!(&field("gifts").ty, Type::Map(element) if element.ty.is_message()));
    assert!(flags("customer").has(Flags::ALWAYS.with(Flags::REQUIRED).with(Flags::IMMUTABLE)));
    assert!(flags("boxes").has(Flags::OPTIONAL) && !flags("items").has(Flags::OPTIONAL));
    assert!(flags("discount").has(Flags::OPTIONAL.with(Flags::NULLABLE)));
    assert!(flags("notes").has(Flags::ATOMIC) && !flags("weights").has(Flags::ATOMIC));
    assert!(flags("window").has(Flags::OMIT_ZERO));
    let inline = v1::OrderSpec::message_desc()
        .fields
        .iter()
        .find(|f| f.json == "address")
        .unwrap();
    assert!(inline.flags.has(Flags::INLINE));
}

#[test]
fn defaults_and_rules_are_announced_from_above() {
    let order = |json| v1::Order::message_desc().field(json).unwrap().1.flags;
    assert!(order("spec").has(Flags::HAS_DEFAULTS.with(Flags::HAS_RULES)));
    assert!(!order("status").has(Flags::HAS_DEFAULTS));
    // What is required of fields that have no absence is no rule that types of Kubernetes are walked for.
    assert!(!order("status").has(Flags::HAS_RULES));
    assert!(!flags("weights").has(Flags::HAS_DEFAULTS));
    // Its message has a union.
    assert!(flags("discount").has(Flags::HAS_RULES) && !flags("discount").has(Flags::HAS_VALIDATIONS));
    assert!(order("spec").has(Flags::HAS_VALIDATIONS) && flags("window").has(Flags::HAS_VALIDATIONS));
    let items = v1::OrderList::message_desc().field("items").unwrap().1.flags;
    assert!(items.has(Flags::ALWAYS.with(Flags::HAS_DEFAULTS).with(Flags::HAS_RULES)));
}

#[test]
fn unions_and_rules_in_cel_are_enforced() {
    compile(v1::Order::message_desc()).unwrap();
    let mut order = v1::Order::default();
    order.spec.customer = "ann".to_owned();
    order.spec.address.street = "Main".to_owned();
    order.spec.price = 0.5;
    let faults = |new: &v1::Order, old: Option<&v1::Order>| -> Vec<String> {
        let errors = validate(new, old.map(|old| old as &dyn Reflect), &Path::root());
        let mut texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        texts.sort();
        texts
    };
    assert_eq!(
        faults(&order, None),
        ["<nil>: Invalid value: \"object\": no such key: items evaluating rule: an order has items"]
    );
    order.spec.items.push(v1::Item {
        article: "a".to_owned(),
        ..Default::default()
    });
    assert_eq!(faults(&order, None), [""; 0]);
    let mut changed = order.clone();
    changed.spec.discount = Some(Box::new(v1::Discount {
        kind: "Percent".to_owned(),
        percent: None,
    }));
    assert_eq!(
        faults(&changed, Some(&order)),
        ["spec.discount.percent: Invalid value: \"\": must be specified when `kind` is \"Percent\""]
    );
    order = changed.clone();
    changed.spec.window.start = Time::parse("2026-01-02T00:00:00Z").unwrap();
    assert_eq!(
        faults(&changed, Some(&order)),
        ["spec.window: Invalid value: failed rule: !oldSelf.hasValue() || self == oldSelf.value()"]
    );
}

#[test]
fn accessors_reach_every_field() {
    let mut spec = v1::OrderSpec {
        customer: "ann".to_owned(),
        self_: true,
        ..Default::default()
    };
    let all = v1::OrderSpec::message_desc().fields.len();
    for i in 0..all {
        assert!(spec.get_mut(i).is_some());
    }
    assert!(spec.get_mut(all).is_none());
    assert!(matches!(spec.get(all), Value::Absent));
    let (index, _) = v1::OrderSpec::message_desc().field("customer").unwrap();
    assert!(matches!(spec.get(index), Value::Str("ann")));
    let (index, _) = v1::OrderSpec::message_desc().field("discount").unwrap();
    assert!(matches!(spec.get(index), Value::Absent));
}

#[test]
fn messages_may_have_the_names_of_types_that_generated_code_uses() {
    let mut window = v1::Window::default();
    window.option.get_or_insert_default().r#box.push(v1::Field::default());
    let copy = window.clone_message();
    let (index, _) = v1::Window::message_desc().field("option").unwrap();
    let Value::Message(option) = copy.get(index) else {
        panic!("no message")
    };
    assert_eq!(option.desc().name, "com.example.shop.v1.Option");
    assert_eq!(v1::Reflect::message_desc().fields.len(), 1);
}

#[test]
fn kinds_are_objects_with_their_names() {
    let mut object: Box<dyn Object> = kind("v1", "Order").new_object();
    assert_eq!(object.gvk().to_string(), "shop.example.com/v1, Kind=Order");
    object.meta_mut().name = "a".to_owned();
    assert_eq!(object.clone_object().meta().name, "a");
    assert_eq!(v1::ShelfCollection::default().gvk().kind, "ShelfCollection");
    let named = SCHEME.types.iter().find(|t| t.kind == "Cancellation").unwrap();
    assert_eq!(named.new_kind().gvk().version, "v1");
    for library in ["DeleteOptions", "Status", "Scale", "OrderList"] {
        assert!(SCHEME.types.iter().any(|t| t.kind == library), "{library}");
    }
    assert!(
        !SCHEME
            .types
            .iter()
            .any(|t| t.kind == "OrderList" && t.version == "v1alpha1")
    );
}

#[test]
fn the_scheme_says_what_the_definitions_say() {
    let group = SCHEME.groups.first().unwrap();
    assert_eq!(
        (SCHEME.groups.len(), group.name, group.priority),
        (1, "shop.example.com", 1500)
    );
    let versions: Vec<(&str, bool)> = group.versions.iter().map(|v| (v.version, v.enabled)).collect();
    assert_eq!(versions, [("v1", true), ("v1alpha1", false)]);
    let order = kind("v1", "Order");
    assert_eq!(
        (&*order.plural, &*order.singular, &*order.list_kind),
        ("orders", "order", "OrderList")
    );
    assert_eq!(
        (order.short_names.to_vec(), order.categories.to_vec()),
        (vec!["od"], vec!["all", "shop"])
    );
    assert!(order.namespaced && order.storage && order.hub);
    assert_eq!(
        (&*order.storage_path, order.names),
        ("shop/orders", NameRule::Dns1035Label)
    );
    assert!(order.generation && order.create_on_update && order.conditional_update && order.returns_deleted);
    assert_eq!(order.verbs.len(), 8);
    let subresources: Vec<(&str, &str, usize)> = order
        .subresources
        .iter()
        .map(|s| (s.name.as_str(), s.kind.as_str(), s.verbs.len()))
        .collect();
    assert_eq!(
        subresources,
        [("status", "", 3), ("scale", "Scale", 3), ("cancel", "Cancellation", 1)]
    );
    let columns: Vec<(&str, &str, &str, i32)> = order
        .columns
        .iter()
        .map(|c| (c.name.as_str(), c.path.as_str(), c.function.as_str(), c.priority))
        .collect();
    assert_eq!(columns[0].0, "Name", "it stands before those that are said");
    assert_eq!(columns[2], ("First", ".spec.items[0].article", "", 1));
    assert_eq!(columns[3], ("Age", "", "age", 0));
    let shelf = kind("v1", "Shelf");
    assert_eq!(
        (shelf.namespaced, shelf.verbs.to_vec(), &*shelf.list_kind),
        (false, vec!["get", "list"], "ShelfCollection")
    );
    assert_eq!(shelf.storage_path, "shop.example.com/shelves");
    assert!(shelf.storage && shelf.hub, "the only version is stored and the hub");
    let old = kind("v1alpha1", "Order");
    assert!(!old.storage && !old.hub);
    assert_eq!(old.list_kind, "");
}

fn old_order() -> v1alpha1::Order {
    let line = |article: &str, number| v1alpha1::Line {
        article: article.to_owned(),
        number,
        ..Default::default()
    };
    let mut chair = line("chair", 4);
    chair.parts.push(line("leg", 16));
    chair.packed_in = Some(Box::new(line("box", 1)));
    let mut order = v1alpha1::Order::default();
    order.metadata.name = "one".to_owned();
    order.spec.buyer = "ann".to_owned();
    order.spec.city = "b".to_owned();
    order.spec.gifts.insert("g".to_owned(), line("card", 1));
    order.spec.lines.push(chair);
    order.spec.discount = Some(Box::new(v1alpha1::Discount {
        kind: "Percent".to_owned(),
        percent: Some(5),
    }));
    order
}

#[test]
fn versions_convert_to_the_hub_and_back() {
    let old = kind("v1alpha1", "Order");
    let hub = old.to_hub(Box::new(old_order())).unwrap();
    let order = hub.downcast_ref::<v1::Order>().unwrap();
    assert_eq!(order.metadata.name, "one");
    assert_eq!(order.spec.customer, "ann", "renamed with hub_name");
    assert_eq!(order.spec.address.city_id, "b", "carried over by hand");
    let item = &order.spec.items[0];
    assert_eq!((item.article.as_str(), item.count), ("chair", 4));
    assert_eq!(item.parts[0].count, 16);
    assert_eq!(item.packed_in.as_ref().unwrap().article, "box");
    assert_eq!(order.spec.gifts["g"].article, "card");
    assert_eq!(order.spec.discount.as_ref().unwrap().percent, Some(5));
    let back = old.from_hub(hub).unwrap();
    let back = back.downcast_ref::<v1alpha1::Order>().unwrap();
    assert_eq!((back.spec.buyer.as_str(), back.spec.city.as_str()), ("ann", "b"));
    assert_eq!(back.spec.lines[0].parts[0].number, 16);
    assert_eq!(back.spec.gifts["g"].article, "card");
    let new = kind("v1", "Order");
    let same = new.to_hub(Box::<v1::Order>::default()).unwrap();
    assert_eq!(same.gvk().version, "v1");
}

#[test]
fn kinds_that_are_made_at_run_time_have_ids_of_their_own() {
    let kind = kind("v1", "Order");
    let make = || {
        KindRef::from(Arc::new(KindDesc {
            own_id: Id::fresh(),
            ..kind.clone()
        }))
    };
    // Whatever takes the place of one in memory, it is another one.
    let ids: Vec<u64> = (0..100).map(|_| make().id()).collect();
    assert!(ids.is_sorted_by(|a, b| a < b) && !ids.contains(&kind.id()));
    assert_eq!(kind.id(), kind.id());
}

#[test]
fn a_failed_conversion_says_which_and_why() {
    let mut order = old_order();
    order.spec.city = "nowhere".to_owned();
    let old = kind("v1alpha1", "Order");
    assert_eq!(
        old.to_hub(Box::new(order)).err().unwrap().to_string(),
        "converting shop.example.com/v1alpha1, Kind=Order to shop.example.com/v1, Kind=Order: spec.city: there is no such city"
    );
    let wrong = old.to_hub(Box::<v1::Shelf>::default()).err().unwrap();
    assert_eq!(wrong.fault.reason, "the object is a shop.example.com/v1, Kind=Shelf");
}

fn definitions() -> serde_json::Value {
    let mut text = String::new();
    flate2::read::ZlibDecoder::new(SCHEME.definitions)
        .read_to_string(&mut text)
        .unwrap();
    serde_json::from_str(&text).unwrap()
}

/// `UPDATE=1 cargo test -p keelson-codegen-sample` writes the file anew; look at the difference.
#[test]
fn openapi_definitions_are_those_of_the_file() {
    let all = definitions();
    for library in [
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
    ] {
        assert!(all.get(library).is_some(), "{library} is missing");
    }
    let own: serde_json::Map<String, serde_json::Value> = all
        .as_object()
        .unwrap()
        .clone()
        .into_iter()
        .filter(|(name, _)| name.starts_with("com.example"))
        .collect();
    let found = serde_json::to_string_pretty(&own).unwrap() + "\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/definitions.json");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &found).unwrap();
    }
    assert_eq!(found, std::fs::read_to_string(path).unwrap());
}
