//! From a struct to its table and its trait implementations.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, Ident, Index, Result, Type};

use crate::attributes::{FieldAttributes, MessageAttributes};

/// The most fields a message may have: `MessageDesc::by_number` holds 16-bit indexes.
const MAX_FIELDS: usize = u16::MAX as usize;

struct Field<'a> {
    ident: &'a Ident,
    ty: &'a Type,
    attributes: FieldAttributes,
}

/// All that the derive writes for one struct.
pub fn message(input: &DeriveInput) -> Result<TokenStream> {
    let attributes = MessageAttributes::read(&input.attrs, input.ident.span())?;
    let fields = fields(input)?;
    check(&fields)?;
    let ident = &input.ident;
    let table = table(ident, &attributes, &fields);
    let reflect = reflect(ident, &fields);
    let kind = kind(ident, &attributes, &fields)?;
    Ok(quote! {
        const _: () = {
            // One name that no message can have; a message may well be called `Type` or `Patch`.
            use ::keelson_machinery::reflect as __reflect;
            #table
            #reflect
            #kind
        };
    })
}

fn fields(input: &DeriveInput) -> Result<Vec<Field<'_>>> {
    if let Some(parameter) = input.generics.params.first() {
        return Err(Error::new(parameter.span(), "a message has no type parameters"));
    }
    let Data::Struct(data) = &input.data else {
        return Err(Error::new(input.ident.span(), "a message is a struct"));
    };
    let named = match &data.fields {
        Fields::Named(named) => &named.named,
        Fields::Unit => return Ok(Vec::new()),
        Fields::Unnamed(unnamed) => {
            return Err(Error::new(unnamed.span(), "the fields of a message have names"));
        }
    };
    if named.len() > MAX_FIELDS {
        return Err(Error::new(
            input.ident.span(),
            format!("a message has at most {MAX_FIELDS} fields"),
        ));
    }
    let mut fields = Vec::new();
    for field in named {
        let Some(ident) = &field.ident else { continue };
        let attributes = FieldAttributes::read(&field.attrs, ident)?;
        fields.push(Field {
            ident,
            ty: &field.ty,
            attributes,
        });
    }
    Ok(fields)
}

