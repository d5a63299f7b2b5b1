//! Options that definitions imply, and builds of some files alone.

use std::fs;
use std::path::Path;

use keelson_codegen::{Builder, Error};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const HEAD: &str = "syntax = \"proto3\";\npackage com.example.v1;\nimport \"keelson/api.proto\";\n\
    import \"meta/v1/meta.proto\";\n\
    option (keelson.group_version) = {group: \"example.com\", version: \"v1\"};\n";

/// The code of a definition with these options of its kind and these fields.
fn source(kind: &str, fields: &str) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let text = format!(
        "{HEAD}message Thing {{\n  option (keelson.kind) = {{plural: \"things\" {kind}}};\n  \
         io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta metadata = 1;\n  Spec spec = 2;\n}}\n\
         message Spec {{\n{fields}\n}}\nmessage Part {{\n  string name = 1;\n}}\n"
    );
    write(folder.path(), "example.com/v1/thing.proto", &text)?;
    Ok(Builder::new(folder.path()).generate()?.source)
}

fn write(folder: &Path, name: &str, text: &str) -> Result<()> {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap_or(folder))?;
    Ok(fs::write(path, text)?)
}

#[test]
fn what_is_required_is_always_written() -> Result<()> {
    for field in [
        "string a = 1",
        "optional int32 a = 1",
        "repeated string a = 1",
        "map<string, string> a = 1",
    ] {
        let with = |options: &str| source("", &format!("{field} [(keelson.field) = {{{options}}}];"));
        assert_eq!(
            with("required: true")?,
            with("required: true, always: true")?,
            "{field}"
        );
        assert_ne!(
            with("required: true")?,
            with("required: true, always: false")?,
            "{field}"
        );
        assert_eq!(with("")?, with("always: false")?, "{field}");
    }
    let part = |options: &str| source("", &format!("Part a = 1 [(keelson.field) = {{{options}}}];"));
    assert_eq!(part("required: true")?, part("required: true, always: false")?);
    Ok(())
}

#[test]
fn elements_are_merged_by_the_key_of_their_list() -> Result<()> {
    let with = |options: &str| source("", &format!("repeated Part a = 1 [(keelson.field) = {{{options}}}];"));
    let list = "list_type: MAP, map_keys: [\"name\"]";
    assert_eq!(
        with(&format!("{list}, patch_strategy: [\"merge\"]"))?,
        with(&format!("{list}, patch_strategy: [\"merge\"], merge_key: \"name\""))?
    );
    assert!(!with(list)?.contains("merge_key"));
    Ok(())
}

#[test]
fn the_name_goes_before_columns_and_the_age_behind() -> Result<()> {
    let with = |kind: &str| source(kind, "string a = 1;");
    let name = "columns: {name: \"Name\", type: \"string\", format: \"name\", path: \".metadata.name\"}";
    let age = "columns: {name: \"Age\", type: \"string\", function: \"age\"}";
    let own = "columns: {name: \"A\", type: \"string\", path: \".spec.a\"}";
    let created = "columns: {name: \"Created At\", type: \"date\", function: \"created\"}";
    for (short, long) in [
        (own.to_owned(), format!("{name} {own} {age}")),
        (format!("{age} {own}"), format!("{name} {age} {own}")),
        (format!("{own} {name}"), format!("{own} {name} {age}")),
        (format!("{own} {created}"), format!("{name} {own} {created}")),
        (format!("{own} no_age: true"), format!("{name} {own} no_age: true")),
    ] {
        assert_eq!(with(&short)?, with(&long)?, "{short}");
    }
    assert_ne!(with(&format!("{own} no_age: true"))?, with(own)?);
    Ok(())
}

#[test]
fn some_files_can_be_built_alone() -> Result<()> {
    let folder = tempfile::tempdir()?;
    write(
        folder.path(),
        "example.com/v1/a.proto",
        &format!("{HEAD}message A {{\n  string a = 1;\n}}\n"),
    )?;
    let user = format!("{HEAD}import \"example.com/v1/a.proto\";\nmessage B {{\n  A a = 1;\n}}\n");
    write(folder.path(), "example.com/v1/b.proto", &user)?;
    let only = |files: &[&str]| Builder::new(folder.path()).only(files).generate();
    let a = only(&["example.com/v1/a.proto"])?.source;
    assert!(a.contains("pub struct A") && !a.contains("pub struct B"));
    match only(&["example.com/v1/b.proto"]) {
        Err(Error::Definitions(problems)) => assert!(
            problems
                .iter()
                .any(|one| one.to_string().contains("example.com/v1/a.proto")),
            "{problems:?}"
        ),
        other => return Err(format!("{:?}", other.map(|output| output.source)).into()),
    }
    assert!(only(&["example.com/v1/c.proto"]).is_err());
    Ok(())
}
