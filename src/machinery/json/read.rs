//! JSON text to messages, in one pass led by the field tables.
//!
//! The rules are those of the decoder that kube-apiserver uses: keys match in their case, `null` leaves plain scalars
//! and messages alone and empties everything else, of a repeated key the last one wins. Unknown and repeated keys are
//! collected. A value of a wrong type is an error, but one in the syntax further on goes before it.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::scan::{AFTER_ELEMENT, AFTER_PAIR, Failure, Scanner, Text};
use super::{base64, text, validate};
use crate::decode::{DecodeError, StrictKind, StrictProblem, TypeMeta};
use crate::leaf::GO_VALUE;
use crate::reflect::{FieldDesc, Flags, Leaf, LeafKind, List, Map, MessageDesc, Reflect, Slot, Type};

/// The most strict problems that are kept of one document.
const MAX_PROBLEMS: usize = 100;
/// How deep messages may nest. Only those that contain themselves get deeper than twenty.
const MAX_MESSAGE_DEPTH: u32 = 200;
/// The deepest nesting of inlined messages.
const MAX_INLINE: usize = 4;

/// What `apiVersion` and `kind` are read into in Go; it shows in one error text.
const TYPE_META_STRUCT: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// Reads a JSON object into `message`, over what it holds. `apiVersion` and `kind` of the top level are passed over.
/// `null` reads like `{}`.
///
/// Returns what a strict decoder objects to, in the order of the document.
pub fn read(json: &[u8], message: &mut dyn Reflect) -> Result<Vec<StrictProblem>, DecodeError> {
    let mut reader = Reader::new(json);
    let desc = message.desc();
    let outcome = reader.run(desc, message);
    reader.finish(json, outcome)
}

/// Reads one JSON value into a field of any type.
pub(crate) fn read_value(json: &[u8], slot: Slot<'_>) -> Result<Vec<StrictProblem>, DecodeError> {
    let mut reader = Reader::new(json);
    let outcome = reader.value(slot).and_then(|()| reader.scan.end());
    reader.finish(json, outcome)
}

/// `apiVersion` and `kind` of a document. Looks no further than it must: errors in the syntax behind the two are left
/// to [`read`].
pub fn type_meta(json: &[u8]) -> Result<TypeMeta, DecodeError> {
    scan_type_meta(json).map_err(|e| *e)
}

fn scan_type_meta(json: &[u8]) -> Result<TypeMeta, Failure> {
    let mut meta = TypeMeta::default();
    let mut scan = Scanner::new(json);
    if scan.peek() != Some(b'{') {
        let value = scan.skip_value()?;
        scan.end()?;
        let name = text::kind_name(value);
        return match name {
            "null" => Ok(meta),
            _ => Err(Box::new(DecodeError::Value(format!(
                "json: cannot unmarshal {name}{GO_VALUE}{TYPE_META_STRUCT}"
            )))),
        };
    }
    let (mut version_seen, mut kind_seen) = (false, false);
    let mut wrong = None;
    scan.pos += 1;
    if scan.peek() == Some(b'}') {
        return Ok(meta);
    }
    loop {
        let key = scan.key()?;
        let place = match key.inner {
            b"apiVersion" => Some((&mut version_seen, &mut meta.api_version, "apiVersion")),
            b"kind" => Some((&mut kind_seen, &mut meta.kind, "kind")),
            _ => None,
        };
        match (place, scan.peek()) {
            (Some((seen, place, _)), Some(b'"')) => {
                *place = scan.string()?.decode().into_owned();
                *seen = true;
            }
            (Some((_, _, name)), _) => {
                let found = text::kind_name(scan.skip_value()?);
                let error = format!("json: cannot unmarshal {found} into Go struct field .{name} of type string");
                wrong = wrong.or((found != "null").then_some(error));
            }
            (None, _) => drop(scan.skip_value()?),
        }
        match scan.peek() {
            Some(b',') if version_seen && kind_seen => break,
            Some(b',') => scan.pos += 1,
            Some(b'}') => break,
            _ => return Err(scan.fail(AFTER_PAIR)),
        }
    }
    wrong.map_or(Ok(meta), |text| Err(Box::new(DecodeError::Value(text))))
}

