//! Table cells of the built-in kinds that definitions name and no path can say.
//!
//! The texts are those of kube-apiserver's own tables, since people and scripts read them.

/// Registers cells of objects of one type, the hub version of its kind; an object of another has an empty cell.
macro_rules! cells {
    ($cells:ident, $kind:ty: $($name:literal => $cell:expr),* $(,)?) => {$(
        $cells.register($name, |object: &dyn ::keelson_machinery::object::Object| {
            let cell: fn(&$kind) -> _ = $cell;
            object
                .downcast_ref::<$kind>()
                .map_or(::keelson_machinery::table::Cell::Null, |o| cell(o).into())
        });
    )*};
}

mod access;
mod admission;
mod autoscaling;
mod batch;
mod certificates;
mod config;
mod event;
mod flow;
mod networking;
mod node;
mod pod;
mod quota;
mod resource;
mod scheduling;
mod service;
mod storage;
mod workload;

use std::collections::BTreeMap;

use keelson_machinery::table::CellFunctions;

/// Shown where there is nothing.
const NONE: &str = "<none>";
/// Shown for a setting that was not made.
const UNSET: &str = "<unset>";
/// How many entries of a list are shown; the rest is a number.
const SHOWN: usize = 3;

/// All cell functions of the built-in kinds.
pub fn all() -> CellFunctions {
    let mut cells = CellFunctions::default();
    for register in [
        access::register,
        admission::register,
        autoscaling::register,
        batch::register,
        certificates::register,
        config::register,
        event::register,
        flow::register,
        networking::register,
        node::register,
        pod::register,
        quota::register,
        resource::register,
        scheduling::register,
        service::register,
        storage::register,
        workload::register,
    ] {
        register(&mut cells);
    }
    cells
}

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

#[cfg(test)]
mod tests {
    use keelson_machinery::table::Cell;

    use super::*;
    use crate::api::SCHEME;

    #[test]
    fn every_function_that_a_definition_names_is_there() {
        let cells = all();
        let versions = SCHEME.groups.iter().flat_map(|g| g.versions);
        for kind in versions.flat_map(|v| v.kinds) {
            for column in kind.columns.iter().filter(|c| !c.function.is_empty()) {
                let cell = cells
                    .get(&column.function)
                    .unwrap_or_else(|| panic!("{}: {}", kind.kind, column.function));
                // Registered for the type of the hub: an empty object has a cell.
                let empty = kind.to_hub(kind.new_object()).unwrap();
                assert_ne!(cell(&*empty), Cell::Null, "{}: {}", kind.kind, column.name);
            }
        }
    }
}
