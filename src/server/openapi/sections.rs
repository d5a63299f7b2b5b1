//! The documents of OpenAPI v3 by name, and what each of them says: its paths and the definitions that are its own.

use keelson_machinery::reflect::Name;
use keelson_registry::OpenApiForm;

use super::definitions::{Definitions, DefinitionsError, META};
use super::operations::{Answer, FixedDocument, JSON, JWK_SET, OBJECT_TYPES, PathItem};
use super::paths::Resource;
use crate::discovery::{Served, ServedGroup, ServedKind, ServedVersion};

/// One document of OpenAPI v3, as it is named; [`Part::section`] makes what it says.
pub(super) struct Part<'a> {
    /// The part of its URL after /openapi/v3/: `apis/apps/v1`.
    pub(super) name: String,
    /// That of the version; 0: it never changes.
    pub(super) generation: u64,
    what: What<'a>,
}

enum What<'a> {
    Groups,
    Version,
    Issuer(&'static str),
    OfGroup(&'a ServedGroup),
    OfVersion(&'a ServedGroup, &'a ServedVersion),
}

/// What such a document says.
pub(super) struct Section {
    /// The group and version whose kinds it has.
    pub(super) group_version: Option<(Name, Name)>,
    /// In order.
    pub(super) paths: Vec<PathItem>,
    /// Definitions of kinds that are made at run time.
    pub(super) own: Definitions,
    /// It has such kinds alone: it is a document of the API extensions server.
    pub(super) is_custom: bool,
}

/// Everything that is served, by document, ordered by name. `issuer`: the documents of OpenID Connect are served too.
pub(super) fn parts(served: &Served, issuer: bool) -> Vec<Part<'_>> {
    let mut parts = vec![Part::fixed("apis", What::Groups), Part::fixed("version", What::Version)];
    if issuer {
        parts.extend(ISSUER.map(|name| Part::fixed(name, What::Issuer(name))));
    }
    for group in &served.groups {
        parts.extend((!is_custom_group(group)).then(|| Part::fixed(&base(group), What::OfGroup(group))));
        parts.extend(group.versions.iter().map(|version| Part::of_version(group, version)));
    }
    parts.sort_by(|a, b| a.name.cmp(&b.name));
    parts
}

/// The document of this name, if there is one.
pub(super) fn part<'s>(served: &'s Served, issuer: bool, name: &str) -> Option<Part<'s>> {
    let group = |name: &str| served.group(name);
    let of_version = |group: &'s ServedGroup, version: &str| {
        let mut versions = group.versions.iter();
        let version = versions.find(|known| known.version == version)?;
        Some(Part::of_version(group, version))
    };
    match name.split('/').collect::<Vec<_>>()[..] {
        ["apis"] => Some(Part::fixed(name, What::Groups)),
        ["version"] => Some(Part::fixed(name, What::Version)),
        ["api"] => Some(Part::fixed(name, What::OfGroup(group("")?))),
        ["api", version] => of_version(group("")?, version),
        ["apis", named] if !named.is_empty() => {
            let group = group(named).filter(|group| !is_custom_group(group))?;
            Some(Part::fixed(name, What::OfGroup(group)))
        }
        ["apis", named, version] if !named.is_empty() => of_version(group(named)?, version),
        _ => {
            let name = ISSUER.into_iter().find(|known| issuer && *known == name)?;
            Some(Part::fixed(name, What::Issuer(name)))
        }
    }
}

/// The API extensions server describes its resources, and not how they are found.
fn is_custom(version: &ServedVersion) -> bool {
    !version.kinds.is_empty() && version.kinds.iter().all(ServedKind::is_custom)
}

fn is_custom_group(group: &ServedGroup) -> bool {
    group.versions.iter().all(|version| is_custom(version))
}

/// `api` or `apis/apps`.
fn base(group: &ServedGroup) -> String {
    match group.name.as_str() {
        "" => "api".to_owned(),
        name => format!("apis/{name}"),
    }
}

impl<'a> Part<'a> {
    fn fixed(name: &str, what: What<'a>) -> Part<'a> {
        Part {
            name: name.to_owned(),
            generation: 0,
            what,
        }
    }

    fn of_version(group: &'a ServedGroup, version: &'a ServedVersion) -> Part<'a> {
        Part {
            name: format!("{}/{}", base(group), version.version),
            generation: version.generation,
            what: What::OfVersion(group, version),
        }
    }
}

impl Part<'_> {
    /// What it says, for documents of this form.
    pub(super) fn section(&self, served: &Served, form: OpenApiForm) -> Result<Section, DefinitionsError> {
        Ok(match self.what {
            What::Groups => fixed(
                &self.name,
                of_discovery("getAPIVersions", "apis", "List the API groups.", "APIGroupList"),
            ),
            What::Version => fixed(&self.name, version_document()),
            What::Issuer(name) => fixed(name, issuer_document(name)),
            What::OfGroup(group) => group_section(&self.name, group),
            What::OfVersion(group, version) => version_section((served, form), &self.name, group, version)?,
        })
    }

    /// What [`Kept`](crate::document::Kept) keeps under it.
    pub(super) fn key(&self) -> (String, u64) {
        (self.name.clone(), self.generation)
    }
}

