//! Helpers of the unit tests of conversions.

use keelson_machinery::json;
use keelson_machinery::reflect::Reflect;

/// An object from JSON, without defaults. Unknown fields fail the test.
pub fn read<T: Reflect + Default>(text: &str) -> T {
    let mut object = T::default();
    assert!(json::read(text.as_bytes(), &mut object).unwrap().is_empty(), "{text}");
    object
}

/// JSON of an object.
pub fn text(object: &dyn Reflect) -> String {
    let mut out = Vec::new();
    json::write(object, &mut out);
    String::from_utf8(out).unwrap()
}
