//! Recorded answers: what Go's `regexp` says of patterns, and where it finds them in texts.
//!
//! `KEELSON_PATTERNS` names another file of the same form.

use serde_json::Value as Json;

use super::compiled;

/// Where a pattern is found in each text: `0,1;-;`.
fn matches(pattern: &str, texts: &[Json]) -> Result<String, String> {
    let regex = compiled(pattern).map_err(|error| error.to_string())?;
    let places = texts.iter().map(|text| match regex.find(text.as_str().unwrap()) {
        Some(found) => format!("{},{};", found.start(), found.end()),
        None => "-;".to_owned(),
    });
    Ok(places.collect())
}

#[test]
fn go_says_the_same_of_patterns() {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/patterns.jsonl");
    let path = std::env::var("KEELSON_PATTERNS").unwrap_or(own.to_owned());
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str::<Json>(line).unwrap());
    let first = lines.next().unwrap();
    let texts = first["texts"].as_array().unwrap();
    let (mut rows, mut differ) = (0, Vec::new());
    for row in lines {
        rows += 1;
        let expected = match (row["error"].as_str(), row["matches"].as_str()) {
            (Some(error), _) => Err(error.to_owned()),
            (None, found) => Ok(found.unwrap().to_owned()),
        };
        let found = matches(row["pattern"].as_str().unwrap(), texts);
        if found != expected {
            differ.push(format!("{}\nfound    {found:?}\nexpected {expected:?}", row["pattern"]));
        }
    }
    assert!(rows > 100);
    assert!(
        differ.is_empty(),
        "{} of {rows}\n{}",
        differ.len(),
        differ[..differ.len().min(20)].join("\n")
    );
}
