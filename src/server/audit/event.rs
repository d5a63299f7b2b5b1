//! Events as text: JSON of `audit.k8s.io/v1`, fields in their order, and the one-line form of old.

use std::io::Write;
use std::net::IpAddr;

use keelson_access::user::User;
use keelson_machinery::field::text::quote;
use keelson_machinery::json::{self, lossy_text, write_string};
use keelson_machinery::meta::v1::Status;
use keelson_machinery::time::{MicroTime, Time};

use super::level::{Level, Stage};
use super::outcome::Outcome;
use super::record::{Asked, Learned};

/// What every event begins with. Those in a list leave the type out: see [`write_item`].
const HEAD: &str = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","#;
/// Why an event has no objects though its level says so.
const TRUNCATED: (&str, &str) = ("audit.k8s.io/truncated", "true");
/// Room for an event without objects.
const USUAL_BYTES: usize = 1024;

/// The name of a member as it is written, with what stands around it.
macro_rules! member {
    ($name:literal) => {
        concat!(",\"", $name, "\":")
    };
}

/// One event: a request at a stage.
#[derive(Clone, Copy)]
pub struct Event<'a> {
    pub asked: &'a Asked,
    pub learned: &'a Learned,
    pub level: Level,
    pub stage: Stage,
    pub at: Time,
    /// How it ended: the HTTP status, and what the answer says. `None` before there is an answer.
    pub outcome: Option<(u16, &'a Outcome)>,
}

/// Appends an event, given as JSON, without its type: as an item of a list of events.
pub fn write_item(event: &[u8], out: &mut Vec<u8>) {
    out.push(b'{');
    out.extend_from_slice(event.get(HEAD.len()..).unwrap_or_default());
}

impl Event<'_> {
    /// Appends the event as JSON. `whole`: with objects, as far as the level allows them.
    pub fn write_json(&self, whole: bool, out: &mut Vec<u8>) {
        let objects = [self.learned.object.as_deref(), self.answer()];
        let objects = objects.map(|object| object.filter(|_| whole));
        let room: usize = objects.iter().flatten().map(|object| object.len()).sum();
        out.reserve(USUAL_BYTES + room);
        out.extend_from_slice(HEAD.as_bytes());
        let mut members = Members::after(out);
        members.text(member!("level"), self.level.name());
        self.write_asked(&mut members);
        self.write_reference(&mut members);
        self.write_status(&mut members);
        for (key, object) in [member!("requestObject"), member!("responseObject")]
            .iter()
            .zip(objects)
        {
            if let Some(object) = object {
                members.key(key).extend_from_slice(object);
            }
        }
        members.text(member!("requestReceivedTimestamp"), self.asked.received_text());
        match self.at == self.asked.received {
            true => members.text(member!("stageTimestamp"), self.asked.received_text()),
            false => members.time(member!("stageTimestamp"), self.at),
        }
        self.write_annotations(whole, &mut members);
        members.end();
    }

    fn answer(&self) -> Option<&[u8]> {
        let (_, outcome) = self.outcome?;
        outcome.object.as_deref()
    }

    fn write_asked(&self, members: &mut Members<'_>) {
        let asked = self.asked;
        members.text(member!("auditID"), &lossy_text(asked.id.as_bytes()));
        members.text(member!("stage"), self.stage.name());
        members.text(member!("requestURI"), asked.uri());
        members.text(member!("verb"), &asked.info.verb);
        match &asked.user {
            Some(user) => write_user(user, members.key(member!("user"))),
            None => members.key(member!("user")).extend_from_slice(b"{}"),
        }
        if let Some((user, constraint)) = &self.learned.impersonated {
            write_user(user, members.key(member!("impersonatedUser")));
            if let Some(constraint) = constraint {
                let mut metadata = Members::begin(members.key(member!("authenticationMetadata")));
                metadata.text(member!("impersonationConstraint"), constraint);
                metadata.end();
            }
        }
        if !asked.addresses.is_empty() {
            write_addresses(&asked.addresses, members.key(member!("sourceIPs")));
        }
        members.some_text(member!("userAgent"), &asked.agent());
    }

    fn write_reference(&self, members: &mut Members<'_>) {
        fn or<'a>(known: &'a str, learned: &'a str) -> &'a str {
            if known.is_empty() { learned } else { known }
        }
        let (info, learned) = (&self.asked.info, self.learned);
        if !info.is_resource {
            return;
        }
        let mut reference = Members::begin(members.key(member!("objectRef")));
        reference.some_text(member!("resource"), &info.resource);
        reference.some_text(member!("namespace"), or(&info.namespace, &learned.namespace));
        reference.some_text(member!("name"), or(&info.name, &learned.name));
        reference.some_text(member!("uid"), &learned.uid);
        reference.some_text(member!("apiGroup"), &info.group);
        reference.some_text(member!("apiVersion"), &info.version);
        reference.some_text(member!("resourceVersion"), &learned.resource_version);
        reference.some_text(member!("subresource"), &info.subresource);
        reference.end();
    }

    fn write_status(&self, members: &mut Members<'_>) {
        let Some((code, outcome)) = self.outcome else {
            return;
        };
        let out = members.key(member!("responseStatus"));
        match &outcome.status {
            Some(status) => {
                let status = Status {
                    code: i32::from(code),
                    ..status.clone()
                };
                json::write(&status, out);
            }
            // Writing to memory does not fail.
            None => drop(write!(out, r#"{{"metadata":{{}},"code":{code}}}"#)),
        }
    }

    fn write_annotations(&self, whole: bool, members: &mut Members<'_>) {
        let notes = &self.learned.annotations;
        if whole && notes.is_empty() {
            return;
        }
        let mut annotations = Members::begin(members.key(member!("annotations")));
        let is_before = |note: &(&str, &str)| note.0 < TRUNCATED.0;
        let (before, after) = (notes.iter().take_while(is_before), notes.iter().skip_while(is_before));
        let truncated = Some(TRUNCATED).filter(|_| !whole);
        for (name, text) in before.chain(truncated).chain(after) {
            write_string(text, annotations.name(name));
        }
        annotations.end();
    }

    /// Appends the event as the one line of old.
    pub fn write_line(&self, out: &mut Vec<u8>) {
        let asked = self.asked;
        let or = |text: &str, other: &str| quote(if text.is_empty() { other } else { text });
        let user = asked.user.as_deref();
        let (acting, acting_groups) = match &self.learned.impersonated {
            Some((user, _)) => (quote(&user.name), groups(&user.groups, "<lookup>")),
            None => (quote("<self>"), quote("<lookup>")),
        };
        let first = asked.addresses.first().map(ToString::to_string).unwrap_or_default();
        let response = match self.outcome {
            Some((code, _)) => quote(&code.to_string()),
            None => quote("<deferred>"),
        };
        // Writing to memory does not fail.
        let _ = write!(
            out,
            "{} AUDIT: id={} stage={} ip={} method={} user={} groups={} as={acting} asgroups={acting_groups} \
             user-agent={} namespace={} uri={} response={response}",
            nanoseconds(asked.received),
            quote(&lossy_text(asked.id.as_bytes())),
            quote(self.stage.name()),
            or(&first, "<unknown>"),
            quote(&asked.info.verb),
            or(user.map_or("", |user| &user.name), "<none>"),
            groups(user.map_or(&[], |user| &user.groups), "<none>"),
            quote(&asked.agent()),
            or(&asked.info.namespace, "<none>"),
            quote(asked.uri()),
        );
    }
}

/// Groups in quotes with commas between, in quotes; `other` for none.
fn groups(groups: &[String], other: &str) -> String {
    if groups.is_empty() {
        return quote(other);
    }
    let quoted: Vec<String> = groups.iter().map(|group| quote(group)).collect();
    quote(&quoted.join(","))
}

/// RFC 3339 with as many decimals as are needed, up to nine.
fn nanoseconds(time: Time) -> String {
    let whole = time.truncate_to_seconds().to_string();
    let decimals = format!("{:09}", time.subsec_nanos());
    let decimals = decimals.trim_end_matches('0');
    match (whole.strip_suffix('Z'), decimals) {
        (Some(seconds), decimals) if !decimals.is_empty() => format!("{seconds}.{decimals}Z"),
        _ => whole,
    }
}

/// Writes the members of one object.
struct Members<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
}

