//! Selectors: which objects, in which namespaces, are meant.

use std::collections::BTreeMap;

use keelson_machinery::meta::v1;
use keelson_machinery::selector::LabelSelector;
use keelson_machinery::selector::label::SelectorError;
use keelson_machinery::status::StatusError;
use keelson_registry::admission::Attributes;

use crate::namespaces::Namespaces;

type Selector = Result<LabelSelector, SelectorError>;

/// The labels of the object that a request is about, as it is to be and as it is: what selectors of objects look at,
/// be there many of them.
pub(crate) struct ObjectLabels<'a>([Option<&'a BTreeMap<String, String>>; 2]);

impl<'a> ObjectLabels<'a> {
    pub fn of(attributes: &'a Attributes<'_>) -> ObjectLabels<'a> {
        let both = [attributes.metadata(), attributes.old_metadata()];
        ObjectLabels(both.map(|metadata| metadata.map(|metadata| &metadata.labels)))
    }

    fn are_selected(&self, selector: &LabelSelector) -> bool {
        self.0.into_iter().flatten().any(|labels| selector.matches(labels))
    }
}

/// The selectors of one configuration.
#[derive(Clone, Debug)]
pub(crate) struct Selectors {
    /// An error where it can't be read.
    namespaces: Selector,
    objects: Selector,
}

fn read(selector: Option<&v1::LabelSelector>) -> Selector {
    LabelSelector::from_message(selector)
}

impl Selectors {
    /// An absent one selects nothing.
    pub fn new(namespaces: Option<&v1::LabelSelector>, objects: Option<&v1::LabelSelector>) -> Selectors {
        Selectors {
            namespaces: read(namespaces),
            objects: read(objects),
        }
    }

    /// Whether they select what a request is about: the object as it is or as it is to be.
    ///
    /// # Errors
    /// A selector that can't be read; a namespace that is not there.
    pub async fn select(&self, attributes: &Attributes<'_>, namespaces: &Namespaces) -> Result<bool, StatusError> {
        // First, for the object is at hand and its namespace is looked up.
        if self.pass_over(&ObjectLabels::of(attributes)) {
            return Ok(false);
        }
        self.select_namespace(attributes, namespaces).await
    }

    /// Whether they select what a request is about, if its object was not passed over.
    ///
    /// # Errors
    /// As [`Selectors::select`].
    pub async fn select_namespace(
        &self,
        attributes: &Attributes<'_>,
        namespaces: &Namespaces,
    ) -> Result<bool, StatusError> {
        if !self.selects_namespace(attributes, namespaces).await? {
            return Ok(false);
        }
        let objects = self.objects.as_ref();
        objects.map(|_| true).map_err(StatusError::internal_error)
    }

    /// Whether the object is not selected, wherever it is.
    pub fn pass_over(&self, labels: &ObjectLabels<'_>) -> bool {
        let selector = self.objects.as_ref();
        selector.is_ok_and(|selector| !selector.is_everything() && !labels.are_selected(selector))
    }

    async fn selects_namespace(
        &self,
        attributes: &Attributes<'_>,
        namespaces: &Namespaces,
    ) -> Result<bool, StatusError> {
        let of_namespaces = attributes.resource.plural == "namespaces";
        if attributes.requested_namespace().is_empty() && !of_namespaces {
            return Ok(true);
        }
        let unreadable = |error: &SelectorError| StatusError::internal_error(error);
        let selector = self.namespaces.as_ref().map_err(unreadable)?;
        if selector.is_everything() {
            return Ok(true);
        }
        let labels = namespaces.labels(attributes).await.map_err(|error| match error.code {
            404 => error,
            _ => StatusError::internal_error(error.message),
        })?;
        Ok(labels.is_none_or(|labels| selector.matches(labels.get())))
    }
}
