//! Bombs: inputs that cost more than they cost their sender: documents, patches, selectors and expressions that nest,
//! repeat or refer to themselves. Each is read on a small stack, and held to bounds of CPU time and memory that grow
//! with its length and with nothing else. CVE-2019-11253, CVE-2019-11254, CVE-2019-1002100.
//!
//! CPU time is that of this process, which does nothing else. Who works on the other half of the same core still makes
//! it dearer, so what seems to cost too much is set off again, and the least figure counts.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails here fails a test, as it should"
)]

#[path = "bombs/schemas.rs"]
mod schemas;

use std::fs;

use keelson_machinery::cel::Environment;
use keelson_machinery::fieldset::FieldSet;
use keelson_machinery::jsonpath::JsonPath;
use keelson_machinery::meta::v1::{ObjectMeta, Status};
use keelson_machinery::patch::{json::JsonPatch, merge, strategic};
use keelson_machinery::quantity::Quantity;
use keelson_machinery::reflect::Reflect;
use keelson_machinery::selector::{FieldSelector, LabelSelector};
use keelson_machinery::time::Time;
use keelson_machinery::{apply, json, protobuf, yaml};

/// The largest body of a request; a third of it where code is slow.
const MAX: usize = if cfg!(debug_assertions) { 1 << 20 } else { 3 << 20 };
/// The stack of the readers: half of a worker's; where code is slow, and its frames are large, that of a worker.
const STACK: usize = if cfg!(debug_assertions) { 2 << 20 } else { 1 << 20 };
/// What code that is not optimised costs beside code that is.
const SLOWER: u64 = if cfg!(debug_assertions) { 12 } else { 1 };
/// How often a bomb is set off before it counts as too dear.
const ATTEMPTS: usize = 3;
/// CPU time that a bomb may take, in milliseconds, and what each MiB of its text may take beside.
const CPU: u64 = 50;
const CPU_OF_MIB: u64 = 400;
/// Memory that a bomb may take, in KiB, and how many times its length beside.
const MEMORY: usize = 10 << 10;
const MEMORY_OF_LENGTH: usize = 80;

/// What became of a bomb.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Refused,
    /// It was read; that may well be, if it costs little.
    Read,
}

impl<T, E> From<Result<T, E>> for End {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(_) => End::Read,
            Err(_) => End::Refused,
        }
    }
}

/// A bomb, how it is set off, and whether it must be refused.
struct Bomb {
    name: &'static str,
    text: String,
    run: Box<dyn Fn(&str) -> End + Send + Sync>,
    refused: bool,
    /// Milliseconds of CPU time and KiB of memory beside the usual, where another bound than that of the length holds.
    more: (u64, usize),
}

fn bomb(name: &'static str, text: String, run: impl Fn(&str) -> End + Send + Sync + 'static) -> Bomb {
    Bomb {
        name,
        text,
        run: Box::new(run),
        refused: false,
        more: (0, 0),
    }
}

impl Bomb {
    fn refused(self) -> Bomb {
        Bomb { refused: true, ..self }
    }

    fn with_more(self, milliseconds: u64, mib: usize) -> Bomb {
        let more = (milliseconds, mib << 10);
        Bomb { more, ..self }
    }
}

/// `unit` as often as a body holds it.
fn full(unit: &str) -> String {
    unit.repeat(MAX / unit.len())
}

/// Numbered units, as many as a body holds.
fn numbered(unit: impl Fn(usize) -> String) -> String {
    let mut out = String::with_capacity(MAX);
    let mut next = unit(0);
    let mut n = 0;
    while out.len() + next.len() < MAX - 64 {
        out.push_str(&next);
        n += 1;
        next = unit(n);
    }
    out
}

