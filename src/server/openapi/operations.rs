//! Paths and operations, in a form that OpenAPI v2 and v3 are both written from.

use keelson_machinery::reflect::Name;

use super::parameters::{self, Parameter};

/// What HTTP calls the verb, in the order in which a path lists its operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Method {
    Get,
    Put,
    Post,
    Delete,
    Options,
    Head,
    Patch,
}

impl Method {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Method::Get => "get",
            Method::Put => "put",
            Method::Post => "post",
            Method::Delete => "delete",
            Method::Options => "options",
            Method::Head => "head",
            Method::Patch => "patch",
        }
    }
}

/// One path and what may be done with it.
#[derive(Debug)]
pub(super) struct PathItem {
    /// `/api/v1/namespaces/{namespace}/pods`.
    pub(super) path: String,
    /// Parameters of every operation of the path, by name.
    pub(super) parameters: Vec<Parameter>,
    pub(super) operations: Vec<Operation>,
}

#[derive(Debug)]
pub(super) struct Operation {
    pub(super) method: Method,
    pub(super) id: String,
    pub(super) tag: String,
    pub(super) description: String,
    /// x-kubernetes-action; empty: none.
    pub(super) action: &'static str,
    /// Group, version and kind of the object.
    pub(super) gvk: Option<[Name; 3]>,
    /// Those that the path does not have, by name.
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Option<Body>,
    pub(super) consumes: &'static [&'static str],
    pub(super) produces: &'static [&'static str],
    /// By status.
    pub(super) responses: Vec<(u16, Answer)>,
}

/// What a response carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    Empty,
    Text,
    /// Name of the definition of the object.
    Object(String),
}

/// What a request carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Body {
    /// Name of the definition of the object.
    Object(String),
    DeleteOptions,
    Patch,
}

pub(super) const JSON: &[&str] = &["application/json"];
pub(super) const JWK_SET: &[&str] = &["application/jwk-set+json"];
pub(super) const OBJECT_TYPES: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];
pub(super) const WATCH_TYPES: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];
pub(super) const PATCH_TYPES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];
const OTHER_PATCH_TYPES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
];
const CUSTOM_TYPES: &[&str] = &["application/json", "application/yaml"];
pub(super) const ANY_TYPE: &[&str] = &["*/*"];
pub(super) const TEXT_TYPES: &[&str] = &[
    "text/plain",
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];

impl PathItem {
    /// `None` for a path without operations. What all operations share moves to the path.
    pub(super) fn new(path: String, own: &[Parameter], mut operations: Vec<Operation>) -> Option<PathItem> {
        let first = operations.first()?;
        let mut shared: Vec<Parameter> = first
            .parameters
            .iter()
            .filter(|p| operations.iter().all(|o| o.parameters.contains(p)))
            .cloned()
            .collect();
        for operation in &mut operations {
            operation.parameters.retain(|p| !shared.contains(p));
        }
        shared.extend_from_slice(own);
        shared.sort_by(|a, b| (&a.name, a.location).cmp(&(&b.name, b.location)));
        Some(PathItem {
            path,
            parameters: shared,
            operations,
        })
    }

    /// Names of the definitions that the path's bodies use.
    pub(super) fn definitions(&self) -> impl Iterator<Item = String> {
        self.operations.iter().flat_map(|operation| {
            let body = operation.body.as_ref().map(Body::definition);
            let answers = operation.responses.iter().filter_map(|(_, answer)| match answer {
                Answer::Object(name) => Some(name.clone()),
                Answer::Empty | Answer::Text => None,
            });
            body.into_iter().chain(answers).collect::<Vec<_>>()
        })
    }
}

impl Body {
    pub(super) fn definition(&self) -> String {
        match self {
            Body::Object(name) => name.clone(),
            Body::DeleteOptions => format!("{}DeleteOptions", super::definitions::META),
            Body::Patch => format!("{}Patch", super::definitions::META),
        }
    }

    /// Key in the table of shared parameters of v2; empty: written in place.
    pub(super) fn shared(&self) -> &'static str {
        match self {
            Body::Object(_) => "",
            Body::DeleteOptions => "body-2Y1dVQaQ",
            Body::Patch => "body-78PwaGsr",
        }
    }

    pub(super) fn required(&self) -> bool {
        *self != Body::DeleteOptions
    }
}

/// A read of a fixed document, such as /version/.
pub(super) struct FixedDocument<'a> {
    pub(super) id: String,
    pub(super) tag: String,
    pub(super) description: &'a str,
    pub(super) consumes: &'static [&'static str],
    pub(super) produces: &'static [&'static str],
    pub(super) answer: Answer,
}

impl FixedDocument<'_> {
    /// The path item of `path`.
    pub(super) fn at(self, path: String) -> Option<PathItem> {
        let operation = Operation {
            method: Method::Get,
            id: self.id,
            tag: self.tag,
            description: self.description.to_owned(),
            action: "",
            gvk: None,
            parameters: Vec::new(),
            body: None,
            consumes: self.consumes,
            produces: self.produces,
            responses: vec![(200, self.answer), (401, Answer::Empty)],
        };
        PathItem::new(path, &[], vec![operation])
    }
}

/// What the operations of one resource have in common.
pub(super) struct Template<'a> {
    pub(super) tag: &'a str,
    /// Group and version as in operation ids: `CoreV1`.
    pub(super) prefix: &'a str,
    /// What follows the verb in operation ids: `NamespacedPod`, `DeploymentScale`.
    pub(super) noun: String,
    /// What descriptions call the object.
    pub(super) title: String,
    pub(super) gvk: [Name; 3],
    /// Name of the definition of the object.
    pub(super) object: String,
    /// Name of the definition of its list.
    pub(super) list: String,
    /// DELETE answers with the object.
    pub(super) returns_deleted: bool,
    /// It is made at run time, and described as the API extensions server does.
    pub(super) is_custom: bool,
    /// Strategic merge patches are offered.
    pub(super) merges: bool,
}

