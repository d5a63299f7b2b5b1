//! Schemas of custom resources that cost more than their length, and objects that cost more by their schema than by
//! themselves.

use std::sync::Arc;

use keelson_machinery::budget::Budget;
use keelson_machinery::field::{ErrorList, Path};
use keelson_machinery::object::Gvk;
use keelson_machinery::reflect::Desc;
use keelson_machinery::reflect::dynamic::DescError;
use keelson_machinery::structural::{
    Compile, Definition, JsonSchema, OpenApi, OpenApiTexts, OpenApiVersion, Requirements, Subject, Validator, check,
    compile,
};
use keelson_machinery::{defaults, json};

use super::{Bomb, End, MAX, bomb, full, numbered};

/// Checks a schema as a definition brings it, makes a table of it and tells it as OpenAPI.
fn take(text: &str) -> End {
    let Ok(schema) = JsonSchema::parse(text.as_bytes()) else {
        return End::Refused;
    };
    let definition = Definition {
        preserve_unknown_fields: false,
        schemas: &[&schema],
    };
    let errors = check(&Subject {
        schema: &schema,
        path: Path::new("openAPIV3Schema"),
        has_status: true,
        unchanged: false,
        requirements: &Requirements::of(&definition, None),
    });
    if !errors.is_empty() {
        return End::Refused;
    }
    let gvk = Gvk::new("example.com", "v1", "Thing");
    let told = OpenApi {
        gvk: &gvk,
        list_kind: "ThingList",
        plural: "things",
        schema: Some((&schema, text.as_bytes())),
        preserve_unknown_fields: false,
        selectable_fields: &[],
        texts: &OpenApiTexts::default(),
    };
    let _ = (
        told.definitions(OpenApiVersion::V2),
        told.definitions(OpenApiVersion::V3),
    );
    compiled(&schema).map(drop).into()
}

fn compiled(schema: &JsonSchema) -> Result<Desc, DescError> {
    compile(&Compile {
        gvk: Gvk::new("example.com", "v1", "Thing"),
        schema: Some(schema),
        preserve_unknown_fields: false,
    })
}

/// Reads and validates an object by a schema; they stand in two lines.
fn fit(text: &str) -> End {
    let (schema, object) = text.split_once('\n').unwrap();
    let schema = JsonSchema::parse(schema.as_bytes()).unwrap();
    let desc = compiled(&schema).unwrap();
    let mut read = desc.new_object();
    if json::read(object.as_bytes(), read.as_reflect_mut()).is_err() {
        return End::Refused;
    }
    if !defaults::apply_within(read.as_reflect_mut(), &Budget::of_request()) {
        return End::Refused;
    }
    let validator = Validator::new(Arc::new(schema), &Gvk::new("example.com", "v1", "Thing"));
    let (mut errors, mut warnings, new) = (ErrorList::new(), Vec::new(), read.as_reflect());
    for old in [None, Some(new)] {
        validator.values(new, old, &mut errors);
        validator.unique(new, old, &mut errors);
        validator.rules(new, old, &mut errors, &mut warnings);
    }
    validator.embedded(new, &mut errors);
    if errors.is_empty() { End::Read } else { End::Refused }
}