fn read_json(text: &str) -> End {
    let bytes = text.as_bytes();
    let _ = (
        json::validate(bytes),
        json::type_meta(bytes),
        json::type_meta_of_all(bytes),
        json::no_fields(bytes),
    );
    let _ = json::read(bytes, &mut Status::default());
    let _ = json::restore(bytes, &mut ObjectMeta::default());
    json::read(bytes, &mut ObjectMeta::default()).into()
}

fn jsons() -> Vec<Bomb> {
    let of = |name, text| bomb(name, text, read_json);
    vec![
        of("json: open lists", full("[")).refused(),
        of("json: open objects", full("{\"labels\":")).refused(),
        of(
            "json: nested lists in a known field",
            format!("{{\"finalizers\":{}", full("[")),
        )
        .refused(),
        of("json: nested in an unknown field", {
            let depth = MAX / 12;
            format!("{{\"x\":{}1{}}}", "{\"a\":".repeat(depth), "}".repeat(depth))
        })
        .refused(),
        of("json: one key many times", format!("{{{}\"a\":1}}", full("\"a\":1,"))),
        of(
            "json: one known key many times",
            format!("{{{}\"name\":\"\"}}", full("\"name\":\"\",")),
        ),
        of(
            "json: many unknown keys",
            format!("{{{}\"a\":1}}", numbered(|n| format!("\"{n}\":1,"))),
        ),
        of(
            "json: many labels",
            format!(
                "{{\"labels\":{{{}\"a\":\"\"}}}}",
                numbered(|n| format!("\"{n}\":\"\","))
            ),
        ),
        of(
            "json: one label many times",
            format!("{{\"labels\":{{{}\"a\":\"\"}}}}", full("\"a\":\"\",")),
        ),
        of(
            "json: many finalizers",
            format!("{{\"finalizers\":[{}\"\"]}}", full("\"\",")),
        ),
        of("json: halves of pairs", format!("{{\"name\":\"{}\"}}", full("\\ud800"))),
        of("json: escapes", format!("{{\"name\":\"{}\"}}", full("\\u0000"))),
        of("json: an open string", format!("{{\"name\":\"{}", full("\\\\"))).refused(),
        of("json: a long number", format!("{{\"generation\":{}}}", full("9"))).refused(),
        of("json: a large exponent", "{\"generation\":1e999999999}".to_owned()).refused(),
        of("json: a long fraction", format!("{{\"generation\":1.{}}}", full("0"))),
        of("json: blanks", format!("{}{{}}", full(" \t\n"))),
    ]
}

fn yamls() -> Vec<Bomb> {
    let of = |name, text: String| {
        bomb(name, text, |text| {
            let _ = yaml::to_json(text.as_bytes());
            yaml::to_json_strict(text.as_bytes()).into()
        })
    };
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    let mut merges = "a0: &a0 {x0: 1, y0: 1}\n".to_owned();
    for n in 1..40 {
        let before = format!("*a{}", n - 1);
        laughs.push_str(&format!("a{n}: &a{n} [{}]\n", vec![before.clone(); 10].join(", ")));
        merges.push_str(&format!("a{n}: &a{n} {{<<: [{before}, {before}], x{n}: 1}}\n"));
    }
    let quadratic = format!("a: &a {}\nb: [{}*a]\n", "x".repeat(MAX / 2), "*a, ".repeat(MAX / 8));
    let steps: String = (0..1_500).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
    vec![
        of("yaml: laughs", laughs).refused(),
        of("yaml: merged laughs", merges),
        of("yaml: a long text many times", quadratic).refused(),
        of("yaml: an alias of itself", format!("a: &a [{}*a]", "[".repeat(100))).refused(),
        of("yaml: open lists", full("[")).refused(),
        of("yaml: open objects", full("{a: ")).refused(),
        of("yaml: open objects in lists", full("[{")).refused(),
        of("yaml: lists in lists", full("- ")).refused(),
        of("yaml: keys that are keys", full("? ")).refused(),
        of(
            "yaml: a key of keys",
            format!("{}a{}: b", "{".repeat(9_000), "}".repeat(9_000)),
        ),
        of("yaml: steps", steps),
        of("yaml: anchors", full("&a ")),
        of("yaml: many anchors", numbered(|n| format!("- &a{n} x\n"))),
        of("yaml: tags", full("!a ")),
        of("yaml: directives", full("%YAML 1.1\n")).refused(),
        of("yaml: documents", full("---\n")),
        of("yaml: one key many times", full("a: 1\n")),
        of("yaml: many keys", numbered(|n| format!("k{n}: 1\n"))),
        of("yaml: an open text", format!("a: \"{}", full("\\\\"))).refused(),
        of("yaml: a long block", format!("a: |\n{}", full(" x\n"))),
        of("yaml: empty lines", format!("a: >\n{}", full("\n"))),
        of("yaml: commas", full(",")).refused(),
        of("yaml: colons", full(": ")).refused(),
        of("yaml: comments", full("# \n")),
        of("yaml: numbers of sixty", format!("a: {}", full("1:"))),
        of("yaml: a long number", format!("a: {}", full("9"))),
    ]
}

