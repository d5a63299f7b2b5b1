//! Costs of function calls.

use super::super::eval::{Call, Node};
use super::super::signature::Overload;
use super::super::types::Type;
use super::{Declared, Estimate, Estimator, NEW_LIST, Place, Range, Step, both};
use crate::cel::library::SORT_BY_KEYS;

/// What a character costs of a text that is walked through.
const TRAVERSAL: f64 = 0.1;
/// What a character of a regular expression costs.
const REGEX: f64 = 0.25;
/// Characters of the pattern of a named format at most.
const MAX_FORMAT_REGEX: f64 = 128.0;

/// What a call costs beside its arguments, and how large its result is.
struct CallCost {
    cost: Range,
    size: Option<Range>,
}

impl CallCost {
    fn of(cost: Range) -> CallCost {
        CallCost { cost, size: None }
    }

    fn sized(cost: Range, size: Range) -> CallCost {
        CallCost { cost, size: Some(size) }
    }

    const ONE: CallCost = CallCost {
        cost: Range::exactly(1),
        size: None,
    };
}

/// A call with what is known of its parts.
struct Parts<'n, D> {
    name: &'static str,
    nodes: &'n [Node],
    target: Option<Estimate<D>>,
    arguments: Vec<Estimate<D>>,
}

impl<D: Declared> Parts<'_, D> {
    fn argument(&self, n: usize) -> Range {
        self.arguments.get(n).map_or(Range::UNKNOWN, Estimate::size_or_unknown)
    }

    /// The size of the target; of a function without one that of the first argument.
    fn subject(&self) -> Range {
        match &self.target {
            Some(target) => target.size_or_unknown(),
            None => self.argument(0),
        }
    }
}

impl<D: Declared> Estimator<D> {
    pub(super) fn call(&mut self, call: &Call, nodes: &[Node]) -> Estimate<D> {
        let mut estimates: Vec<Estimate<D>> = nodes.iter().map(|node| self.node(node)).collect();
        let target = (call.member && !estimates.is_empty()).then(|| estimates.remove(0));
        if let ("dyn", [argument]) = (call.function.name, estimates.as_slice()) {
            return Estimate {
                size: argument.size,
                entry: argument.entry,
                ..self.of(argument.cost.plus(Range::exactly(1)), Place::None)
            };
        }
        let parts = Parts {
            name: call.function.name,
            nodes,
            target,
            arguments: estimates,
        };
        let mut own: Option<CallCost> = None;
        let mut estimate = self.of(Range::default(), Place::None);
        for overload in call.fitting() {
            let one = self.overload(&parts, overload);
            own = Some(match own {
                None => one,
                Some(known) => CallCost {
                    cost: known.cost.or(one.cost),
                    size: match (known.size, one.size) {
                        (Some(a), Some(b)) => Some(a.or(b)),
                        (a, b) => a.or(b),
                    },
                },
            });
            self.indexed(&parts, overload, &mut estimate, &mut own);
        }
        let own = own.unwrap_or(CallCost::of(Range::default()));
        let parts_cost = parts.target.iter().chain(&parts.arguments);
        estimate.cost = parts_cost.fold(own.cost, |sum, part| sum.plus(part.cost));
        estimate.size = own.size;
        if call.function.name == "_+_"
            && let [left, right] = parts.arguments.as_slice()
        {
            estimate.entry = both(left.entry, right.entry);
        }
        estimate
    }

    /// What an index leads to.
    fn indexed(
        &self,
        parts: &Parts<'_, D>,
        overload: &Overload,
        estimate: &mut Estimate<D>,
        own: &mut Option<CallCost>,
    ) {
        let ("_[_]", Some(operand)) = (parts.name, parts.arguments.first()) else {
            return;
        };
        let step = match overload.parameter(0) {
            Some(Type::List(_)) => Step::Items,
            Some(Type::Map(_)) => Step::Values,
            _ => return,
        };
        estimate.place = self.step(operand.place, step);
        if let Some(own) = own {
            own.size = operand.entry.map(|entry| entry.value);
        }
    }

