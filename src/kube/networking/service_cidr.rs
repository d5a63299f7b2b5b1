//! Ranges of service addresses.

use keelson_api::networking_k8s_io::v1::ServiceCIDR;
use keelson_machinery::field::text::json_list;
use keelson_machinery::field::{BadValue, ErrorList};
use keelson_registry::write::Part;
use keelson_registry::{Context, KindCode, Strategy};

use crate::cells;
use crate::cidr::{self, Cidr};
use crate::faults::{self, Faults};
use crate::metadata;
use crate::typed::{IMMUTABLE, keep_all_metadata};

/// Registers the rules of ranges.
pub fn register(code: &mut KindCode) {
    code.kind::<ServiceCIDR>()
        .strategy(ServiceCidrStrategy)
        .metadata_checks(metadata::CHANGE)
        .cells(cells::networking::SERVICE_CIDR);
}

/// The rules of ranges.
struct ServiceCidrStrategy;

impl Strategy for ServiceCidrStrategy {
    type Object = ServiceCIDR;

    /// A range of one family may get one of the other beside it; else nothing changes.
    fn validate(&self, _context: &Context, new: &ServiceCIDR, old: Option<&ServiceCIDR>) -> ErrorList {
        let now = new.spec.cidrs.as_slice();
        let was = old.map_or(now, |old| &old.spec.cidrs);
        faults::of_spec(|f| {
            if now.len() != was.len() && (was.len(), now.len()) != (1, 2) {
                return f.at("cidrs").invalid(now, IMMUTABLE);
            }
            for (place, (now, was)) in now.iter().zip(was).enumerate() {
                f.at("cidrs").index(place).invalid_if(now != was, now, IMMUTABLE);
            }
            if old.is_none() || now.len() != was.len() {
                ranges(&mut f.at("cidrs"), now);
            }
        })
    }

    fn reset_fields(&self, part: Part<'_>) -> &'static [&'static [&'static str]] {
        match part {
            Part::Status => &[&["metadata"]],
            _ => &[],
        }
    }

    fn prepare_for_status_update(&self, _context: &Context, new: &mut ServiceCIDR, old: &ServiceCIDR) {
        keep_all_metadata(new, old);
    }
}

/// One range, or one of each family.
fn ranges(f: &mut Faults<'_>, ranges: &[String]) {
    match ranges.len() {
        0 => return f.required("at least one CIDR required"),
        1 | 2 => {}
        // The API shows what is around the list, by the names that it has for itself.
        _ => {
            let all = json_list(ranges.iter().map(String::as_str));
            let shown = BadValue::json(format!("{{\"CIDRs\":{all}}}"));
            return f.invalid(shown, "may only hold up to 2 values");
        }
    }
    for (place, text) in ranges.iter().enumerate() {
        let found = cidr::validate_canonical(text, &f.index(place).path());
        f.extend(found);
    }
    let is_v4 = |text: &String| Cidr::parse(text).map(|range| range.address.to_canonical().is_ipv4());
    if let [one, other] = ranges {
        let text = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        let are_alike = is_v4(one).is_some() && is_v4(one) == is_v4(other);
        f.invalid_if(are_alike, ranges, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, lines, read};

    #[test]
    fn a_range_stays() {
        let changed = |old: &str, new: &str| {
            let read = |ranges: &str| read::<ServiceCIDR>(&format!(r#"{{"spec":{{"cidrs":[{ranges}]}}}}"#));
            lines(&ServiceCidrStrategy.validate(&context(), &read(new), Some(&read(old))))
        };
        let at = |place: &str, value: &str| format!("spec.cidrs{place}: Invalid value: {value}: field is immutable");
        assert_eq!(changed(r#""a""#, r#""a""#), "");
        assert_eq!(changed(r#""10.0.0.0/24""#, r#""10.0.0.0/24","fd00::/64""#), "");
        assert!(changed(r#""10.0.0.0/24""#, r#""10.0.0.0/24","10.0.1.0/24""#).contains("no more than one IP"));
        assert!(changed(r#""a""#, r#""b","a""#).starts_with(&at("[0]", "\"b\"")));
        assert_eq!(changed(r#""a""#, r#""b""#), at("[0]", "\"b\""));
        assert_eq!(changed(r#""a","b""#, r#""a","c""#), at("[1]", "\"c\""));
        assert_eq!(changed(r#""a","b""#, r#""a""#), at("", "[\"a\"]"));
    }

    #[test]
    fn ranges_are_one_of_each_family() {
        for (cidrs, expected) in [
            (r#""10.0.0.0/24""#, ""),
            (r#""10.0.0.0/24","fd00::/64""#, ""),
            ("", "spec.cidrs: Required value: at least one CIDR required"),
            (
                r#""a","b","c""#,
                "spec.cidrs: Invalid value: {\"CIDRs\":[\"a\",\"b\",\"c\"]}: may only hold up to 2 values",
            ),
            (
                r#""10.0.0.0/24","10.0.1.0/24""#,
                "spec.cidrs: Invalid value: [\"10.0.0.0/24\",\"10.0.1.0/24\"]: may specify no more than one IP for each IP \
                 family, i.e 192.168.0.0/24 and 2001:db8::/64",
            ),
            (
                r#""FD00::/64""#,
                "spec.cidrs[0]: Invalid value: \"FD00::/64\": must be in canonical form (\"fd00::/64\")",
            ),
            (
                r#""x","y""#,
                "spec.cidrs[0]: Invalid value: \"x\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)\n\
                 spec.cidrs[1]: Invalid value: \"y\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
            ),
        ] {
            let object: ServiceCIDR = read(&format!(r#"{{"spec":{{"cidrs":[{cidrs}]}}}}"#));
            assert_eq!(
                lines(&ServiceCidrStrategy.validate(&context(), &object, None)),
                expected
            );
        }
    }
}