fn fixed(name: &str, document: FixedDocument<'_>) -> Section {
    Section {
        group_version: None,
        paths: document.at(format!("/{name}/")).into_iter().collect(),
        own: Definitions::new(),
        is_custom: false,
    }
}

fn version_document() -> FixedDocument<'static> {
    FixedDocument {
        id: "getCodeVersion".to_owned(),
        tag: "version".to_owned(),
        description: "Read the version of the server.",
        consumes: JSON,
        produces: JSON,
        answer: Answer::Object("io.k8s.apimachinery.pkg.version.Info".to_owned()),
    }
}

const ISSUER: [&str; 2] = [".well-known/openid-configuration", "openid/v1/jwks"];

/// What an OpenID Connect client reads to check the tokens of service accounts.
fn issuer_document(name: &str) -> FixedDocument<'static> {
    let document = |id: &str, tag: &str, description, produces| FixedDocument {
        id: id.to_owned(),
        tag: tag.to_owned(),
        description,
        consumes: &[],
        produces,
        answer: Answer::Text,
    };
    match name == ISSUER[0] {
        true => document(
            "getServiceAccountIssuerOpenIDConfiguration",
            "WellKnown",
            "Read the OpenID configuration of the issuer of service account tokens.",
            JSON,
        ),
        false => document(
            "getServiceAccountIssuerOpenIDKeyset",
            "openid",
            "Read the public keys of the issuer of service account tokens.",
            JWK_SET,
        ),
    }
}

fn of_discovery<'a>(id: &str, tag: &str, description: &'a str, kind: &str) -> FixedDocument<'a> {
    FixedDocument {
        id: id.to_owned(),
        tag: tag.to_owned(),
        description,
        consumes: OBJECT_TYPES,
        produces: OBJECT_TYPES,
        answer: Answer::Object(format!("{META}{kind}")),
    }
}

fn group_section(path: &str, group: &ServedGroup) -> Section {
    let name = short(&group.name);
    let (title, tag) = (camel(name, true), camel(name, false));
    let document = match group.name.as_str() {
        "" => of_discovery(
            "getCoreAPIVersions",
            &tag,
            "List the versions of the legacy group.",
            "APIVersions",
        ),
        _ => of_discovery(
            &format!("get{title}APIGroup"),
            &tag,
            "Read the versions of the group.",
            "APIGroup",
        ),
    };
    fixed(path, document)
}

fn version_section(
    (served, form): (&Served, OpenApiForm),
    name: &str,
    group: &ServedGroup,
    version: &ServedVersion,
) -> Result<Section, DefinitionsError> {
    let of_version = |upper| (camel(short(&group.name), upper), camel(&version.version, upper));
    let ((title, upper), (tag, lower)) = (of_version(true), of_version(false));
    let (prefix, tag) = (format!("{title}{upper}"), format!("{tag}_{lower}"));
    let id = format!("get{prefix}APIResources");
    let say = "List the resources of the version.";
    let mut section = fixed(name, of_discovery(&id, &tag, say, "APIResourceList"));
    section.is_custom = is_custom(version);
    if section.is_custom {
        section.paths.clear();
    }
    section.group_version = Some((group.name.clone(), version.version.clone()));
    for kind in &version.kinds {
        let resource = Resource {
            kind,
            base: format!("/{name}"),
            prefix: &prefix,
            tag: &tag,
            is_custom: kind.is_custom(),
        };
        section.paths.extend(resource.paths(served));
        if let Some(own) = &kind.definitions {
            section
                .own
                .extend(serde_json::from_slice::<Definitions>(&own.definitions(form))?);
        }
    }
    section.paths.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(section)
}

/// The name of a group in operation ids: without `.k8s.io`; the legacy group is core.
fn short(group: &str) -> &str {
    if group.is_empty() {
        "core"
    } else {
        group.strip_suffix(".k8s.io").unwrap_or(group)
    }
}

/// `rbac.authorization` → `RbacAuthorization` or, where `upper` is false, `rbacAuthorization`.
pub(super) fn camel(text: &str, upper: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut raise = upper;
    for c in text.chars() {
        if !c.is_ascii_alphanumeric() {
            raise = true;
        } else if std::mem::take(&mut raise) {
            out.extend(c.to_uppercase());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_in_operation_ids() {
        for (group, upper, lower) in [
            ("", "Core", "core"),
            ("apps", "Apps", "apps"),
            ("rbac.authorization.k8s.io", "RbacAuthorization", "rbacAuthorization"),
            ("example.com", "ExampleCom", "exampleCom"),
        ] {
            assert_eq!(
                (camel(short(group), true), camel(short(group), false)),
                (upper.to_owned(), lower.to_owned())
            );
        }
    }
}
