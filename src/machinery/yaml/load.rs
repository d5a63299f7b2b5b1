//! The first document of a YAML stream as a tree of nodes.

use std::borrow::Cow;

use granit_parser::{Event, Options, Parser, ScalarStyle, Span, Tag};

use super::fault::{self, name_at};
use crate::decode::DecodeError;

/// How deep flow and block collections may nest.
pub(super) const MAX_DEPTH: usize = 10_000;

/// Where a node is in [`Document::nodes`].
pub(super) type NodeId = usize;

#[derive(Debug)]
pub(super) struct Node<'a> {
    pub(super) content: Content<'a>,
    /// Counted from 1.
    pub(super) line: usize,
}

#[derive(Debug)]
pub(super) enum Content<'a> {
    Scalar {
        text: Cow<'a, str>,
        /// Neither quoted nor a block.
        plain: bool,
        /// What follows `!!`, or a whole other tag; empty if there is none.
        tag: String,
    },
    List(Vec<NodeId>),
    Map(Vec<(NodeId, NodeId)>),
    /// The node that it stands for, and where in the text the alias is, in characters.
    Alias(NodeId, usize),
}

/// Nodes, children before their parents.
#[derive(Debug, Default)]
pub(super) struct Document<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    /// `None`: there is no document.
    pub(super) root: Option<NodeId>,
    /// All of the stream.
    pub(super) source: &'a str,
}

/// A collection that is not closed yet.
struct Open {
    id: NodeId,
    /// The key that waits for its value.
    key: Option<NodeId>,
}

#[derive(Default)]
struct Loader<'a> {
    document: Document<'a>,
    open: Vec<Open>,
    /// The node of each anchor, by the parser's number.
    anchors: Vec<Option<NodeId>>,
}

/// Reads up to the end of the first document and no further.
pub(super) fn load(text: &str) -> Result<Document<'_>, DecodeError> {
    fault::check_beginning(text)?;
    let mut options = Options::default();
    options.flow_nesting_limit = MAX_DEPTH;
    options.block_nesting_limit = MAX_DEPTH;
    let mut parser = Parser::new_from_str_with_options(text, options);
    let mut loader = Loader::default();
    loader.document.source = text;
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|e| fault::of_parser(&e, text, MAX_DEPTH))?;
        match event {
            Event::DocumentEnd => break,
            Event::Alias(anchor) => loader.alias(anchor, span, text)?,
            event => loader.event(event, span),
        }
    }
    Ok(loader.document)
}

impl<'a> Loader<'a> {
    fn event(&mut self, event: Event<'a>, span: Span) {
        let line = span.start.line();
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain;
                self.node(
                    Content::Scalar {
                        text,
                        plain,
                        tag: tag_name(tag.as_deref()),
                    },
                    anchor,
                    line,
                );
            }
            Event::SequenceStart(_, anchor, _) => {
                let id = self.node(Content::List(Vec::new()), anchor, line);
                self.open.push(Open { id, key: None });
            }
            Event::MappingStart(_, anchor, _) => {
                let id = self.node(Content::Map(Vec::new()), anchor, line);
                self.open.push(Open { id, key: None });
            }
            Event::SequenceEnd | Event::MappingEnd => drop(self.open.pop()),
            _ => {}
        }
    }

    fn alias(&mut self, anchor: usize, span: Span, source: &str) -> Result<(), DecodeError> {
        let target = self.anchors.get(anchor).copied().flatten();
        let place = span.start.index();
        let unknown = || fault::failure(&format!("unknown anchor '{}' referenced", name_at(source, place)));
        let target = target.ok_or_else(unknown)?;
        self.node(Content::Alias(target, place), 0, span.start.line());
        Ok(())
    }

    /// Adds a node to the collection that is open.
    fn node(&mut self, content: Content<'a>, anchor: usize, line: usize) -> NodeId {
        let id = self.document.nodes.len();
        self.document.nodes.push(Node { content, line });
        if anchor > 0 {
            if self.anchors.len() <= anchor {
                self.anchors.resize(anchor + 1, None);
            }
            self.anchors[anchor] = Some(id);
        }
        match self.open.last_mut() {
            None => self.document.root = Some(id),
            Some(parent) => match &mut self.document.nodes[parent.id].content {
                Content::List(items) => items.push(id),
                Content::Map(pairs) => match parent.key.take() {
                    Some(key) => pairs.push((key, id)),
                    None => parent.key = Some(id),
                },
                _ => {}
            },
        }
        id
    }
}

fn tag_name(tag: Option<&Tag>) -> String {
    match tag {
        None => String::new(),
        Some(tag) => match tag.suffix_in_namespace("tag:yaml.org,2002:") {
            Some(name) => name.into_owned(),
            None => tag.original(),
        },
    }
}
