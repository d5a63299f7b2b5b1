//! The paths of what is served: discovery, resources, subresources, and the old watch paths.

use keelson_machinery::scheme::{KindDesc, Name, Names, SubresourceDesc};

use super::definitions::META;
use super::operations::{Answer, FixedDocument, JSON, JWK_SET, Method, OBJECT_TYPES, Operation, PathItem, Template};
use super::parameters::{self, NAME, NAMESPACE, PRETTY, Parameter, SUBPATH};
use crate::discovery::{Served, ServedGroup, ServedVersion};

/// One document of OpenAPI v3: the part of its URL after /openapi/v3/, and its paths.
pub(super) struct Section {
    /// `apis/apps/v1`.
    pub(super) name: String,
    /// The group and version whose kinds it has.
    pub(super) group_version: Option<(&'static str, &'static str)>,
    pub(super) paths: Vec<PathItem>,
}

/// Everything that is served, by document, ordered by name. `issuer`: the documents of OpenID Connect are served too.
pub(super) fn sections(served: &Served, issuer: bool) -> Vec<Section> {
    let mut sections = vec![
        fixed(
            "apis",
            of_discovery("getAPIVersions", "apis", "List the API groups.", "APIGroupList"),
        ),
        fixed("version", version_document()),
    ];
    if issuer {
        sections.extend(issuer_documents());
    }
    for group in &served.groups {
        sections.push(group_section(group));
        sections.extend(
            group
                .versions
                .iter()
                .map(|version| version_section(served, group, version)),
        );
    }
    sections.sort_by(|a, b| a.name.cmp(&b.name));
    sections
}

