//! Conversion functions to and from the hub version.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use crate::model::{Field, FieldType, Message, Model};
use crate::names;
use crate::plan::{Pair, Plan};

/// The module of all conversion functions; empty when every kind has one version.
pub fn functions(model: &Model, plan: &Plan) -> TokenStream {
    if plan.pairs.is_empty() {
        return TokenStream::new();
    }
    let pairs = plan.pairs.iter().enumerate().map(|(index, pair)| {
        let (Some(version), Some(hub)) = (model.message(pair.version), model.message(pair.hub)) else {
            return TokenStream::new();
        };
        let way = Way {
            model,
            plan,
            pair,
            version,
            hub,
        };
        let (to, from) = (way.function(index, true), way.function(index, false));
        quote!(#to #from)
    });
    let kinds = plan
        .families
        .iter()
        .flat_map(|f| f.versions.iter().filter(|v| **v != f.hub))
        .filter_map(|version| kind(model, plan, *version));
    quote! {
        /// Conversions between versions, field by field; by-value, so that what is the same in both is moved.
        #[allow(clippy::all)]
        mod conversions {
            #(#kinds)*
            #(#pairs)*
        }
    }
}

/// Name of the function of a pair; `to`: to the hub.
fn name(model: &Model, plan: &Plan, index: usize, to: bool) -> Ident {
    let message = plan.pairs.get(index).and_then(|p| model.message(p.version));
    let path = message
        .map(|m| format!("{}_{}", m.module.path.join("_"), names::snake(&m.name)))
        .unwrap_or_default();
    let direction = if to { "to_hub" } else { "from_hub" };
    format_ident!("{path}_{index}_{direction}")
}

/// Name of the function over `Box<dyn Object>`; `to`: to the hub.
pub fn kind_name(message: &Message, to: bool) -> Ident {
    let path = format!("{}_{}", message.module.path.join("_"), names::snake(&message.name));
    format_ident!("{path}_{}", if to { "to_hub" } else { "from_hub" })
}

/// The two functions of a kind's version that the scheme points to.
fn kind(model: &Model, plan: &Plan, version: usize) -> Option<TokenStream> {
    let index = plan.of_kind(version)?;
    let pair = plan.pairs.get(index)?;
    let (version, hub) = (model.message(pair.version)?, model.message(pair.hub)?);
    let both = [true, false].map(|to| {
        let (outer, inner) = (kind_name(version, to), name(model, plan, index, to));
        let (source, target) = if to { (version, hub) } else { (hub, version) };
        let (source_path, target_name) = (names::path(source, 1), gvk(target));
        quote! {
            pub fn #outer(
                object: ::std::boxed::Box<dyn ::keelson_machinery::object::Object>,
            ) -> ::core::result::Result<
                ::std::boxed::Box<dyn ::keelson_machinery::object::Object>,
                ::keelson_machinery::scheme::ConvertError,
            > {
                let object = ::keelson_machinery::scheme::downcast::<#source_path>(object, #target_name)?;
                match #inner(object) {
                    Ok(converted) => Ok(::std::boxed::Box::new(converted)),
                    Err(fault) => Err(::keelson_machinery::scheme::ConvertError::new::<#source_path>(#target_name, fault)),
                }
            }
        }
    });
    let [to, from] = both;
    Some(quote!(#to #from))
}

/// `example.com/v1, Kind=Widget`.
fn gvk(message: &Message) -> String {
    let gv = &message.group_version;
    let group = if gv.group.is_empty() {
        String::new()
    } else {
        format!("{}/", gv.group)
    };
    format!("{group}{}, Kind={}", gv.version, message.name)
}

/// One pair of messages.
struct Way<'a> {
    model: &'a Model,
    plan: &'a Plan,
    pair: &'a Pair,
    version: &'a Message,
    hub: &'a Message,
}

impl Way<'_> {
    fn function(&self, index: usize, to: bool) -> TokenStream {
        let function = name(self.model, self.plan, index, to);
        let (source, target) = if to {
            (self.version, self.hub)
        } else {
            (self.hub, self.version)
        };
        let (source_path, target_path) = (names::path(source, 1), names::path(target, 1));
        let fields: Vec<TokenStream> = self.fields(to).collect();
        let complete = fields.len() == target.fields.len();
        let rest = (!complete).then(|| quote!(..::core::default::Default::default()));
        let build = quote!(#target_path { #(#fields,)* #rest });
        let (binding, body) = match &self.pair.hook {
            None if fields.is_empty() => (quote!(_from), quote!(Ok(#build))),
            None => (quote!(from), quote!(Ok(#build))),
            Some(module) => {
                let module: TokenStream = module.parse().unwrap_or_default();
                let direction = if to { "to_hub" } else { "from_hub" };
                let hook = format_ident!("{direction}_{}", names::snake(&self.version.name));
                let body = quote! {
                    let mut to = #build;
                    #module::#hook(&mut from, &mut to)?;
                    Ok(to)
                };
                (quote!(mut from), body)
            }
        };
        quote! {
            fn #function(
                #binding: #source_path,
            ) -> ::core::result::Result<#target_path, ::keelson_machinery::scheme::ConversionFault> {
                #body
            }
        }
    }

    fn fields(&self, to: bool) -> impl Iterator<Item = TokenStream> {
        self.pair.fields.iter().filter_map(move |pair| {
            let (mine, theirs) = (self.version.fields.get(pair.version)?, self.hub.fields.get(pair.hub)?);
            let (source, target) = if to { (mine, theirs) } else { (theirs, mine) };
            let (source_name, target_name) = (names::field(source), names::field(target));
            // A hand-written function still needs the source, but for lists of messages, which can be large: it finds
            // those in the target.
            let moves = pair.pair.is_some() && matches!(source.ty, FieldType::List(_));
            let value = match self.pair.hook {
                Some(_) if moves => quote!(::core::mem::take(&mut from.#source_name)),
                Some(_) => quote!(from.#source_name.clone()),
                None => quote!(from.#source_name),
            };
            let value = match pair.pair {
                None => value,
                Some(index) => converted(value, source, &name(self.model, self.plan, index, to)),
            };
            Some(quote!(#target_name: #value))
        })
    }
}

/// The expression that converts what stands in a field; what fails is told with its place.
fn converted(value: TokenStream, field: &Field, function: &Ident) -> TokenStream {
    let (name, fault) = (&field.json, quote!(::keelson_machinery::scheme::ConversionFault));
    match &field.ty {
        FieldType::List(_) => quote! {
            #value
                .into_iter()
                .enumerate()
                .map(|(index, value)| #function(value).map_err(|fault| fault.below_item(index).below(#name)))
                .collect::<::core::result::Result<_, #fault>>()?
        },
        FieldType::Map(_) => quote! {
            #value
                .into_iter()
                .map(|(key, value)| match #function(value) {
                    Ok(value) => Ok((key, value)),
                    Err(fault) => Err(fault.below_item(key).below(#name)),
                })
                .collect::<::core::result::Result<_, #fault>>()?
        },
        _ if field.lazy => quote! {
            #value
                .map(|value| #function(value.into_message()).map(::keelson_machinery::lazy::Lazy::from))
                .transpose()
                .map_err(|fault: #fault| fault.below(#name))?
        },
        _ if field.optional => quote! {
            #value
                .map(|value| #function(*value).map(::std::boxed::Box::new))
                .transpose()
                .map_err(|fault: #fault| fault.below(#name))?
        },
        _ => quote!(#function(#value).map_err(|fault| fault.below(#name))?),
    }
}
