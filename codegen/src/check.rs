//! placeholder
use crate::model::Model;
use crate::problem::Problem;
pub fn check(_model: &Model, _problems: &mut Vec<Problem>) {}
