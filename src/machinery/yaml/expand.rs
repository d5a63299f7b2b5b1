//! From nodes to JSON text: aliases and merge keys are replaced by what they stand for, within bounds.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::fault::{failure, name_at, too_deep};
use super::load::{Content, Document, MAX_DEPTH, Node, NodeId};
use super::scalar::{Scalar, resolve};
use crate::decode::DecodeError;
use crate::field::text::{float, quote};
use crate::json::{write_float, write_int};
use crate::json_text::{lossy, write_string};

/// The longest JSON text that aliases may blow a document up to.
const MAX_JSON_BYTES: usize = 32 << 20;
/// How deep merged maps may merge others.
const MAX_MERGES: u32 = 200;

/// JSON text, and two blanks and a line for each repeated key, if there are any.
type Expanded = (Vec<u8>, Option<String>);

pub(super) fn expand(document: &Document<'_>) -> Result<Expanded, DecodeError> {
    let mut expander = Expander {
        document,
        out: Vec::new(),
        repeated: Vec::new(),
        alias: 0,
        inside: vec![false; document.nodes.len()],
        budget: Budget::default(),
        merges: 0,
    };
    match document.root {
        Some(root) => expander.run(root)?,
        None => expander.out.extend_from_slice(b"null"),
    }
    // Values are visited in the order of their keys, but what is wrong is told in that of the document.
    let mut repeated = expander.repeated;
    repeated.sort_by_key(|(place, _)| *place);
    // There may be many, so none is copied more than once.
    let mut lines = String::new();
    for (n, (_, text)) in repeated.into_iter().enumerate() {
        lines.push_str(if n == 0 { "  " } else { "\n  " });
        lines.push_str(&text);
    }
    Ok((expander.out, (!lines.is_empty()).then_some(lines)))
}

/// Counts nodes, as go-yaml does, to tell documents that are little but aliases.
#[derive(Default)]
struct Budget {
    nodes: u64,
    of_aliases: u64,
    alias_depth: u32,
}

impl Budget {
    fn spend(&mut self) -> Result<(), DecodeError> {
        self.nodes += 1;
        self.of_aliases += u64::from(self.alias_depth > 0);
        if self.of_aliases > 100 && self.nodes > 1000 && self.of_aliases * 100 > self.nodes * self.allowed_percent() {
            return Err(failure("document contains excessive aliasing"));
        }
        Ok(())
    }

    /// How much of all may come from aliases: 99 % of little, 10 % of much.
    fn allowed_percent(&self) -> u64 {
        const LITTLE: u64 = 400_000;
        const MUCH: u64 = 4_000_000;
        match self.nodes {
            0..=LITTLE => 99,
            MUCH.. => 10,
            n => 99 - 89 * (n - LITTLE) / (MUCH - LITTLE),
        }
    }
}

/// What is still to be written. A list of these instead of recursion, so that depth costs no stack.
enum Task {
    Value(NodeId),
    /// A key with its quotes and what stands before it.
    Key(String, bool),
    Comma,
    /// The end of a node, with the bracket or brace that closes it.
    End(NodeId, Option<u8>),
}

struct Expander<'a> {
    document: &'a Document<'a>,
    out: Vec<u8>,
    /// With the value's place in the document, or that of the outermost alias it was reached by.
    repeated: Vec<(NodeId, String)>,
    /// The outermost alias that is being written.
    alias: NodeId,
    /// Whether the node is being written: an alias to it would never end.
    inside: Vec<bool>,
    budget: Budget,
    merges: u32,
}

type Outcome = Result<(), DecodeError>;

impl<'a> Expander<'a> {
    fn node(&self, id: NodeId) -> &'a Node<'a> {
        &self.document.nodes[id]
    }