/// A step from the top to the value at hand.
enum Segment<'a> {
    /// A field, and the message that has it.
    Field(&'static str, &'static MessageDesc),
    /// A message whose fields stand in its parent's object, and that parent.
    Inline(&'static MessageDesc, &'static MessageDesc),
    Key(Text<'a>),
    Index(usize),
}

struct Reader<'a> {
    scan: Scanner<'a>,
    depth: u32,
    path: Vec<Segment<'a>>,
    problems: Vec<StrictProblem>,
    /// The first value of a wrong type.
    wrong_value: Option<String>,
}

/// Where a key belongs: the index of a field, behind those of the inlined messages that lead to it.
#[derive(Clone, Copy, Default)]
struct Route {
    steps: [u16; MAX_INLINE],
    len: usize,
}

/// Which fields of one object have been read.
#[derive(Default)]
struct Seen {
    direct: [u64; 2],
    other: Vec<[u16; MAX_INLINE]>,
}

impl Seen {
    /// Returns whether it was there already.
    fn insert(&mut self, route: &Route) -> bool {
        let index = usize::from(route.steps[0]);
        if let (1, Some(word)) = (route.len, self.direct.get_mut(index / 64)) {
            let bit = 1 << (index % 64);
            let before = *word & bit != 0;
            *word |= bit;
            return before;
        }
        let mut steps = route.steps;
        steps[route.len..].fill(u16::MAX);
        let before = self.other.contains(&steps);
        if !before {
            self.other.push(steps);
        }
        before
    }
}

type Outcome = Result<(), Failure>;

impl<'a> Reader<'a> {
    fn new(json: &'a [u8]) -> Self {
        Reader {
            scan: Scanner::new(json),
            depth: 0,
            path: Vec::with_capacity(16),
            problems: Vec::new(),
            wrong_value: None,
        }
    }

    fn finish(self, json: &[u8], outcome: Outcome) -> Result<Vec<StrictProblem>, DecodeError> {
        match outcome.map_err(|e| *e) {
            Ok(()) => self
                .wrong_value
                .map_or(Ok(self.problems), |text| Err(DecodeError::Value(text))),
            Err(error @ DecodeError::Syntax { .. }) => Err(error),
            // The rest has not been looked at yet.
            Err(error) => Err(validate(json).err().unwrap_or(error)),
        }
    }

    fn run(&mut self, desc: &'static MessageDesc, message: &mut dyn Reflect) -> Outcome {
        match self.scan.peek() {
            Some(b'{') => self.object(desc, message)?,
            Some(b'n') => self.scan.literal("null")?,
            _ => self.mismatch(&go_name(desc.name))?,
        }
        self.scan.end()
    }

