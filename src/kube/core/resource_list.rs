//! Amounts of resources by name.

use std::collections::BTreeMap;

use keelson_machinery::quantity::Quantity;

/// The finest amount of a resource: a thousandth.
const MILLI: i32 = -3;

/// Rounds up what is finer than any resource is counted.
pub fn round(amounts: &mut BTreeMap<String, Quantity>) {
    for amount in amounts.values_mut() {
        amount.round_up(MILLI);
    }
}
