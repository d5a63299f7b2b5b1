//! resource.k8s.io/v1beta1 and the hub, v1: what a device or an exact request is made of stands in a message of its own
//! in one of the two versions.

use keelson_machinery::copy::copy_named;
use keelson_machinery::equality;

use crate::resource_k8s_io::{v1, v1beta1};

/// The parts of a basic device are those of the device.
pub fn to_hub_device(from: &v1beta1::Device, to: &mut v1::Device) -> Result<(), String> {
    if let Some(basic) = from.basic.as_deref() {
        copy_named(to, basic);
    }
    Ok(())
}

/// Every device is a basic one.
pub fn from_hub_device(from: &v1::Device, to: &mut v1beta1::Device) -> Result<(), String> {
    let mut basic = v1beta1::BasicDevice::default();
    copy_named(&mut basic, from);
    to.basic = Some(Box::new(basic));
    Ok(())
}

/// A request that says anything of a device itself is an exact one.
pub fn to_hub_device_request(from: &v1beta1::DeviceRequest, to: &mut v1::DeviceRequest) -> Result<(), String> {
    let mut exactly = v1::ExactDeviceRequest::default();
    copy_named(&mut exactly, from);
    if !equality::equal(&exactly, &v1::ExactDeviceRequest::default()) {
        to.exactly = Some(Box::new(exactly));
    }
    Ok(())
}

/// An exact request becomes the request itself.
pub fn from_hub_device_request(from: &v1::DeviceRequest, to: &mut v1beta1::DeviceRequest) -> Result<(), String> {
    if let Some(exactly) = from.exactly.as_deref() {
        copy_named(to, exactly);
    }
    Ok(())
}

/// What is absent in the hub is zero here.
pub fn to_hub_resource_slice_spec(
    from: &v1beta1::ResourceSliceSpec,
    to: &mut v1::ResourceSliceSpec,
) -> Result<(), String> {
    to.node_name = (!from.node_name.is_empty()).then(|| from.node_name.clone());
    to.all_nodes = from.all_nodes.then_some(true);
    Ok(())
}

/// What is absent in the hub is zero here.
pub fn from_hub_resource_slice_spec(
    from: &v1::ResourceSliceSpec,
    to: &mut v1beta1::ResourceSliceSpec,
) -> Result<(), String> {
    to.node_name = from.node_name.clone().unwrap_or_default();
    to.all_nodes = from.all_nodes.unwrap_or_default();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{read, text};
    use super::*;

    #[test]
    fn devices_lose_a_level() {
        let from: v1beta1::Device = read(
            r#"{"name":"d","basic":{"attributes":{"a":{"int":1}},"capacity":{"m":{"value":"1Gi"}},"nodeName":"n","taints":[{"key":"k","effect":"NoSchedule"}]}}"#,
        );
        let mut hub = v1::Device {
            name: from.name.clone(),
            ..v1::Device::default()
        };
        to_hub_device(&from, &mut hub).unwrap();
        assert_eq!(
            text(&hub),
            concat!(
                r#"{"name":"d","attributes":{"a":{"int":1}},"capacity":{"m":{"value":"1Gi"}},"nodeName":"n","#,
                r#""taints":[{"key":"k","effect":"NoSchedule"}]}"#
            )
        );
        let mut back = v1beta1::Device {
            name: hub.name.clone(),
            ..v1beta1::Device::default()
        };
        from_hub_device(&hub, &mut back).unwrap();
        assert_eq!(text(&back), text(&from));
    }

    #[test]
    fn requests_gain_one() {
        for (flat, exact) in [
            (
                r#"{"name":"","deviceClassName":"c","allocationMode":"All"}"#,
                r#"{"name":"","exactly":{"deviceClassName":"c","allocationMode":"All"}}"#,
            ),
            (r#"{"name":"","deviceClassName":""}"#, r#"{"name":""}"#),
        ] {
            let from: v1beta1::DeviceRequest = read(flat);
            let mut hub = v1::DeviceRequest::default();
            to_hub_device_request(&from, &mut hub).unwrap();
            assert_eq!(text(&hub), exact);
            let mut back = v1beta1::DeviceRequest::default();
            from_hub_device_request(&hub, &mut back).unwrap();
            assert_eq!(text(&back), flat);
        }
    }
}