/// A document and a patch, with a line feed between them.
fn patches() -> Vec<Bomb> {
    fn parts(text: &str) -> (&[u8], &[u8]) {
        let (document, patch) = text.split_once('\n').unwrap();
        (document.as_bytes(), patch.as_bytes())
    }
    let of_json = |name, text: String| {
        bomb(name, text, |text| {
            let (document, patch) = parts(text);
            JsonPatch::decode(patch, true)
                .and_then(|(patch, _)| patch.apply(document))
                .into()
        })
    };
    let of_merge = |name, text: String| {
        bomb(name, text, |text| {
            let (document, patch) = parts(text);
            merge::apply(document, patch, true).into()
        })
    };
    let of_kind = |name, text: String| {
        bomb(name, text, |text| {
            let (document, patch) = parts(text);
            strategic::apply(document, patch, ObjectMeta::default().desc(), true).into()
        })
    };
    let operations = |count: usize, operation: &dyn Fn(usize) -> String| {
        format!("[{}]", (0..count).map(operation).collect::<Vec<_>>().join(","))
    };
    let test = |_: usize| r#"{"op":"test","path":"","value":{}}"#.to_owned();
    let copy = |_: usize| r#"{"op":"copy","from":"/a","path":"/a/-"}"#.to_owned();
    let long = format!("{{\"a\":[{}0]}}", "0,".repeat(100_000));
    let push = |_: usize| r#"{"op":"add","path":"/a/0","value":0}"#.to_owned();
    let deep = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    let list = |count: usize| (0..count).map(|n| format!("\"f{n}\"")).collect::<Vec<_>>().join(",");
    let owners = |count: usize| {
        (0..count)
            .map(|n| format!("{{\"uid\":\"{n}\"}}"))
            .collect::<Vec<_>>()
            .join(",")
    };
    let removed = |count: usize| {
        (0..count)
            .map(|n| format!("{{\"uid\":\"{n}\",\"$patch\":\"delete\"}}"))
            .collect::<Vec<_>>()
            .join(",")
    };
    vec![
        of_json(
            "json patch: one operation too many",
            format!("{{}}\n{}", operations(10_001, &test)),
        )
        .refused(),
        of_json(
            "json patch: copies of copies",
            format!("{{\"a\":[0]}}\n{}", operations(40, &copy)),
        )
        .refused()
        // What may be copied is bounded, and this many small values have room in it.
        .with_more(150, 100),
        of_json(
            "json patch: many copies",
            format!(
                "{{\"a\":\"{}\"}}\n{}",
                "x".repeat(1 << 20),
                operations(9_000, &|n| {
                    format!("{{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b{n}\"}}")
                })
            ),
        )
        .refused(),
        of_json(
            "json patch: to the front of a long list",
            format!("{long}\n{}", operations(10_000, &push)),
        )
        // So many operations on a list of so many: both are bounded, and a move of memory is quick.
        .with_more(2_000, 0),
        of_json(
            "json patch: a long path",
            format!("{{}}\n[{{\"op\":\"add\",\"path\":\"{}\",\"value\":1}}]", full("/a")),
        )
        .refused(),
        of_json(
            "json patch: deep values",
            format!("{{}}\n[{{\"op\":\"add\",\"path\":\"/a\",\"value\":{}}}]", deep(400_000)),
        )
        .refused(),
        of_merge("merge patch: deep", format!("{{}}\n{}", deep(400_000))).refused(),
        of_merge(
            "merge patch: many keys",
            format!("{{}}\n{{{}\"a\":1}}", numbered(|n| format!("\"{n}\":1,"))),
        ),
        of_merge(
            "merge patch: one key many times",
            format!("{{}}\n{{{}\"a\":1}}", full("\"a\":1,")),
        ),
        of_merge("merge patch: many keys of many", {
            let keys = (0..100_000).map(|n| format!("\"k{n}\":1,")).collect::<String>();
            format!("{{{keys}\"a\":1}}\n{{{keys}\"a\":null}}")
        }),
        of_kind("strategic: deep", format!("{{}}\n{}", deep(400_000))).refused(),
        of_kind(
            "strategic: directives in directives",
            format!("{{}}\n{}1{}", "{\"$patch\":".repeat(200_000), "}".repeat(200_000)),
        )
        .refused(),
        of_kind(
            "strategic: many of many values",
            format!(
                "{{\"finalizers\":[{0}]}}\n{{\"finalizers\":[{0}],\"$setElementOrder/finalizers\":[{0}]}}",
                list(30_000)
            ),
        ),
        of_kind(
            "strategic: many of many values removed",
            format!(
                "{{\"finalizers\":[{0}]}}\n{{\"$deleteFromPrimitiveList/finalizers\":[{0}]}}",
                list(50_000)
            ),
        ),
        of_kind(
            "strategic: many of many items",
            format!(
                "{{\"ownerReferences\":[{0}]}}\n{{\"ownerReferences\":[{0}],\"$setElementOrder/ownerReferences\":[{0}]}}",
                owners(20_000)
            ),
        ),
        of_kind(
            "strategic: many of many items removed",
            format!(
                "{{\"ownerReferences\":[{}]}}\n{{\"ownerReferences\":[{}]}}",
                owners(20_000),
                removed(20_000)
            ),
        ),
        of_kind(
            "strategic: many kept keys",
            format!(
                "{{\"labels\":{{{0}\"a\":\"\"}}}}\n{{\"labels\":{{\"$retainKeys\":[{1}]}}}}",
                (0..50_000).map(|n| format!("\"f{n}\":\"\",")).collect::<String>(),
                list(50_000)
            ),
        ),
    ]
}

