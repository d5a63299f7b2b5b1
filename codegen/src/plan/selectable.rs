//! Selectable fields: what field selectors of a version name, and the paths of the hub version that this stands for.

use std::collections::BTreeMap;

use crate::check::json_path;
use crate::model::{FieldType, Message, MessageId, Model};
use crate::problem::Problem;

use super::Plan;

/// The selectable fields of each kind as the scheme has them: a path, or a label with the paths that it stands for.
pub type Selectable = BTreeMap<MessageId, Vec<String>>;

/// Follows all paths; one that leads nowhere becomes a problem.
pub fn selectable(model: &Model, plan: &Plan, problems: &mut Vec<Problem>) -> Selectable {
    let kinds = plan
        .families
        .iter()
        .flat_map(|family| family.versions.iter().map(|version| (*version, family.hub)));
    kinds
        .filter_map(|(version, hub)| {
            let of = Of {
                model,
                plan,
                version,
                message: model.message(version)?,
                hub: model.message(hub)?,
            };
            let fields = &of.message.kind.as_ref()?.selectable_fields;
            let mut told = Vec::new();
            let found = fields.iter().map(|field| of.field(field, &mut told)).collect();
            let (place, name) = (&of.message.place, &of.message.name);
            problems.extend(told.into_iter().map(|text| Problem::new(place, name, text)));
            Some((version, found))
        })
        .collect()
}

/// One version of a kind.
struct Of<'a> {
    model: &'a Model,
    plan: &'a Plan,
    version: MessageId,
    message: &'a Message,
    hub: &'a Message,
}

impl Of<'_> {
    fn field(&self, field: &str, told: &mut Vec<String>) -> String {
        if let Some((_, paths)) = field.split_once('=') {
            for path in paths.split('|') {
                self.follow(field, self.hub, path, told);
            }
            return field.to_owned();
        }
        if !self.follow(field, self.message, field, told) {
            return field.to_owned();
        }
        match self.in_hub(field) {
            Some(path) if path == field => path,
            Some(path) => format!("{field}={path}"),
            None => {
                told.push(format!(
                    "selectable field {field:?} is looked up in the hub version ({}), which has it elsewhere: write the \
                     path there behind the label, such as `{field}=spec.size`",
                    self.hub.full_name
                ));
                field.to_owned()
            }
        }
    }

    /// Whether a path leads to a value that a selector can be compared with.
    fn follow(&self, field: &str, from: &Message, path: &str, told: &mut Vec<String>) -> bool {
        match json_path::resolve(self.model, from, &format!(".{path}")) {
            Ok(Some(found)) if is_structure(self.model, found) => told.push(format!(
                "selectable field {field:?} leads to no single value: write the path of a text, number or truth value"
            )),
            Ok(_) => return true,
            Err(reason) => told.push(format!(
                "selectable field {field:?} leads nowhere, {reason}: write a path without the first dot, such as \
                 `spec.size`, or a label and a path, such as `size=spec.size`"
            )),
        }
        false
    }

    /// The path that the conversion of fields by their names makes of one; `None`: code carries it over.
    fn in_hub(&self, path: &str) -> Option<String> {
        let mut pair = self.plan.of_kind(self.version);
        let mut names = Vec::new();
        for name in path.split('.') {
            let Some(at) = pair.and_then(|index| self.plan.pairs.get(index)) else {
                names.push(name);
                continue;
            };
            let (version, hub) = (self.model.message(at.version)?, self.model.message(at.hub)?);
            let is_named = |index: usize| version.fields.get(index).is_some_and(|field| field.json == name);
            let Some(found) = at.fields.iter().find(|field| is_named(field.version)) else {
                return self.is_the_same(path).then(|| path.to_owned());
            };
            names.push(&hub.fields.get(found.hub)?.json);
            pair = found.pair;
        }
        Some(names.join("."))
    }

    /// Whether the path is one of the hub version, too.
    fn is_the_same(&self, path: &str) -> bool {
        json_path::resolve(self.model, self.hub, &format!(".{path}")).is_ok()
    }
}

/// A message or a map: nothing that is written as one text.
fn is_structure(model: &Model, ty: &FieldType) -> bool {
    match ty {
        FieldType::Message(id) => !model.message(*id).is_some_and(Message::is_leaf),
        ty => matches!(ty, FieldType::Map(_)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::builder::checked;

    const IMPORTS: &str = "import \"keelson/api.proto\";\nimport \"meta/v1/meta.proto\";\n";

    /// The text of one version's definitions.
    fn version(version: &str, kind: &str, spec: &str) -> String {
        format!(
            "syntax = \"proto3\";\npackage com.example.{version};\n{IMPORTS}\
             option (keelson.group_version) = {{group: \"example.com\", version: \"{version}\"}};\n\
             message Table {{\n  option (keelson.kind) = {{plural: \"tables\" {kind}}};\n  \
             io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta metadata = 1;\n  Spec spec = 2;\n}}\n\
             message Spec {{ {spec} }}\n"
        )
    }

    /// The selectable fields of v1beta1, or the first mistake.
    fn found(kind: &str) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let old = "string colour = 1 [(keelson.field) = {hub_name: \"color\"}]; Foot foot = 2; } message Foot { string size = 1 \
                   [(keelson.field) = {hub_name: \"length\"}];";
        let new = "string color = 1; Foot foot = 2; } message Foot { string length = 1;";
        for (name, text) in [
            ("v1", version("v1", "storage: true", new)),
            ("v1beta1", version("v1beta1", kind, old)),
        ] {
            let place = folder.path().join("example.com").join(name);
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join("table.proto"), text).unwrap();
        }
        let (model, plan) = checked(Some(folder.path())).map_err(|error| error.to_string())?;
        let of = |id: &usize| model.message(*id).unwrap().group_version.version == "v1beta1";
        Ok(plan.selectable.into_iter().find(|(id, _)| of(id)).unwrap().1)
    }

    #[test]
    fn paths_are_looked_up_under_the_names_of_the_hub_version() {
        assert_eq!(
            found(r#"selectable_fields: ["spec.colour", "spec.foot.size", "shade=spec.color"]"#).unwrap(),
            [
                "spec.colour=spec.color",
                "spec.foot.size=spec.foot.length",
                "shade=spec.color"
            ]
        );
        let told = found(r#"selectable_fields: ["shade=spec.colour"]"#).unwrap_err();
        assert!(told.contains(r#""colour" is no field of Spec"#), "{told}");
        let told = found(r#"selectable_fields: ["spec.foot"]"#).unwrap_err();
        assert!(told.contains("leads to no single value"), "{told}");
    }
}
