//! Slices of endpoints.

use keelson_machinery::equality;
use keelson_machinery::object::Object;
use keelson_server::registry::{Context, Strategy};

use crate::api::discovery_k8s_io::v1::{Endpoint, EndpointSlice};
use crate::kube::typed::{typed, typed_mut};

/// Says what the field `nodeName` says.
const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";

/// The rules of endpoint slices.
pub struct EndpointSliceStrategy;

impl Strategy for EndpointSliceStrategy {
    fn warnings(&self, new: &dyn Object, old: Option<&dyn Object>) -> Vec<String> {
        let old_type = old.is_none() && typed::<EndpointSlice>(new).is_some_and(|o| o.address_type == "FQDN");
        let text = "spec.addressType: FQDN endpoints are deprecated";
        old_type.then(|| text.to_owned()).into_iter().collect()
    }

    fn prepare_for_create(&self, _context: &Context, object: &mut dyn Object) {
        if let Some(o) = typed_mut::<EndpointSlice>(object) {
            forget_host_names(&mut o.endpoints);
        }
    }

    /// A change of labels counts too: consumers find slices by them.
    fn prepare_for_update(&self, _context: &Context, new: &mut dyn Object, old: &dyn Object) {
        let (Some(new), Some(old)) = (typed_mut::<EndpointSlice>(new), typed::<EndpointSlice>(old)) else {
            return;
        };
        let same =
            |a: &[Endpoint], b: &[Endpoint]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equality::equal(a, b));
        if !same(&new.endpoints, &old.endpoints) {
            forget_host_names(&mut new.endpoints);
        }
        if new.metadata.labels != old.metadata.labels {
            new.metadata.generation = old.metadata.generation + 1;
        }
    }
}

fn forget_host_names(endpoints: &mut [Endpoint]) {
    for endpoint in endpoints {
        endpoint.deprecated_topology.remove(HOSTNAME_LABEL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kube::testing::{context, read};

    #[test]
    fn labels_count_and_host_names_are_dropped() {
        let mut old: EndpointSlice = read(
            r#"{"metadata":{"generation":1},"endpoints":[{"deprecatedTopology":{"kubernetes.io/hostname":"h","a":"b"}}]}"#,
        );
        EndpointSliceStrategy.prepare_for_create(&context(), &mut old);
        assert_eq!(old.endpoints[0].deprecated_topology.len(), 1);
        let mut new = old.clone();
        new.metadata.annotations.insert("a".to_owned(), "b".to_owned());
        EndpointSliceStrategy.prepare_for_update(&context(), &mut new, &old);
        assert_eq!(new.metadata.generation, 1);
        new.metadata.labels.insert("a".to_owned(), "b".to_owned());
        EndpointSliceStrategy.prepare_for_update(&context(), &mut new, &old);
        assert_eq!(new.metadata.generation, 2);
    }
}
