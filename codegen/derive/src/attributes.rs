//! Reading `#[message(…)]` and `#[field(…)]`.

use std::fmt::Display;
use std::str::FromStr;

use proc_macro2::Span;
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Ident, Lit, LitInt, LitStr, Result, Token, UnOp, parenthesized};

/// One `name`, `name = literal` or `name("a", "b")`.
struct Item {
    name: Ident,
    value: ItemValue,
}

enum ItemValue {
    None,
    Lit { negative: bool, lit: Lit },
    Strings(Vec<LitStr>),
}

impl Parse for Item {
    fn parse(input: ParseStream<'_>) -> Result<Item> {
        let name = Ident::parse_any(input)?;
        let value = if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            let negative = input.peek(Token![-]);
            if negative {
                let _: UnOp = input.parse()?;
            }
            ItemValue::Lit {
                negative,
                lit: input.parse()?,
            }
        } else if input.peek(syn::token::Paren) {
            let content;
            parenthesized!(content in input);
            ItemValue::Strings(
                Punctuated::<LitStr, Token![,]>::parse_terminated(&content)?
                    .into_iter()
                    .collect(),
            )
        } else {
            ItemValue::None
        };
        Ok(Item { name, value })
    }
}

impl Item {
    fn flag(&self) -> Result<()> {
        match self.value {
            ItemValue::None => Ok(()),
            _ => Err(Error::new(
                self.name.span(),
                format!("`{0}` takes no value: write `{0}`", self.name),
            )),
        }
    }

    fn string(&self) -> Result<LitStr> {
        match &self.value {
            ItemValue::Lit { lit: Lit::Str(s), .. } => Ok(s.clone()),
            _ => Err(Error::new(
                self.name.span(),
                format!("`{0}` takes a string: write `{0} = \"…\"`", self.name),
            )),
        }
    }

    fn strings(&self) -> Result<Vec<LitStr>> {
        match &self.value {
            ItemValue::Strings(list) if !list.is_empty() => Ok(list.clone()),
            _ => Err(Error::new(
                self.name.span(),
                format!("`{0}` takes strings: write `{0}(\"…\", \"…\")`", self.name),
            )),
        }
    }

    fn integer(&self) -> Result<u32> {
        let wrong = || {
            Error::new(
                self.name.span(),
                format!("`{0}` takes a whole number from 0: write `{0} = 3`", self.name),
            )
        };
        match &self.value {
            ItemValue::Lit {
                lit: Lit::Int(n),
                negative: false,
            } => parse(n).map_err(|_| wrong()),
            _ => Err(wrong()),
        }
    }

    fn number(&self) -> Result<f64> {
        let value = match &self.value {
            ItemValue::Lit {
                lit: Lit::Int(n),
                negative,
            } => n.base10_parse::<f64>().ok().map(|v| (v, *negative)),
            ItemValue::Lit {
                lit: Lit::Float(n),
                negative,
            } => n.base10_parse::<f64>().ok().map(|v| (v, *negative)),
            _ => None,
        };
        match value {
            Some((v, negative)) => Ok(if negative { -v } else { v }),
            None => Err(Error::new(
                self.name.span(),
                format!("`{0}` takes a number: write `{0} = 1.5`", self.name),
            )),
        }
    }
}

fn parse<N: FromStr<Err: Display>>(lit: &LitInt) -> Result<N> {
    lit.base10_parse()
}

/// The items of all attributes called `name`, each at most once.
fn items(attrs: &[Attribute], name: &str) -> Result<Vec<Item>> {
    let mut all: Vec<Item> = Vec::new();
    for attr in attrs.iter().filter(|a| a.path().is_ident(name)) {
        for item in attr.parse_args_with(Punctuated::<Item, Token![,]>::parse_terminated)? {
            if all.iter().any(|other| other.name == item.name) {
                return Err(Error::new(item.name.span(), format!("`{}` is given twice", item.name)));
            }
            all.push(item);
        }
    }
    Ok(all)
}

/// `#[message(…)]`.
pub struct MessageAttributes {
    pub name: LitStr,
    pub group: String,
    pub version: String,
    pub kind: Option<LitStr>,
    pub object: Option<Span>,
}

impl MessageAttributes {
    pub fn read(attrs: &[Attribute], span: Span) -> Result<MessageAttributes> {
        let (mut name, mut group, mut version, mut kind, mut object) = (None, String::new(), String::new(), None, None);
        for item in items(attrs, "message")? {
            match item.name.to_string().as_str() {
                "name" => name = Some(item.string()?),
                "group" => group = item.string()?.value(),
                "version" => version = item.string()?.value(),
                "kind" => kind = Some(item.string()?),
                "object" => {
                    item.flag()?;
                    object = Some(item.name.span());
                }
                other => {
                    let text = format!("unknown attribute `{other}`: name, group, version, kind and object are known");
                    return Err(Error::new(item.name.span(), text));
                }
            }
        }
        let name = name.ok_or_else(|| {
            Error::new(
                span,
                "`#[message(name = \"…\")]` is missing: the name of the OpenAPI definition",
            )
        })?;
        if let (Some(kind), true) = (&kind, version.is_empty()) {
            return Err(Error::new(
                kind.span(),
                "a kind has a version: write `version = \"v1\"`",
            ));
        }
        if let (Some(span), true) = (object, kind.is_none()) {
            return Err(Error::new(span, "an object is a kind: write `kind = \"…\"`"));
        }
        Ok(MessageAttributes {
            name,
            group,
            version,
            kind,
            object,
        })
    }
}

