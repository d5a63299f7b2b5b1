//! Attributes: `#[message(…)]`, `#[field(…)]`, `#[union(…)]`, `#[validation(…)]`.

use std::fmt::Display;
use std::str::FromStr;

use proc_macro2::{Span, TokenStream};
use quote::quote;
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
        add_items(attr, &mut all)?;
    }
    Ok(all)
}

fn add_items(attr: &Attribute, all: &mut Vec<Item>) -> Result<()> {
    for item in attr.parse_args_with(Punctuated::<Item, Token![,]>::parse_terminated)? {
        if all.iter().any(|other| other.name == item.name) {
            return Err(Error::new(item.name.span(), format!("`{}` is given twice", item.name)));
        }
        all.push(item);
    }
    Ok(())
}

/// The items of each attribute called `name`, which may stand several times.
fn each(attrs: &[Attribute], name: &str) -> Result<Vec<Vec<Item>>> {
    let mut every = Vec::new();
    for attr in attrs.iter().filter(|a| a.path().is_ident(name)) {
        let mut all = Vec::new();
        add_items(attr, &mut all)?;
        every.push(all);
    }
    Ok(every)
}

/// `#[validation(…)]`, as elements of a list of `ValidationRule`.
fn validations(attrs: &[Attribute]) -> Result<Vec<TokenStream>> {
    let mut rules = Vec::new();
    for items in each(attrs, "validation")? {
        let texts = ["rule", "message", "message_expression", "reason", "field_path"];
        let (mut given, mut optional) = ([const { None }; 5], false);
        for item in items {
            if item.name == "optional_old_self" {
                item.flag()?;
                optional = true;
                continue;
            }
            match texts
                .iter()
                .position(|text| item.name == text)
                .and_then(|i| given.get_mut(i))
            {
                Some(place) => *place = Some(item.string()?),
                None => {
                    return Err(Error::new(
                        item.name.span(),
                        format!("unknown attribute `{}` of a validation", item.name),
                    ));
                }
            }
        }
        let members = texts.iter().zip(&given).map(|(name, text)| {
            let name = Ident::new(name, Span::call_site());
            let text = text.as_ref().map_or_else(|| quote!(""), |text| quote!(#text));
            quote!(#name: __reflect::Name::new_static(#text))
        });
        rules.push(quote! {
            __reflect::ValidationRule {
                #(#members,)*
                optional_old_self: #optional,
                compiled: __reflect::Compiled::not_yet(),
            }
        });
    }
    Ok(rules)
}

/// `#[union(…)]`, as elements of a list of `Union`.
fn unions(attrs: &[Attribute]) -> Result<Vec<TokenStream>> {
    let mut unions = Vec::new();
    for items in each(attrs, "union")? {
        let (mut discriminator, mut members) = (quote!(""), Vec::new());
        for item in items {
            match item.name.to_string().as_str() {
                "discriminator" => {
                    let text = item.string()?;
                    discriminator = quote!(#text);
                }
                "members" => members = item.strings()?,
                other => {
                    let text = format!("unknown attribute `{other}` of a union: discriminator and members are known");
                    return Err(Error::new(item.name.span(), text));
                }
            }
        }
        let members = members.iter().map(|member| {
            let text = member.value();
            let (field, value) = text.split_once('=').unwrap_or((&text, ""));
            quote!(__reflect::Member {
                field: __reflect::Name::new_static(#field),
                value: __reflect::Name::new_static(#value),
            })
        });
        unions.push(quote! {
            __reflect::Union {
                discriminator: __reflect::Name::new_static(#discriminator),
                members: __reflect::Ref::Static(&[#(#members),*]),
            }
        });
    }
    Ok(unions)
}

/// `#[message(…)]`.
pub struct MessageAttributes {
    pub name: LitStr,
    pub group: String,
    pub version: String,
    pub kind: Option<LitStr>,
    pub object: Option<Span>,
    /// Elements of lists of `Union` and `ValidationRule`.
    pub unions: Vec<TokenStream>,
    pub validations: Vec<TokenStream>,
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
            unions: unions(attrs)?,
            validations: validations(attrs)?,
        })
    }
}

/// `#[field(…)]`: what goes into the `FieldDesc` beside the type.
pub struct FieldAttributes {
    pub json: LitStr,
    pub number: u32,
    /// Names of the constants of `Flags`.
    pub flags: Vec<&'static str>,
    /// It, or something below it, has a default.
    pub has_defaults: bool,
    /// Calls of `FieldDesc` that add what is not empty.
    pub chain: Vec<TokenStream>,
    /// Elements of a list of `ValidationRule`, which `chain` refers to by [`FieldAttributes::list_name`].
    pub validations: Vec<TokenStream>,
}

impl FieldAttributes {
    pub fn read(attrs: &[Attribute], field: &Ident) -> Result<FieldAttributes> {
        let span = field.span();
        let (mut json, mut number, mut flags) = (None, 0, Vec::new());
        let (mut chain, mut details, mut rules) = (Vec::new(), Vec::new(), Vec::new());
        for item in items(attrs, "field")? {
            let name = item.name.to_string();
            if name == "json" {
                json = Some(item.string()?);
            } else if name == "number" {
                number = item.integer()?;
            } else if let Some(flag) = flag(&name) {
                item.flag()?;
                flags.push(flag);
            } else if let Some(call) = call(&name, &item)? {
                chain.push(call);
            } else if let Some(detail) = detail(&name, &item)? {
                details.push(detail);
            } else if let Some(rule) = rule(&name, &item)? {
                rules.push(rule);
            } else {
                return Err(Error::new(
                    item.name.span(),
                    format!("unknown attribute `{name}` of a field"),
                ));
            }
        }
        let validations = validations(attrs)?;
        if !validations.is_empty() {
            let list = FieldAttributes::list_name(field);
            rules.push(("validations", quote!(__reflect::Ref::Static(&#list))));
        }
        if !details.is_empty() {
            chain.push(part("with_details", "Details", DETAILS, &details));
        }
        if !rules.is_empty() {
            chain.push(part("with_rules", "Rules", RULES, &rules));
        }
        let has_defaults = flags.contains(&"HAS_DEFAULTS") || details.iter().any(|(name, _)| *name == "default");
        let json = json.ok_or_else(|| Error::new(span, "`#[field(json = \"…\")]` is missing: the key in JSON"))?;
        Ok(FieldAttributes {
            json,
            number,
            flags,
            has_defaults,
            chain,
            validations,
        })
    }

    /// The static that has the validations of a field.
    pub fn list_name(field: &Ident) -> Ident {
        let name = field.unraw().to_string().to_uppercase();
        Ident::new(&format!("VALIDATIONS_OF_{name}"), Span::call_site())
    }
}

/// A member of a table's part, and its value.
type Member = (&'static str, TokenStream);

/// What a member is that is not given.
#[derive(Clone, Copy)]
enum Empty {
    None,
    False,
    Name,
    Names,
    List,
}

/// The members of `Details`.
const DETAILS: &[(&str, Empty)] = &[
    ("default", Empty::None),
    ("map_keys", Empty::Names),
    ("merge_key", Empty::Name),
    ("go_type", Empty::Name),
];
/// The members of `Rules`.
const RULES: &[(&str, Empty)] = &[
    ("enum_values", Empty::Names),
    ("item_enum", Empty::Names),
    ("minimum", Empty::None),
    ("maximum", Empty::None),
    ("exclusive_minimum", Empty::False),
    ("exclusive_maximum", Empty::False),
    ("multiple_of", Empty::None),
    ("min_length", Empty::None),
    ("max_length", Empty::None),
    ("min_items", Empty::None),
    ("max_items", Empty::None),
    ("min_properties", Empty::None),
    ("max_properties", Empty::None),
    ("pattern", Empty::Name),
    ("format", Empty::Name),
    ("key_format", Empty::Name),
    ("item_format", Empty::Name),
    ("required_when", Empty::Name),
    ("validations", Empty::List),
];

/// The call that adds a part of a table. All members are named: a static can't take over the rest of another part,
/// which would have to be dropped.
fn part(call: &str, ty: &str, all: &[(&str, Empty)], given: &[Member]) -> TokenStream {
    let [call, ty] = [call, ty].map(|name| Ident::new(name, Span::call_site()));
    let members = all.iter().map(|(name, empty)| {
        let member = Ident::new(name, Span::call_site());
        let value = match (given.iter().find(|(given, _)| given == name), empty) {
            (Some((_, value)), _) => value.clone(),
            (None, Empty::None) => quote!(::core::option::Option::None),
            (None, Empty::False) => quote!(false),
            (None, Empty::Name) => quote!(__reflect::Name::new_static("")),
            (None, Empty::Names) => quote!(__reflect::Names::NONE),
            (None, Empty::List) => quote!(__reflect::Ref::Static(&[])),
        };
        quote!(#member: #value)
    });
    quote!(.#call(__reflect::Ref::Static(const { &__reflect::#ty { #(#members),* } })))
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
        "has_validations" => "HAS_VALIDATIONS",
        _ => return None,
    })
}

/// A call of `FieldDesc`.
fn call(name: &str, item: &Item) -> Result<Option<TokenStream>> {
    Ok(Some(match name {
        "list" => {
            let text = item.string()?;
            let variant = match text.value().as_str() {
                "atomic" => quote!(Atomic),
                "set" => quote!(Set),
                "map" => quote!(Map),
                _ => return Err(Error::new(text.span(), "a list is \"atomic\", \"set\" or \"map\"")),
            };
            quote!(.with_list(__reflect::ListType::#variant))
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
            quote!(.with_patch(__reflect::Patch(#bits)))
        }
        _ => return Ok(None),
    }))
}

/// A member of `Details`.
fn detail(name: &str, item: &Item) -> Result<Option<Member>> {
    Ok(Some(match name {
        "default" => {
            let text = item.string()?;
            (
                "default",
                quote!(::core::option::Option::Some(__reflect::Name::new_static(#text))),
            )
        }
        "keys" => {
            let keys = item.strings()?;
            ("map_keys", quote!(__reflect::Names::Static(&[#(#keys),*])))
        }
        "merge_key" => {
            let key = item.string()?;
            ("merge_key", quote!(__reflect::Name::new_static(#key)))
        }
        "go_type" => {
            let name = item.string()?;
            ("go_type", quote!(__reflect::Name::new_static(#name)))
        }
        _ => return Ok(None),
    }))
}

/// A member of `Rules`.
fn rule(name: &str, item: &Item) -> Result<Option<Member>> {
    let value = match name {
        "enum" | "item_enum" => {
            let values = item.strings()?;
            quote!(__reflect::Names::Static(&[#(#values),*]))
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
        "pattern" | "format" | "key_format" | "item_format" | "required_when" => {
            let text = item.string()?;
            quote!(__reflect::Name::new_static(#text))
        }
        _ => return Ok(None),
    };
    let member = if name == "enum" { "enum_values" } else { name };
    Ok(RULES
        .iter()
        .find(|(rule, _)| *rule == member)
        .map(|(rule, _)| (*rule, value)))
}
