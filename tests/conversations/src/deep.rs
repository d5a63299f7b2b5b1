//! JSON of any depth: what the usual reader refuses as too deep is read level by level.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Error, Map, Value};

/// Levels that are read one by one at most: each is a call.
const DEEPEST: usize = 1000;

/// Reads a value.
pub fn parse(bytes: &[u8]) -> Result<Value, Error> {
    match serde_json::from_slice(bytes) {
        Err(error) if error.to_string().starts_with("recursion limit") => {
            let text: &RawValue = serde_json::from_slice(bytes)?;
            below(text, DEEPEST)
        }
        read => read,
    }
}

fn below(text: &RawValue, levels: usize) -> Result<Value, Error> {
    let is_leaf = !text.get().starts_with(['{', '[']);
    match levels.checked_sub(1).filter(|_| !is_leaf) {
        None => serde_json::from_str(text.get()),
        Some(levels) => Level(levels).deserialize(&mut serde_json::Deserializer::from_str(text.get())),
    }
}

/// One object or array, whose values are read with so many levels left.
struct Level(usize);

impl<'de> DeserializeSeed<'de> for Level {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some((key, text)) = map.next_entry::<String, &RawValue>()? {
            fields.insert(key, below(text, self.0).map_err(serde::de::Error::custom)?);
        }
        Ok(fields.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(text) = items.next_element::<&RawValue>()? {
            values.push(below(text, self.0).map_err(serde::de::Error::custom)?);
        }
        Ok(values.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_deep_for_the_usual_reader_is_read() {
        let text = format!(
            "{}[1, \"x\", {{\"b\": 2, \"a\": null}}]{}",
            "{\"k\": [".repeat(100),
            "]}".repeat(100)
        );
        assert!(serde_json::from_str::<Value>(&text).is_err());
        let mut value = parse(text.as_bytes()).unwrap();
        for _ in 0..100 {
            value = value["k"][0].take();
        }
        assert_eq!(value.to_string(), r#"[1,"x",{"b":2,"a":null}]"#);
        assert!(parse(&text.as_bytes()[1..]).is_err());
        assert!(parse("[".repeat(5000).as_bytes()).is_err());
    }
}
