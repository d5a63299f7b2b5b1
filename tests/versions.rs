//! Nothing is lost between versions and between encodings: objects of every kind and version, with anything in them,
//! come back as they were from the hub version, from JSON and from protobuf.

#![allow(clippy::unwrap_used, reason = "what fails here fails a test, as it should")]

mod arbitrary;

use arbitrary::{Seed, fill};
use keelson::api::autoscaling::v1::HorizontalPodAutoscaler;
use keelson::api::resource_k8s_io::v1beta1::ResourceSlice;
use keelson_machinery::object::{Kind, Object};
use keelson_machinery::scheme::KindDesc;
use keelson_machinery::{equality, json, protobuf};

/// Objects of each kind and version.
const ROUNDS: u64 = 24;

fn kinds() -> impl Iterator<Item = &'static KindDesc> {
    let groups = keelson::api::SCHEME.groups.iter();
    groups.flat_map(|g| g.versions).flat_map(|v| v.kinds)
}

fn name(kind: &KindDesc) -> String {
    format!("{}/{} {}", kind.group, kind.version, kind.kind)
}

fn generated(kind: &KindDesc, round: u64) -> Box<dyn Object> {
    let mut seed = Seed(round);
    // Kinds of one form get different content.
    for byte in name(kind).bytes() {
        seed = Seed(seed.next() ^ u64::from(byte));
    }
    let mut object = kind.new_object();
    fill(object.as_reflect_mut(), &mut seed);
    complete(&mut *object);
    object
}

/// Adds what an object must have to be accepted at all, where conversions count on it.
fn complete(object: &mut dyn Object) {
    if let Some(slice) = object.downcast_mut::<ResourceSlice>() {
        // A device is of exactly one type, and there is but one.
        for device in &mut slice.spec.devices {
            device.basic.get_or_insert_default();
        }
    }
    if let Some(o) = object.downcast_mut::<HorizontalPodAutoscaler>() {
        // Without a target the hub has its default one.
        o.spec.target_cpu_utilization_percentage.get_or_insert(80);
        // What v1 does say of current metrics comes back in the annotation for those it does not.
        o.status.current_cpu_utilization_percentage = None;
    }
}

fn json_of(object: &dyn Kind) -> String {
    String::from_utf8(json::to_vec(object)).unwrap()
}

fn assert_same(what: &str, ours: &dyn Object, theirs: &dyn Object) {
    assert_eq!(json_of(ours), json_of(theirs), "{what}");
    assert!(equality::equal(ours.as_reflect(), theirs.as_reflect()), "{what}");
}

/// Version → hub → version.
#[test]
fn nothing_is_lost_on_the_way_through_the_hub() {
    // A definition of custom resources has one form of several in v1beta1, which is only stored.
    let is_form = |k: &&KindDesc| k.kind == "CustomResourceDefinition" && k.version == "v1beta1";
    for kind in kinds().filter(|k| !is_form(k)) {
        for round in 0..ROUNDS {
            let what = format!("{} round {round}", name(kind));
            let object = generated(kind, round);
            let hub = kind
                .to_hub(object.clone_object())
                .unwrap_or_else(|e| panic!("{what}: {e}"));
            let back = kind.from_hub(hub).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_same(&what, &*back, &*object);
        }
    }
}

/// Hub → stored version → hub.
#[test]
fn nothing_is_lost_on_the_way_through_the_store() {
    let mut checked = 0;
    for stored in kinds().filter(|k| k.storage && !k.hub) {
        let hub = kinds().find(|k| k.hub && k.group == stored.group && k.kind == stored.kind);
        let hub = hub.unwrap_or_else(|| panic!("{} has no hub", name(stored)));
        for round in 0..ROUNDS {
            let what = format!("{} round {round}", name(hub));
            let object = generated(hub, round);
            let there = stored
                .from_hub(object.clone_object())
                .unwrap_or_else(|e| panic!("{what}: {e}"));
            let back = stored.to_hub(there).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_same(&what, &*back, &*object);
        }
        checked += 1;
    }
    assert!(checked >= 3, "{checked}");
}

#[test]
fn nothing_is_lost_in_json() {
    for kind in kinds() {
        for round in 0..ROUNDS {
            let what = format!("{} round {round}", name(kind));
            let object = generated(kind, round);
            let mut again = kind.new_object();
            let problems = json::read(json_of(&*object).as_bytes(), again.as_reflect_mut());
            assert_eq!(problems, Ok(vec![]), "{what}");
            assert_same(&what, &*again, &*object);
        }
    }
}

#[test]
fn nothing_is_lost_in_protobuf() {
    for kind in kinds() {
        for round in 0..ROUNDS {
            let what = format!("{} round {round}", name(kind));
            let object = generated(kind, round);
            let bytes = protobuf::encode(&*object);
            let envelope = protobuf::decode_envelope(&bytes).unwrap();
            let mut again = kind.new_object();
            protobuf::read_message(envelope.raw, again.as_reflect_mut()).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_same(&what, &*again, &*object);
            assert_eq!(protobuf::encode(&*again), bytes, "{what}");
        }
    }
}

/// What the generator makes is worth the test: it is different every time, and reaches deep.
#[test]
fn generated_objects_differ() {
    let pods = || kinds().find(|k| k.kind == "Pod").unwrap();
    let texts: std::collections::BTreeSet<String> = (0..ROUNDS).map(|n| json_of(&*generated(pods(), n))).collect();
    assert_eq!(texts.len() as u64, ROUNDS);
    let most = texts.iter().map(String::len).max().unwrap();
    assert!(most > 5_000, "the largest pod has {most} bytes");
    assert!(texts.iter().any(|t| t.contains("matchExpressions")));
    assert!(equality::is_zero(pods().new_object().as_reflect()));
}