/// Two fields may share neither the JSON key nor the number.
fn check(fields: &[Field<'_>]) -> Result<()> {
    for (i, field) in fields.iter().enumerate() {
        for earlier in fields.iter().take(i) {
            let (a, b) = (&field.attributes, &earlier.attributes);
            if a.json.value() == b.json.value() {
                let text = format!(
                    "the JSON key {:?} is already that of `{}`",
                    a.json.value(),
                    earlier.ident
                );
                return Err(Error::new(a.json.span(), text));
            }
            if a.number == b.number && a.number != 0 {
                let text = format!("the number {} is already that of `{}`", a.number, earlier.ident);
                return Err(Error::new(field.ident.span(), text));
            }
        }
    }
    Ok(())
}

fn table(ident: &Ident, attributes: &MessageAttributes, fields: &[Field<'_>]) -> TokenStream {
    let name = &attributes.name;
    let descs = fields.iter().map(|field| {
        let FieldAttributes {
            json,
            number,
            flags,
            chain,
            ..
        } = &field.attributes;
        let ty = field.ty;
        let flags = flags.iter().fold(quote!(__reflect::Flags::NONE), |all, flag| {
            let flag = Ident::new(flag, Span::call_site());
            quote!(#all.with(__reflect::Flags::#flag))
        });
        quote!(__reflect::FieldDesc::new::<#ty>(#json, #number, #flags) #(#chain)*)
    });
    let mut numbers: Vec<(u32, usize)> = fields
        .iter()
        .enumerate()
        .map(|(i, f)| (f.attributes.number, i))
        .filter(|(n, _)| *n != 0)
        .collect();
    numbers.sort_unstable();
    let by_number = numbers.into_iter().map(|(_, i)| Index::from(i));
    let is_inlined = |field: &Field<'_>| field.attributes.flags.contains(&"INLINE");
    let (inlined, mut named): (Vec<_>, Vec<_>) = fields.iter().enumerate().partition(|(_, f)| is_inlined(f));
    named.sort_by_key(|(_, f)| f.attributes.json.value());
    let by_name = named.into_iter().map(|(i, _)| Index::from(i));
    let inlined = inlined.into_iter().map(|(i, _)| Index::from(i));
    let defaulted = fields.iter().enumerate().filter(|(_, f)| f.attributes.has_defaults);
    let defaulted = defaulted.map(|(i, _)| Index::from(i));
    let gvk = match &attributes.kind {
        None => quote!(::core::option::Option::None),
        Some(_) => quote!(::core::option::Option::Some(__reflect::Ref::Static(&GVK))),
    };
    let make = match (&attributes.kind, attributes.object) {
        (None, _) => quote!(Message),
        (Some(_), None) => quote!(Kind),
        (Some(_), Some(_)) => quote!(Object),
    };
    let (lists, rules) = rules(attributes, fields);
    quote! {
        #lists
        static FIELDS: &[__reflect::FieldDesc] = &[#(#descs),*];
        static DESC: __reflect::MessageDesc = __reflect::MessageDesc {
            name: __reflect::Name::new_static(#name),
            fields: __reflect::Ref::Static(FIELDS),
            by_number: __reflect::Ref::Static(&[#(#by_number),*]),
            by_name: __reflect::Ref::Static(&[#(#by_name),*]),
            inlined: __reflect::Ref::Static(&[#(#inlined),*]),
            missed: __reflect::Ref::Static(&[]),
            defaulted: __reflect::Ref::Static(&[#(#defaulted),*]),
            make: __reflect::Make::#make(|| {
                ::std::boxed::Box::new(<#ident as ::core::default::Default>::default())
            }),
            gvk: #gvk,
            size: ::core::mem::size_of::<#ident>(),
            unknown: __reflect::Unknown::Dropped,
            rules: __reflect::Ref::Static(#rules),
            id: __reflect::Id::unassigned(),
        };
        static HANDLE: __reflect::Desc = __reflect::Ref::Static(&DESC);
        impl #ident {
            /// The table of this message's fields.
            pub const fn message_desc() -> &'static __reflect::MessageDesc {
                &DESC
            }
        }
        impl __reflect::Field for #ident {
            const TYPE: __reflect::Type = __reflect::Type::Message(__reflect::Ref::Static(&DESC));
            fn value(&self) -> __reflect::Value<'_> {
                __reflect::Value::Message(self)
            }
            fn slot(&mut self) -> __reflect::Slot<'_> {
                __reflect::Slot::Message(self)
            }
        }
    }
}

/// The lists of validations that the table refers to, and the reference to the message's own rules. Statics, since what
/// is compiled of them is kept in them.
fn rules(attributes: &MessageAttributes, fields: &[Field<'_>]) -> (TokenStream, TokenStream) {
    let of_fields = fields
        .iter()
        .filter(|f| !f.attributes.validations.is_empty())
        .map(|field| {
            let (name, list) = (FieldAttributes::list_name(field.ident), &field.attributes.validations);
            let length = list.len();
            quote!(static #name: [__reflect::ValidationRule; #length] = [#(#list),*];)
        });
    let lists = quote!(#(#of_fields)*);
    let (unions, validations) = (&attributes.unions, &attributes.validations);
    if unions.is_empty() && validations.is_empty() {
        return (lists, quote!(&__reflect::NO_MESSAGE_RULES));
    }
    let length = validations.len();
    let own = quote! {
        static UNIONS: &[__reflect::Union] = &[#(#unions),*];
        static VALIDATIONS: [__reflect::ValidationRule; #length] = [#(#validations),*];
        static RULES: __reflect::MessageRules = __reflect::MessageRules {
            unions: __reflect::Ref::Static(UNIONS),
            validations: __reflect::Ref::Static(&VALIDATIONS),
        };
    };
    (quote!(#lists #own), quote!(&RULES))
}

fn reflect(ident: &Ident, fields: &[Field<'_>]) -> TokenStream {
    let indexes: Vec<Index> = (0..fields.len()).map(Index::from).collect();
    let names: Vec<&Ident> = fields.iter().map(|f| f.ident).collect();
    let said = fields.iter().zip(&indexes).map(|(field, index)| {
        let name = field.ident;
        let say = quote!(said.push((#index, __reflect::Field::value(&self.#name))););
        match field.attributes.flags.contains(&"ALWAYS") {
            true => say,
            false => quote!(if !__reflect::Field::is_bare(&self.#name) { #say }),
        }
    });
    let get_mut = if fields.is_empty() {
        quote!(::core::option::Option::None)
    } else {
        quote! {
            ::core::option::Option::Some(match index {
                #(#indexes => __reflect::Field::slot(&mut self.#names),)*
                _ => return ::core::option::Option::None,
            })
        }
    };
    quote! {
        impl __reflect::Reflect for #ident {
            fn desc(&self) -> &__reflect::MessageDesc {
                &DESC
            }
            fn handle(&self) -> &__reflect::Desc {
                &HANDLE
            }
            fn get(&self, index: usize) -> __reflect::Value<'_> {
                match index {
                    #(#indexes => __reflect::Field::value(&self.#names),)*
                    _ => __reflect::Value::Absent,
                }
            }
            fn said<'a>(&'a self, said: &mut ::std::vec::Vec<__reflect::Said<'a>>) {
                #(#said)*
            }
            fn get_mut(&mut self, index: usize) -> ::core::option::Option<__reflect::Slot<'_>> {
                #get_mut
            }
            fn clone_message(&self) -> ::std::boxed::Box<dyn __reflect::Reflect> {
                ::std::boxed::Box::new(::core::clone::Clone::clone(self))
            }
            fn as_any(&self) -> &dyn ::core::any::Any {
                self
            }
            fn as_any_mut(&mut self) -> &mut dyn ::core::any::Any {
                self
            }
            fn into_any(self: ::std::boxed::Box<Self>) -> ::std::boxed::Box<dyn ::core::any::Any> {
                self
            }
        }
    }
}

fn kind(ident: &Ident, attributes: &MessageAttributes, fields: &[Field<'_>]) -> Result<TokenStream> {
    let Some(kind) = &attributes.kind else {
        return Ok(TokenStream::new());
    };
    let (group, version) = (&attributes.group, &attributes.version);
    let object = match attributes.object {
        None => TokenStream::new(),
        Some(span) if !fields.iter().any(|f| f.ident.unraw() == "metadata") => {
            return Err(Error::new(
                span,
                "an object has a field `metadata` of type `ObjectMeta`",
            ));
        }
        Some(_) => object(ident),
    };
    Ok(quote! {
        static GVK: ::keelson_machinery::object::Gvk =
            ::keelson_machinery::object::Gvk::new_static(#group, #version, #kind);
        impl ::keelson_machinery::object::Kind for #ident {
            fn gvk(&self) -> &::keelson_machinery::object::Gvk {
                &GVK
            }
            fn as_reflect(&self) -> &dyn __reflect::Reflect {
                self
            }
            fn as_reflect_mut(&mut self) -> &mut dyn __reflect::Reflect {
                self
            }
        }
        #object
    })
}

fn object(ident: &Ident) -> TokenStream {
    quote! {
        impl ::keelson_machinery::object::Object for #ident {
            fn meta(&self) -> &::keelson_machinery::meta::v1::ObjectMeta {
                &self.metadata
            }
            fn meta_mut(&mut self) -> &mut ::keelson_machinery::meta::v1::ObjectMeta {
                &mut self.metadata
            }
            fn clone_object(&self) -> ::std::boxed::Box<dyn ::keelson_machinery::object::Object> {
                ::std::boxed::Box::new(::core::clone::Clone::clone(self))
            }
        }
    }
}

#[cfg(test)]
mod tests;
