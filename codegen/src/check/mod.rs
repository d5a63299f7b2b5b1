//! Everything that must hold of the definitions beyond what the protobuf compiler checks.

mod field;
mod format;
pub mod json_path;
mod kind;
mod message;
mod value;

use crate::model::Model;
use crate::problem::Problem;

/// Appends every mistake of the build's own definitions.
pub fn check(model: &Model, problems: &mut Vec<Problem>) {
    for message in model
        .messages
        .iter()
        .filter(|m| !m.module.external && m.list_of.is_none())
    {
        message::check(model, message, problems);
        for field in &message.fields {
            field::check(model, message, field, problems);
        }
        kind::check(model, message, problems);
    }
    message::check_names(model, problems);
    message::check_recursion(model, problems);
    kind::check_together(model, problems);
}
