//! The static scheme.

use std::collections::BTreeMap;

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};

use super::Descriptions;
use super::convert;
use crate::model::{Message, MessageId, Model};
use crate::names;
use crate::options::{Column, Subresource};
use crate::plan::Plan;

/// `pub static SCHEME`.
pub fn table(model: &Model, plan: &Plan, descriptions: &Descriptions) -> TokenStream {
    const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    let name = describe(model, descriptions, META, "name");
    let created = describe(model, descriptions, META, "creationTimestamp");
    let groups = groups(model)
        .into_iter()
        .map(|group| group_desc(model, plan, &group, descriptions));
    let types = model
        .messages
        .iter()
        .filter(|m| m.kind.is_some() && m.resource().is_none())
        .map(|m| type_desc(model, m, descriptions));
    quote! {
        /// Everything that the definitions of this crate yield.
        pub static SCHEME: ::keelson_machinery::scheme::Scheme = {
            use ::keelson_machinery::scheme::*;
            Scheme {
                groups: &[#(#groups),*],
                types: &[#(#types),*],
                definitions: include_bytes!(concat!(env!("OUT_DIR"), "/definitions.z")),
                name_description: #name,
                creation_description: #created,
            }
        };
    }
}

struct Group<'a> {
    name: &'a str,
    priority: i32,
    versions: Vec<Version<'a>>,
}

struct Version<'a> {
    name: &'a str,
    priority: i32,
    enabled: bool,
    served: bool,
    kinds: Vec<(MessageId, &'a Message)>,
}

/// Served groups in the order of discovery: priority, then name.
fn groups(model: &Model) -> Vec<Group<'_>> {
    let mut all: BTreeMap<&str, BTreeMap<&str, Version<'_>>> = BTreeMap::new();
    let mut priorities: BTreeMap<&str, i32> = BTreeMap::new();
    for (id, message) in model.messages.iter().enumerate() {
        let gv = &message.group_version;
        if message.module.external || gv.library || message.resource().is_none() {
            continue;
        }
        let priority = priorities.entry(&gv.group).or_insert(gv.group_priority);
        *priority = gv.group_priority.max(*priority);
        let version = all
            .entry(&gv.group)
            .or_default()
            .entry(&gv.version)
            .or_insert_with(|| Version {
                name: &gv.version,
                priority: gv.version_priority,
                enabled: !gv.disabled && !gv.unserved,
                served: !gv.unserved,
                kinds: Vec::new(),
            });
        version.kinds.push((id, message));
    }
    let mut groups: Vec<Group<'_>> = all
        .into_iter()
        .map(|(name, versions)| {
            let mut versions: Vec<Version<'_>> = versions.into_values().collect();
            for version in &mut versions {
                version
                    .kinds
                    .sort_by_key(|(_, m)| m.resource().map(|k| k.plural.as_str()));
            }
            versions.sort_by_key(|v| (std::cmp::Reverse(v.priority), v.name));
            Group {
                name,
                priority: priorities.get(name).copied().unwrap_or_default(),
                versions,
            }
        })
        .collect();
    groups.sort_by_key(|g| (std::cmp::Reverse(g.priority), g.name));
    groups
}

