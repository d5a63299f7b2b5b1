//! Content negotiation: what a client accepts, against what a resource can be written as.

pub mod accept;
pub mod media_type;
pub mod route;

use accept::Clause;
use actix_web::http::header::{self, HeaderMap};
use keelson_machinery::object::MetaVersion;
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

    /// The format of a request body; no content type at all is JSON. Case and well-formed parameters don't matter.
    pub fn of_body(content_type: Option<&str>) -> Option<Format> {
        let Some(text) = content_type.filter(|t| !t.is_empty()) else {
            return Some(Format::Json);
        };
        let essence = media_type::essence(text)?;
        ALL.into_iter().find(|f| f.media_type() == essence)
    }
}

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

/// The outcome of a negotiation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accepted {
    pub format: Format,
    pub shape: Shape,
    /// `;pretty=1`: indented JSON, whatever the query says.
    pub pretty: bool,
}

/// Which answers a request may get.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer {
    /// Any format, transformed if asked for.
    Objects,
    /// Any format, or the metadata alone: the resource has no columns.
    Metadata,
    /// A stream of events: no YAML.
    Events,
    /// Any format, no transformation (Status answers, discovery …).
    Plain,
}

/// What objects are written as that are asked for whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whole {
    /// Any format.
    AnyFormat,
    /// Protobuf does not know their fields.
    Text,
}

impl Offer {
    /// What reads and writes of an object through a subresource may get; of the object itself if the name is empty.
    /// Only the main resource and its status have columns: other subresources show the whole object, but as it is.
    pub fn of_subresource(name: &str) -> Offer {
        match name {
            "" | "status" => Offer::Objects,
            _ => Offer::Metadata,
        }
    }
}

const STREAMS: [&str; 2] = [
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];

/// Chooses by the `Accept` header; no header accepts anything. The error is a 406 Status.
pub fn negotiate(accept: Option<&str>, offer: Offer) -> Result<Accepted, StatusError> {
    negotiate_whole(accept, offer, Whole::AnyFormat)
}

/// As [`negotiate`], of a resource whose objects may be written as `whole`.
pub fn negotiate_whole(accept: Option<&str>, offer: Offer, whole: Whole) -> Result<Accepted, StatusError> {
    let is_written = |accepted: &Accepted| {
        let is_whole = accepted.shape == Shape::Object && offer != Offer::Plain;
        !(is_whole && whole == Whole::Text && accepted.format == Format::Protobuf)
    };
    let clauses = accept::clauses(accept.unwrap_or_default());
    let found = clauses.iter().find_map(|clause| {
        let taken = ALL.into_iter().filter(|f| clause.takes(f.media_type()));
        taken
            .filter_map(|format| accepted(clause, format, offer))
            .find(is_written)
    });
    let found = found.ok_or_else(|| StatusError::not_acceptable(&ALL.map(Format::media_type)))?;
    // The choice is made first, and only then looked at as a stream: another clause gets no chance.
    if offer == Offer::Events && found.format == Format::Yaml {
        return Err(StatusError::not_acceptable(&STREAMS));
    }
    Ok(found)
}

/// `None`: the clause asks for what is not to be had in this format.
fn accepted(clause: &Clause<'_>, format: Format, offer: Offer) -> Option<Accepted> {
    let streams = format != Format::Yaml;
    if !matches!((clause.param("stream"), streams), ("", _) | ("watch", true)) {
        return None;
    }
    Some(Accepted {
        format,
        shape: shape(clause, format, offer)?,
        pretty: clause.param("pretty") == "1",
    })
}

fn shape(clause: &Clause<'_>, format: Format, offer: Offer) -> Option<Shape> {
    let version = match (clause.param("as"), clause.param("g"), clause.param("v")) {
        ("", "", "") => return Some(Shape::Object),
        (_, "meta.k8s.io", "v1") => MetaVersion::V1,
        (_, "meta.k8s.io", "v1beta1") => MetaVersion::V1beta1,
        _ => return None,
    };
    match clause.param("as") {
        _ if offer == Offer::Plain => None,
        "Table" if offer == Offer::Metadata || format == Format::Protobuf => None,
        "Table" => Some(Shape::Table(version)),
        "PartialObjectMetadata" => Some(Shape::PartialMetadata(version)),
        "PartialObjectMetadataList" => Some(Shape::PartialMetadataList(version)),
        _ => None,
    }
}

/// A header's value as text; the first of several.
pub fn header_text<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|v| v.to_str().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "as=Table;v=v1;g=meta.k8s.io";

    #[test]
    fn the_first_acceptable_clause_wins() {
        let plain = |format| Some((format, Shape::Object));
        let table = |format| Some((format, Shape::Table(MetaVersion::V1)));
        let json = "application/json";
        let protobuf = "application/vnd.kubernetes.protobuf";
        for (accept, offer, want) in [
            (String::new(), Offer::Objects, plain(Format::Json)),
            ("*/*".into(), Offer::Objects, plain(Format::Json)),
            ("application/*".into(), Offer::Plain, plain(Format::Json)),
            (
                "application/yaml;q=0.5, application/json;q=0.1".into(),
                Offer::Objects,
                plain(Format::Yaml),
            ),
            (format!("{json};{TABLE},{json}"), Offer::Objects, table(Format::Json)),
            (format!("{json};{TABLE},{json}"), Offer::Metadata, plain(Format::Json)),
            (format!("{json};{TABLE}"), Offer::Plain, None),
            (format!("{protobuf};{TABLE}"), Offer::Objects, None),
            (format!("*/*;{TABLE}"), Offer::Objects, table(Format::Json)),
            (format!("application/yaml;{TABLE}"), Offer::Objects, table(Format::Yaml)),
            (
                format!("{json};as=Table;v=v2;g=meta.k8s.io,{json}"),
                Offer::Objects,
                plain(Format::Json),
            ),
            (format!("{json};g=meta.k8s.io;v=v1"), Offer::Objects, None),
            (format!("{json};as=Table"), Offer::Objects, None),
            (format!("{json};stream=watch"), Offer::Objects, plain(Format::Json)),
            ("application/yaml;stream=watch".into(), Offer::Objects, None),
            (format!("{json};stream=other"), Offer::Events, None),
            (
                format!("{protobuf};stream=watch"),
                Offer::Events,
                plain(Format::Protobuf),
            ),
            (format!("application/yaml,{json};q=0.1"), Offer::Events, None),
            ("text/html".into(), Offer::Objects, None),
        ] {
            let got = negotiate(Some(&accept), offer).ok().map(|a| (a.format, a.shape));
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