    /// What a call of one overload costs.
    fn overload(&self, parts: &Parts<'_, D>, overload: &Overload) -> CallCost {
        let own = of_lists(parts, overload).or_else(|| self.of_kubernetes(parts, overload));
        let own = own.or_else(|| of_strings(parts));
        own.unwrap_or_else(|| of_the_language(parts, overload))
    }

    /// The functions of Kubernetes' libraries.
    fn of_kubernetes(&self, parts: &Parts<'_, D>, overload: &Overload) -> Option<CallCost> {
        let walk = |factor: f64| CallCost::of(parts.argument(0).scaled(factor * TRAVERSAL));
        let member = parts.target.is_some();
        let is_string = |n: usize| overload.parameter(n) == Some(&Type::String);
        Some(match parts.name {
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" if member => self.over_list(parts),
            "url" => CallCost::sized(parts.argument(0).scaled(TRAVERSAL), parts.argument(0)),
            "join" if member => self.join(parts),
            "cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver" => walk(1.0),
            "ip" if member => CallCost::ONE,
            "ip" => walk(1.0),
            "ip.isCanonical" => walk(2.0),
            "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "format.named"
            | "sign"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery" => CallCost::ONE,
            "containsIP" | "containsCIDR" => {
                let address = Range { min: 4, max: 16 };
                let mut cost = address.plus(address).scaled(TRAVERSAL);
                if parts.name == "containsCIDR" {
                    cost = cost.plus(address.scaled(TRAVERSAL)).plus(Range::exactly(1));
                }
                if is_string(1) {
                    cost = cost.plus(parts.argument(0).scaled(TRAVERSAL));
                }
                CallCost::of(cost)
            }
            "validate" => CallCost::of(parts.argument(0).scaled(TRAVERSAL).scaled(MAX_FORMAT_REGEX * REGEX)),
            "check" => CallCost::of(Range::exactly(350_000)),
            "_==_" => return opaque_equality(parts),
            _ => return None,
        })
    }

    /// Each element is looked at; of texts all characters.
    fn over_list(&self, parts: &Parts<'_, D>) -> CallCost {
        let subject = parts.subject();
        let Some((element, size)) = self.element(parts) else {
            return CallCost::of(subject.scaled(TRAVERSAL));
        };
        let mut each = Range::exactly(1);
        if matches!(element, Type::String | Type::Bytes) {
            each = each.plus(size.scaled(TRAVERSAL));
        }
        CallCost::of(subject.times(each))
    }

    fn join(&self, parts: &Parts<'_, D>) -> CallCost {
        let list = parts.subject();
        let mut size = self
            .element(parts)
            .map_or(Range::default(), |(_, size)| list.times(size));
        if !parts.arguments.is_empty() {
            let between = Range {
                min: list.min.saturating_sub(1),
                max: list.max.saturating_sub(1),
            };
            size = size.plus(parts.argument(0).times(between));
        }
        CallCost::sized(size.scaled(TRAVERSAL), size)
    }

    /// The type and size of the elements of a target that is a list.
    fn element(&self, parts: &Parts<'_, D>) -> Option<(Type, Range)> {
        let (target, node) = (parts.target.as_ref()?, parts.nodes.first()?);
        let element = match &node.ty {
            Type::List(element) => Type::clone(element),
            Type::Map(of) => of.0.clone(),
            Type::Optional(of) => Type::clone(of),
            _ => return None,
        };
        let size = match target.place {
            Place::None | Place::Lost => Range::UNKNOWN,
            place @ Place::At(_) => match self.step(place, Step::Items) {
                Place::At(declared) => Range {
                    min: 0,
                    max: declared.max_elements(),
                },
                _ => Range::UNKNOWN,
            },
        };
        Some((element, size))
    }

