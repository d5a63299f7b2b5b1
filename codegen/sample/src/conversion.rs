//! Conversion between v1alpha1 and v1.

use keelson_machinery::scheme::ConversionFault;

use crate::api::shop_example_com::{v1, v1alpha1};

/// The first version had no status.
pub fn to_hub_order(_from: &v1alpha1::Order, _to: &mut v1::Order) -> Result<(), String> {
    Ok(())
}

/// The status is lost.
pub fn from_hub_order(_from: &v1::Order, _to: &mut v1alpha1::Order) -> Result<(), String> {
    Ok(())
}

/// `city` became part of the address.
pub fn to_hub_order_spec(from: &v1alpha1::OrderSpec, to: &mut v1::OrderSpec) -> Result<(), ConversionFault> {
    if from.city == "nowhere" {
        return Err(ConversionFault::invalid("city", &from.city, "there is no such city"));
    }
    to.address.city_id = from.city.clone();
    Ok(())
}

/// Of the address only the city is kept.
pub fn from_hub_order_spec(from: &v1::OrderSpec, to: &mut v1alpha1::OrderSpec) -> Result<(), String> {
    to.city = from.address.city_id.clone();
    Ok(())
}