/// Schemas of custom resources.
pub fn schemas() -> Vec<Bomb> {
    let of = |name, text: String| bomb(name, text, take);
    let spec = |schema: &str| format!(r#"{{"type":"object","properties":{{"spec":{schema}}}}}"#);
    let nested = |depth: usize, open: &str, close: &str, inner: &str| {
        spec(&format!("{}{inner}{}", open.repeat(depth), close.repeat(depth)))
    };
    let properties = |depth| {
        nested(
            depth,
            r#"{"type":"object","properties":{"a":"#,
            "}}",
            r#"{"type":"string"}"#,
        )
    };
    // Twice as many schemas at each level, as many levels as a body has room for.
    let doubled = |keyword: &str| {
        let levels = (MAX / 80).ilog2();
        let one = r#"{"minLength":1}"#.to_owned();
        let all = (0..levels).fold(one, |inner, _| format!(r#"{{"{keyword}":[{inner},{inner}]}}"#));
        spec(&format!(r#"{{"type":"string","{keyword}":[{all}]}}"#))
    };
    let rules = |rule: &dyn Fn(usize) -> String| {
        let all = numbered(|n| format!(r#"{{"rule":"{}"}},"#, rule(n)));
        spec(&format!(
            r#"{{"type":"string","maxLength":9,"x-kubernetes-validations":[{}]}}"#,
            all.trim_end_matches(',')
        ))
    };
    vec![
        of("schema: rules that are none", rules(&|_| "x".to_owned())).refused(),
        of("schema: many rules", rules(&|n| format!("self != '{n}'"))).refused(),
        of("schema: as many rules as may be", {
            let all: Vec<String> = (10_000..12_750)
                .map(|n| format!(r#"{{"rule":"self != '{n}'"}}"#))
                .collect();
            spec(&format!(
                r#"{{"type":"string","maxLength":9,"x-kubernetes-validations":[{}]}}"#,
                all.join(",")
            ))
        })
        .with_more(400, 0),
        of("schema: nested properties", properties(MAX / 40)).refused(),
        of(
            "schema: nested items",
            nested(MAX / 30, r#"{"type":"array","items":"#, "}", r#"{"type":"string"}"#),
        )
        .refused(),
        of(
            "schema: nested maps",
            nested(MAX / 48, r#"{"type":"object","additionalProperties":"#, "}", "true"),
        )
        .refused(),
        of("schema: nested nots", nested(MAX / 10, r#"{"not":"#, "}", "{}")).refused(),
        of(
            "schema: nested alternatives",
            nested(MAX / 14, r#"{"anyOf":["#, "]}", "{}"),
        )
        .refused(),
        of("schema: as deep as may be", properties(150)),
        of("schema: alternatives of alternatives", doubled("anyOf")),
        of("schema: all of all", doubled("allOf")),
        of("schema: one of one", doubled("oneOf")),
        of(
            "schema: many properties",
            spec(&format!(
                r#"{{"type":"object","properties":{{{}"a":{{"type":"string"}}}}}}"#,
                { numbered(|n| format!(r#""p{n}":{{"type":"string"}},"#)) }
            )),
        ),
        of(
            "schema: no schema at all",
            format!(r#"{{"properties":{{{}"a":{{}}}}}}"#, full(r#""a":{},"#)),
        )
        .refused(),
        of(
            "schema: a list of required names",
            spec(&format!(r#"{{"type":"object","required":[{}"a"]}}"#, full(r#""a","#))),
        ),
        of(
            "schema: many values of an enum",
            spec(&format!(
                r#"{{"type":"string","enum":[{}"a"]}}"#,
                numbered(|n| format!("\"{n}\","))
            )),
        ),
        of(
            "schema: one value many times",
            spec(&format!(r#"{{"type":"string","enum":[{}"a"]}}"#, full("\"a\","))),
        ),
        of(
            "schema: a long pattern",
            spec(&format!(r#"{{"type":"string","pattern":"{}"}}"#, full("(a|b)*"))),
        )
        .refused(),
        of(
            "schema: a pattern that repeats",
            spec(r#"{"type":"string","pattern":"((a{1000}){1000}){1000}"}"#),
        )
        .refused(),
        of("schema: a default that nests", {
            let depth = MAX / 12;
            let deep = format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
            spec(&format!(
                r#"{{"type":"object","x-kubernetes-preserve-unknown-fields":true,"default":{deep}}}"#
            ))
        })
        .refused(),
        of("schema: a default that does not fit", {
            spec(&format!(
                r#"{{"type":"array","items":{{"type":"string"}},"default":[{}1]}}"#,
                full("1,")
            ))
        })
        .refused(),
        of("schema: a rule of loops", {
            let rule = (0..20).fold("true".to_owned(), |inner, n| format!("self.all(x{n}, {inner})"));
            spec(&format!(
                r#"{{"type":"array","maxItems":1000,"items":{{"type":"string","maxLength":9}},
                "x-kubernetes-validations":[{{"rule":"{rule}"}}]}}"#
            ))
        })
        .refused(),
    ]
}

/// Custom objects whose schema has a say on each of their many parts.
pub fn custom_objects() -> Vec<Bomb> {
    let of = |name, schema: String, object: String| bomb(name, format!("{schema}\n{object}"), fit);
    let spec = |schema: &str| format!(r#"{{"type":"object","properties":{{"spec":{schema}}}}}"#);
    let list = |item: &str| spec(&format!(r#"{{"type":"array","items":{item}}}"#));
    let items = |item: &str| {
        let items = format!("{item},").repeat(MAX / 2 / (item.len() + 1));
        format!(
            r#"{{"metadata":{{"name":"a"}},"spec":[{}]}}"#,
            items.trim_end_matches(',')
        )
    };
    let half = |unit: &dyn Fn(usize) -> String| {
        let count = MAX / 2 / unit(100_000).len();
        let all: Vec<String> = (0..count).map(unit).collect();
        all.join(",")
    };
    let text = |length: usize| format!(r#"{{"spec":"{}"}}"#, "ab".repeat(length / 2));
    let pattern = |pattern: &str| spec(&format!(r#"{{"type":"string","pattern":"{pattern}"}}"#));
    let properties = (0..10_000).map(|n| format!(r#""p{n}":{{"type":"string"}}"#));
    let properties = properties.collect::<Vec<_>>().join(",");
    let numbers = half(&|n| format!(r#"{{"enum":[{n}]}}"#));
    vec![
        of(
            "custom object: many alternatives of many items",
            list(&format!(r#"{{"type":"integer","anyOf":[{numbers}]}}"#)),
            items("0"),
        )
        .with_more(4_000, 0),
        of(
            "custom object: many alternatives, none of which fits, of many items",
            list(&format!(r#"{{"type":"integer","oneOf":[{numbers}]}}"#)),
            items("-1"),
        )
        .refused()
        .with_more(4_000, 0),
        of(
            "custom object: many values of an enum for many items",
            list(&format!(
                r#"{{"type":"string","enum":[{},"z"]}}"#,
                half(&|n| format!("\"{n}\""))
            )),
            items(r#""z""#),
        )
        .with_more(4_000, 0),
        of(
            "custom object: many names that many items lack",
            list(&format!(
                r#"{{"type":"object","required":[{}]}}"#,
                half(&|n| format!("\"{n}\""))
            )),
            items("{}"),
        )
        .with_more(4_000, 0),
        of(
            "custom object: many properties that many items lack",
            list(&format!(r#"{{"type":"object","properties":{{{properties}}}}}"#)),
            items("{}"),
        ),
        of(
            "custom object: many properties of which many items have the last",
            list(&format!(r#"{{"type":"object","properties":{{{properties}}}}}"#)),
            items(r#"{"p9999":""}"#),
        ),
        of(
            "custom object: many defaults that many items lack",
            list(&format!(
                r#"{{"type":"object","properties":{{{}}}}}"#,
                (0..10_000)
                    .map(|n| format!(r#""p{n}":{{"type":"string","default":"x"}}"#))
                    .collect::<Vec<_>>()
                    .join(",")
            )),
            items("{}"),
        )
        .refused()
        .with_more(4_000, 100),
        of(
            "custom object: a pattern that goes back",
            pattern("^(a*)*(b|ab)*c$"),
            text(MAX / 2),
        )
        .refused(),
        of(
            "custom object: a pattern of many states",
            pattern("[ab]*a[ab]{999}c|[ab]*b[ab]{999}c|[ab]*a[ab]{998}d|[ab]*b[ab]{998}d"),
            text(MAX / 2),
        )
        .refused()
        .with_more(4_000, 0),
        of(
            "custom object: unique items",
            spec(r#"{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}"#),
            format!(r#"{{"spec":[{}]}}"#, half(&|n| format!("\"{n}\""))),
        ),
        of(
            "custom object: items with one key",
            spec(
                r#"{"type":"array","items":{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}},
                "x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a"]}"#,
            )
            .replace('\n', " "),
            format!(r#"{{"spec":[{}]}}"#, half(&|_| r#"{"a":"x"}"#.to_owned())),
        )
        .refused(),
        of(
            "custom object: a rule over very many items",
            spec(
                r#"{"type":"array","items":{"type":"string"},
                "x-kubernetes-validations":[{"rule":"self.all(x, self.all(y, x == y))"}]}"#,
            )
            .replace('\n', " "),
            items(r#""z""#),
        )
        .refused()
        .with_more(1_000, 0),
        of(
            "custom object: deep",
            spec(r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true}"#),
            format!(r#"{{"spec":{}1{}}}"#, r#"{"a":"#.repeat(MAX / 12), "}".repeat(MAX / 12)),
        )
        .refused(),
    ]
}
