use std::fs;

use super::*;

/// What a build says of a definition with these rules.
fn told(kind: &str, message: &str, field: &str) -> String {
    let text = format!(
        r#"syntax = "proto3";
package com.example.v1;
import "keelson/api.proto";
import "meta/v1/meta.proto";
option (keelson.group_version) = {{group: "example.com", version: "v1"}};
message Van {{
  option (keelson.kind) = {{plural: "vans"{kind}}};
  io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta metadata = 1;
  VanSpec spec = 2;
}}
message VanSpec {{
  option (keelson.type) = {{{message}}};
  int32 doors = 1 [(keelson.field) = {{{field}}}];
  optional io.k8s.apimachinery.pkg.apis.meta.v1.Time since = 2;
  repeated string drivers = 3;
  map<string, string> extras = 4;
  optional VanSpec spare = 5;
  io.k8s.apimachinery.pkg.api.resource.Quantity load = 6;
  int32 namespace = 7;
}}
"#
    );
    let text = text.replace(
        "import \"meta/v1/meta.proto\";\n",
        "import \"meta/v1/meta.proto\";\nimport \"meta/v1/quantity.proto\";\n",
    );
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("example.com/v1");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("van.proto"), text).unwrap();
    match definitions(folder.path()).generate() {
        Ok(_) => String::new(),
        Err(error) => error.to_string().replace(&format!("{}/", folder.path().display()), ""),
    }
}

#[test]
fn rules_are_read_and_typed_by_the_build() {
    let field = |rule: &str| told("", "", &format!("rules: {{rule: {rule:?}}}"));
    let head = "example.com/v1/van.proto:14: VanSpec.doors: the rule";
    let syntax = field("self >>> 1");
    let begin = format!("{head} \"self >>> 1\" does not compile: 1:7: Syntax error: ");
    assert!(syntax.starts_with(&begin) && !syntax.contains('\n'), "{syntax}");
    assert_eq!(
        field("self.nope"),
        format!("{head} \"self.nope\" does not compile: 1:5: type 'int' does not support field selection")
    );
    assert_eq!(
        field("self == 'two'"),
        format!(
            "{head} \"self == 'two'\" does not compile: 1:6: found no matching overload for '_==_' applied to '(int, string)'"
        )
    );
    assert_eq!(
        field("self + 1"),
        format!("{head} \"self + 1\" does not compile: cel expression must evaluate to a bool")
    );
    assert_eq!(
        field("slef > 1 && other"),
        format!(
            "{head} \"slef > 1 && other\" does not compile: 1:1: undeclared reference to 'slef' (in container ''); \
             1:13: undeclared reference to 'other' (in container '')"
        )
    );
    assert_eq!(
        told("", "", "rules: {rule: \"self > 1\", message_expression: \"1\"}"),
        "example.com/v1/van.proto:14: VanSpec.doors: the message expression \"1\" does not compile: cel expression \
         must evaluate to a string"
    );
}

#[test]
fn rules_of_messages_and_kinds_see_their_fields() {
    let message = |rule: &str| told("", &format!("rules: {{rule: {rule:?}}}"), "");
    assert_eq!(
        message("self.nope > 1"),
        "example.com/v1/van.proto:12: VanSpec: the rule \"self.nope > 1\" does not compile: 1:5: undefined field 'nope'"
    );
    for good in [
        "self.doors > 1 && self.since < timestamp('2030-01-01T00:00:00Z')",
        "self.drivers.all(d, d.startsWith('a')) && 'x' in self.extras && self.extras.x == ''",
        "has(self.spare) && self.spare.anything == 1",
        "quantity(self.load).isGreaterThan(quantity('1'))",
        "self.__namespace__ == oldSelf.__namespace__",
    ] {
        assert_eq!(message(good), "", "{good}");
    }
    assert_eq!(
        told("", "rules: {rule: \"oldSelf.hasValue()\", optional_old_self: true}", ""),
        ""
    );
    let kind = |rule: &str| told(&format!(", rules: {{rule: {rule:?}}}"), "", "");
    assert_eq!(kind("self.metadata.name == self.kind && self.spec.doors < 9"), "");
    assert_eq!(
        kind("self.metadata.labels.x == ''"),
        "example.com/v1/van.proto:7: Van: the rule \"self.metadata.labels.x == ''\" does not compile: 1:14: undefined \
         field 'labels'"
    );
}
