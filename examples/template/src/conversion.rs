//! v1beta1 has one text for the payload ("800kg", "2t"); v1 has a number of kilograms.

use keelson::prelude::ConversionFault;

use crate::api::fleet_example_com::{v1, v1beta1};

pub fn to_hub_van_spec(from: &v1beta1::VanSpec, to: &mut v1::VanSpec) -> Result<(), ConversionFault> {
    let refused = |why| ConversionFault::invalid("payload", &from.payload, why);
    let (digits, factor) = match from.payload.strip_suffix('t') {
        Some(digits) => (digits, 1000),
        None => (from.payload.strip_suffix("kg").unwrap_or(&from.payload), 1),
    };
    let payload: i32 = digits.parse().map_err(|_| refused("must be like 800kg or 2t"))?;
    to.payload_kilograms = payload.checked_mul(factor).ok_or_else(|| refused("is too large"))?;
    Ok(())
}

pub fn from_hub_van_spec(from: &v1::VanSpec, to: &mut v1beta1::VanSpec) -> Result<(), ConversionFault> {
    to.payload = format!("{}kg", from.payload_kilograms);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_survive_both_ways() {
        for (text, kilograms, back) in [("800kg", 800, "800kg"), ("2t", 2000, "2000kg"), ("7", 7, "7kg")] {
            let old = v1beta1::VanSpec {
                payload: text.into(),
                ..Default::default()
            };
            let (mut hub, mut again) = (v1::VanSpec::default(), v1beta1::VanSpec::default());
            to_hub_van_spec(&old, &mut hub).unwrap();
            assert_eq!(hub.payload_kilograms, kilograms);
            from_hub_van_spec(&hub, &mut again).unwrap();
            assert_eq!(again.payload, back);
        }
    }
}
