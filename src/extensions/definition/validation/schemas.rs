//! The schemas of definitions: that they are structural, and that what selectors name is in them.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use keelson_api::apiextensions_k8s_io::v1::{CustomResourceDefinitionSpec, CustomResourceValidation, SelectableField};
use keelson_machinery::equality;
use keelson_machinery::field::{ErrorList, FieldError, Path};
use keelson_machinery::structural::{Definition, JsonSchema, Requirements, SchemaError, SchemaType, Subject, check};

use super::lifted::{Parts, Spec};
use crate::schemas;

/// The most fields by which objects of a version are selected.
const MAX_SELECTABLE_FIELDS: usize = 8;

/// The schemas of a specification, in the places of [`Spec`].
pub struct Schemas {
    common: Read,
    versions: Vec<Read>,
}

/// `None`: there is none.
type Read = Option<Result<Arc<JsonSchema>, SchemaError>>;

/// What is asked of the schemas of a specification.
pub struct Demands<'a> {
    lifted: &'a Spec<'a>,
    schemas: &'a Schemas,
    /// The specification that this one takes the place of.
    old: Option<&'a CustomResourceDefinitionSpec>,
    requirements: Requirements,
}

impl Schemas {
    /// Those of a specification.
    pub fn of(lifted: &Spec<'_>) -> Schemas {
        Schemas {
            common: read(&lifted.common),
            versions: lifted.versions.iter().map(|version| read(&version.own)).collect(),
        }
    }

    /// Those that can be read.
    fn all(&self) -> Vec<&JsonSchema> {
        let all = std::iter::once(&self.common).chain(&self.versions);
        all.filter_map(|read| Some(&**read.as_ref()?.as_ref().ok()?)).collect()
    }

    /// Whether one of them has a default.
    pub fn have_defaults(&self) -> bool {
        self.all()
            .iter()
            .any(|schema| schema.any(&|schema| schema.default.is_some()))
    }

    /// Formats that objects are not validated by, in the order of the schemas.
    pub fn unknown_formats(&self) -> Vec<String> {
        let found = RefCell::new(Vec::new());
        for schema in self.all() {
            schema.any(&|schema| {
                found.borrow_mut().extend(schema.unknown_format().map(str::to_owned));
                false
            });
        }
        found.into_inner()
    }
}

fn read(parts: &Parts<'_>) -> Read {
    let schema = parts.schema?.open_apiv3_schema.as_ref()?;
    Some(schemas::read(schema).map(|(_, parsed)| parsed))
}

impl<'a> Demands<'a> {
    /// Of a specification, which takes the place of `old`.
    pub fn new(
        lifted: &'a Spec<'a>,
        schemas: &'a Schemas,
        old: Option<&'a CustomResourceDefinitionSpec>,
    ) -> Demands<'a> {
        let had = old.map(|old| Schemas::of(&Spec::of(old)));
        let had = had.as_ref().map(Schemas::all);
        let new = schemas.all();
        let definition = |preserve_unknown_fields, schemas| Definition {
            preserve_unknown_fields,
            schemas,
        };
        let before = old.zip(had.as_deref());
        let before = before.map(|(old, had)| definition(old.preserve_unknown_fields, had));
        let requirements = Requirements::of(&definition(lifted.spec.preserve_unknown_fields, &new), before.as_ref());
        Demands {
            lifted,
            schemas,
            old,
            requirements,
        }
    }

    /// Faults of the schema that all versions have.
    pub fn common(&self, path: &Path) -> ErrorList {
        let mut versions = self.lifted.versions.iter();
        let has_status = versions.any(|version| self.lifted.has_status(version));
        let first = self.lifted.versions.first().map_or("", |first| &first.version.name);
        let path = path.child("validation").child("openAPIV3Schema");
        self.faults(self.schemas.common.as_ref(), has_status, first, path)
    }

    /// Faults of that of one version.
    pub fn of_version(&self, place: usize, path: &Path) -> ErrorList {
        let Some(version) = self.lifted.versions.get(place) else {
            return ErrorList::default();
        };
        let read = self.schemas.versions.get(place).and_then(Option::as_ref);
        let path = path.child("schema").child("openAPIV3Schema");
        self.faults(read, self.lifted.has_status(version), &version.version.name, path)
    }

    fn faults(
        &self,
        read: Option<&Result<Arc<JsonSchema>, SchemaError>>,
        has_status: bool,
        version: &str,
        path: Path,
    ) -> ErrorList {
        match read {
            None => ErrorList::default(),
            Some(Err(error)) => FieldError::invalid(&path, "", error.to_string()).into(),
            Some(Ok(schema)) => check(&Subject {
                schema,
                path,
                has_status,
                unchanged: self.is_unchanged(version),
                requirements: &self.requirements,
            }),
        }
    }

    /// Whether the version had the same schema before.
    fn is_unchanged(&self, version: &str) -> bool {
        let Some(old) = self.old else { return false };
        match (schema_of(self.lifted.spec, version), schema_of(old, version)) {
            (Some(new), Some(old)) => same_schema(new, old),
            _ => false,
        }
    }

    /// Faults of the fields by which objects of all versions are selected.
    pub fn common_selectable(&self, path: &Path) -> ErrorList {
        let fields = self.lifted.common.selectable_fields;
        let without = "may only be set when validations.schema is included";
        let schema = self.schemas.common.as_ref();
        let may_be_many = || {
            let old = Spec::of(self.old?);
            let had = old.common.selectable_fields;
            Some(had.len() > MAX_SELECTABLE_FIELDS && same_fields(had, fields))
        };
        selectable(fields, (schema, without), may_be_many().unwrap_or(false), path)
    }

    /// The same of one version.
    pub fn selectable_of_version(&self, place: usize, path: &Path) -> ErrorList {
        let Some(version) = self.lifted.versions.get(place) else {
            return ErrorList::default();
        };
        let fields = version.own.selectable_fields;
        let without = "may only be set when `version.schema.openAPIV3Schema` is not included";
        let schema = self.schemas.versions.get(place).and_then(Option::as_ref);
        let may_be_many = || {
            let old = Spec::of(self.old?);
            let mut had = old.versions.iter();
            let had = had
                .find(|had| had.version.name == version.version.name)?
                .own
                .selectable_fields;
            Some(had.len() > MAX_SELECTABLE_FIELDS && same_fields(had, fields))
        };
        selectable(fields, (schema, without), may_be_many().unwrap_or(false), path)
    }
}

