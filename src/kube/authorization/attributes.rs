//! Attributes of access reviews, as those of a request that would do it.

use keelson_access::request_info::RequestInfo;
use keelson_machinery::meta::v1::{FieldSelectorRequirement, LabelSelectorRequirement};
use keelson_machinery::selector::field::Term;
use keelson_machinery::selector::label::{Operator, Requirement};
use keelson_machinery::selector::{FieldSelector, LabelSelector};

use keelson_api::authorization_k8s_io::v1::{
    FieldSelectorAttributes, LabelSelectorAttributes, NonResourceAttributes, ResourceAttributes,
};

/// A question for the authorizers.
pub struct Question {
    pub info: RequestInfo,
    /// What of the question could not be understood; it is decided without.
    pub doubts: Vec<String>,
}

impl Question {
    /// Of the attributes, one kind is there: reviews without were refused.
    pub fn new(resource: Option<&ResourceAttributes>, path: Option<&NonResourceAttributes>) -> Question {
        match (resource, path) {
            (Some(attributes), _) => Question {
                info: resource_info(attributes),
                doubts: doubts(attributes),
            },
            (None, path) => Question {
                info: RequestInfo {
                    path: path.map(|p| p.path.clone()).unwrap_or_default(),
                    verb: path.map(|p| p.verb.clone()).unwrap_or_default(),
                    ..RequestInfo::default()
                },
                doubts: Vec::new(),
            },
        }
    }
}

fn resource_info(attributes: &ResourceAttributes) -> RequestInfo {
    let fields = attributes.field_selector.as_deref();
    let labels = attributes.label_selector.as_deref();
    RequestInfo {
        fields: fields.map(fields_of).unwrap_or_default(),
        labels: labels.map(labels_of).unwrap_or_default(),
        is_resource: true,
        verb: attributes.verb.clone(),
        group: attributes.group.clone(),
        // Whoever leaves the version out asks about all of them.
        version: match attributes.version.as_str() {
            "" => "*".to_owned(),
            version => version.to_owned(),
        },
        namespace: attributes.namespace.clone(),
        resource: attributes.resource.clone(),
        subresource: attributes.subresource.clone(),
        name: attributes.name.clone(),
        ..RequestInfo::default()
    }
}

/// Selectors narrow a question down; those that can't be read are left out of it.
fn doubts(attributes: &ResourceAttributes) -> Vec<String> {
    let fields = attributes.field_selector.as_deref().map(field_terms);
    let labels = attributes.label_selector.as_deref().map(label_terms);
    let named = [("fieldSelector", fields), ("labelSelector", labels)];
    let texts = named.into_iter().filter_map(|(name, read)| {
        let how = match read? {
            Read::Whole => return None,
            Read::Partly => "partially ignored",
            Read::NotAtAll => "ignored",
        };
        Some(format!("spec.resourceAttributes.{name} {how} due to parse error"))
    });
    texts.collect()
}

fn fields_of(selector: &FieldSelectorAttributes) -> Vec<Term> {
    if !selector.raw_selector.is_empty() {
        let parsed = FieldSelector::parse(&selector.raw_selector);
        return parsed.map(|parsed| parsed.terms().to_vec()).unwrap_or_default();
    }
    let term = |requirement: &FieldSelectorRequirement| {
        let ("In" | "NotIn", [value]) = (requirement.operator.as_str(), requirement.values.as_slice()) else {
            return None;
        };
        Some(Term {
            field: requirement.key.clone(),
            value: value.clone(),
            negated: requirement.operator == "NotIn",
        })
    };
    selector.requirements.iter().filter_map(term).collect()
}

fn labels_of(selector: &LabelSelectorAttributes) -> Vec<Requirement> {
    if !selector.raw_selector.is_empty() {
        let parsed = LabelSelector::parse(&selector.raw_selector);
        return parsed.map(|parsed| parsed.requirements().to_vec()).unwrap_or_default();
    }
    let requirement = |requirement: &LabelSelectorRequirement| {
        let operator = match requirement.operator.as_str() {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            _ => return None,
        };
        Requirement::new(&requirement.key, operator, requirement.values.clone()).ok()
    };
    selector.requirements.iter().filter_map(requirement).collect()
}

/// How much of a selector was understood.
enum Read {
    Whole,
    Partly,
    NotAtAll,
}

impl Read {
    fn of(understood: usize, all: usize) -> Read {
        match understood {
            n if n == all => Read::Whole,
            0 => Read::NotAtAll,
            _ => Read::Partly,
        }
    }

    fn text(readable: bool) -> Read {
        if readable { Read::Whole } else { Read::NotAtAll }
    }
}

/// Fields are compared with one value, for being equal or not.
fn field_terms(selector: &FieldSelectorAttributes) -> Read {
    if !selector.raw_selector.is_empty() {
        return Read::text(FieldSelector::parse(&selector.raw_selector).is_ok());
    }
    let known = |operator: &str| matches!(operator, "In" | "NotIn");
    let terms = &selector.requirements;
    let understood = terms.iter().filter(|r| known(&r.operator) && r.values.len() == 1);
    Read::of(understood.count(), terms.len())
}

fn label_terms(selector: &LabelSelectorAttributes) -> Read {
    if !selector.raw_selector.is_empty() {
        return Read::text(LabelSelector::parse(&selector.raw_selector).is_ok());
    }
    let known = |operator: &str| matches!(operator, "In" | "NotIn" | "Exists" | "DoesNotExist");
    let terms = &selector.requirements;
    let understood = terms.iter().filter(|r| known(&r.operator));
    Read::of(understood.count(), terms.len())
}