    /// A pattern that is known.
    pub(super) fn matches(&mut self, text: &Node, pattern: &str, member: bool) -> Estimate<D> {
        let text = self.node(text);
        let pattern = Range::exactly(pattern.chars().count() as u64);
        let cost = match member {
            true => search(text.size_or_unknown(), pattern),
            false => Range::exactly(1),
        };
        self.of(cost.plus(text.cost), Place::None)
    }
}

/// A search for a pattern: one is added to the text, so that an empty one costs something.
fn search(text: Range, pattern: Range) -> Range {
    text.plus(Range::exactly(1))
        .scaled(TRAVERSAL)
        .times(pattern.scaled(REGEX))
}

/// Functions on texts that are members of them.
fn of_strings<D: Declared>(parts: &Parts<'_, D>) -> Option<CallCost> {
    parts.target.as_ref()?;
    let text = parts.subject();
    Some(match parts.name {
        "lowerAscii" | "upperAscii" | "substring" | "trim" => CallCost::sized(text.scaled(TRAVERSAL), text),
        "replace" => CallCost::sized(
            text.scaled(2.0 * TRAVERSAL),
            replaced(text, parts.argument(0), parts.argument(1)),
        ),
        "split" => {
            let parts_at_most = match parts.nodes.get(2).map(Node::as_int) {
                Some(Some(n)) => n as u64,
                _ => text.max,
            };
            let size = Range {
                min: 0,
                max: parts_at_most,
            };
            CallCost::sized(text.scaled(2.0 * TRAVERSAL), size)
        }
        "find" | "findAll" => CallCost::sized(search(text, parts.argument(0)), Range { min: 0, max: text.max }),
        "format" => CallCost::of(text.scaled(TRAVERSAL)),
        "startsWith" | "endsWith" => CallCost::of(parts.argument(0).scaled(TRAVERSAL)),
        "matches" => CallCost::of(search(text, parts.argument(0))),
        "contains" => CallCost::of(text.scaled(TRAVERSAL).times(parts.argument(0).scaled(TRAVERSAL))),
        _ => return None,
    })
}

/// Functions that make lists of lists, and sets.
fn of_lists<D: Declared>(parts: &Parts<'_, D>, overload: &Overload) -> Option<CallCost> {
    let size = parts.subject();
    let written = |n: usize, otherwise: u64| match parts.nodes.get(n).and_then(Node::as_int) {
        Some(n) => u64::try_from(n).unwrap_or_default(),
        None => otherwise,
    };
    let made = |factor: f64, size: Range| {
        let cost = size.scaled(factor).plus(Range::exactly(1)).plus(NEW_LIST);
        Some(CallCost::sized(cost, size))
    };
    let textual = |n: usize| match overload.parameter(n) {
        Some(Type::List(element)) if matches!(**element, Type::String | Type::Bytes) => 2.0 + TRAVERSAL,
        _ => 2.0,
    };
    match parts.name {
        "slice" => {
            let (start, end) = (written(1, 0), written(2, size.max));
            made(1.0, Range::exactly(end.wrapping_sub(start)))
        }
        "lists.range" => made(1.0, Range::exactly(written(0, u64::MAX))),
        "reverse" => made(1.0, size),
        "flatten" if parts.arguments.is_empty() => made(1.0, size),
        "flatten" => made(written(1, u64::MAX) as f64, size),
        "distinct" => made(2.0, size.times(size)),
        "sort" => made(textual(0), size.times(size)),
        SORT_BY_KEYS => {
            let keys = parts.argument(0);
            made(textual(1), keys.times(keys))
        }
        "sets.contains" | "sets.intersects" | "sets.equivalent" => {
            let factor = if parts.name == "sets.equivalent" { 2.0 } else { 1.0 };
            let pairs = parts.argument(0).times(parts.argument(1)).scaled(factor);
            Some(CallCost::of(pairs.plus(Range::exactly(1))))
        }
        _ => None,
    }
}

