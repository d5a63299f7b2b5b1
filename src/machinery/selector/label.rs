//! Label selectors: `app=web,tier in (a,b),!old`, and the `LabelSelector` message.

use std::collections::BTreeMap;
use std::fmt;

use crate::field::{ErrorList, FieldError, Path};
use crate::meta::v1;
use crate::validation::labels::{label_value, qualified_name};

mod parse;

/// Which labels an object must have. Selects everything when it has no requirements.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LabelSelector {
    /// Sorted by key; all of them must hold.
    requirements: Vec<Requirement>,
    nothing: bool,
}

/// A selector that was not understood; the text is for the caller.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(pub String);

/// What one label must be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Requirement {
    key: String,
    operator: Operator,
    /// Sorted, each once.
    values: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operator {
    In,
    NotIn,
    Equals,
    DoubleEquals,
    NotEquals,
    Greater,
    Less,
    Exists,
    DoesNotExist,
}

impl Requirement {
    /// A requirement with a valid key and as many valid values as the operator takes. Errors name `key`, `values[0]` ….
    pub fn new(key: &str, operator: Operator, values: Vec<String>) -> Result<Requirement, ErrorList> {
        let mut errors = ErrorList::new();
        errors.extend(check_key(key, &Path::new("key")));
        let path = Path::new("values");
        let count = match operator {
            Operator::In | Operator::NotIn => values
                .is_empty()
                .then_some("for 'in', 'notin' operators, values set can't be empty"),
            Operator::Equals | Operator::DoubleEquals | Operator::NotEquals => {
                (values.len() != 1).then_some("exact-match compatibility requires one single value")
            }
            Operator::Exists | Operator::DoesNotExist => {
                (!values.is_empty()).then_some("values set must be empty for exists and does not exist")
            }
            Operator::Greater | Operator::Less => {
                (values.len() != 1).then_some("for 'Gt', 'Lt' operators, exactly one value is required")
            }
        };
        errors.extend(count.map(|text| FieldError::invalid(&path, values.as_slice(), text)));
        for (i, value) in values.iter().enumerate() {
            if matches!(operator, Operator::Greater | Operator::Less) && value.parse::<i64>().is_err() {
                let text = "for 'Gt', 'Lt' operators, the value must be an integer";
                errors.push(FieldError::invalid(&path.index(i), value, text));
            }
        }
        for (i, value) in values.iter().enumerate() {
            let texts = label_value(value);
            if !texts.is_empty() {
                errors.push(FieldError::invalid(&path.index(i).key(key), value, texts.join("; ")));
            }
        }
        errors.into_result()?;
        let mut values = values;
        values.sort();
        values.dedup();
        Ok(Requirement {
            key: key.to_owned(),
            operator,
            values,
        })
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// Sorted, each once.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    fn holds(&self, value: Option<&str>) -> bool {
        let listed = |v: &str| self.values.iter().any(|x| x == v);
        match (self.operator, value) {
            (Operator::In | Operator::Equals | Operator::DoubleEquals, value) => value.is_some_and(listed),
            (Operator::NotIn | Operator::NotEquals, value) => !value.is_some_and(listed),
            (Operator::Exists, value) => value.is_some(),
            (Operator::DoesNotExist, value) => value.is_none(),
            (Operator::Greater, value) => self.compare(value).is_some_and(|(label, bound)| label > bound),
            (Operator::Less, value) => self.compare(value).is_some_and(|(label, bound)| label < bound),
        }
    }

    fn compare(&self, value: Option<&str>) -> Option<(i64, i64)> {
        Some((value?.parse().ok()?, self.values.first()?.parse().ok()?))
    }
}

fn check_key(key: &str, path: &Path) -> Option<FieldError> {
    let texts = qualified_name(key);
    (!texts.is_empty()).then(|| FieldError::invalid(path, key, texts.join("; ")))
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = self.values.join(",");
        let key = &self.key;
        match self.operator {
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::Greater => write!(f, "{key}>{values}"),
            Operator::Less => write!(f, "{key}<{values}"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
        }
    }
}