impl<'o> Members<'o> {
    /// Those of a new object.
    fn begin(out: &'o mut Vec<u8>) -> Members<'o> {
        out.push(b'{');
        Members { out, first: true }
    }

    /// Those after the beginning that `out` ends with, which ends in a comma.
    fn after(out: &'o mut Vec<u8>) -> Members<'o> {
        Members { out, first: true }
    }

    /// Begins a member, which [`member!`] names: its value is to be written next.
    fn key(&mut self, key: &'static str) -> &mut Vec<u8> {
        let key = match std::mem::take(&mut self.first) {
            true => key.strip_prefix(',').unwrap_or(key),
            false => key,
        };
        self.out.extend_from_slice(key.as_bytes());
        self.out
    }

    /// Begins a member of any name.
    fn name(&mut self, name: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        write_string(name, self.out);
        self.out.push(b':');
        self.out
    }

    fn text(&mut self, key: &'static str, text: &str) {
        write_string(text, self.key(key));
    }

    /// A text, unless it is empty.
    fn some_text(&mut self, key: &'static str, text: &str) {
        if !text.is_empty() {
            self.text(key, text);
        }
    }

    /// A list of texts, unless it is empty.
    fn some_texts(&mut self, key: &'static str, texts: &[String]) {
        if !texts.is_empty() {
            write_texts(texts, self.key(key));
        }
    }

    fn time(&mut self, key: &'static str, time: Time) {
        // Writing to memory does not fail.
        let _ = write!(self.key(key), "\"{}\"", MicroTime(time));
    }

    fn end(self) {
        self.out.push(b'}');
    }
}

fn write_texts(texts: &[String], out: &mut Vec<u8>) {
    out.push(b'[');
    for (n, text) in texts.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        write_string(text, out);
    }
    out.push(b']');
}

fn write_addresses(addresses: &[IpAddr], out: &mut Vec<u8>) {
    for (n, address) in addresses.iter().enumerate() {
        let mark = if n == 0 { '[' } else { ',' };
        // Writing to memory does not fail.
        let _ = write!(out, "{mark}\"{address}\"");
    }
    out.push(b']');
}

fn write_user(user: &User, out: &mut Vec<u8>) {
    let mut members = Members::begin(out);
    members.some_text(member!("username"), &user.name);
    members.some_text(member!("uid"), &user.uid);
    members.some_texts(member!("groups"), &user.groups);
    if !user.extra.is_empty() {
        let mut extra = Members::begin(members.key(member!("extra")));
        for (key, values) in &user.extra {
            write_texts(values, extra.name(key));
        }
        extra.end();
    }
    members.end();
}
