//! v1beta1 has one text for the size ("12mm", "3cm"); v1 has a number of millimeters.

use keelson::prelude::ConversionFault;

use crate::api::example_com::{v1, v1beta1};

pub fn to_hub_widget_spec(from: &v1beta1::WidgetSpec, to: &mut v1::WidgetSpec) -> Result<(), ConversionFault> {
    let refused = |why| ConversionFault::invalid("size", &from.size, why);
    let (digits, factor) = match from.size.strip_suffix("cm") {
        Some(digits) => (digits, 10),
        None => (from.size.strip_suffix("mm").unwrap_or(&from.size), 1),
    };
    let size: i32 = digits.parse().map_err(|_| refused("must be like 12mm or 3cm"))?;
    to.size_millimeters = size.checked_mul(factor).ok_or_else(|| refused("is too large"))?;
    Ok(())
}

pub fn from_hub_widget_spec(from: &v1::WidgetSpec, to: &mut v1beta1::WidgetSpec) -> Result<(), String> {
    to.size = match from.size_millimeters {
        size if size != 0 && size % 10 == 0 => format!("{}cm", size / 10),
        size => format!("{size}mm"),
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_survive_both_ways() {
        for (text, millimeters, back) in [
            ("12mm", 12, "12mm"),
            ("3cm", 30, "3cm"),
            ("40mm", 40, "4cm"),
            ("7", 7, "7mm"),
        ] {
            let (old, mut hub) = (
                v1beta1::WidgetSpec {
                    size: text.into(),
                    ..Default::default()
                },
                Default::default(),
            );
            to_hub_widget_spec(&old, &mut hub).unwrap();
            assert_eq!(hub.size_millimeters, millimeters);
            let mut again = v1beta1::WidgetSpec::default();
            from_hub_widget_spec(&hub, &mut again).unwrap();
            assert_eq!(again.size, back);
        }
        let bad = v1beta1::WidgetSpec {
            size: "big".into(),
            ..Default::default()
        };
        let told = to_hub_widget_spec(&bad, &mut Default::default()).unwrap_err();
        assert_eq!((told.field.as_str(), told.value), ("size", "big".into()));
    }
}
