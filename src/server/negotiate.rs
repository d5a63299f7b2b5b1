//! Content negotiation: what a client accepts, against what a resource can be written as.

use keelson_machinery::status::StatusError;

/// A serialization.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    Json,
    Yaml,
    Protobuf,
}

impl Format {
    pub const fn media_type(self) -> &'static str {
        match self {
            Format::Json => "application/json",
            Format::Yaml => "application/yaml",
            Format::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    /// The format of a request body. No content type at all is JSON; parameters and case are ignored.
    pub fn of_body(content_type: Option<&str>) -> Option<Format> {
        let Some(text) = content_type.map(str::trim).filter(|t| !t.is_empty()) else {
            return Some(Format::Json);
        };
        let essence = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        ALL.into_iter().find(|f| f.media_type() == essence)
    }
}

const ROUTER_TEXT: &str = "406: Not Acceptable\n\nAvailable representations: \
    application/json, application/yaml, application/vnd.kubernetes.protobuf";

const ALL: [Format; 3] = [Format::Json, Format::Yaml, Format::Protobuf];

/// What becomes of the object before it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Shape {
    #[default]
    Object,
    /// `as=Table`, in version v1 or v1beta1 of meta.k8s.io.
    Table(MetaVersion),
    /// `as=PartialObjectMetadata`.
    PartialMetadata(MetaVersion),
    /// `as=PartialObjectMetadataList`.
    PartialMetadataList(MetaVersion),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MetaVersion {
    V1,
    V1beta1,
}

impl MetaVersion {
    pub const fn api_version(self) -> &'static str {
        match self {
            MetaVersion::V1 => "meta.k8s.io/v1",
            MetaVersion::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// The outcome of a negotiation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accepted {
    pub format: Format,
    pub shape: Shape,
}

/// Which answers a request may get.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer {
    /// Any format, transformed if asked for.
    Objects,
    /// A stream of events: no YAML.
    Events,
    /// Any format, no transformation (Status answers, scale …).
    Plain,
}

/// Chooses by the `Accept` header; no header accepts anything. The error is a 406 Status.
pub fn negotiate(accept: Option<&str>, offer: Offer) -> Result<Accepted, StatusError> {
    let header = accept.map(str::trim).unwrap_or_default();
    if header.is_empty() {
        return Ok(Accepted {
            format: Format::Json,
            shape: Shape::Object,
        });
    }
    let named: Vec<&str> = header
        .split(',')
        .map(|c| c.split(';').next().unwrap_or_default().trim())
        .collect();
    if !named
        .iter()
        .any(|n| *n == "*/*" || ALL.iter().any(|f| f.media_type() == *n))
    {
        // The router of kube-apiserver looks first, and knows no half wildcards.
        return Err(StatusError::generic(406, ROUTER_TEXT));
    }
    let mut clauses: Vec<Clause> = header.split(',').filter_map(Clause::parse).collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    let found = clauses.iter().find_map(|clause| {
        let format = formats(offer).iter().copied().find(|f| clause.matches(*f))?;
        let shape = clause.shape(offer)?;
        Some(Accepted { format, shape })
    });
    found.ok_or_else(|| StatusError::not_acceptable(accepted_types(offer)))
}

fn formats(offer: Offer) -> &'static [Format] {
    match offer {
        Offer::Events => &[Format::Json, Format::Protobuf],
        _ => &ALL,
    }
}

/// The media types that a 406 names.
fn accepted_types(offer: Offer) -> &'static [&'static str] {
    match offer {
        Offer::Events => &[
            "application/json;stream=watch",
            "application/vnd.kubernetes.protobuf;stream=watch",
        ],
        _ => &[
            "application/json",
            "application/yaml",
            "application/vnd.kubernetes.protobuf",
        ],
    }
}