/// `#[field(…)]`: what goes into the `FieldDesc` beside the type.
pub struct FieldAttributes {
    pub json: LitStr,
    pub number: u32,
    /// Names of the constants of `Flags`.
    pub flags: Vec<&'static str>,
    /// `member: value` of the `FieldDesc` that are not empty.
    pub members: Vec<proc_macro2::TokenStream>,
}

impl FieldAttributes {
    pub fn read(attrs: &[Attribute], span: Span) -> Result<FieldAttributes> {
        let (mut json, mut number, mut flags) = (None, 0, Vec::new());
        let (mut members, mut rules) = (Vec::new(), Vec::new());
        for item in items(attrs, "field")? {
            let name = item.name.to_string();
            if name == "json" {
                json = Some(item.string()?);
            } else if name == "number" {
                number = item.integer()?;
            } else if let Some(flag) = flag(&name) {
                item.flag()?;
                flags.push(flag);
            } else if let Some(member) = member(&name, &item)? {
                members.push(member);
            } else if let Some(rule) = rule(&name, &item)? {
                rules.push(rule);
            } else {
                return Err(Error::new(
                    item.name.span(),
                    format!("unknown attribute `{name}` of a field"),
                ));
            }
        }
        if !rules.is_empty() {
            members.push(quote!(rules: &__reflect::Rules { #(#rules,)* ..__reflect::Rules::NONE }));
        }
        let json = json.ok_or_else(|| Error::new(span, "`#[field(json = \"…\")]` is missing: the key in JSON"))?;
        Ok(FieldAttributes {
            json,
            number,
            flags,
            members,
        })
    }
}

fn flag(name: &str) -> Option<&'static str> {
    Some(match name {
        "inline" => "INLINE",
        "always" => "ALWAYS",
        "required" => "REQUIRED",
        "immutable" => "IMMUTABLE",
        "omit_zero" => "OMIT_ZERO",
        "atomic" => "ATOMIC",
        "nullable" => "NULLABLE",
        "typed" => "TYPED",
        "empty_list" => "EMPTY_LIST",
        "unchecked" => "UNCHECKED",
        "has_defaults" => "HAS_DEFAULTS",
        "has_rules" => "HAS_RULES",
        _ => return None,
    })
}

/// A member of `FieldDesc` itself.
fn member(name: &str, item: &Item) -> Result<Option<proc_macro2::TokenStream>> {
    Ok(Some(match name {
        "default" => {
            let text = item.string()?;
            quote!(default: ::core::option::Option::Some(#text))
        }
        "list" => {
            let text = item.string()?;
            let variant = match text.value().as_str() {
                "atomic" => quote!(Atomic),
                "set" => quote!(Set),
                "map" => quote!(Map),
                _ => return Err(Error::new(text.span(), "a list is \"atomic\", \"set\" or \"map\"")),
            };
            quote!(list: __reflect::ListType::#variant)
        }
        "keys" => {
            let keys = item.strings()?;
            quote!(map_keys: &[#(#keys),*])
        }
        "patch" => {
            let mut bits = quote!(__reflect::Patch::NONE.0);
            for text in item.strings()? {
                let constant = match text.value().as_str() {
                    "merge" => quote!(MERGE),
                    "replace" => quote!(REPLACE),
                    "retainKeys" => quote!(RETAIN_KEYS),
                    _ => {
                        return Err(Error::new(
                            text.span(),
                            "a patch is \"merge\", \"replace\" or \"retainKeys\"",
                        ));
                    }
                };
                bits = quote!(#bits | __reflect::Patch::#constant.0);
            }
            quote!(patch: __reflect::Patch(#bits))
        }
        "merge_key" => {
            let key = item.string()?;
            quote!(merge_key: #key)
        }
        _ => return Ok(None),
    }))
}

/// A member of `Rules`.
fn rule(name: &str, item: &Item) -> Result<Option<proc_macro2::TokenStream>> {
    let member = Ident::new(if name == "enum" { "enum_values" } else { name }, item.name.span());
    let value = match name {
        "enum" | "item_enum" => {
            let values = item.strings()?;
            quote!(&[#(#values),*])
        }
        "minimum" | "maximum" | "multiple_of" => {
            let value = item.number()?;
            quote!(::core::option::Option::Some(#value))
        }
        "exclusive_minimum" | "exclusive_maximum" => {
            item.flag()?;
            quote!(true)
        }
        "min_length" | "max_length" | "min_items" | "max_items" | "min_properties" | "max_properties" => {
            let value = item.integer()?;
            quote!(::core::option::Option::Some(#value))
        }
        "pattern" | "format" => item.string()?.to_token_stream(),
        _ => return Ok(None),
    };
    Ok(Some(quote!(#member: #value)))
}