fn selectors() -> Vec<Bomb> {
    let of_labels = |name, text: String| {
        bomb(name, text, |text| match LabelSelector::parse(text) {
            Ok(selector) => {
                let none = std::collections::BTreeMap::new();
                let _ = (selector.matches(&none), selector.to_string());
                End::Read
            }
            Err(_) => End::Refused,
        })
    };
    let of_fields = |name, text: String| {
        bomb(name, text, |text| match FieldSelector::parse(text) {
            Ok(selector) => {
                let _ = (selector.matches(|_| "".into()), selector.to_string());
                End::Read
            }
            Err(_) => End::Refused,
        })
    };
    let mib = |unit: &str| unit.repeat((1 << 20) / unit.len());
    let terms = (0..100_000).map(|n| format!("k{n}=v")).collect::<Vec<_>>().join(",");
    let values = |operator: &str| {
        let values = (0..100_000).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        format!("k {operator} ({values})")
    };
    vec![
        of_labels("labels: many terms", terms.clone()),
        of_labels("labels: in many", values("in")),
        of_labels("labels: not in many", values("notin")),
        of_labels("labels: one term many times", mib("a=b,")),
        of_labels("labels: open", mib("(")).refused(),
        of_labels("labels: not not", mib("!")).refused(),
        of_labels("labels: commas", mib(",")),
        of_labels("labels: a long key", mib("a")).refused(),
        of_labels("labels: in in", mib("a in (b) ")).refused(),
        of_labels("labels: blanks", mib(" ")),
        of_fields("fields: many terms", terms),
        of_fields("fields: one term many times", mib("a=b,")),
        of_fields("fields: escapes", mib("\\")),
        of_fields("fields: commas", mib(",")),
    ]
}

