//! Conditions of objects, where all kinds have the same ones.

use keelson_machinery::meta::v1::Condition;

use crate::faults::{Faults, Unique};
use crate::names::unlike;

const REASON_MAX: usize = 1024;
const MESSAGE_MAX: usize = 32 * 1024;

/// Checks the conditions in the field `conditions`.
pub fn check(f: &mut Faults<'_>, conditions: &[Condition]) {
    let mut types = Unique::default();
    f.each("conditions", conditions, |f, condition| {
        types.check(&mut f.at("type"), &condition.r#type);
        f.at("type").qualified(&condition.r#type);
        f.at("status").one_of(&condition.status, &["False", "True", "Unknown"]);
        if condition.observed_generation < 0 {
            f.at("observedGeneration")
                .invalid(condition.observed_generation, "must be greater than or equal to zero");
        }
        f.at("lastTransitionTime")
            .required_if(condition.last_transition_time.is_zero(), "");
        reason(&mut f.at("reason"), &condition.reason);
        f.at("message").max_bytes(&condition.message, MESSAGE_MAX);
    });
}

fn reason(f: &mut Faults<'_>, reason: &str) {
    if !f.filled(reason) {
        return;
    }
    let is_letter = |b: u8| b.is_ascii_alphabetic();
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b',' | b':');
    let bytes = reason.as_bytes();
    let last = bytes.last().is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    if !(bytes.first().is_some_and(|b| is_letter(*b)) && last && bytes.iter().all(|b| fits(*b))) {
        let text = "a condition reason must start with alphabetic character, optionally followed by a string of \
                    alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'";
        let examples = ["my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"];
        f.invalid(
            reason,
            unlike(text, "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?", &examples),
        );
    }
    f.max_bytes(reason, REASON_MAX);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::of_object;
    use crate::testing::{lines, read};

    #[test]
    fn conditions_are_whole() {
        let time = r#""lastTransitionTime":"2026-01-01T00:00:00Z""#;
        for (condition, expected) in [
            (format!(r#""type":"A","status":"True","reason":"B:c",{time}"#), ""),
            (
                r#""status":"true""#.to_owned(),
                "type type status lastTransitionTime reason",
            ),
            (
                format!(r#""type":"a","status":"True","reason":"b,","observedGeneration":-1,{time}"#),
                "observedGeneration reason",
            ),
        ] {
            let conditions = vec![read::<Condition>(&format!("{{{condition}}}"))];
            let found = lines(&of_object(|f| check(f, &conditions)));
            let fields: Vec<&str> = found.lines().filter_map(|line| line.split(": ").next()).collect();
            assert_eq!(fields.join(" ").replace("conditions[0].", ""), expected, "{condition}");
        }
    }
}
