//! Functions of conversions that are not written: the build says where, and how they look.

use std::fs;
use std::path::Path;

use keelson_codegen::{Builder, Error};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn definition(version: &str, size: &str, kind: &str) -> String {
    format!(
        r#"syntax = "proto3";
package com.example.{version};
import "keelson/api.proto";
import "meta/v1/meta.proto";
option (keelson.group_version) = {{group: "example.com", version: "{version}"}};
message Van {{
  option (keelson.kind) = {{plural: "vans", {kind}}};
  io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta metadata = 1;
  VanSpec spec = 2;
}}
message VanSpec {{
  {size}
}}
"#
    )
}

/// What a build says of a crate with these files.
fn told(files: &[(&str, &str)]) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let write = |path: &str, text: &str| -> Result<()> {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("")))?;
        Ok(fs::write(path, text)?)
    };
    let differs = "option (keelson.type) = {differs: [\"size\"]}; string size = 1;";
    write(
        "api-defs/example.com/v1/van.proto",
        &definition("v1", "int32 size = 1;", "storage: true"),
    )?;
    let old = definition("v1beta1", differs, "conversion: \"crate::fleet::vans\"");
    write("api-defs/example.com/v1beta1/van.proto", &old)?;
    for (path, text) in files {
        write(path, text)?;
    }
    match Builder::new(folder.path().join("api-defs"))
        .sources(folder.path())
        .generate()
    {
        Ok(_) => Ok(String::new()),
        Err(error @ Error::Definitions(_)) => {
            Ok(error.to_string().replace(&format!("{}/", folder.path().display()), ""))
        }
        Err(other) => Err(other.into()),
    }
}

const TO: &str = "pub fn to_hub_van_spec(from: &example_com::v1beta1::VanSpec, to: &mut example_com::v1::VanSpec) \
    -> Result<(), String>";
const FROM: &str = "pub fn from_hub_van_spec(from: &example_com::v1::VanSpec, to: &mut \
    example_com::v1beta1::VanSpec) -> Result<(), String>";
const PLACE: &str = "api-defs/example.com/v1beta1/van.proto:11: VanSpec:";

#[test]
fn missing_modules_are_named_with_their_file() -> Result<()> {
    let main = (
        "src/main.rs",
        "mod api { keelson_machinery::include_api!(); }\nfn main() {}\n",
    );
    let nowhere = |file: &str, name: &str, within: &str| {
        format!(
            "{PLACE} `conversion` names crate::fleet::vans, which is no module: write {file} with `{TO}` and `{FROM}`, \
             and `mod {name};` in {within}"
        )
    };
    assert_eq!(told(&[main])?, nowhere("src/fleet.rs", "fleet", "src/main.rs"));
    let fleet = ("src/lib.rs", "mod fleet;\nkeelson_machinery::include_api!();\n");
    assert_eq!(told(&[fleet])?, nowhere("src/fleet.rs", "fleet", "src/lib.rs"));
    let empty = ("src/fleet.rs", "");
    assert_eq!(
        told(&[fleet, empty])?,
        nowhere("src/fleet/vans.rs", "vans", "src/fleet.rs")
    );
    let root = ("lib.rs", "mod fleet { mod vans; }\n");
    assert_eq!(told(&[root])?, nowhere("fleet/vans.rs", "vans", "lib.rs"));
    Ok(())
}

#[test]
fn missing_functions_are_named_with_their_signature() -> Result<()> {
    let main = |vans: &str| format!("mod fleet {{ pub mod vans {{ {vans} }} }}\nfn main() {{}}\n");
    let said = |vans: &str| told(&[("src/main.rs", &main(vans))]);
    assert_eq!(
        said("pub fn to_hub_van_spec() {}")?,
        format!("{PLACE} `differs` needs `{FROM}` in src/main.rs: write it")
    );
    assert_eq!(said("pub fn to_hub_van_spec() {} pub fn from_hub_van_spec() {}")?, "");
    assert_eq!(said("pub use super::other::{to_hub_van_spec, from_hub_van_spec};")?, "");
    assert_eq!(said("some_macro!();")?, "");
    let nested = [
        ("src/main.rs", "mod fleet;\nfn main() {}\n"),
        ("src/fleet/mod.rs", "pub mod vans;\n"),
        (
            "src/fleet/vans.rs",
            "pub fn to_hub_van_spec() {}\npub fn from_hub_van_spec() {}\n",
        ),
    ];
    assert_eq!(told(&nested)?, "");
    Ok(())
}
