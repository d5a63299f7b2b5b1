//! Formats: texts that have one, or nearly.

use serde_json::{Map, Value, json};

use super::super::random::Random;
use super::DEFINITIONS;

/// Objects of one case.
const OBJECTS: usize = 24;

/// Formats and texts of them.
const FORMATS: [(&str, &[&str]); 31] = [
    ("bsonobjectid", &["507f1f77bcf86cd799439011"]),
    (
        "uri",
        &[
            "http://a.b/c?d=e#f",
            "/a/b",
            "mailto:a@b",
            "http://[::1]:80/",
            "a:b",
            "x",
            "http://a b/",
            "%zz",
        ],
    ),
    (
        "email",
        &["a@b.c", "\"a b\"@c", "A <a@b.c>", "a@[1.2.3.4]", "a.b+c@d.e"],
    ),
    (
        "hostname",
        &["a.example.com", "a", "xn--a.com", "a_b.com", "1.com", "-a.com", "a..b"],
    ),
    ("ipv4", &["1.2.3.4", "01.2.3.4", "1.2.3", "::1", "::ffff:1.2.3.4"]),
    (
        "ipv6",
        &["::1", "fe80::1%eth0", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4", "1.2.3.4"],
    ),
    (
        "cidr",
        &["10.0.0.0/8", "fe80::/10", "10.0.0.1/33", "010.0.0.0/8", "10.0.0.0/08"],
    ),
    (
        "mac",
        &[
            "01:23:45:67:89:ab",
            "01-23-45-67-89-AB",
            "0123.4567.89ab",
            "01:23:45:67:89:ab:cd:ef",
        ],
    ),
    (
        "uuid",
        &[
            "a8098c1a-f86e-11da-bd1a-00112444be1e",
            "a8098c1af86e11dabd1a00112444be1e",
        ],
    ),
    ("uuid3", &["bcd02e22-68f0-3046-a512-327cca9def8f"]),
    ("uuid4", &["025b0d74-00a2-4048-bf57-227c5111bb34"]),
    ("uuid5", &["886313e1-3b8a-5372-9b90-0c9aee199e5d"]),
    ("isbn", &["0321751043", "978-0321751041"]),
    ("isbn10", &["0321751043", "0-321-75104-3", "080442957X"]),
    ("isbn13", &["978-0321751041", "9780321751041"]),
    (
        "creditcard",
        &["4111-1111-1111-1111", "378282246310005", "4111 1111 1111 1111"],
    ),
    ("ssn", &["111-11-1111", "111 11 1111", "111111111"]),
    ("hexcolor", &["#FFFFFF", "fff", "#12345"]),
    (
        "rgbcolor",
        &["rgb(100,100,100)", "rgb( 1 , 2 , 3 )", "rgb(256,0,0)", "RGB(1,2,3)"],
    ),
    ("byte", &["YQ==", "YWI=", "YWJj", "YQ", "Y Q=="]),
    ("password", &["x"]),
    ("date", &["2024-02-29", "2023-02-29", "2024-2-9", "0000-01-01"]),
    (
        "duration",
        &[
            "1h", "3 days", "1.5s", "5 ms", "1h30m", "-1s", "2 weeks", "1 wk", "0", "1us", "1µs", "1d2h",
        ],
    ),
    ("datetime", &["2014-12-15T19:30:20.000Z", "2014-12-15T08:00:00"]),
    (
        "date-time",
        &[
            "2014-12-15T19:30:20Z",
            "2014-12-15T19:30:20+24:00",
            "2014-12-15t19:30:20z",
            "2016-12-31T23:59:60Z",
            "2014-12-15T19:30:20,5Z",
            "2014-12-15T24:00:00Z",
        ],
    ),
    ("k8s-short-name", &["a-b", "a.b", "1a", "-a"]),
    ("k8s-long-name", &["a.b-c.d", "A.b", "a..b"]),
    ("int32", &["5"]),
    ("unknown", &["x"]),
    ("uint8", &["1"]),
    ("regex", &["("]),
];
/// What is put into texts.
const PARTS: [&str; 17] = [
    " ", "-", ".", ":", "é", "0", "9", "a", "A", "Z", "/", "\n", "=", "%", "+", "\u{0}", "x1",
];

/// A case of objects with fields of all formats.
pub(in super::super) fn case(random: &mut Random, name: &str) -> Value {
    let properties = FORMATS.iter().map(|(format, _)| {
        let schema = json!({"type": "string", "format": format});
        (field(format), schema)
    });
    let mut properties: Map<String, Value> = properties.collect();
    for (name, ty, format) in [
        ("i32", "integer", "int32"),
        ("i64", "integer", "int64"),
        ("f", "number", "float"),
        ("d", "number", "double"),
        ("i8", "integer", "int8"),
    ] {
        properties.insert(name.to_owned(), json!({"type": ty, "format": format}));
    }
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
    let mut steps = vec![
        json!({"method": "POST", "path": DEFINITIONS, "body": super::definition("v1", &schema, false),
            "compare": "none"}),
        json!({"path": "/apis/{uniq}.example.com/v1/things", "compare": "none",
            "until": {"status": 200}, "within": 6}),
    ];
    for number in 0..OBJECTS {
        let object = json!({"apiVersion": "{uniq}.example.com/v1", "kind": "Thing",
            "metadata": {"name": format!("n{number}")}, "spec": spec(random)});
        steps.push(json!({"method": "POST", "body": object,
            "path": "/apis/{uniq}.example.com/v1/namespaces/{ns}/things?dryRun=All",
            "sortBy": {"details.causes": ["field", "reason", "message"]}}));
    }
    super::case(name, super::numbered(steps))
}

fn field(format: &str) -> String {
    format.replace('-', "_")
}

fn spec(random: &mut Random) -> Value {
    let mut spec = Map::new();
    for (format, texts) in FORMATS {
        let of = if random.once_in(12) {
            FORMATS[random.below(FORMATS.len())].1
        } else {
            texts
        };
        let mut text = random.pick(of).to_owned();
        if random.once_in(2) {
            change(random, &mut text);
        }
        spec.insert(field(format), json!(text));
    }
    let numbers = [
        json!(1),
        json!(2_147_483_648_i64),
        json!(-2_147_483_649_i64),
        json!(3e38),
        json!(1e39),
        json!(1.5),
        json!(9_007_199_254_740_993_i64),
        json!(1e20),
        json!(i64::MIN),
        json!(2.0),
    ];
    for name in ["i32", "i64", "f", "d", "i8"] {
        spec.insert(name.to_owned(), numbers[random.below(numbers.len())].clone());
    }
    Value::Object(spec)
}

/// Makes another text of one.
fn change(random: &mut Random, text: &mut String) {
    let mut characters: Vec<char> = text.chars().collect();
    let at = random.below(characters.len().max(1));
    match random.below(5) {
        0 if !characters.is_empty() => drop(characters.remove(at)),
        1 if !characters.is_empty() => characters.insert(at, characters[at]),
        2 => characters = characters.iter().flat_map(|c| c.to_uppercase()).collect(),
        3 => characters.truncate(at),
        _ => {
            let at = random.below(characters.len() + 1);
            characters.splice(at..at, random.pick(&PARTS).chars());
        }
    }
    *text = characters.into_iter().collect();
}
