//! The reference of the format, api-defs/README.md: its examples are valid and it leaves no option out.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use keelson_codegen::{Builder, Error};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const HEAD: &str = "syntax = \"proto3\";\npackage com.example.v1;\nimport \"keelson/api.proto\";\n\
    import \"meta/v1/meta.proto\";\n\
    option (keelson.group_version) = {group: \"example.com\", version: \"v1\"};\n";
const INNER: &str = "message Inner {\n  string name = 1;\n  int32 size = 2;\n}\n";

fn definitions() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../api-defs")
}

fn blocks(text: &str) -> Vec<String> {
    text.split("```proto\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .map(str::to_owned)
        .collect()
}

/// Makes a file of an example that shows only messages or only fields.
fn whole(block: &str) -> String {
    if block.contains("syntax = ") {
        block.to_owned()
    } else if block.starts_with("message") || block.starts_with("//") {
        format!("{HEAD}{block}")
    } else {
        format!("{HEAD}message Example {{\n{block}}}\n{INNER}")
    }
}

fn mistakes(file: &str) -> Result<String> {
    let folder = tempfile::tempdir()?;
    // `// === <path>` begins a file of an example that has several.
    let several = file.split("// === ").skip(1).filter_map(|f| f.split_once('\n'));
    let mut files: Vec<(&str, &str)> = several.collect();
    if files.is_empty() {
        files.push(("example.com/v1/example.proto", file));
    }
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or(folder.path()))?;
        fs::write(path, text)?;
    }
    match Builder::new(folder.path()).generate() {
        Ok(_) => Ok(String::new()),
        Err(error @ Error::Definitions(_)) => Ok(error.to_string()),
        Err(other) => Err(other.into()),
    }
}

#[test]
fn every_example_is_a_valid_definition() -> Result<()> {
    let blocks = blocks(&fs::read_to_string(definitions().join("README.md"))?);
    assert!(blocks.len() > 10, "only {} examples were found", blocks.len());
    for block in blocks {
        let found = mistakes(&whole(&block))?;
        assert!(found.is_empty(), "{found}\nin:\n{block}");
    }
    Ok(())
}

#[test]
fn the_definitions_of_the_repository_have_no_mistake() -> Result<()> {
    Builder::new(definitions()).generate()?;
    Ok(())
}

/// Names of the fields of each message of keelson/api.proto.
fn options() -> Result<BTreeMap<String, Vec<String>>> {
    let text = fs::read_to_string(definitions().join("keelson/api.proto"))?;
    let (mut message, mut all) = (String::new(), BTreeMap::<String, Vec<String>>::new());
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("message ") {
            message = name.trim_end_matches([' ', '{']).to_owned();
        } else if let Some((declaration, _)) = line.split_once(" = ")
            && let Some(name) = declaration.split(' ').next_back()
            && !line.starts_with("//")
            && !message.is_empty()
        {
            all.entry(message.clone()).or_default().push(name.to_owned());
        }
    }
    Ok(all)
}

#[test]
fn every_option_is_explained_and_shown() -> Result<()> {
    let text = fs::read_to_string(definitions().join("README.md"))?;
    let examples = blocks(&text).concat();
    let options = options()?;
    assert!(
        options.get("Field").is_some_and(|f| f.len() > 25),
        "keelson/api.proto was not understood"
    );
    for (message, names) in options {
        for name in names.iter().filter(|n| n.starts_with(|c: char| c.is_ascii_lowercase())) {
            assert!(text.contains(&format!("`{name}`")), "{message}.{name} is not explained");
            assert!(
                examples.contains(&format!("{name}: ")),
                "{message}.{name} has no example"
            );
        }
    }
    Ok(())
}
