//! Named formats of texts: `format.dns1123Label().validate("a-b")`.

use std::any::Any;
use std::rc::Rc;

use super::super::error::Fault;
use super::super::signature::{Cost, Functions, define as add};
use super::super::value::{Opaque, Value};
use super::{Result, strings, urls};
use crate::content::names::{self, NamePart};
use crate::content::{labels, strfmt};
use crate::scheme::NameRule;

pub(super) fn define(to: &mut Functions) {
    add(
        to,
        "validate",
        Cost::Validate,
        validate,
        &["format.(string) optional(list(string))"],
    );
    add(to, "format.named", Cost::One, named, &["(string) optional(format)"]);
    let each: [(&'static str, super::super::signature::Code); 13] = [
        ("format.dns1123Label", |_| Ok(format("dns1123Label"))),
        ("format.dns1123Subdomain", |_| Ok(format("dns1123Subdomain"))),
        ("format.dns1035Label", |_| Ok(format("dns1035Label"))),
        ("format.qualifiedName", |_| Ok(format("qualifiedName"))),
        ("format.dns1123LabelPrefix", |_| Ok(format("dns1123LabelPrefix"))),
        ("format.dns1123SubdomainPrefix", |_| {
            Ok(format("dns1123SubdomainPrefix"))
        }),
        ("format.dns1035LabelPrefix", |_| Ok(format("dns1035LabelPrefix"))),
        ("format.labelValue", |_| Ok(format("labelValue"))),
        ("format.uri", |_| Ok(format("uri"))),
        ("format.uuid", |_| Ok(format("uuid"))),
        ("format.byte", |_| Ok(format("byte"))),
        ("format.date", |_| Ok(format("date"))),
        ("format.datetime", |_| Ok(format("datetime"))),
    ];
    for (name, code) in each {
        add(to, name, Cost::One, code, &["() format"]);
    }
}

/// A format by its name.
#[derive(Debug, PartialEq, Eq)]
struct Format(&'static str);

impl Opaque for Format {
    fn name(&self) -> &'static str {
        "kubernetes.NamedFormat"
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        other.as_any().downcast_ref::<Format>() == Some(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

const NAMES: [&str; 13] = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

fn format<'a>(name: &'static str) -> Value<'a> {
    Value::opaque(Format(name))
}

fn named<'a>(v: &[Value<'a>]) -> Result<'a> {
    let wanted = strings::text(v.first().unwrap_or(&Value::Null))?;
    let known = NAMES.into_iter().find(|name| *name == wanted);
    Ok(Value::Optional(known.map(|name| Rc::new(format(name)))))
}

fn validate<'a>(v: &[Value<'a>]) -> Result<'a> {
    let [Value::Opaque(format), text] = v else {
        return Err(Fault::NoSuchOverload);
    };
    let format = format.as_any().downcast_ref::<Format>().ok_or(Fault::NoSuchOverload)?;
    let wrong = wrong(format.0, strings::text(text)?);
    let texts = (!wrong.is_empty()).then(|| Rc::new(Value::texts(wrong.iter().map(String::as_str))));
    Ok(Value::Optional(texts))
}

/// What is wrong with a text.
fn wrong(format: &str, text: &str) -> Vec<String> {
    let by = |rule: NameRule, part: NamePart| names::check(rule, text, part);
    let known = |what: &str| match strfmt::fits(format, text) {
        Some(false) => vec![what.to_owned()],
        _ => Vec::new(),
    };
    match format {
        "dns1123Label" => by(NameRule::DnsLabel, NamePart::Whole),
        "dns1123Subdomain" => by(NameRule::DnsSubdomain, NamePart::Whole),
        "dns1035Label" => by(NameRule::Dns1035Label, NamePart::Whole),
        "dns1123LabelPrefix" => by(NameRule::DnsLabel, NamePart::Prefix),
        "dns1123SubdomainPrefix" => by(NameRule::DnsSubdomain, NamePart::Prefix),
        "dns1035LabelPrefix" => by(NameRule::Dns1035Label, NamePart::Prefix),
        "qualifiedName" => labels::qualified_name(text),
        "labelValue" => labels::label_value(text),
        "uri" => urls::read::request(text).err().into_iter().collect(),
        "uuid" => known("does not match the UUID format"),
        "byte" => known("invalid base64"),
        "date" => known("invalid date"),
        _ => known("invalid datetime"),
    }
}
