//! Rules: expressions of CEL over values of a type.

use serde_json::{Map, Value, json};

use super::chance::Chance;

const TEXT: [&str; 22] = [
    "self.size() < 3",
    "self.contains('a')",
    "self != ''",
    "self.matches('^[a-z]+$')",
    "self == oldSelf",
    "self.startsWith(oldSelf)",
    "size(self) >= size(oldSelf)",
    "int(self) > 1",
    "self.upperAscii() == self",
    "self.split('').size() > 1",
    "self < 'b'",
    "self in ['a', 'b']",
    "self.replace('a', 'b') != self",
    "self.indexOf('b') < 1",
    "self.reverse() == self",
    "self.find('[0-9]+') == ''",
    "isURL(self) || self == 'a'",
    "isIP(self) && ip(self).family() == 4",
    "quantity(self).isGreaterThan(quantity('1'))",
    "format.dns1123Label().validate(self).hasValue() == false",
    "self.charAt(0) == 'a'",
    "duration(self) > duration('1m')",
];
const INTEGER: [&str; 8] = [
    "self > 1",
    "self >= oldSelf",
    "self % 2 == 0",
    "10 / self > 1",
    "self * 1000000000000 * 1000000000000 > 0",
    "string(self) == '1'",
    "self in [1, 2, 3]",
    "double(self) < 2.5",
];
const NUMBER: [&str; 5] = [
    "self > 1.0",
    "self >= oldSelf",
    "double(int(self)) == self",
    "self / 0.0 > 1.0",
    "math.ceil(self) == self",
];
const BOOLEAN: [&str; 4] = ["self", "!self", "self == oldSelf", "self || oldSelf"];
const LIST: [&str; 8] = [
    "self.size() < 3",
    "self == oldSelf",
    "self.all(x, x == self[0])",
    "self.exists(x, x == self[1])",
    "self[2] == self[0]",
    "self.all(x, oldSelf.exists(y, x == y))",
    "self.map(x, x).size() > 1",
    "self + self != self",
];
const OBJECT: [&str; 6] = [
    "has(self.a)",
    "!has(oldSelf.a) || has(self.a)",
    "self == oldSelf",
    "has(self.a) == has(self.b)",
    "self.?a.hasValue()",
    "oldSelf.orValue(self) == self",
];
const MAP: [&str; 5] = [
    "'k1' in self",
    "self.size() < 2",
    "self == oldSelf",
    "self.all(k, k.size() > 1)",
    "self.exists(k, self[k] == oldSelf[k])",
];
const EITHER: [&str; 3] = [
    "type(self) == int",
    "self == oldSelf",
    "type(self) == string ? self.contains('%') : self > 5",
];
const REASONS: [&str; 4] = [
    "FieldValueInvalid",
    "FieldValueForbidden",
    "FieldValueRequired",
    "FieldValueDuplicate",
];

/// Gives a schema one rule, or two.
pub fn attach(chance: &mut Chance, schema: &mut Map<String, Value>) {
    let all: &[&str] = match schema.get("type").and_then(Value::as_str) {
        Some("string") => &TEXT,
        Some("integer") => &INTEGER,
        Some("number") => &NUMBER,
        Some("boolean") => &BOOLEAN,
        Some("array") => &LIST,
        Some("object") if schema.contains_key("additionalProperties") => &MAP,
        Some("object") => &OBJECT,
        _ => &EITHER,
    };
    let rules: Vec<Value> = (0..chance.within(1, 2)).map(|_| rule(chance, all)).collect();
    schema.insert("x-kubernetes-validations".to_owned(), rules.into());
}

fn rule(chance: &mut Chance, all: &[&str]) -> Value {
    let expression = chance.pick(all);
    let mut rule = json!({"rule": expression});
    if expression.contains("oldSelf.orValue") {
        rule["optionalOldSelf"] = json!(true);
    } else if expression.contains("oldSelf") && chance.percent(20) {
        rule["rule"] = json!("!oldSelf.hasValue() || oldSelf.value() == self");
        rule["optionalOldSelf"] = json!(true);
    }
    if chance.percent(25) {
        rule["message"] = json!(chance.pick(&["bad", "worse value"]));
    }
    if chance.percent(15) {
        let texts = ["'a' + 'b'", "''", r"'a\nb'", "'x: ' + string(self)"];
        let texts = if all.len() > 6 { &texts[..] } else { &texts[..3] };
        rule["messageExpression"] = json!(chance.pick(texts));
    }
    if chance.percent(20) {
        rule["reason"] = json!(chance.pick(&REASONS));
    }
    rule
}