impl Template<'_> {
    fn operation(&self, method: Method, verb: &str, noun: &str, action: &'static str, say: &str) -> Operation {
        Operation {
            method,
            id: format!("{verb}{}{noun}", self.prefix),
            tag: self.tag.to_owned(),
            description: format!("{say} {}.", self.title),
            action,
            gvk: Some(self.gvk.clone()),
            parameters: Vec::new(),
            body: None,
            consumes: if self.is_custom { CUSTOM_TYPES } else { ANY_TYPE },
            produces: if self.is_custom { CUSTOM_TYPES } else { OBJECT_TYPES },
            responses: Vec::new(),
        }
    }

    pub(super) fn get(&self) -> Operation {
        let base = self.operation(Method::Get, "read", &self.noun, "get", "Read a");
        Operation {
            parameters: self
                .is_custom
                .then_some(parameters::RESOURCE_VERSION)
                .into_iter()
                .collect(),
            responses: answers(&[200], &self.object),
            ..base
        }
    }

    /// A read that answers with text; `parameters` are those of the query.
    pub(super) fn text(&self, parameters: Vec<Parameter>) -> Operation {
        Operation {
            parameters,
            produces: TEXT_TYPES,
            responses: vec![(200, Answer::Text), (401, Answer::Empty)],
            ..self.get()
        }
    }

    /// A request that passes through. `suffix`: `WithPath` where a path goes along.
    pub(super) fn connect(&self, method: Method, suffix: &str, parameters: Vec<Parameter>) -> Operation {
        let mut name = method.as_str().to_owned();
        if let Some(first) = name.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        let noun = format!("{name}{}{suffix}", self.noun);
        let base = self.operation(method, "connect", &noun, "connect", "Connect to");
        Operation {
            parameters,
            produces: ANY_TYPE,
            responses: vec![(200, Answer::Text), (401, Answer::Empty)],
            ..base
        }
    }

    /// `suffix`: `ForAllNamespaces` where the path names no namespace.
    pub(super) fn list(&self, noun: &str, suffix: &str) -> Operation {
        let noun = format!("{noun}{suffix}");
        let base = self.operation(Method::Get, "list", &noun, "list", "List or watch objects of kind");
        Operation {
            parameters: parameters::LIST.to_vec(),
            produces: if self.is_custom { CUSTOM_TYPES } else { WATCH_TYPES },
            responses: answers(&[200], &self.list),
            ..base
        }
    }

    pub(super) fn watch(&self, noun: &str, action: &'static str) -> Operation {
        let base = self.operation(
            Method::Get,
            "watch",
            noun,
            action,
            "Deprecated: use watch=true. Watch objects of kind",
        );
        Operation {
            parameters: parameters::LIST.to_vec(),
            produces: WATCH_TYPES,
            responses: answers(&[200], &format!("{}WatchEvent", super::definitions::META)),
            ..base
        }
    }

    pub(super) fn create(&self) -> Operation {
        let base = self.operation(Method::Post, "create", &self.noun, "post", "Create a");
        Operation {
            parameters: parameters::WRITE.to_vec(),
            body: Some(Body::Object(self.object.clone())),
            responses: answers(&[200, 201, 202], &self.object),
            ..base
        }
    }

    pub(super) fn replace(&self) -> Operation {
        let base = self.operation(Method::Put, "replace", &self.noun, "put", "Replace a");
        Operation {
            parameters: parameters::WRITE.to_vec(),
            body: Some(Body::Object(self.object.clone())),
            responses: answers(&[200, 201], &self.object),
            ..base
        }
    }

    pub(super) fn patch(&self) -> Operation {
        let base = self.operation(Method::Patch, "patch", &self.noun, "patch", "Change parts of a");
        Operation {
            parameters: parameters::PATCH.to_vec(),
            body: Some(Body::Patch),
            consumes: match self.merges {
                true => PATCH_TYPES,
                false => OTHER_PATCH_TYPES,
            },
            responses: answers(if self.is_custom { &[200] } else { &[200, 201] }, &self.object),
            ..base
        }
    }

    pub(super) fn delete(&self) -> Operation {
        let base = self.operation(Method::Delete, "delete", &self.noun, "delete", "Delete a");
        let status = format!("{}Status", super::definitions::META);
        Operation {
            parameters: parameters::DELETE.to_vec(),
            body: Some(Body::DeleteOptions),
            responses: answers(&[200, 202], if self.returns_deleted { &self.object } else { &status }),
            ..base
        }
    }

    pub(super) fn delete_collection(&self) -> Operation {
        let noun = format!("Collection{}", self.noun);
        let base = self.operation(
            Method::Delete,
            "delete",
            &noun,
            "deletecollection",
            "Delete a collection of",
        );
        let (parameters, body) = match self.is_custom {
            true => (parameters::LIST, None),
            false => (parameters::DELETE_COLLECTION, Some(Body::DeleteOptions)),
        };
        Operation {
            parameters: parameters.to_vec(),
            body,
            responses: answers(&[200], &format!("{}Status", super::definitions::META)),
            ..base
        }
    }
}

/// `codes` with one body, and the 401 that every operation may answer.
fn answers(codes: &[u16], definition: &str) -> Vec<(u16, Answer)> {
    codes
        .iter()
        .map(|code| (*code, Answer::Object(definition.to_owned())))
        .chain([(401, Answer::Empty)])
        .collect()
}