/// How large a text is in which `old` was replaced with `new`.
fn replaced(text: Range, old: Range, new: Range) -> Range {
    let (mut count, mut kept) = (Range::default(), Range::default());
    if old.min == 0 {
        // What is empty stands before and behind each character.
        count.max = text.max.saturating_add(1);
        kept.max = text.max;
    } else if new.max <= old.min {
        kept.max = text.max;
    } else {
        count.max = (text.max as f64 / old.min as f64).ceil() as u64;
    }
    if old.max == 0 {
        count.min = text.min.saturating_add(1);
        kept.min = text.min;
    } else if old.max <= new.min {
        kept.min = text.min;
    } else {
        count.min = (text.min as f64 / old.max as f64).ceil() as u64;
    }
    count.times(new).plus(kept)
}

/// Equality of values of Kubernetes' own types.
fn opaque_equality<D: Declared>(parts: &Parts<'_, D>) -> Option<CallCost> {
    let [left, right] = parts.nodes else { return None };
    let (Type::Opaque(name), true) = (&left.ty, left.ty == right.ty) else {
        return None;
    };
    match *name {
        "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver" => Some(CallCost::ONE),
        "kubernetes.URL" => {
            let size = parts.arguments.get(1).and_then(|right| right.size);
            let most = size.unwrap_or(Range::exactly(1)).max;
            Some(CallCost::of(Range { min: 1, max: most }.scaled(TRAVERSAL)))
        }
        "kubernetes.NamedFormat" => Some(CallCost::of(Range { min: 1, max: 64 }.scaled(TRAVERSAL))),
        _ => None,
    }
}

/// Functions and operators of the language.
fn of_the_language<D: Declared>(parts: &Parts<'_, D>, overload: &Overload) -> CallCost {
    let (first, second) = (overload.parameter(0), overload.parameter(1));
    let textual = matches!(first, Some(Type::String | Type::Bytes));
    match (parts.name, first, second) {
        ("bytes", Some(Type::String), _) => {
            let text = parts.argument(0);
            let size = Range {
                min: text.min,
                max: text.max.wrapping_mul(4),
            };
            CallCost::sized(text.scaled(TRAVERSAL), size)
        }
        ("string", Some(Type::Bytes), _) => {
            let bytes = parts.argument(0);
            let size = Range {
                min: bytes.min / 4,
                max: bytes.max,
            };
            CallCost::sized(bytes.scaled(TRAVERSAL), size)
        }
        ("strings.quote", ..) => {
            let text = parts.argument(0);
            let size = Range {
                min: text.min.wrapping_add(2),
                max: text.max.wrapping_mul(2).wrapping_add(2),
            };
            CallCost::sized(text.scaled(TRAVERSAL), size)
        }
        ("@in", _, Some(Type::List(_))) => CallCost::of(parts.argument(1).scaled(1.0)),
        ("_+_", _, _) if textual => {
            let size = parts.argument(0).plus(parts.argument(1));
            CallCost::sized(size.scaled(TRAVERSAL), size)
        }
        ("_+_", Some(Type::List(_)), _) => {
            CallCost::sized(Range::exactly(1), parts.argument(0).plus(parts.argument(1)))
        }
        ("_<_" | "_<=_" | "_>_" | "_>=_", ..) if textual => CallCost::of(comparison(parts)),
        ("_==_" | "_!=_", ..) => CallCost::of(comparison(parts)),
        _ => CallCost::ONE,
    }
}

/// As much as the smaller value has.
fn comparison<D: Declared>(parts: &Parts<'_, D>) -> Range {
    let most = parts.argument(0).max.min(parts.argument(1).max);
    let size = Range {
        min: most.min(1),
        max: most,
    };
    size.scaled(TRAVERSAL)
}