fn fixed(name: &str, document: FixedDocument<'_>) -> Section {
    Section {
        name: name.to_owned(),
        group_version: None,
        paths: document.at(format!("/{name}/")).into_iter().collect(),
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

/// What an OpenID Connect client reads to check the tokens of service accounts.
fn issuer_documents() -> [Section; 2] {
    let document = |id: &str, tag: &str, description, produces| FixedDocument {
        id: id.to_owned(),
        tag: tag.to_owned(),
        description,
        consumes: &[],
        produces,
        answer: Answer::Text,
    };
    let configuration = document(
        "getServiceAccountIssuerOpenIDConfiguration",
        "WellKnown",
        "Read the OpenID configuration of the issuer of service account tokens.",
        JSON,
    );
    let keys = document(
        "getServiceAccountIssuerOpenIDKeyset",
        "openid",
        "Read the public keys of the issuer of service account tokens.",
        JWK_SET,
    );
    [
        fixed(".well-known/openid-configuration", configuration),
        fixed("openid/v1/jwks", keys),
    ]
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

fn group_section(group: &ServedGroup) -> Section {
    let (title, tag) = (camel(short(group.name), true), camel(short(group.name), false));
    if group.name.is_empty() {
        let say = "List the versions of the legacy group.";
        return fixed("api", of_discovery("getCoreAPIVersions", &tag, say, "APIVersions"));
    }
    let (name, id) = (format!("apis/{}", group.name), format!("get{title}APIGroup"));
    fixed(
        &name,
        of_discovery(&id, &tag, "Read the versions of the group.", "APIGroup"),
    )
}

fn version_section(served: &Served, group: &ServedGroup, version: &ServedVersion) -> Section {
    let prefix = format!("{}{}", camel(short(group.name), true), camel(version.version, true));
    let tag = format!("{}_{}", camel(short(group.name), false), camel(version.version, false));
    let name = match group.name {
        "" => format!("api/{}", version.version),
        group => format!("apis/{group}/{}", version.version),
    };
    let id = format!("get{prefix}APIResources");
    let say = "List the resources of the version.";
    let mut section = fixed(&name, of_discovery(&id, &tag, say, "APIResourceList"));
    section.group_version = Some((group.name, version.version));
    for kind in &version.kinds {
        let resource = Resource {
            kind,
            base: format!("/{name}"),
            prefix: &prefix,
            tag: &tag,
        };
        section.paths.extend(resource.collection_paths());
        section.paths.extend(resource.object_path());
        section.paths.extend(
            kind.subresources
                .iter()
                .flat_map(|sub| resource.subresource_paths(served, sub)),
        );
        section.paths.extend(resource.watch_paths());
    }
    section.paths.sort_by(|a, b| a.path.cmp(&b.path));
    section
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
fn camel(text: &str, upper: bool) -> String {
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

struct Resource<'a> {
    kind: &'a KindDesc,
    /// `/apis/apps/v1`.
    base: String,
    prefix: &'a str,
    tag: &'a str,
}

impl Resource<'_> {
    fn has(&self, verb: &str) -> bool {
        self.kind.verbs.contains(verb)
    }

    /// Path below `base` where the objects of one namespace, or all of a cluster-scoped kind, are.
    fn home(&self) -> String {
        let scope = if self.kind.namespaced {
            "/namespaces/{namespace}"
        } else {
            ""
        };
        format!("{scope}/{}", self.kind.plural)
    }

    /// Parameters of the path itself.
    fn own(&self, named: bool) -> Vec<Parameter> {
        let mut own: Vec<Parameter> = vec![PRETTY];
        own.extend(named.then_some(NAME));
        own.extend(self.kind.namespaced.then_some(NAMESPACE));
        own
    }

    fn noun(&self) -> String {
        format!(
            "{}{}",
            if self.kind.namespaced { "Namespaced" } else { "" },
            self.kind.kind
        )
    }

    fn template(&self) -> Template<'_> {
        let object = self.kind.message.name.to_string();
        let package = object.rsplit_once('.').map_or("", |(package, _)| package);
        Template {
            tag: self.tag,
            prefix: self.prefix,
            noun: self.noun(),
            title: self.kind.kind.to_string(),
            gvk: [&self.kind.group, &self.kind.version, &self.kind.kind].map(Name::clone),
            list: format!("{package}.{}", self.kind.list_kind),
            object,
            returns_deleted: self.kind.returns_deleted,
        }
    }

    /// The path of the collection, and for namespaced kinds that of all namespaces.
    fn collection_paths(&self) -> Vec<PathItem> {
        let template = self.template();
        let mut paths = Vec::new();
        if self.kind.namespaced && self.has("list") {
            let all = vec![template.list(&self.kind.kind, "ForAllNamespaces")];
            paths.extend(PathItem::new(
                format!("{}/{}", self.base, self.kind.plural),
                &[PRETTY],
                all,
            ));
        }
        let mut operations = Vec::new();
        operations.extend(self.has("list").then(|| template.list(&template.noun, "")));
        operations.extend(self.has("create").then(|| template.create()));
        operations.extend(self.has("deletecollection").then(|| template.delete_collection()));
        paths.extend(PathItem::new(
            format!("{}{}", self.base, self.home()),
            &self.own(false),
            operations,
        ));
        paths
    }

    fn object_path(&self) -> Option<PathItem> {
        let path = format!("{}{}/{{name}}", self.base, self.home());
        PathItem::new(
            path,
            &self.own(true),
            object_operations(&self.template(), &self.kind.verbs, true),
        )
    }

    /// Empty where no scheme has the kind of the body.
    fn subresource_paths(&self, served: &Served, sub: &SubresourceDesc) -> Vec<PathItem> {
        let mut template = self.template();
        template.noun.push_str(&camel(&sub.name, true));
        template.title = format!("{} of a {}", sub.name, self.kind.kind);
        if !sub.kind.is_empty() {
            let Some(message) = served.message(&sub.group, &sub.version, &sub.kind) else {
                return Vec::new();
            };
            template.object = message.name.to_string();
            template.gvk = [&sub.group, &sub.version, &sub.kind].map(Name::clone);
        }
        let path = format!("{}{}/{{name}}/{}", self.base, self.home(), sub.name);
        let [group, version, kind] = &sub.options;
        let options = served
            .message(group, version, kind)
            .map(|message| parameters::of_options(kind, message))
            .unwrap_or_default();
        if sub.connect {
            return self.connect_paths(&template, sub, &path, &options);
        }
        let operations = if sub.produces.is_empty() {
            object_operations(&template, &sub.verbs, false)
        } else {
            vec![template.text(options)]
        };
        PathItem::new(path, &self.own(true), operations).into_iter().collect()
    }

    /// The path of a subresource whose requests pass through, and that of what is below it.
    fn connect_paths(
        &self,
        template: &Template<'_>,
        sub: &SubresourceDesc,
        path: &str,
        options: &[Parameter],
    ) -> Vec<PathItem> {
        let mut own = self.own(true);
        own.retain(|p| *p != PRETTY);
        let operations = |suffix: &str| -> Vec<Operation> {
            connect_methods(&sub.verbs)
                .into_iter()
                .map(|method| template.connect(method, suffix, options.to_vec()))
                .collect()
        };
        let mut paths: Vec<PathItem> = PathItem::new(path.to_owned(), &own, operations(""))
            .into_iter()
            .collect();
        if sub.subpaths {
            own.push(SUBPATH);
            paths.extend(PathItem::new(format!("{path}/{{path}}"), &own, operations("WithPath")));
        }
        paths
    }

    fn watch_paths(&self) -> Vec<PathItem> {
        if !self.has("watch") {
            return Vec::new();
        }
        let template = self.template();
        let mut paths = Vec::new();
        let base = format!("{}/watch", self.base);
        if self.kind.namespaced {
            let all = template.watch(&format!("{}ListForAllNamespaces", self.kind.kind), "watchlist");
            paths.extend(PathItem::new(
                format!("{base}/{}", self.kind.plural),
                &[PRETTY],
                vec![all],
            ));
        }
        let home = format!("{base}{}", self.home());
        let list = template.watch(&format!("{}List", template.noun), "watchlist");
        paths.extend(PathItem::new(home.clone(), &self.own(false), vec![list]));
        let one = template.watch(&template.noun, "watch");
        paths.extend(PathItem::new(format!("{home}/{{name}}"), &self.own(true), vec![one]));
        paths
    }
}

/// What passes through under `verbs`. OPTIONS and HEAD have no verb of their own: they pass where everything does.
fn connect_methods(verbs: &Names) -> Vec<Method> {
    let all = [
        (Method::Get, "get"),
        (Method::Put, "update"),
        (Method::Post, "create"),
        (Method::Delete, "delete"),
        (Method::Options, ""),
        (Method::Head, ""),
        (Method::Patch, "patch"),
    ];
    let everything = all.iter().all(|(_, verb)| verb.is_empty() || verbs.contains(verb));
    all.into_iter()
        .filter(|(_, verb)| everything || verbs.contains(verb))
        .map(|(method, _)| method)
        .collect()
}

/// Operations on one object. A resource's own path has no `create`: that is POST to the collection.
fn object_operations(template: &Template<'_>, verbs: &Names, resource: bool) -> Vec<Operation> {
    let has = |verb: &str| verbs.contains(verb);
    let mut operations = Vec::new();
    operations.extend(has("get").then(|| template.get()));
    operations.extend(has("update").then(|| template.replace()));
    operations.extend((has("create") && !resource).then(|| template.create()));
    operations.extend(has("delete").then(|| template.delete()));
    operations.extend(has("patch").then(|| template.patch()));
    operations
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
