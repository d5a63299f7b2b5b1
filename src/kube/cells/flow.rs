//! Cells of flow schemas and priority levels.

use keelson_api::flowcontrol_apiserver_k8s_io::v1::{
    FlowSchema, LimitedPriorityLevelConfiguration, PriorityLevelConfiguration, QueuingConfiguration,
};
use keelson_machinery::table::Cell;

use super::NONE;

cells! { pub const FLOW_SCHEMA: FlowSchema =
    "flow_schema_distinguisher_method" => |o| {
        o.spec.distinguisher_method.as_ref().map_or_else(|| NONE.to_owned(), |m| m.r#type.clone())
    },
    "flow_schema_matching_precedence" => |o| o.spec.matching_precedence,
    "flow_schema_missing_pl" => missing_level,
    "flow_schema_priority_level" => |o| o.spec.priority_level_configuration.name.clone(),
}
cells! { pub const PRIORITY_LEVEL_CONFIGURATION: PriorityLevelConfiguration =
    "priority_level_configuration_hand_size" => |o| number(queuing(o).map(|q| q.hand_size)),
    "priority_level_configuration_queue_length_limit" => |o| number(queuing(o).map(|q| q.queue_length_limit)),
    "priority_level_configuration_queues" => |o| number(queuing(o).map(|q| q.queues)),
    "priority_level_configuration_shares" => |o| number(limited(o).map(|l| l.nominal_concurrency_shares.unwrap_or(0))),
    "priority_level_configuration_type" => |o| o.spec.r#type.clone(),
}

/// Whether the level that the schema names is known to be missing.
fn missing_level(o: &FlowSchema) -> String {
    let dangling = o.status.conditions.iter().find(|c| c.r#type == "Dangling");
    dangling.map_or("?", |c| c.status.as_str()).to_owned()
}

fn limited(o: &PriorityLevelConfiguration) -> Option<&LimitedPriorityLevelConfiguration> {
    o.spec.limited.as_deref()
}

fn queuing(o: &PriorityLevelConfiguration) -> Option<&QueuingConfiguration> {
    limited(o)?.limit_response.queuing.as_deref()
}

fn number(n: Option<i32>) -> Cell {
    n.map_or_else(|| NONE.into(), Cell::from)
}

#[cfg(test)]
mod tests {
    use keelson_machinery::json;

    use super::*;

    #[test]
    fn numbers_are_there_as_far_as_the_level_is_limited() {
        for (spec, shares, queues) in [
            (r#"{"type":"Exempt"}"#, None, None),
            (r#"{"limited":{"nominalConcurrencyShares":5}}"#, Some(5), None),
            (
                r#"{"limited":{"limitResponse":{"queuing":{"queues":8}}}}"#,
                Some(0),
                Some(8),
            ),
        ] {
            let mut o = PriorityLevelConfiguration::default();
            json::read(format!(r#"{{"spec":{spec}}}"#).as_bytes(), &mut o).unwrap();
            let found = limited(&o).map(|l| l.nominal_concurrency_shares.unwrap_or(0));
            assert_eq!((found, queuing(&o).map(|q| q.queues)), (shares, queues), "{spec}");
        }
    }
}