    /// An object whose brace is at hand.
    fn object(&mut self, desc: &'static MessageDesc, message: &mut dyn Reflect) -> Outcome {
        if self.depth == MAX_MESSAGE_DEPTH {
            return Err(self.scan.too_deep());
        }
        self.depth += 1;
        self.scan.pos += 1;
        if self.scan.peek() == Some(b'}') {
            self.scan.pos += 1;
        } else {
            self.members(desc, message)?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn members(&mut self, desc: &'static MessageDesc, message: &mut dyn Reflect) -> Outcome {
        let (mut seen, mut type_meta) = (Seen::default(), [false; 2]);
        let mut next = 0;
        loop {
            let key = self.scan.key()?;
            let decoded;
            let name = if key.plain {
                key.inner
            } else {
                decoded = key.decode();
                decoded.as_bytes()
            };
            let mut route = Route::default();
            if find(desc, name, next, &mut route) {
                if seen.insert(&route) {
                    self.problem(StrictKind::DuplicateField, key);
                }
                next = usize::from(route.steps[0]) + 1;
                self.member(message, &route.steps[..route.len])?;
            } else {
                self.unknown(key, name, &mut type_meta)?;
            }
            match self.scan.peek() {
                Some(b',') => self.scan.pos += 1,
                Some(b'}') => {
                    self.scan.pos += 1;
                    return Ok(());
                }
                _ => return Err(self.scan.fail(AFTER_PAIR)),
            }
        }
    }

    fn unknown(&mut self, key: Text<'a>, name: &[u8], type_meta: &mut [bool; 2]) -> Outcome {
        let place = match name {
            b"apiVersion" if self.depth == 1 => Some(0),
            b"kind" if self.depth == 1 => Some(1),
            _ => None,
        };
        match place.and_then(|i| type_meta.get_mut(i)) {
            Some(seen) if !*seen => *seen = true,
            Some(_) => self.problem(StrictKind::DuplicateField, key),
            None => self.problem(StrictKind::UnknownField, key),
        }
        self.scan.skip_value().map(drop)
    }

    /// The value of the field that `steps` lead to.
    fn member(&mut self, message: &mut dyn Reflect, steps: &[u16]) -> Outcome {
        let [first, rest @ ..] = steps else { return Ok(()) };
        let (index, desc) = (usize::from(*first), message.desc());
        let (Some(field), Some(slot)) = (desc.fields.get(index), message.get_mut(index)) else {
            return self.scan.skip_value().map(drop);
        };
        if rest.is_empty() {
            self.path.push(Segment::Field(field.json, desc));
            self.value(slot)?;
        } else {
            let slot = match slot {
                Slot::Optional(o) => o.fill(),
                other => other,
            };
            let Slot::Message(inlined) = slot else {
                return self.scan.skip_value().map(drop);
            };
            self.path.push(Segment::Inline(inlined.desc(), desc));
            self.member(inlined, rest)?;
        }
        self.path.pop();
        Ok(())
    }

    fn value(&mut self, slot: Slot<'_>) -> Outcome {
        match slot {
            Slot::Optional(o) => {
                if self.scan.peek() == Some(b'n') {
                    self.scan.literal("null")?;
                    o.clear();
                    Ok(())
                } else {
                    self.value(o.fill())
                }
            }
            Slot::Str(s) => self.string(s),
            Slot::Message(m) => match self.scan.peek() {
                Some(b'{') => self.object(m.desc(), m),
                _ => self.null_or_mismatch(|| go_name(m.desc().name)),
            },
            Slot::Leaf(l) => self.leaf(l),
            Slot::List(l) => self.list(l),
            Slot::Map(m) => self.map(m),
            Slot::Bool(b) => self.boolean(b),
            Slot::Int32(n) => self.number("int32", n),
            Slot::Int64(n) => self.number("int64", n),
            Slot::Double(n) => self.double(n),
            Slot::Bytes(b) => self.bytes(b),
        }
    }

    fn string(&mut self, place: &mut String) -> Outcome {
        if self.scan.peek() != Some(b'"') {
            return self.null_or_mismatch(|| "string".to_owned());
        }
        let text = self.scan.string()?;
        *place = text.decode().into_owned();
        Ok(())
    }

    fn boolean(&mut self, place: &mut bool) -> Outcome {
        match self.scan.peek() {
            Some(b't') => {
                self.scan.literal("true")?;
                *place = true;
            }
            Some(b'f') => {
                self.scan.literal("false")?;
                *place = false;
            }
            _ => return self.null_or_mismatch(|| "bool".to_owned()),
        }
        Ok(())
    }

    /// A whole number; `1.0` and `1e1` are none.
    fn number<N: std::str::FromStr>(&mut self, go_type: &'static str, place: &mut N) -> Outcome {
        let Some(b'-' | b'0'..=b'9') = self.scan.peek() else {
            return self.null_or_mismatch(|| go_type.to_owned());
        };
        let number = self.scan.number()?;
        let digits = String::from_utf8_lossy(number);
        match digits.parse() {
            Ok(n) => *place = n,
            Err(_) => self.wrong(&format!("number {digits}"), go_type),
        }
        Ok(())
    }

    fn double(&mut self, place: &mut f64) -> Outcome {
        let Some(b'-' | b'0'..=b'9') = self.scan.peek() else {
            return self.null_or_mismatch(|| "float64".to_owned());
        };
        let number = self.scan.number()?;
        let digits = String::from_utf8_lossy(number);
        match digits.parse::<f64>() {
            Ok(n) if n.is_finite() => *place = n,
            _ => self.wrong(&format!("number {digits}"), "float64"),
        }
        Ok(())
    }

    fn leaf(&mut self, leaf: &mut dyn Leaf) -> Outcome {
        let json = self.scan.skip_value()?;
        let Err(reason) = leaf.read_json(json) else {
            return Ok(());
        };
        Err(Box::new(DecodeError::Value(match reason.split_once(GO_VALUE) {
            Some((what, go_type)) => self.in_context(what, go_type),
            None => reason,
        })))
    }

    /// Base64 text, or a list of numbers.
    fn bytes(&mut self, place: &mut Bytes) -> Outcome {
        match self.scan.peek() {
            Some(b'"') => {
                let text = self.scan.string()?.decode();
                match base64::decode(text.as_bytes()) {
                    Ok(bytes) => *place = bytes.into(),
                    Err(at) => self.wrong_text(|| format!("illegal base64 data at input byte {at}")),
                }
            }
            Some(b'[') => {
                let mut numbers: Vec<i32> = Vec::new();
                self.list(&mut numbers)?;
                *place = numbers.into_iter().map(|n| n as u8).collect();
            }
            Some(b'n') => {
                self.scan.literal("null")?;
                *place = Bytes::new();
            }
            _ => return self.mismatch("[]uint8"),
        }
        Ok(())
    }

    fn list(&mut self, list: &mut dyn List) -> Outcome {
        match self.scan.peek() {
            Some(b'[') => self.scan.pos += 1,
            Some(b'n') => {
                self.scan.literal("null")?;
                list.clear();
                return Ok(());
            }
            _ => return self.mismatch(&format!("[]{}", go_type(list.element_type()))),
        }
        let mut len = 0;
        if self.scan.peek() == Some(b']') {
            self.scan.pos += 1;
        } else {
            len = self.elements(list)?;
        }
        // Of a list that was there before, Go overwrites the elements in place and cuts off the rest.
        while list.len() > len {
            list.remove(list.len() - 1);
        }
        Ok(())
    }

    fn elements(&mut self, list: &mut dyn List) -> Result<usize, Failure> {
        let before = list.len();
        let mut index = 0;
        loop {
            self.path.push(Segment::Index(index));
            match if index < before {
                list.get_mut(index)
            } else {
                Some(list.push())
            } {
                Some(slot) => self.value(slot)?,
                None => drop(self.scan.skip_value()?),
            }
            self.path.pop();
            index += 1;
            match self.scan.peek() {
                Some(b',') => self.scan.pos += 1,
                Some(b']') => {
                    self.scan.pos += 1;
                    return Ok(index);
                }
                _ => return Err(self.scan.fail(AFTER_ELEMENT)),
            }
        }
    }

    fn map(&mut self, map: &mut dyn Map) -> Outcome {
        match self.scan.peek() {
            Some(b'{') => self.scan.pos += 1,
            Some(b'n') => {
                self.scan.literal("null")?;
                map.clear();
                return Ok(());
            }
            _ => return self.mismatch(&format!("map[string]{}", go_type(map.element_type()))),
        }
        if self.scan.peek() == Some(b'}') {
            self.scan.pos += 1;
            return Ok(());
        }
        // A repeated field adds to the map, and its keys are no duplicates of those that were there.
        let mut seen = (!map.is_empty()).then(BTreeSet::new);
        loop {
            let key = self.scan.key()?;
            let name = key.decode();
            if map.get(&name).is_some() {
                let repeated = seen
                    .as_ref()
                    .is_none_or(|seen: &BTreeSet<String>| seen.contains(name.as_ref()));
                if repeated {
                    self.problem(StrictKind::DuplicateField, key);
                }
                map.remove(&name);
            }
            if let Some(seen) = &mut seen {
                seen.insert(name.clone().into_owned());
            }
            self.path.push(Segment::Key(key));
            self.value(map.entry(&name))?;
            self.path.pop();
            match self.scan.peek() {
                Some(b',') => self.scan.pos += 1,
                Some(b'}') => {
                    self.scan.pos += 1;
                    return Ok(());
                }
                _ => return Err(self.scan.fail(AFTER_PAIR)),
            }
        }
    }

    /// `null` where a plain value stands changes nothing; anything else is of a wrong type.
    #[cold]
    fn null_or_mismatch(&mut self, go_type: impl Fn() -> String) -> Outcome {
        if self.scan.peek() == Some(b'n') {
            self.scan.literal("null")
        } else {
            self.mismatch(&go_type())
        }
    }

    /// Passes over a value of a wrong type.
    #[cold]
    fn mismatch(&mut self, go_type: &str) -> Outcome {
        let found = text::kind_name(self.scan.skip_value()?);
        self.wrong(found, go_type);
        Ok(())
    }

    #[cold]
    fn wrong(&mut self, found: &str, go_type: &str) {
        let text = self.in_context(&format!("json: cannot unmarshal {found}"), go_type);
        self.wrong_text(|| text);
    }

    fn wrong_text(&mut self, text: impl FnOnce() -> String) {
        self.wrong_value.get_or_insert_with(text);
    }

    /// The text of a type error with the field at hand.
    fn in_context(&self, what: &str, go_type: &str) -> String {
        let mut fields: Vec<&str> = Vec::new();
        // Go names the struct whose object the field stands in: for inlined messages the outermost.
        let mut object: Option<&MessageDesc> = None;
        let mut inlined = false;
        for segment in &self.path {
            let (name, owner) = match segment {
                Segment::Field(name, owner) => (*name, *owner),
                Segment::Inline(message, owner) => (short_name(message.name), *owner),
                Segment::Key(_) | Segment::Index(_) => continue,
            };
            fields.push(name);
            object = if inlined { object } else { Some(owner) };
            inlined = matches!(segment, Segment::Inline(..));
        }
        match object {
            Some(desc) => {
                format!(
                    "{what} into Go struct field {}.{} of type {go_type}",
                    short_name(desc.name),
                    fields.join(".")
                )
            }
            None => format!("{what}{GO_VALUE}{go_type}"),
        }
    }

    #[cold]
    fn problem(&mut self, kind: StrictKind, key: Text<'_>) {
        let mut path = String::new();
        for segment in &self.path {
            match segment {
                Segment::Field(name, _) => push_key(&mut path, name),
                Segment::Key(key) => push_key(&mut path, &key.decode()),
                Segment::Index(index) => path.push_str(&format!("[{index}]")),
                Segment::Inline(..) => {}
            }
        }
        push_key(&mut path, &key.decode());
        let problem = StrictProblem { kind, path };
        if self.problems.len() < MAX_PROBLEMS && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

fn push_key(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}

/// Finds a key among the fields and those of inlined messages; `next` is where it probably is.
fn find(desc: &'static MessageDesc, key: &[u8], next: usize, route: &mut Route) -> bool {
    let matches = |f: &FieldDesc| f.json.as_bytes() == key && !f.flags.has(Flags::INLINE);
    let direct = match desc.fields.get(next) {
        Some(field) if matches(field) => Some(next),
        _ => desc.fields.iter().position(matches),
    };
    let Some(step) = route.steps.get_mut(route.len) else {
        return false;
    };
    route.len += 1;
    if let Some(index) = direct {
        *step = index as u16;
        return true;
    }
    let len = route.len;
    for (index, field) in desc.fields.iter().enumerate() {
        if let (true, Type::Message(inlined)) = (field.flags.has(Flags::INLINE), field.ty) {
            route.steps[len - 1] = index as u16;
            if find(inlined(), key, 0, route) {
                return true;
            }
        }
    }
    route.len = len - 1;
    false
}

/// `PodSpec` of `io.k8s.api.core.v1.PodSpec`.
fn short_name(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// `v1.PodSpec` of `io.k8s.api.core.v1.PodSpec`.
fn go_name(name: &str) -> String {
    let mut parts = name.rsplit('.');
    match (parts.next(), parts.next()) {
        (Some(last), Some(package)) => format!("{package}.{last}"),
        _ => name.to_owned(),
    }
}

fn go_type(ty: Type) -> String {
    match ty {
        Type::Bool => "bool".to_owned(),
        Type::Int32 => "int32".to_owned(),
        Type::Int64 => "int64".to_owned(),
        Type::Double => "float64".to_owned(),
        Type::String => "string".to_owned(),
        Type::Bytes => "[]uint8".to_owned(),
        Type::Message(desc) => go_name(desc().name),
        Type::Leaf(kind) => go_leaf(kind).to_owned(),
        Type::List(element) => format!("[]{}", go_type(*element)),
        Type::Map(element) => format!("map[string]{}", go_type(*element)),
    }
}

fn go_leaf(kind: LeafKind) -> &'static str {
    match kind {
        LeafKind::Quantity => "resource.Quantity",
        LeafKind::IntOrString => "intstr.IntOrString",
        LeafKind::Time => "v1.Time",
        LeafKind::MicroTime => "v1.MicroTime",
        LeafKind::Duration => "v1.Duration",
        LeafKind::Raw => "runtime.RawExtension",
        LeafKind::Union => "interface {}",
    }
}
