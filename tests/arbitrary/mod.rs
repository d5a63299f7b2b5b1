//! Objects of any kind with anything in them, made from a seed through reflection.

use keelson_machinery::reflect::{FieldDesc, Leaf, LeafKind, List, Map, Reflect, Slot, Type};

/// How deep optional messages, lists and maps of messages nest before they stay empty.
const MAX_DEPTH: usize = 7;
/// The most elements of a list and entries of a map.
const MAX_ELEMENTS: u64 = 2;

/// Texts whose encoding is worth a look, and plain ones.
const TEXTS: [&str; 8] = [
    "a",
    "b-c",
    "ü\u{1F980}",
    "<&>\u{2028}",
    "\"\\\n\t\u{1}",
    " ",
    "0",
    "null",
];
const QUANTITIES: [&str; 8] = [
    "\"0\"",
    "\"1\"",
    "\"100m\"",
    "\"1Gi\"",
    "\"1536Mi\"",
    "\"3M\"",
    "\"-2\"",
    "\"1e3\"",
];
const INT_OR_STRINGS: [&str; 4] = ["0", "-7", "\"25%\"", "\"\""];
const TIMES: [&str; 3] = [
    "\"2020-02-29T12:34:56Z\"",
    "\"1969-12-31T23:59:59Z\"",
    "\"9999-12-31T23:59:59Z\"",
];
const MICRO_TIMES: [&str; 2] = ["\"2020-02-29T12:34:56.000001Z\"", "\"2020-02-29T12:34:56.000000Z\""];
const DURATIONS: [&str; 3] = ["\"1h2m3s\"", "\"1.5s\"", "\"0s\""];
const RAW: [&str; 4] = [
    r#"{"b":1.50,"a":[null,"x"]}"#,
    r#"{"kind":"K"}"#,
    "{}",
    r#"{"f:a":{".":{}}}"#,
];
/// Forms of unions, one of which each takes.
const UNIONS: [&str; 4] = [
    "true",
    r#"{"type":"string","properties":{"a":{}}}"#,
    r#"["a","b"]"#,
    r#"[{"type":"x"},{}]"#,
];

/// The same choices for the same seed (splitmix64).
pub struct Seed(pub u64);

impl Seed {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        let place = usize::try_from(self.below(from.len() as u64)).unwrap_or(0);
        from.get(place).copied().unwrap_or_default()
    }
}

/// Puts something into about half of the message's fields.
pub fn fill(message: &mut dyn Reflect, seed: &mut Seed) {
    fill_below(message, seed, 0);
}

fn fill_below(message: &mut dyn Reflect, seed: &mut Seed, depth: usize) {
    let desc = message.handle().clone();
    for (index, field) in desc.fields.iter().enumerate() {
        // What is not in protobuf cannot survive it.
        if field.number == 0 || seed.below(2) == 0 {
            continue;
        }
        if let Some(slot) = message.get_mut(index) {
            fill_slot(slot, field, seed, depth);
        }
    }
}

fn fill_slot(slot: Slot<'_>, field: &FieldDesc, seed: &mut Seed, depth: usize) {
    match slot {
        Slot::Bool(v) => *v = true,
        Slot::Int32(v) => *v = i32::from_ne_bytes((seed.next() as u32).to_ne_bytes()),
        Slot::Int64(v) => *v = i64::from_ne_bytes(seed.next().to_ne_bytes()),
        Slot::Double(v) => *v = seed.below(1000) as f64 / 8.0 - 10.0,
        Slot::Str(v) => *v = text(field, seed),
        Slot::Bytes(v) => *v = seed.next().to_be_bytes().to_vec().into(),
        Slot::Message(v) => fill_below(v, seed, depth + 1),
        Slot::Leaf(v) => fill_leaf(v, seed),
        Slot::List(v) => fill_list(v, field, seed, depth),
        Slot::Map(v) => fill_map(v, field, seed, depth),
        Slot::Optional(v) => {
            if depth < MAX_DEPTH {
                fill_slot(v.fill(), field, seed, depth);
            }
        }
    }
}

fn text(field: &FieldDesc, seed: &mut Seed) -> String {
    match field.rules.enum_values.to_vec() {
        values if values.is_empty() => seed.pick(&TEXTS).to_owned(),
        values => seed.pick(&values).to_owned(),
    }
}

fn fill_leaf(leaf: &mut dyn Leaf, seed: &mut Seed) {
    let forms: &[&str] = match leaf.kind() {
        LeafKind::Quantity => &QUANTITIES,
        LeafKind::IntOrString => &INT_OR_STRINGS,
        LeafKind::Time => &TIMES,
        LeafKind::MicroTime => &MICRO_TIMES,
        LeafKind::Duration => &DURATIONS,
        LeafKind::Raw => &RAW,
        LeafKind::Union => &UNIONS,
    };
    let first = seed.below(forms.len() as u64) as usize;
    let mut all = forms.iter().cycle().skip(first).take(forms.len());
    assert!(
        all.any(|form| leaf.read_json(form.as_bytes()).is_ok() && (!leaf.is_zero() || is_number(leaf.kind()))),
        "a leaf of kind {:?} takes none of {forms:?}",
        leaf.kind()
    );
}

/// Whose zero is a value like any other.
fn is_number(kind: LeafKind) -> bool {
    matches!(kind, LeafKind::Quantity | LeafKind::IntOrString | LeafKind::Duration)
}

fn is_deep(element: &FieldDesc) -> bool {
    matches!(element.ty, Type::Message(_) | Type::List(_) | Type::Map(_))
}

fn fill_list(list: &mut dyn List, field: &FieldDesc, seed: &mut Seed, depth: usize) {
    if depth >= MAX_DEPTH && is_deep(list.element()) {
        return;
    }
    for _ in 0..=seed.below(MAX_ELEMENTS) {
        fill_slot(list.push(), field, seed, depth + 1);
    }
}

fn fill_map(map: &mut dyn Map, field: &FieldDesc, seed: &mut Seed, depth: usize) {
    if depth >= MAX_DEPTH && is_deep(map.element()) {
        return;
    }
    for _ in 0..=seed.below(MAX_ELEMENTS) {
        let key = seed.pick(&TEXTS);
        fill_slot(map.entry(key), field, seed, depth + 1);
    }
}