fn expressions() -> Vec<Bomb> {
    let of = |name, text: String| {
        let bomb = bomb(name, text, |text| match Environment::new().compile(text) {
            // So much a call may cost.
            Ok(program) => program.evaluate(&[], 1_000_000).into(),
            Err(_) => End::Refused,
        });
        // What reads expressions takes two KiB and five microseconds for a byte; they are no longer than 64 KiB.
        bomb.with_more(400, 150)
    };
    let ten = "[1,2,3,4,5,6,7,8,9,10]";
    let nested = (0..12).fold("1".to_owned(), |inner, n| format!("{ten}.map(x{n}, {inner})"));
    let grown = (0..60).fold("'xx'".to_owned(), |inner, n| {
        format!("[{inner}].map(s{n}, s{n} + s{n})[0]")
    });
    vec![
        of("cel: loops in loops", nested),
        of("cel: texts that grow", grown),
        of("cel: open", "(".repeat(60_000)).refused(),
        of("cel: lists", "[".repeat(60_000)).refused(),
        of("cel: nots", "!".repeat(60_000)).refused(),
        of("cel: minuses", "-".repeat(60_000)).refused(),
        of("cel: choices", format!("{}1", "true?1:".repeat(8_000))).refused(),
        of("cel: sums", format!("1{}", "+1".repeat(30_000))).refused(),
        of(
            "cel: a pattern that goes back",
            format!("'{}b'.matches('(a*)*(a|aa)+$')", "a".repeat(30_000)),
        ),
        of(
            "cel: a pattern that repeats",
            "'a'.matches('((a{1000}){1000}){1000}')".to_owned(),
        )
        .refused(),
        of(
            "cel: a long pattern",
            format!("'a'.matches('{}')", "(a|b)*".repeat(9_000)),
        ),
    ]
}

