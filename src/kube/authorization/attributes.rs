//! Attributes of access reviews, as those of a request that would do it.

use keelson_access::request_info::RequestInfo;
use keelson_api::authorization_k8s_io::v1::{
    FieldSelectorAttributes, LabelSelectorAttributes, NonResourceAttributes, ResourceAttributes,
};
use keelson_machinery::meta::v1::{FieldSelectorRequirement, LabelSelectorRequirement};
use keelson_machinery::selector::field::Term;
use keelson_machinery::selector::label::{Operator, Requirement};
use keelson_machinery::selector::{FieldSelector, LabelSelector};
use keelson_machinery::status::StatusError;

/// Terms, or values of one, that the text of a selector may have: two bytes of it become a hundred.
const MAX_TERMS: usize = 1 << 16;

/// A question for the authorizers.
pub struct Question {
    pub info: RequestInfo,
    /// What of the question could not be understood; it is decided without.
    pub doubts: Vec<String>,
}

impl Question {
    /// Of the attributes, one kind is there: reviews without were refused.
    ///
    /// # Errors
    /// 413 where a text form has more terms than fit into the query of a request.
    pub fn new(
        resource: Option<&ResourceAttributes>,
        path: Option<&NonResourceAttributes>,
    ) -> Result<Question, StatusError> {
        resource.map_or(Ok(()), texts_are_bounded)?;
        Ok(match (resource, path) {
            (Some(attributes), _) => of_resource(attributes),
            (None, path) => Question {
                info: RequestInfo {
                    path: path.map(|p| p.path.clone()).unwrap_or_default(),
                    verb: path.map(|p| p.verb.clone()).unwrap_or_default(),
                    ..RequestInfo::default()
                },
                doubts: Vec::new(),
            },
        })
    }
}

fn texts_are_bounded(attributes: &ResourceAttributes) -> Result<(), StatusError> {
    let fields = attributes.field_selector.as_deref().map(|s| s.raw_selector.as_str());
    let labels = attributes.label_selector.as_deref().map(|s| s.raw_selector.as_str());
    let terms = |text: &str| text.bytes().filter(|b| *b == b',').count();
    match [fields, labels]
        .into_iter()
        .flatten()
        .any(|text| terms(text) > MAX_TERMS)
    {
        true => Err(StatusError::entity_too_large(format!(
            "a selector has more than {MAX_TERMS} terms"
        ))),
        false => Ok(()),
    }
}

fn of_resource(attributes: &ResourceAttributes) -> Question {
    let (fields, fields_read) = attributes.field_selector.as_deref().map(fields_of).unwrap_or_default();
    let (labels, labels_read) = attributes.label_selector.as_deref().map(labels_of).unwrap_or_default();
    let info = RequestInfo {
        fields,
        labels,
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
    };
    // Selectors narrow a question down; those that can't be read are left out of it.
    let read = [("fieldSelector", fields_read), ("labelSelector", labels_read)];
    let doubts = read.into_iter().filter_map(|(name, read)| {
        let how = read.doubt()?;
        Some(format!("spec.resourceAttributes.{name} {how} due to parse error"))
    });
    Question {
        info,
        doubts: doubts.collect(),
    }
}

/// How much of a selector was understood.
#[derive(Default)]
enum Read {
    #[default]
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

    fn doubt(&self) -> Option<&'static str> {
        match self {
            Read::Whole => None,
            Read::Partly => Some("partially ignored"),
            Read::NotAtAll => Some("ignored"),
        }
    }
}

/// Fields are compared with one value, for being equal or not.
fn fields_of(selector: &FieldSelectorAttributes) -> (Vec<Term>, Read) {
    if !selector.raw_selector.is_empty() {
        let parsed = FieldSelector::parse(&selector.raw_selector).ok();
        return match parsed {
            Some(parsed) => (parsed.into_terms(), Read::Whole),
            None => (Vec::new(), Read::NotAtAll),
        };
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
    let terms: Vec<Term> = selector.requirements.iter().filter_map(term).collect();
    let read = Read::of(terms.len(), selector.requirements.len());
    (terms, read)
}

fn labels_of(selector: &LabelSelectorAttributes) -> (Vec<Requirement>, Read) {
    if !selector.raw_selector.is_empty() {
        let parsed = LabelSelector::parse(&selector.raw_selector).ok();
        return match parsed {
            Some(parsed) => (parsed.into_requirements(), Read::Whole),
            None => (Vec::new(), Read::NotAtAll),
        };
    }
    let mut understood = 0;
    let requirement = |requirement: &LabelSelectorRequirement| {
        let operator = match requirement.operator.as_str() {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            _ => return None,
        };
        understood += 1;
        Requirement::new(&requirement.key, operator, requirement.values.clone()).ok()
    };
    let requirements = selector.requirements.iter().filter_map(requirement).collect();
    (requirements, Read::of(understood, selector.requirements.len()))
}