/// The schema of a version, if there is such a version. `Some(None)`: it has none.
fn schema_of<'a>(
    spec: &'a CustomResourceDefinitionSpec,
    version: &str,
) -> Option<Option<&'a CustomResourceValidation>> {
    let mut versions = spec.versions.iter();
    versions
        .find(|known| known.name == version)
        .map(|version| version.schema.as_deref())
}

fn same_schema(a: Option<&CustomResourceValidation>, b: Option<&CustomResourceValidation>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => equality::equal(a, b),
        _ => false,
    }
}

fn same_fields(a: &[SelectableField], b: &[SelectableField]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.json_path == b.json_path)
}

fn selectable(
    fields: &[SelectableField],
    (schema, without): (Option<&Result<Arc<JsonSchema>, SchemaError>>, &str),
    may_be_many: bool,
    path: &Path,
) -> ErrorList {
    if fields.is_empty() {
        return ErrorList::default();
    }
    let schema = match schema {
        None => return FieldError::invalid(path, "", without).into(),
        // It is told of the schema what is wrong with it.
        Some(Err(_)) => return ErrorList::default(),
        Some(Ok(schema)) => &**schema,
    };
    let (mut errors, mut known) = (ErrorList::new(), BTreeSet::new());
    for (place, field) in fields.iter().enumerate() {
        let path = path.index(place).child("jsonPath");
        if field.json_path.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        errors.extend(selectable_faults(&field.json_path, schema, &mut known, &path));
    }
    if known.len() > MAX_SELECTABLE_FIELDS && !may_be_many {
        errors.push(FieldError::too_many(path, known.len(), MAX_SELECTABLE_FIELDS));
    }
    errors
}

/// Faults of one field; `known`: those before it.
fn selectable_faults(text: &str, schema: &JsonSchema, known: &mut BTreeSet<String>, path: &Path) -> ErrorList {
    let found = match schema.field_at(text, false) {
        Ok(found) => found,
        Err(why) => return FieldError::invalid(path, text, format!("is an invalid path: {why}")).into(),
    };
    let mut errors = ErrorList::new();
    if text == ".metadata" || text.starts_with(".metadata.") {
        errors.push(FieldError::invalid(path, text, "must not point to fields in metadata"));
    }
    let ty = found.schema.map_or(SchemaType::Unset, |schema| schema.ty);
    if !matches!(ty, SchemaType::String | SchemaType::Boolean | SchemaType::Integer) {
        let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats \
                   are allowed.";
        errors.push(FieldError::invalid(path, text, why));
    }
    if !known.insert(found.path.to_string()) {
        errors.push(FieldError::duplicate(path, text));
    }
    errors
}
