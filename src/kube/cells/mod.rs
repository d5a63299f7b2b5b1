//! Table cells of the built-in kinds that definitions name and no path can say.
//!
//! The texts are those of kube-apiserver's own tables, since people and scripts read them.

/// The cells of one kind, by the function that its definition names, made of objects of its hub version.
macro_rules! cells {
    (pub const $cells:ident: $kind:ty = $($name:literal => $cell:expr),* $(,)?) => {
        pub const $cells: &[::keelson_registry::NamedCell<$kind>] = &[$((
            $name,
            |o| {
                let cell: fn(&$kind) -> _ = $cell;
                cell(o).into()
            },
        )),*];
    };
}

pub mod access;
#[cfg(feature = "kubernetes")]
pub mod admission;
#[cfg(feature = "kubernetes")]
pub mod autoscaling;
#[cfg(feature = "kubernetes")]
pub mod batch;
#[cfg(feature = "kubernetes")]
pub mod certificates;
#[cfg(feature = "kubernetes")]
pub mod config;
pub mod coordination;
pub mod event;
#[cfg(feature = "kubernetes")]
pub mod flow;
pub mod namespace;
#[cfg(feature = "kubernetes")]
pub mod networking;
#[cfg(feature = "kubernetes")]
pub mod node;
#[cfg(feature = "kubernetes")]
pub mod pod;
#[cfg(feature = "kubernetes")]
pub mod policy;
#[cfg(feature = "kubernetes")]
pub mod quota;
#[cfg(feature = "kubernetes")]
pub mod resource;
#[cfg(feature = "kubernetes")]
pub mod scheduling;
#[cfg(feature = "kubernetes")]
pub mod service;
#[cfg(feature = "kubernetes")]
pub mod storage;
#[cfg(feature = "kubernetes")]
pub mod workload;

use std::collections::BTreeMap;

/// Shown where there is nothing.
const NONE: &str = "<none>";
/// Shown for a setting that was not made.
const UNSET: &str = "<unset>";
/// How many entries of a list are shown; the rest is a number.
const SHOWN: usize = 3;

/// `a=1,b=2`.
fn pairs(labels: &BTreeMap<String, String>) -> String {
    match labels.len() {
        0 => NONE.to_owned(),
        _ => labels
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect::<Vec<_>>()
            .join(","),
    }
}

fn or_none(text: &str) -> String {
    if text.is_empty() { NONE } else { text }.to_owned()
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// `a,b,c + 2 more...`.
fn first_few(mut all: Vec<String>, nothing: &str) -> String {
    let more = all.len().saturating_sub(SHOWN);
    all.truncate(SHOWN);
    match (all.len(), more) {
        (0, _) => nothing.to_owned(),
        (_, 0) => all.join(","),
        _ => format!("{} + {more} more...", all.join(",")),
    }
}
