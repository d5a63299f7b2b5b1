//! OwnerReferencesPermissionEnforcement: who says that an object is owned, or that its owner waits for it, needs the
//! right to delete the one and to finalize the other.

use keelson_access::request_info::RequestInfo;
use keelson_machinery::equality;
use keelson_machinery::meta::v1::{ObjectMeta, OwnerReference};
use keelson_machinery::object::Kind;
use keelson_machinery::reflect::Value;
use keelson_machinery::status::StatusError;
use keelson_registry::Outcome;
use keelson_registry::admission::{Attributes, Handles, Operation, Plugin, Scope};
use keelson_registry::outcome::{later, now};

pub struct OwnerReferencesPermissionEnforcement;

impl Plugin for OwnerReferencesPermissionEnforcement {
    fn name(&self) -> &'static str {
        "OwnerReferencesPermissionEnforcement"
    }

    fn enabled_by_default(&self) -> bool {
        false
    }

    fn handles(&self, scope: &Scope<'_>) -> Handles {
        let writes = matches!(scope.operation, Operation::Create | Operation::Update);
        // Nodes report on their pods and have nothing else to say of them.
        let is_exempt = (scope.group, scope.plural, scope.subresource) == ("", "pods", "status");
        Handles::VALIDATES.when(writes && !is_exempt)
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Outcome<'a, ()> {
        let old = attributes.old.map(metadata_of);
        match attributes.metadata() {
            Some(new) if is_changed(new, old) => later(check(attributes, new, old.flatten())),
            _ => now(Ok(())),
        }
    }
}

fn metadata_of(kind: &dyn Kind) -> Option<&ObjectMeta> {
    let (index, _) = kind.desc().field("metadata")?;
    match kind.get(index) {
        Value::Message(metadata) => metadata.as_any().downcast_ref(),
        _ => None,
    }
}

/// `old`: what was there; a kind without metadata changes nothing.
fn is_changed(new: &ObjectMeta, old: Option<Option<&ObjectMeta>>) -> bool {
    let (new, old) = match old {
        None => return !new.owner_references.is_empty(),
        Some(None) => return false,
        Some(Some(old)) => (&new.owner_references, &old.owner_references),
    };
    new.len() != old.len() || new.iter().zip(old).any(|(new, old)| !equality::equal(new, old))
}

/// The references that make their owner wait and did not before.
fn newly_blocking<'a>(new: &'a ObjectMeta, old: Option<&ObjectMeta>) -> Vec<&'a OwnerReference> {
    let blocks = |reference: &OwnerReference| reference.block_owner_deletion == Some(true);
    let before = |uid: &str| {
        // Of several of the same uid the last one counts.
        let mut had = old.into_iter().flat_map(|old| &old.owner_references);
        had.rfind(|reference| reference.uid == uid).is_some_and(blocks)
    };
    let all = new.owner_references.iter().filter(|reference| blocks(reference));
    all.filter(|reference| !before(&reference.uid)).collect()
}

async fn check(attributes: &Attributes<'_>, new: &ObjectMeta, old: Option<&ObjectMeta>) -> Result<(), StatusError> {
    let context = attributes.context;
    let may = async |info: &RequestInfo| context.authorization.decide(&context.user, info).await;
    if attributes.operation != Operation::Create {
        let kind = attributes.kind;
        let deletion = RequestInfo {
            is_resource: true,
            verb: "delete".to_owned(),
            namespace: attributes.namespace().to_owned(),
            group: kind.group.to_string(),
            version: kind.version.to_string(),
            resource: kind.plural.to_string(),
            subresource: attributes.subresource.to_owned(),
            name: attributes.name().to_owned(),
            ..RequestInfo::default()
        };
        let verdict = may(&deletion).await;
        if !verdict.allowed {
            let why = said(&verdict.reason, verdict.error.as_deref());
            return Err(attributes.forbidden(format!("cannot set an ownerRef on a resource you can't delete: {why}")));
        }
    }
    let blocking = newly_blocking(new, old);
    if blocking.is_empty() || may(&finalizers(["*", "*", "*"], "*", "")).await.allowed {
        return Ok(());
    }
    for reference in blocking {
        for info in questions(attributes, reference).map_err(|why| attributes.forbidden(why))? {
            let verdict = may(&info).await;
            if !verdict.allowed {
                let why = said(&verdict.reason, verdict.error.as_deref());
                return Err(attributes.forbidden(format!(
                    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: {why}"
                )));
            }
        }
    }
    Ok(())
}

/// A reason and an error as Go prints them one after the other.
fn said(reason: &str, error: Option<&str>) -> String {
    format!("{reason}, {}", error.unwrap_or("<nil>"))
}

fn finalizers([group, version, resource]: [&str; 3], name: &str, namespace: &str) -> RequestInfo {
    RequestInfo {
        is_resource: true,
        verb: "update".to_owned(),
        group: group.to_owned(),
        version: version.to_owned(),
        resource: resource.to_owned(),
        subresource: "finalizers".to_owned(),
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        ..RequestInfo::default()
    }
}

/// What is asked about an owner. The error is the refusal of one whose kind nobody knows.
fn questions(attributes: &Attributes<'_>, owner: &OwnerReference) -> Result<Vec<RequestInfo>, String> {
    let (group, version) = match owner.api_version.split_once('/') {
        Some((group, version)) => (group, version),
        None => ("", owner.api_version.as_str()),
    };
    let registry = attributes.registry();
    let plural = registry.and_then(|registry| registry.plural_of(group, version, &owner.kind));
    let served = plural.and_then(|plural| registry?.lookup(group, version, &plural));
    let Some(endpoint) = served else {
        let (api_version, kind) = (&owner.api_version, &owner.kind);
        return Err(format!(
            "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion {api_version} Kind \
             {kind}: no matches for kind \"{kind}\" in version \"{api_version}\""
        ));
    };
    let namespace = if endpoint.kind.namespaced {
        attributes.namespace()
    } else {
        ""
    };
    Ok(vec![finalizers(
        [group, version, &endpoint.kind.plural],
        &owner.name,
        namespace,
    )])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read;

    fn metadata(owners: &str) -> ObjectMeta {
        read(&format!(r#"{{"ownerReferences":[{owners}]}}"#))
    }

    #[test]
    fn only_changes_of_owners_are_looked_at() {
        let (none, one) = (metadata(""), metadata(r#"{"uid":"a"}"#));
        let other = metadata(r#"{"uid":"a","controller":true}"#);
        for (new, old, expected) in [
            (&none, None, false),
            (&one, None, true),
            (&one, Some(Some(&one)), false),
            (&one, Some(Some(&other)), true),
            (&none, Some(Some(&one)), true),
            (&one, Some(None), false),
        ] {
            assert_eq!(is_changed(new, old), expected);
        }
    }

    #[test]
    fn owners_that_waited_before_may_wait() {
        let waits = metadata(r#"{"uid":"a","blockOwnerDeletion":true},{"uid":"b","blockOwnerDeletion":true}"#);
        let before = metadata(r#"{"uid":"a","blockOwnerDeletion":true},{"uid":"b","blockOwnerDeletion":false}"#);
        let uids = |found: Vec<&OwnerReference>| found.iter().map(|r| r.uid.clone()).collect::<Vec<_>>();
        assert_eq!(uids(newly_blocking(&waits, Some(&before))), ["b"]);
        assert_eq!(uids(newly_blocking(&waits, None)), ["a", "b"]);
        assert!(newly_blocking(&before, Some(&before)).is_empty());
    }
}