fn group_desc(model: &Model, plan: &Plan, group: &Group<'_>, descriptions: &Descriptions) -> TokenStream {
    let (name, priority) = (group.name, Literal::i32_unsuffixed(group.priority));
    let versions = group.versions.iter().map(|version| {
        let (name, enabled, served) = (version.name, version.enabled, version.served);
        let priority = Literal::i32_unsuffixed(version.priority);
        let kinds = version
            .kinds
            .iter()
            .map(|(id, message)| kind_desc(model, plan, *id, message, descriptions));
        quote! {
            VersionDesc {
                version: #name,
                priority: #priority,
                enabled: #enabled,
                served: #served,
                kinds: &[#(#kinds),*],
            }
        }
    });
    quote!(GroupDesc { name: #name, priority: #priority, versions: &[#(#versions),*] })
}

fn type_desc(model: &Model, message: &Message, descriptions: &Descriptions) -> TokenStream {
    let gv = &message.group_version;
    let columns = message
        .kind
        .iter()
        .flat_map(|k| &k.columns)
        .map(|c| column(model, c, descriptions));
    let (group, version, kind, path) = (&gv.group, &gv.version, &message.name, names::path(message, 0));
    quote! {
        TypeDesc {
            group: #group,
            version: #version,
            kind: #kind,
            columns: &[#(#columns),*],
            message: Ref::Static(#path::message_desc()),
        }
    }
}

fn kind_desc(model: &Model, plan: &Plan, id: MessageId, message: &Message, descriptions: &Descriptions) -> TokenStream {
    let Some(kind) = &message.kind else {
        return TokenStream::new();
    };
    let gv = &message.group_version;
    let (group, version, name, path) = (&gv.group, &gv.version, &message.name, names::path(message, 0));
    let list_kind: &str = if kind.no_list { "" } else { &kind.list_kind };
    let (plural, singular, deprecation) = (&kind.plural, &kind.singular, &kind.deprecation);
    let [short_names, categories, verbs, selectable] = [
        &kind.short_names,
        &kind.categories,
        &kind.verbs,
        plan.selectable.get(&id).unwrap_or(&kind.selectable_fields),
    ]
    .map(|list| names_of(list));
    let namespaced = !kind.cluster_scoped;
    let subresources = kind.subresources.iter().map(subresource);
    let columns = kind.columns.iter().map(|c| column(model, c, descriptions));
    let family = plan.family(id);
    let (storage, hub) = (
        family.is_some_and(|f| f.storage == id) && !kind.unstored,
        family.is_some_and(|f| f.hub == id),
    );
    let storage_path = names::storage_path(message);
    let rule = format_ident!("{}", kind.names);
    let (generation, create_on_update) = (kind.generation, kind.create_on_update);
    let (conditional_update, returns_deleted) = (kind.conditional_update, kind.returns_deleted);
    let (unstored, stored_as_json) = (kind.unstored, kind.stored_as_json);
    let same_as = kind_name(&kind.same_as);
    let conversion = match plan.of_kind(id) {
        Some(pair) if !hub && model.message(id).is_some() => {
            let [to_hub, from_hub] = [true, false].map(|to| convert::kind_name(message, to));
            // Only a function of the kind itself sees its metadata.
            let metadata_stays = plan.pairs.get(pair).is_some_and(|pair| pair.hook.is_none());
            quote! {
                Conversion::Code {
                    to_hub: self::conversions::#to_hub,
                    from_hub: self::conversions::#from_hub,
                    metadata_stays: #metadata_stays,
                }
            }
        }
        _ => quote!(Conversion::None),
    };
    let [
        group,
        version,
        name,
        list_kind,
        plural,
        singular,
        deprecation,
        storage_path,
    ] = [
        group,
        version,
        name,
        list_kind,
        plural,
        singular,
        deprecation,
        &storage_path,
    ]
    .map(name_of);
    quote! {
        KindDesc {
            group: #group,
            version: #version,
            kind: #name,
            list_kind: #list_kind,
            plural: #plural,
            singular: #singular,
            short_names: #short_names,
            categories: #categories,
            namespaced: #namespaced,
            verbs: #verbs,
            subresources: Ref::Static(&[#(#subresources),*]),
            columns: Ref::Static(&[#(#columns),*]),
            storage: #storage,
            hub: #hub,
            storage_path: #storage_path,
            names: NameRule::#rule,
            generation: #generation,
            create_on_update: #create_on_update,
            conditional_update: #conditional_update,
            returns_deleted: #returns_deleted,
            selectable_fields: #selectable,
            deprecation: #deprecation,
            unstored: #unstored,
            stored_as_json: #stored_as_json,
            same_as: #same_as,
            message: Ref::Static(#path::message_desc()),
            conversion: #conversion,
            own_id: 0,
        }
    }
}

/// `Some(Gvk { … })` of a name, `None` of an empty one.
fn kind_name(name: &str) -> TokenStream {
    match names::split_kind(name) {
        Some((group, version, kind)) => {
            quote!(Some(::keelson_machinery::object::Gvk::new_static(#group, #version, #kind)))
        }
        None => quote!(None),
    }
}

/// A text of the scheme.
fn name_of(text: &str) -> TokenStream {
    quote!(Name::new_static(#text))
}

/// A list of texts of the scheme.
fn names_of(list: &[String]) -> TokenStream {
    quote!(Names::Static(&[#(#list),*]))
}

fn subresource(s: &Subresource) -> TokenStream {
    let (group, version, kind) = names::split_kind(&s.kind).unwrap_or_default();
    let options: [&str; 3] = names::split_kind(&s.options).unwrap_or_default().into();
    let (verbs, connect, subpaths) = (names_of(&s.verbs), s.connect, s.subpaths);
    let options = options.map(name_of);
    let [name, group, version, kind, produces] = [&s.name, group, version, kind, &s.produces].map(name_of);
    let [spec, status, selector] =
        [&s.spec_replicas_path, &s.status_replicas_path, &s.label_selector_path].map(|path| name_of(path));
    quote! {
        SubresourceDesc {
            name: #name,
            group: #group,
            version: #version,
            kind: #kind,
            verbs: #verbs,
            spec_replicas_path: #spec,
            status_replicas_path: #status,
            label_selector_path: #selector,
            connect: #connect,
            options: [#(#options),*],
            subpaths: #subpaths,
            produces: #produces,
        }
    }
}

/// The description of a field, without the values that OpenAPI lists after it; empty where nobody gave one.
fn describe(model: &Model, descriptions: &Descriptions, definition: &str, field: &str) -> String {
    let message = model.messages.iter().find(|m| m.openapi == definition);
    let comment = message
        .and_then(|m| model.find_field(m, field))
        .map(|f| f.comment.as_str());
    let given = descriptions.get(definition).and_then(|texts| texts.1.get(field));
    let text = comment
        .filter(|c| !c.is_empty())
        .or(given.map(String::as_str))
        .unwrap_or_default();
    text.split("\n\nPossible enum values:")
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// So many sentences from the start; 0: all.
fn first_sentences(text: &str, sentences: usize) -> String {
    let end = match sentences {
        0 => None,
        n => text.match_indices(". ").nth(n - 1),
    };
    end.map_or(text, |(at, _)| &text[..=at]).to_owned()
}

fn column(model: &Model, c: &Column, descriptions: &Descriptions) -> TokenStream {
    let Column {
        name,
        ty,
        format,
        path,
        function,
        description,
        describes,
        sentences,
        hidden,
        ..
    } = c;
    let description = match describes.rsplit_once('.') {
        Some((definition, field)) if description.is_empty() => {
            first_sentences(&describe(model, descriptions, definition, field), *sentences)
        }
        _ => description.clone(),
    };
    let priority = Literal::i32_unsuffixed(c.priority);
    let [name, ty, format, path, function, description] =
        [name, ty, format, path, function, &description].map(|text| name_of(text));
    quote! {
        ColumnDesc {
            name: #name,
            ty: #ty,
            format: #format,
            description: #description,
            priority: #priority,
            path: #path,
            function: #function,
            hidden: #hidden,
        }
    }
}