/// One element of an `Accept` header.
struct Clause<'a> {
    kind: &'a str,
    subtype: &'a str,
    quality: f64,
    params: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Clause<'a>> {
        let mut parts = text.split(';').map(str::trim);
        let essence = parts.next()?;
        let (kind, subtype) = match essence.split_once('/') {
            Some(pair) => pair,
            None if essence == "*" => ("*", "*"),
            None => return None,
        };
        let mut clause = Clause {
            kind,
            subtype,
            quality: 1.0,
            params: Vec::new(),
        };
        for (key, value) in parts.filter_map(|p| p.split_once('=')) {
            let (key, value) = (key.trim(), value.trim().trim_matches('"'));
            if key == "q" {
                clause.quality = value.parse().unwrap_or(1.0);
            } else {
                clause.params.push((key, value));
            }
        }
        Some(clause)
    }

    fn matches(&self, format: Format) -> bool {
        let (kind, subtype) = format.media_type().split_once('/').unwrap_or_default();
        (self.kind == "*" || self.kind == kind) && (self.subtype == "*" || self.subtype == subtype)
    }

    fn param(&self, name: &str) -> Option<&'a str> {
        self.params.iter().find(|(k, _)| *k == name).map(|(_, v)| *v)
    }

    /// `None`: the clause asks for a transformation that is not offered.
    fn shape(&self, offer: Offer) -> Option<Shape> {
        if let Some(stream) = self.param("stream")
            && (stream != "watch" || offer != Offer::Events)
        {
            return None;
        }
        let Some(target) = self.param("as") else {
            return Some(Shape::Object);
        };
        let version = match (self.param("g"), self.param("v")) {
            (Some("meta.k8s.io"), Some("v1")) => MetaVersion::V1,
            (Some("meta.k8s.io"), Some("v1beta1")) => MetaVersion::V1beta1,
            _ => return None,
        };
        match target {
            _ if offer == Offer::Plain => None,
            "Table" => Some(Shape::Table(version)),
            "PartialObjectMetadata" => Some(Shape::PartialMetadata(version)),
            "PartialObjectMetadataList" => Some(Shape::PartialMetadataList(version)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_acceptable_clause_wins_by_quality() {
        let cases = [
            (None, Offer::Objects, Some((Format::Json, Shape::Object))),
            (Some("*/*"), Offer::Objects, Some((Format::Json, Shape::Object))),
            (
                Some("application/yaml"),
                Offer::Objects,
                Some((Format::Yaml, Shape::Object)),
            ),
            (
                Some("application/yaml;q=0.5, application/json;q=0.1"),
                Offer::Objects,
                Some((Format::Yaml, Shape::Object)),
            ),
            (
                Some("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
                Offer::Objects,
                Some((Format::Json, Shape::Table(MetaVersion::V1))),
            ),
            (
                Some("application/json;as=Table;v=v2;g=meta.k8s.io,application/json"),
                Offer::Objects,
                Some((Format::Json, Shape::Object)),
            ),
            (
                Some("application/vnd.kubernetes.protobuf;stream=watch"),
                Offer::Events,
                Some((Format::Protobuf, Shape::Object)),
            ),
            (Some("application/yaml"), Offer::Events, None),
            (Some("text/html"), Offer::Objects, None),
            (Some("application/*"), Offer::Objects, None),
            (Some("application/json;as=Table;v=v1;g=meta.k8s.io"), Offer::Plain, None),
        ];
        for (accept, offer, want) in cases {
            let got = negotiate(accept, offer).ok().map(|a| (a.format, a.shape));
            assert_eq!(got, want, "{accept:?} {offer:?}");
        }
    }

    #[test]
    fn bodies_without_a_type_are_json() {
        assert_eq!(Format::of_body(None), Some(Format::Json));
        assert_eq!(
            Format::of_body(Some("Application/YAML; charset=utf-8")),
            Some(Format::Yaml)
        );
        assert_eq!(Format::of_body(Some("text/plain")), None);
    }
}
