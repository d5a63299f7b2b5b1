//! Addresses that are taken.

use keelson_api::networking_k8s_io::v1::{IPAddress, ParentReference};
use keelson_machinery::field::{BadValue, ErrorList, Path};
use keelson_machinery::validation::meta::{validate_object_meta_update, validate_object_meta_with};
use keelson_machinery::validation::names::NamePart;
use keelson_registry::write::standard_finalizers;
use keelson_registry::{Context, KindCode, MetadataChecks, RepeatedChecks, Strategy};

use crate::cells;
use crate::faults::{self, Faults, given};
use crate::ip;
use crate::metadata;
use crate::typed::{IMMUTABLE, same, shown_internal};

/// Registers the rules of addresses.
pub fn register(code: &mut KindCode) {
    code.kind::<IPAddress>()
        .strategy(IpAddressStrategy)
        .metadata_checks(MetadataChecks {
            create: false,
            update: RepeatedChecks::NONE,
            ..metadata::WHOLE_FIRST
        })
        .cells(cells::networking::IP_ADDRESS);
}

/// The rules of addresses.
struct IpAddressStrategy;

impl Strategy for IpAddressStrategy {
    type Object = IPAddress;

    fn validate(&self, _context: &Context, new: &IPAddress, _old: Option<&IPAddress>) -> ErrorList {
        let mut errors = of_metadata(new);
        errors.extend(faults::of_spec(|f| {
            f.some("parentRef", new.spec.parent_ref.as_deref(), parent);
        }));
        errors
    }

    /// Whose it is stays.
    fn validate_change(&self, _context: &Context, new: &IPAddress, old: &IPAddress) -> ErrorList {
        let path = Path::new("metadata");
        let mut errors = validate_object_meta_update(&new.metadata, &old.metadata, &path);
        errors.extend(standard_finalizers(&new.metadata, &path));
        errors.extend(faults::of_spec(|f| {
            let (now, before) = (new.spec.parent_ref.as_deref(), old.spec.parent_ref.as_deref());
            if !same(now, before) {
                let shown = now.map_or_else(BadValue::null, |parent| shown_internal(parent).into());
                f.at("parentRef").invalid(shown, IMMUTABLE);
            }
        }));
        errors
    }
}

/// The metadata of an object whose name, and whose prefix of a name, is an address in the form that all write alike.
fn of_metadata(object: &IPAddress) -> ErrorList {
    let path = Path::new("metadata");
    let address = |name: &str, _: NamePart| -> Vec<String> {
        let faults = ip::validate_canonical(name, &[], &path);
        faults.into_iter().map(|fault| fault.detail).collect()
    };
    let mut errors = validate_object_meta_with(&object.metadata, false, &address, &path);
    errors.extend(standard_finalizers(&object.metadata, &path));
    errors
}

/// What is wrong with the name of whose it is; that there is one says the definition.
fn parent(f: &mut Faults<'_>, parent: &ParentReference) {
    f.at("group").subdomain(given(&parent.group));
    f.at("resource").filled_segment(&parent.resource);
    f.at("name").filled_segment(&parent.name);
    if !parent.namespace.is_empty() {
        f.at("namespace").filled_segment(&parent.namespace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    fn address(name: &str, parent: &str) -> IPAddress {
        read(&format!(
            r#"{{"metadata":{{"name":"{name}"}},"spec":{{"parentRef":{{{parent}}}}}}}"#
        ))
    }

    const PARENT: &str = r#""resource":"services","namespace":"b","name":"a""#;

    #[test]
    fn an_address_has_one_name_and_somebody_whose_it_is() {
        for (name, parent, expected) in [
            ("10.0.0.1", PARENT, ""),
            (
                "FD00::1",
                PARENT,
                "metadata.name: Invalid value: \"FD00::1\": must be in canonical form (\"fd00::1\")",
            ),
            (
                "fd00::1",
                r#""group":"A","name":"a/b""#,
                "spec.parentRef.group: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case \
                 alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
                 'example.com', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')\n\
                 spec.parentRef.resource: Required value\n\
                 spec.parentRef.name: Invalid value: \"a/b\": may not contain '/'",
            ),
        ] {
            let found = IpAddressStrategy.validate(&context(), &address(name, parent), None);
            assert_eq!(lines(&found), expected, "{name}");
        }
    }

    #[test]
    fn whose_it_is_stays() {
        let stored = |parent: &str| {
            let mut stored = address("10.0.0.1", parent);
            stored.metadata.resource_version = "1".to_owned();
            stored
        };
        let (old, new) = (stored(PARENT), stored(&PARENT.replace("\"a\"", "\"c\"")));
        assert_eq!(lines(&IpAddressStrategy.validate(&context(), &old, Some(&old))), "");
        assert_eq!(
            lines(&IpAddressStrategy.validate_change(&context(), &new, &old)),
            "spec.parentRef: Invalid value: {\"Group\":\"\",\"Resource\":\"services\",\"Namespace\":\"b\",\
             \"Name\":\"c\"}: field is immutable"
        );
    }
}
