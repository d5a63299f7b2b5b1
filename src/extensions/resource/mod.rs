//! Custom resources: what a definition says of one, as a resource of the registry. Each version is the one that code
//! works with when it is asked for: it is validated by its own schema, and stored as the version that is.

mod columns;
mod deprecation;
mod openapi;
mod strategy;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use keelson_api::apiextensions_k8s_io::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion as Version, CustomResourceSubresourceScale,
};
use keelson_machinery::dynamic::DescError;
use keelson_machinery::object::Gvk;
use keelson_machinery::reflect::{Desc, FieldDesc, Flags, Id, MessageDesc, Name, Names, Type, Unknown};
use keelson_machinery::scheme::{Conversion, KindDesc, KindRef, NameRule, SubresourceDesc};
use keelson_machinery::structural::{Compile, SchemaError, compile};
use keelson_registry::{
    ChangeOrder, ConversionStrategy, Definition, MetadataChecks, RepeatedChecks, ResourceCode, VersionDefinition,
};

use crate::conversion::{Outside, WebhookConverter};
use crate::schemas::{self, Schema};
use tokio::sync::watch;

use openapi::VersionDefinitions;
use strategy::CustomResource;

/// Where discovery lists groups and versions of custom resources.
const GROUP_PRIORITY: i32 = 1000;
const VERSION_PRIORITY: i32 = 100;

/// In the order in which discovery names them.
const VERBS: Names = Names::Static(&[
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
]);
/// Those of a resource whose definition is being deleted.
const ENDING_VERBS: Names = Names::Static(&["delete", "deletecollection", "get", "list", "watch"]);
const SUBRESOURCE_VERBS: Names = Names::Static(&["get", "patch", "update"]);

/// What the requests and the controllers of one resource share.
#[derive(Default)]
pub struct Shared {
    /// Nothing is made any more: the definition is being deleted.
    pub ending: AtomicBool,
    /// The definition is not yet said to be established: who finds the resource before has to wait.
    pub ahead: watch::Sender<bool>,
}

/// A version of a definition, read for serving.
struct Part<'a> {
    definition: &'a CustomResourceDefinition,
    version: &'a Version,
    schema: Option<Arc<Schema>>,
    /// The table of its objects.
    message: Desc,
}

/// A schema that makes no table.
#[derive(Debug, thiserror::Error)]
#[error("the schema of {version}: {fault}")]
pub struct ResourceError {
    /// The version that has it.
    version: String,
    fault: SchemaFault,
}

#[derive(Debug, thiserror::Error)]
enum SchemaFault {
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error(transparent)]
    Table(#[from] DescError),
}

/// What the registry serves for a definition whose names are accepted. `is_taken` says which versions of the group are
/// those of built-in resources, beside which nothing is served. `outside`: what webhooks are called by.
///
/// # Errors
/// A schema that makes no table, which validation keeps away.
pub fn resource(
    definition: &CustomResourceDefinition,
    shared: &Arc<Shared>,
    outside: &Outside,
    is_taken: impl Fn(&str) -> bool,
) -> Result<Definition, ResourceError> {
    let versions = definition.spec.versions.iter();
    let parts: Vec<Part<'_>> = versions
        .map(|version| Part::read(definition, version))
        .collect::<Result<_, _>>()?;
    parts
        .iter()
        .filter_map(|part| part.schema.as_ref())
        .for_each(schemas::served);
    let (mut versions, mut strategies) = (Vec::new(), HashMap::new());
    for part in &parts {
        let version = &part.version.name;
        strategies.insert(version.clone(), Arc::new(part.strategy(shared)));
        versions.push(VersionDefinition {
            kind: KindRef::Shared(Arc::new(part.kind())),
            served: part.version.served && !is_taken(version),
            priority: VERSION_PRIORITY,
            definitions: Arc::new(part.definitions()),
        });
    }
    Ok(Definition {
        versions,
        group_priority: GROUP_PRIORITY,
        conversion: match WebhookConverter::of(definition, outside) {
            Some(converter) => ConversionStrategy::Webhook(Arc::new(converter)),
            None => ConversionStrategy::None,
        },
        code: Box::new(move |hub| code(strategies.get(hub.version.as_str()))),
    })
}

/// The code of a resource by one of its versions.
fn code(strategy: Option<&Arc<CustomResource>>) -> ResourceCode {
    let code = ResourceCode::default().with_metadata_checks(MetadataChecks {
        create: true,
        order: ChangeOrder::ChangeFirst,
        standard_finalizers: false,
        update: RepeatedChecks::CHANGE,
        status: RepeatedChecks::CHANGE,
        subresource: RepeatedChecks::CHANGE,
    });
    match strategy {
        Some(strategy) => code.with_shared_strategy(strategy.clone()),
        None => code,
    }
}

/// The verbs that discovery names. `ending`: the definition is being deleted.
pub fn verbs(ending: bool) -> Names {
    if ending { ENDING_VERBS } else { VERBS }
}