    fn run(&mut self, root: NodeId) -> Outcome {
        let mut tasks = vec![Task::Value(root)];
        while let Some(task) = tasks.pop() {
            match task {
                Task::Value(id) => self.begin(id, &mut tasks)?,
                Task::Key(key, first) => {
                    if !first {
                        self.out.push(b',');
                    }
                    write_string(&key, &mut self.out);
                    self.out.push(b':');
                }
                Task::Comma => self.out.push(b','),
                Task::End(id, close) => {
                    self.out.extend(close);
                    self.inside[id] = false;
                    if matches!(self.node(id).content, Content::Alias(..)) {
                        self.budget.alias_depth -= 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes a scalar, or the beginning of a collection, and says what is to follow.
    fn begin(&mut self, id: NodeId, tasks: &mut Vec<Task>) -> Outcome {
        self.budget.spend()?;
        if self.out.len() > MAX_JSON_BYTES {
            return Err(failure("document is too large with its aliases replaced"));
        }
        self.enter(id)?;
        match &self.node(id).content {
            Content::Alias(target, place) => {
                if self.inside[*target] {
                    let name = name_at(self.document.source, *place);
                    return Err(failure(&format!("anchor '{name}' value contains itself")));
                }
                self.enter_alias(id);
                tasks.push(Task::End(id, None));
                tasks.push(Task::Value(*target));
            }
            Content::List(items) => {
                self.out.push(b'[');
                tasks.push(Task::End(id, Some(b']')));
                for (i, item) in items.iter().enumerate().rev() {
                    tasks.push(Task::Value(*item));
                    if i > 0 {
                        tasks.push(Task::Comma);
                    }
                }
            }
            Content::Map(pairs) => {
                let mut entries = BTreeMap::new();
                self.gather(pairs, &mut entries)?;
                self.out.push(b'{');
                tasks.push(Task::End(id, Some(b'}')));
                let count = entries.len();
                for (i, (key, value)) in entries.into_iter().rev().enumerate() {
                    tasks.push(Task::Value(value));
                    tasks.push(Task::Key(key, i + 1 == count));
                }
            }
            Content::Scalar { text, plain, tag } => {
                self.scalar(text, *plain, tag)?;
                self.inside[id] = false;
            }
        }
        Ok(())
    }

    fn enter(&mut self, id: NodeId) -> Outcome {
        if std::mem::replace(&mut self.inside[id], true) {
            return Err(failure("anchor value contains itself"));
        }
        Ok(())
    }

    fn enter_alias(&mut self, id: NodeId) {
        if self.budget.alias_depth == 0 {
            self.alias = id;
        }
        self.budget.alias_depth += 1;
    }

    /// The keys of a map; those of merged maps take their place in the order of the document, the last one wins.
    fn gather(&mut self, pairs: &[(NodeId, NodeId)], entries: &mut BTreeMap<String, NodeId>) -> Outcome {
        for (key, value) in pairs {
            self.budget.spend()?;
            if is_merge(self.node(*key)) {
                self.merge(*value, entries)?;
                continue;
            }
            let (name, shown) = self.key(*key, *value)?;
            if entries.contains_key(&name) {
                let line = self.node(*value).line;
                let place = if self.budget.alias_depth > 0 {
                    self.alias
                } else {
                    *value
                };
                self.repeated
                    .push((place, format!("line {line}: key {shown} already set in map")));
            }
            entries.insert(name, *value);
        }
        Ok(())
    }

    fn merge(&mut self, id: NodeId, entries: &mut BTreeMap<String, NodeId>) -> Outcome {
        let want_map = || failure("map merge requires map or sequence of maps as the value");
        if self.merges == MAX_MERGES {
            return Err(too_deep(MAX_DEPTH));
        }
        self.merges += 1;
        self.enter(id)?;
        self.budget.spend()?;
        match &self.node(id).content {
            Content::Map(pairs) => self.gather(pairs, entries)?,
            Content::Alias(target, _) if matches!(self.node(*target).content, Content::Map(_)) => {
                self.enter_alias(id);
                self.merge(*target, entries)?;
                self.budget.alias_depth -= 1;
            }
            // The first of a list counts most.
            Content::List(items) => {
                for item in items.iter().rev() {
                    match self.node(*item).content {
                        Content::Map(_) | Content::Alias(..) => self.merge(*item, entries)?,
                        _ => return Err(want_map()),
                    }
                }
            }
            _ => return Err(want_map()),
        }
        self.inside[id] = false;
        self.merges -= 1;
        Ok(())
    }

    /// The text of a key, and how Go shows it: numbers and booleans become strings.
    fn key(&self, id: NodeId, value: NodeId) -> Result<(String, String), DecodeError> {
        let mut node = self.node(id);
        if let Content::Alias(target, _) = node.content {
            node = self.node(target);
        }
        let Content::Scalar { text, plain, tag } = &node.content else {
            return Err(failure(&format!(
                "invalid map key: {}",
                self.go_syntax(id, SHOWN_DEPTH)
            )));
        };
        let name = match typed(text, *plain, tag)? {
            Scalar::Str(s) => return Ok((s.to_owned(), format!("{s:?}"))),
            Scalar::Bool(b) => b.to_string(),
            Scalar::Int(n) => n.to_string(),
            Scalar::Float(n) => n.to_string(),
            Scalar::Null => {
                let shown = self.go_syntax(value, SHOWN_DEPTH);
                let text = format!("unsupported map key of type: %!s(<nil>), key: <nil>, value: {shown}");
                return Err(DecodeError::Yaml(text));
            }
        };
        Ok((name.clone(), name))
    }

    /// A value as Go's `%#v` prints it.
    fn go_syntax(&self, id: NodeId, depth: u32) -> String {
        let Some(depth) = depth.checked_sub(1) else {
            return String::new();
        };
        match &self.node(id).content {
            Content::Alias(target, _) => self.go_syntax(*target, depth),
            Content::List(items) => {
                let items: Vec<String> = items.iter().map(|item| self.go_syntax(*item, depth)).collect();
                format!("[]interface {{}}{{{}}}", items.join(", "))
            }
            Content::Map(pairs) => {
                let pairs: Vec<String> = pairs
                    .iter()
                    .map(|(k, v)| format!("{}:{}", self.go_syntax(*k, depth), self.go_syntax(*v, depth)))
                    .collect();
                format!("map[interface {{}}]interface {{}}{{{}}}", pairs.join(", "))
            }
            Content::Scalar { text, plain, tag } => match typed(text, *plain, tag) {
                Ok(Scalar::Null) => "interface {}(nil)".to_owned(),
                Ok(Scalar::Bool(b)) => b.to_string(),
                Ok(Scalar::Int(n)) => n.to_string(),
                Ok(Scalar::Float(n)) => float(n),
                _ => quote(text),
            },
        }
    }

    fn scalar(&mut self, text: &str, plain: bool, tag: &str) -> Outcome {
        if tag == "binary" {
            let compact: String = text.split_whitespace().collect();
            let bytes = STANDARD
                .decode(compact)
                .map_err(|_| failure("!!binary value contains invalid base64 data"))?;
            write_string(&lossy(&bytes), &mut self.out);
            return Ok(());
        }
        match typed(text, plain, tag)? {
            Scalar::Null => self.out.extend_from_slice(b"null"),
            Scalar::Bool(b) => self.out.extend_from_slice(if b { b"true" } else { b"false" }),
            Scalar::Int(n) => match i64::try_from(n) {
                Ok(n) => write_int(n, &mut self.out),
                Err(_) => self.out.extend_from_slice(n.to_string().as_bytes()),
            },
            Scalar::Float(n) if n.is_finite() => write_float(n, &mut self.out),
            Scalar::Float(n) => {
                let shown = match n {
                    _ if n.is_nan() => "NaN",
                    _ if n > 0.0 => "+Inf",
                    _ => "-Inf",
                };
                return Err(DecodeError::Yaml(format!("json: unsupported value: {shown}")));
            }
            Scalar::Str(s) => write_string(s, &mut self.out),
        }
        Ok(())
    }
}

/// How deep a value is shown in an error.
const SHOWN_DEPTH: u32 = 16;

fn is_merge(key: &Node<'_>) -> bool {
    match &key.content {
        Content::Scalar { text, plain, tag } => text == "<<" && (*plain && tag.is_empty() || tag == "merge"),
        _ => false,
    }
}

/// A scalar with its tag taken into account.
fn typed<'a>(text: &'a str, plain: bool, tag: &str) -> Result<Scalar<'a>, DecodeError> {
    let found = match tag {
        "" if plain => return Ok(resolve(text)),
        "bool" | "int" | "float" | "null" => resolve(text),
        // Quoted, a string, a date, or of a type that no one here knows.
        _ => return Ok(Scalar::Str(text)),
    };
    match (tag, found) {
        ("bool", Scalar::Bool(_)) | ("int", Scalar::Int(_)) | ("float", Scalar::Float(_)) | ("null", Scalar::Null) => {
            Ok(found)
        }
        ("float", Scalar::Int(n)) => Ok(Scalar::Float(n as f64)),
        _ => Err(failure(&format!("cannot decode `{text}` as a !!{tag}"))),
    }
}
