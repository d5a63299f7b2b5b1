//! The schemas of single kinds, as clients find them in the documents of OpenAPI v3.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use keelson_machinery::object::Gvk;
use keelson_registry::OpenApiForm;
use serde_json::Value;
use serde_json::value::RawValue;

use super::definitions::{BuildDefinitions, Definitions, Lookup};
use crate::discovery::{Catalog, Served};

/// Finds schemas of kinds, in a catalog and among those of the build.
pub struct Schemas {
    catalog: Arc<dyn Catalog>,
    definitions: BuildDefinitions,
}

/// The schema of a kind.
pub struct KindSchema {
    /// The name of its definition.
    pub definition: String,
    /// It, and all that it refers to, by name.
    pub definitions: BTreeMap<String, Value>,
}

impl Schemas {
    /// Those of what a catalog says. Nothing is read yet.
    pub fn new(catalog: Arc<dyn Catalog>) -> Schemas {
        let schemes = catalog.served().schemes().to_vec();
        Schemas {
            definitions: BuildDefinitions::new(&schemes),
            catalog,
        }
    }

    /// The schemas of kinds, or of lists of them; `None`: nobody knows the kind.
    ///
    /// # Errors
    /// The definitions can't be read: a fault of the build, or of who made the kind.
    pub fn of_kinds(&self, kinds: &[Gvk]) -> io::Result<Vec<Option<KindSchema>>> {
        let (served, lookup) = (self.catalog.served(), self.definitions.lookup());
        kinds.iter().map(|gvk| of_kind(&served, &lookup, gvk)).collect()
    }
}

fn of_kind(served: &Served, lookup: &Lookup<'_>, gvk: &Gvk) -> io::Result<Option<KindSchema>> {
    let Some((definition, own)) = named(served, gvk)? else {
        return Ok(None);
    };
    let found = lookup.closure([definition.as_str()], &own)?;
    if !found.contains_key(&definition) {
        return Ok(None);
    }
    let parsed = |(name, schema): (String, Box<RawValue>)| Ok((name, serde_json::from_str(schema.get())?));
    Ok(Some(KindSchema {
        definition,
        definitions: found.into_iter().map(parsed).collect::<io::Result<_>>()?,
    }))
}

/// The name of a kind's definition, and the definitions that are its own.
fn named(served: &Served, gvk: &Gvk) -> io::Result<Option<(String, Definitions)>> {
    let version = served.version(&gvk.group, &gvk.version);
    let mut kinds = version.iter().flat_map(|version| &version.kinds);
    let Some(kind) = kinds.find(|known| known.kind == gvk.kind || known.list_kind == gvk.kind) else {
        let message = served.message(&gvk.group, &gvk.version, &gvk.kind);
        return Ok(message.map(|message| (message.name.to_string(), Definitions::new())));
    };
    if let Some(own) = &kind.definitions {
        let own: Definitions = serde_json::from_slice(&own.definitions(OpenApiForm::V3))?;
        let is_its = |name: &&String| name.rsplit('.').next() == Some(gvk.kind.as_str());
        return Ok(own.keys().find(is_its).cloned().map(|name| (name, own)));
    }
    let name = match kind.message.name.rsplit_once('.') {
        Some((package, _)) => format!("{package}.{}", gvk.kind),
        None => gvk.kind.to_string(),
    };
    Ok(Some((name, Definitions::new())))
}