impl<'a> Part<'a> {
    fn read(definition: &'a CustomResourceDefinition, version: &'a Version) -> Result<Part<'a>, ResourceError> {
        let failed = |fault| ResourceError {
            version: version.name.clone(),
            fault,
        };
        let schema = schema_of(version).map_err(|error| failed(error.into()))?;
        let message = message(definition, version, schema.as_deref());
        Ok(Part {
            definition,
            version,
            message: message.map_err(|error| failed(error.into()))?,
            schema,
        })
    }

    /// The rules by this version.
    fn strategy(&self, shared: &Arc<Shared>) -> CustomResource {
        let spec = &self.definition.spec;
        CustomResource {
            shared: shared.clone(),
            group: spec.group.clone(),
            plural: spec.names.plural.clone(),
            scale: scale(self.version).cloned(),
            schema: self.schema.clone(),
            gvk: self.gvk(),
            validator: Arc::default(),
        }
    }

    fn gvk(&self) -> Gvk {
        gvk(self.definition, self.version)
    }

    fn definitions(&self) -> VersionDefinitions {
        let spec = &self.definition.spec;
        let selectable = self.version.selectable_fields.iter();
        VersionDefinitions {
            gvk: self.gvk(),
            list_kind: self.definition.status.accepted_names.list_kind.clone(),
            plural: spec.names.plural.clone(),
            schema: self.schema.clone(),
            preserves: spec.preserve_unknown_fields,
            selectable: selectable.map(|field| Name::new(&field.json_path)).collect(),
        }
    }

    fn kind(&self) -> KindDesc {
        let (spec, names) = (&self.definition.spec, &self.definition.status.accepted_names);
        KindDesc {
            group: Name::new(&spec.group),
            version: Name::new(&self.version.name),
            kind: Name::new(&names.kind),
            list_kind: Name::new(&names.list_kind),
            plural: Name::new(&spec.names.plural),
            singular: Name::new(&names.singular),
            short_names: Names::from_iter(&names.short_names),
            categories: Names::from_iter(&names.categories),
            namespaced: spec.scope == "Namespaced",
            verbs: VERBS,
            subresources: subresources(self.version).into(),
            columns: columns::columns(self.version).into(),
            storage: self.version.storage,
            hub: self.version.storage,
            storage_path: Name::new(format!("{}/{}", spec.group, spec.names.plural)),
            names: NameRule::DnsSubdomain,
            generation: true,
            create_on_update: false,
            conditional_update: true,
            returns_deleted: false,
            selectable_fields: selectable_fields(self.version),
            deprecation: Name::new(deprecation::warning(self.definition, self.version)),
            unstored: false,
            stored_as_json: true,
            same_as: None,
            message: self.message.clone(),
            conversion: Conversion::None,
            own_id: Id::fresh(),
        }
    }
}

/// `None`: the version has none.
fn schema_of(version: &Version) -> Result<Option<Arc<Schema>>, SchemaError> {
    let schema = version.schema.as_ref();
    let schema = schema.and_then(|schema| schema.open_apiv3_schema.as_ref());
    let read = schema.map(|schema| schemas::read(schema).map(|(schema, _)| schema));
    read.transpose()
}

/// The kind as which objects of a version are known.
fn gvk(definition: &CustomResourceDefinition, version: &Version) -> Gvk {
    let names = &definition.status.accepted_names;
    Gvk::new(&definition.spec.group, &version.name, &names.kind)
}

/// The table of the objects of a version.
fn message(
    definition: &CustomResourceDefinition,
    version: &Version,
    schema: Option<&Schema>,
) -> Result<Desc, DescError> {
    let parsed = schema.map(Schema::parsed);
    let compiled = compile(&Compile {
        gvk: gvk(definition, version),
        schema: parsed.as_deref(),
        preserve_unknown_fields: definition.spec.preserve_unknown_fields,
    });
    let compiled = compiled?;
    match has_status(version) && compiled.unknown == Unknown::Kept && compiled.field("status").is_none() {
        true => with_status(&compiled),
        false => Ok(compiled),
    }
}

/// The same with a status that may be anything: where it is written apart it has to be told from what is preserved.
fn with_status(message: &MessageDesc) -> Result<Desc, DescError> {
    let mut fields = message.fields.to_vec();
    fields.push(FieldDesc::shared("status", Type::Any, Flags::NONE));
    let gvk = message.gvk.as_deref().cloned();
    MessageDesc::shared_with_rules(
        message.name.clone(),
        gvk,
        fields,
        message.unknown,
        message.rules.clone(),
    )
}

fn has_status(version: &Version) -> bool {
    version.subresources.as_ref().is_some_and(|all| all.status.is_some())
}

fn scale(version: &Version) -> Option<&CustomResourceSubresourceScale> {
    version.subresources.as_ref()?.scale.as_deref()
}

fn subresources(version: &Version) -> Vec<SubresourceDesc> {
    let described = |name: &'static str| SubresourceDesc {
        name: Name::new_static(name),
        group: Name::default(),
        version: Name::default(),
        kind: Name::default(),
        verbs: SUBRESOURCE_VERBS,
        spec_replicas_path: Name::default(),
        status_replicas_path: Name::default(),
        label_selector_path: Name::default(),
        connect: false,
        options: Default::default(),
        subpaths: false,
        produces: Name::default(),
    };
    let scale = scale(version).map(|scale| SubresourceDesc {
        group: Name::new_static("autoscaling"),
        version: Name::new_static("v1"),
        kind: Name::new_static("Scale"),
        spec_replicas_path: Name::new(&scale.spec_replicas_path),
        status_replicas_path: Name::new(&scale.status_replicas_path),
        label_selector_path: scale.label_selector_path.as_deref().map(Name::new).unwrap_or_default(),
        ..described("scale")
    });
    let status = has_status(version).then(|| described("status"));
    status.into_iter().chain(scale).collect()
}

/// As selectors name them: paths without the dot in front.
fn selectable_fields(version: &Version) -> Names {
    let paths = version.selectable_fields.iter().map(|field| &field.json_path);
    Names::from_iter(paths.map(|path| path.strip_prefix('.').unwrap_or(path)))
}
