//! The rules of vans that their definition can't say.

use keelson::prelude::*;

use crate::api::fleet_example_com::v1::Van;

pub fn code() -> KindCode {
    let mut code = KindCode::default();
    code.kind::<Van>().strategy(VanStrategy);
    code
}

struct VanStrategy;

impl Strategy for VanStrategy {
    type Object = Van;

    /// A new van is free, whatever its maker says.
    fn prepare_for_create(&self, _: &Context, new: &mut Van) {
        new.status.phase = "Free".to_owned();
    }

    /// A van keeps its plate.
    fn validate_change(&self, _: &Context, new: &Van, old: &Van) -> ErrorList {
        match new.spec.plate == old.spec.plate {
            true => ErrorList::default(),
            false => FieldError::forbidden(&Path::new("spec").child("plate"), "a van keeps its plate").into(),
        }
    }
}
