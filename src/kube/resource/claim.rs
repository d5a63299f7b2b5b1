//! Claims of devices, and templates of them: how many devices a request is for.

/// A request for a number of devices, not for all that fit.
const EXACT_COUNT: &str = "ExactCount";

/// A request that names no number is for one device.
fn count(mode: &str, count: &mut i64) {
    if mode == EXACT_COUNT && *count == 0 {
        *count = 1;
    }
}

/// Defaults in code of the versions whose requests have the same form.
macro_rules! defaults_of {
    ($version:ident) => {
        /// Defaults in code of this version.
        pub mod $version {
            use super::count;
            use keelson_api::resource_k8s_io::$version::{DeviceClaim, ResourceClaim, ResourceClaimTemplate};

            /// Of claims.
            pub fn claim(o: &mut ResourceClaim) {
                of_devices(&mut o.spec.devices);
            }

            /// Of templates of claims.
            pub fn template(o: &mut ResourceClaimTemplate) {
                of_devices(&mut o.spec.spec.devices);
            }

            fn of_devices(devices: &mut DeviceClaim) {
                for request in &mut devices.requests {
                    if let Some(exact) = &mut request.exactly {
                        count(&exact.allocation_mode, &mut exact.count);
                    }
                    for sub in &mut request.first_available {
                        count(&sub.allocation_mode, &mut sub.count);
                    }
                }
            }
        }
    };
}

defaults_of!(v1);
defaults_of!(v1beta2);

/// Defaults in code of v1beta1, where the one form of a request stands in the request itself.
pub mod v1beta1 {
    use super::{EXACT_COUNT, count};
    use keelson_api::resource_k8s_io::v1beta1::{DeviceClaim, ResourceClaim, ResourceClaimTemplate};

    /// Of claims.
    pub fn claim(o: &mut ResourceClaim) {
        of_devices(&mut o.spec.devices);
    }

    /// Of templates of claims.
    pub fn template(o: &mut ResourceClaimTemplate) {
        of_devices(&mut o.spec.spec.devices);
    }

    fn of_devices(devices: &mut DeviceClaim) {
        for request in &mut devices.requests {
            for sub in &mut request.first_available {
                count(&sub.allocation_mode, &mut sub.count);
            }
            if request.first_available.is_empty() {
                if request.allocation_mode.is_empty() {
                    request.allocation_mode = EXACT_COUNT.to_owned();
                }
                count(&request.allocation_mode, &mut request.count);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{read_defaulted, text};
    use keelson_api::resource_k8s_io::{v1, v1beta1};

    #[test]
    fn a_request_is_for_one_device() {
        let mut o: v1::ResourceClaim = read_defaulted(
            r#"{"spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"c"}},
            {"name":"b","exactly":{"deviceClassName":"c","allocationMode":"All"}},
            {"name":"d","firstAvailable":[{"name":"e","deviceClassName":"c"}]}]}}}"#,
        );
        super::v1::claim(&mut o);
        let requests = &o.spec.devices.requests;
        assert_eq!(
            text(requests[0].exactly.as_deref().unwrap()),
            r#"{"deviceClassName":"c","allocationMode":"ExactCount","count":1}"#
        );
        assert_eq!(requests[1].exactly.as_ref().unwrap().count, 0);
        assert_eq!(requests[2].first_available[0].count, 1);
    }

    #[test]
    fn the_flat_form_has_the_same_defaults() {
        let mut o: v1beta1::ResourceClaimTemplate = read_defaulted(
            r#"{"spec":{"spec":{"devices":{"requests":[{"name":"a","deviceClassName":"c"},
            {"name":"d","firstAvailable":[{"name":"e","deviceClassName":"c"}]}]}}}}"#,
        );
        super::v1beta1::template(&mut o);
        let requests = &o.spec.spec.devices.requests;
        assert_eq!((&*requests[0].allocation_mode, requests[0].count), ("ExactCount", 1));
        assert_eq!((&*requests[1].allocation_mode, requests[1].count), ("", 0));
        assert_eq!(requests[1].first_available[0].count, 1);
    }
}
