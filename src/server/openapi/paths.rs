//! The paths of a resource: its collection, its objects, its subresources, and the old watch paths.

use keelson_machinery::reflect::{MessageDesc, Type};
use keelson_machinery::scheme::{KindDesc, Name, Names, SubresourceDesc};

use super::operations::{Method, Operation, PathItem, Template};
use super::parameters::{self, NAME, NAMESPACE, PRETTY, Parameter, SUBPATH};
use super::sections::camel;
use crate::discovery::Served;

/// A resource in one version.
pub(super) struct Resource<'a> {
    pub(super) kind: &'a KindDesc,
    /// `/apis/apps/v1`.
    pub(super) base: String,
    /// Group and version as in operation ids.
    pub(super) prefix: &'a str,
    pub(super) tag: &'a str,
    /// It is made at run time.
    pub(super) is_custom: bool,
}

impl Resource<'_> {
    /// All its paths, those of its subresources too.
    pub(super) fn paths(&self, served: &Served) -> Vec<PathItem> {
        let mut paths = self.collection_paths();
        paths.extend(self.object_path());
        let subresources = self.kind.subresources.iter();
        paths.extend(subresources.flat_map(|sub| self.subresource_paths(served, sub)));
        paths.extend(self.watch_paths());
        paths
    }

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
            is_custom: self.is_custom,
            merges: !self.is_custom && !has_foreign_maps(&self.kind.message),
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
            if !self.is_custom {
                template.gvk = [&sub.group, &sub.version, &sub.kind].map(Name::clone);
            }
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
        if !self.has("watch") || self.is_custom {
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

/// Whether a definition that is not one of Kubernetes has maps of messages. kubectl can't read these for strategic
/// merge patches, and warns of it at every `apply` and `diff`, unless such patches are not offered: then it sends
/// others.
fn has_foreign_maps(kind: &MessageDesc) -> bool {
    fn below(message: &MessageDesc, seen: &mut Vec<u64>) -> bool {
        if seen.contains(&message.id.get()) || message.name.starts_with("io.k8s.") {
            return false;
        }
        seen.push(message.id.get());
        let has = |ty: &Type, seen: &mut Vec<u64>| match ty {
            Type::Map(value) => matches!(value.ty, Type::Message(_)),
            Type::List(item) => matches!(&item.ty, Type::Message(inner) if below(inner, seen)),
            Type::Message(inner) => below(inner, seen),
            _ => false,
        };
        message.fields.iter().any(|field| has(&field.ty, seen))
    }
    below(kind, &mut Vec::new())
}
