//! Resource quotas.

use std::collections::BTreeSet;

use keelson_api::core::v1::ResourceQuota;
use keelson_machinery::field::{BadValue, ErrorList, FieldError, Path};
use keelson_registry::{Context, KindCode, Strategy};

use super::resource_list::round;
use crate::cells;
use crate::metadata;
use crate::typed::IMMUTABLE;

/// Registers the rules of quotas.
pub fn register(code: &mut KindCode) {
    code.kind::<ResourceQuota>()
        .strategy(ResourceQuotaStrategy)
        .defaults(defaults)
        .metadata_checks(metadata::CHANGE)
        .cells(cells::quota::RESOURCE_QUOTA);
}

/// The rules of quotas.
struct ResourceQuotaStrategy;

impl Strategy for ResourceQuotaStrategy {
    type Object = ResourceQuota;

    /// What a quota counts stays, in whatever order it is said.
    fn validate_update(&self, _context: &Context, new: &ResourceQuota, old: &ResourceQuota) -> ErrorList {
        let scopes = |quota: &ResourceQuota| quota.spec.scopes.iter().cloned().collect::<BTreeSet<_>>();
        if scopes(new) == scopes(old) {
            return ErrorList::default();
        }
        let shown = BadValue::json(serde_json::Value::from(new.spec.scopes.clone()).to_string());
        FieldError::invalid(&Path::new("spec").child("scopes"), shown, IMMUTABLE).into()
    }
}

/// Defaults in code of resource quotas.
fn defaults(o: &mut ResourceQuota) {
    round(&mut o.spec.hard);
    round(&mut o.status.hard);
    round(&mut o.status.used);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn scopes_stay() {
        let changed = |new: &str| {
            let read = |scopes: &str| read::<ResourceQuota>(&format!(r#"{{"spec":{{"scopes":[{scopes}]}}}}"#));
            let old = read(r#""a","b""#);
            lines(&ResourceQuotaStrategy.validate_update(&context(), &read(new), &old))
        };
        assert_eq!(changed(r#""b","a","b""#), "");
        assert_eq!(
            changed(r#""b""#),
            "spec.scopes: Invalid value: [\"b\"]: field is immutable"
        );
    }
}