fn others() -> Vec<Bomb> {
    let path = |name, text: String| bomb(name, text, |text| JsonPath::parse(text).into());
    let quantity = |name, text: String| {
        bomb(name, text, |text| match Quantity::parse(text) {
            Ok(mut quantity) => {
                let _ = (quantity.value(), quantity.milli_value(), quantity.round_up(0));
                End::Read
            }
            Err(_) => End::Refused,
        })
    };
    let fields = |name, text: String| {
        bomb(name, text, |text| {
            apply::read_document(text.as_bytes(), &mut ObjectMeta::default()).into()
        })
    };
    vec![
        path("path: dots", format!("{{{}}}", ".".repeat(1 << 20))).refused(),
        path("path: steps down", format!("{{{}a}}", "..".repeat(1 << 19))).refused(),
        path("path: open", "[".repeat(1 << 20)).refused(),
        path("path: stars", format!("{{{}}}", "[*]".repeat(300_000))),
        quantity("quantity: digits", full("9")),
        quantity("quantity: a fraction", format!("0.{}", full("1"))),
        quantity("quantity: zeros", full("0")),
        quantity("quantity: a large exponent", "1e2147483647".to_owned()),
        quantity("quantity: a small exponent", "1e-2147483648".to_owned()),
        bomb("time: digits", full("9"), |text| Time::parse(text).into()).refused(),
        bomb(
            "time: a fraction",
            format!("2026-01-01T00:00:00.{}Z", full("1")),
            |text| Time::parse(text).into(),
        ),
        fields("apply: deep", format!("{{\"x\":{}", "{\"a\":".repeat(400_000))).refused(),
        fields(
            "apply: many labels",
            format!(
                "{{\"labels\":{{{}\"a\":\"\"}}}}",
                numbered(|n| format!("\"{n}\":\"\","))
            ),
        ),
        fields(
            "apply: many labels that are null, backwards",
            format!("{{\"labels\":{{{}}}}}", {
                let all: Vec<String> = (0..MAX / 14).rev().map(|n| format!("\"{n:06}\":null")).collect();
                all.join(",")
            }),
        ),
        fields(
            "apply: many finalizers backwards",
            format!("{{\"finalizers\":[{}]}}", {
                let all: Vec<String> = (0..MAX / 10).rev().map(|n| format!("\"{n:06}\"")).collect();
                all.join(",")
            }),
        ),
        bomb(
            "fields: backwards",
            format!("{{{}}}", {
                let all: Vec<String> = (0..MAX / 14).rev().map(|n| format!("\"f:{n:06}\":{{}}")).collect();
                all.join(",")
            }),
            |text| FieldSet::read(text.as_bytes()).into(),
        ),
        bomb("protobuf: groups", "\x0b".repeat(MAX), |text| {
            protobuf::read_message(text.as_bytes(), &mut Status::default()).into()
        })
        .refused(),
        bomb("protobuf: nested", "\x0a\x7f".repeat(MAX / 2), |text| {
            protobuf::read_message(text.as_bytes(), &mut Status::default()).into()
        })
        .refused(),
    ]
}

/// CPU time of this process, in hundredths of a second.
fn cpu() -> u64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, rest) = text.rsplit_once(") ").unwrap();
    let mut fields = rest.split(' ').skip(11).map(|field| field.parse::<u64>().unwrap());
    fields.next().unwrap() + fields.next().unwrap()
}

/// A figure of this process, in KiB.
fn memory(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// How it ended, after how many milliseconds of CPU time, and how much memory it took, in KiB.
fn set_off(bomb: &Bomb) -> (End, u64, usize) {
    // Forgets the peak; where that is not allowed, that of all bombs before counts too.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let (before, begin) = (memory("VmRSS:"), cpu());
    let end = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let run = || (bomb.run)(&bomb.text);
        thread.spawn_scoped(scope, run).unwrap().join().unwrap()
    });
    let milliseconds = (cpu() - begin) * 10;
    let peak = memory("VmHWM:").saturating_sub(before);
    (end, milliseconds, peak)
}

#[test]
fn nothing_costs_much_more_than_its_length() {
    let all = [
        jsons(),
        yamls(),
        patches(),
        selectors(),
        expressions(),
        schemas::schemas(),
        schemas::custom_objects(),
        others(),
    ];
    let mut wrong = Vec::new();
    for bomb in all.iter().flatten() {
        let length = bomb.text.len();
        let time = (CPU + bomb.more.0 + CPU_OF_MIB * length as u64 / (1 << 20)) * SLOWER;
        let (end, mut milliseconds, kib) = set_off(bomb);
        for _ in 1..ATTEMPTS {
            if milliseconds > time {
                milliseconds = milliseconds.min(set_off(bomb).1);
            }
        }
        let room = MEMORY + bomb.more.1 + MEMORY_OF_LENGTH * length / 1024;
        println!(
            "{}: {end:?}, {milliseconds} ms of {time}, {kib} KiB of {room}",
            bomb.name
        );
        if milliseconds > time || kib > room || bomb.refused && end != End::Refused {
            wrong.push(format!(
                "{}: {end:?}, {milliseconds} ms of {time}, {kib} KiB of {room}",
                bomb.name
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