impl LabelSelector {
    /// Selects every object.
    pub fn everything() -> LabelSelector {
        LabelSelector::default()
    }

    /// Selects no object.
    pub fn nothing() -> LabelSelector {
        LabelSelector {
            requirements: Vec::new(),
            nothing: true,
        }
    }

    /// Reads the text form. Work and memory are linear in the text, which the request line bounds.
    pub fn parse(text: &str) -> Result<LabelSelector, SelectorError> {
        parse::parse(text).map(LabelSelector::from_requirements)
    }

    /// All of these requirements.
    pub fn from_requirements(mut requirements: Vec<Requirement>) -> LabelSelector {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        LabelSelector {
            requirements,
            nothing: false,
        }
    }

    /// These labels with exactly these values.
    pub fn from_labels(labels: &BTreeMap<String, String>) -> Result<LabelSelector, ErrorList> {
        let one = |(k, v): (&String, &String)| Requirement::new(k, Operator::Equals, vec![v.clone()]);
        labels
            .iter()
            .map(one)
            .collect::<Result<_, _>>()
            .map(LabelSelector::from_requirements)
    }

    /// What the message says; an absent message selects nothing, an empty one everything.
    pub fn from_message(message: Option<&v1::LabelSelector>) -> Result<LabelSelector, SelectorError> {
        let Some(message) = message else {
            return Ok(LabelSelector::nothing());
        };
        let text = |e: ErrorList| SelectorError(e.to_string());
        let mut requirements = LabelSelector::from_labels(&message.match_labels)
            .map_err(text)?
            .requirements;
        for expression in &message.match_expressions {
            let operator = match expression.operator.as_str() {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    let quoted = crate::field::text::quote(other);
                    return Err(SelectorError(format!(
                        "{quoted} is not a valid label selector operator"
                    )));
                }
            };
            requirements.push(Requirement::new(&expression.key, operator, expression.values.clone()).map_err(text)?);
        }
        Ok(LabelSelector::from_requirements(requirements))
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches_by(|key| labels.get(key).map(String::as_str))
    }

    /// As [`LabelSelector::matches`]; `label` gives the value of a label.
    pub fn matches_by<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        !self.nothing && self.requirements.iter().all(|r| r.holds(label(&r.key)))
    }

    /// Whether every object is selected.
    pub fn is_everything(&self) -> bool {
        !self.nothing && self.requirements.is_empty()
    }

    /// Sorted by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Sorted by key.
    pub fn into_requirements(self) -> Vec<Requirement> {
        self.requirements
    }
}

/// The canonical text: sorted by key, values sorted.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            requirement.fmt(f)?;
        }
        Ok(())
    }
}

/// The `LabelSelector` message of an object: operators, keys and values.
pub fn validate_label_selector(selector: &v1::LabelSelector, path: &Path) -> ErrorList {
    let mut errors = crate::validation::labels::validate_labels(&selector.match_labels, &path.child("matchLabels"));
    for (i, expression) in selector.match_expressions.iter().enumerate() {
        let path = path.child("matchExpressions").index(i);
        let values = path.child("values");
        match expression.operator.as_str() {
            "In" | "NotIn" if expression.values.is_empty() => {
                errors.push(FieldError::required(
                    &values,
                    "must be specified when `operator` is 'In' or 'NotIn'",
                ));
            }
            "Exists" | "DoesNotExist" if !expression.values.is_empty() => {
                let text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(&values, text));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                errors.push(FieldError::invalid(
                    &path.child("operator"),
                    other,
                    "not a valid selector operator",
                ));
            }
        }
        let key = path.child("key");
        errors.extend(
            qualified_name(&expression.key)
                .into_iter()
                .map(|t| FieldError::invalid(&key, &expression.key, t)),
        );
        for (v, value) in expression.values.iter().enumerate() {
            let path = values.index(v);
            errors.extend(
                label_value(value)
                    .into_iter()
                    .map(|t| FieldError::invalid(&path, value, t)),
            );
        }
    }
    errors
}

#[cfg(test)]
mod tests;
