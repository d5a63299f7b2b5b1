//! The bound on what a failure says. Texts quote what a client sent; whatever quoted it, the answer is short.

use std::borrow::Cow;

use super::{Cause, Details, StatusError};
use crate::field::text::{cut, json_string};

/// Bytes of JSON that a Status is left as it is with.
const MAX: usize = 60 * 1024;
/// Bytes of JSON for the message of a longer one, and for its causes.
const MAX_MESSAGE: usize = 24 * 1024;
const MAX_CAUSES: usize = 24 * 1024;
/// The same of one text in the causes or the details.
const MAX_TEXT: usize = 2 * 1024;
/// What a cause has beside its texts, indented.
const CAUSE: usize = 128;

impl StatusError {
    /// As it is, or with its message cut and the causes left out for which there is no room: the Status has at most
    /// 64 KiB of JSON, indented or not.
    pub fn bounded(&self) -> Cow<'_, StatusError> {
        // Texts grow to six times their length at most.
        if self.length(str::len) * 6 <= MAX || self.length(written) <= MAX {
            return Cow::Borrowed(self);
        }
        let mut error = self.clone();
        cut_written(&mut error.message, MAX_MESSAGE);
        if let Some(details) = &mut error.details {
            details.bound();
        }
        Cow::Owned(error)
    }

    fn length(&self, of: fn(&str) -> usize) -> usize {
        let details = self.details.as_deref().map_or(0, |details| details.length(of));
        let token = self.continue_token.as_deref().map_or(0, of);
        of(&self.message) + token + details
    }
}

impl Details {
    fn length(&self, of: fn(&str) -> usize) -> usize {
        let causes: usize = self.causes.iter().map(|cause| cause.length(of)).sum();
        of(&self.name) + of(&self.group) + of(&self.kind) + of(&self.uid) + causes
    }

    fn bound(&mut self) {
        for text in [&mut self.name, &mut self.group, &mut self.kind, &mut self.uid] {
            cut_written(text, MAX_TEXT);
        }
        let many = self.causes.len() > 1;
        let mut room = MAX_CAUSES;
        let fits = |cause: &mut Cause| {
            cut_written(&mut cause.field, MAX_TEXT);
            cut_written(
                &mut cause.message,
                if many { MAX_TEXT } else { MAX_CAUSES - 2 * MAX_TEXT },
            );
            let length = cause.length(written);
            let fits = length <= room;
            room = room.saturating_sub(length);
            fits
        };
        let kept = self.causes.iter_mut().map(fits).take_while(|fits| *fits).count();
        self.causes.truncate(kept);
    }
}

impl Cause {
    fn length(&self, of: fn(&str) -> usize) -> usize {
        CAUSE + of(&self.message) + of(&self.field)
    }
}

/// Bytes of a text as JSON.
fn written(text: &str) -> usize {
    let mut out = String::with_capacity(text.len() + 2);
    json_string(text, &mut out);
    out.len()
}

/// Cuts a text that takes more than `max` bytes as JSON.
fn cut_written(text: &mut String, max: usize) {
    let mut left = max;
    let mut one = String::new();
    let end = text.char_indices().find_map(|(at, c)| {
        one.clear();
        json_string(c.encode_utf8(&mut [0; 4]), &mut one);
        // Without the quotes.
        let length = one.len() - 2;
        let ends = length > left;
        left = left.saturating_sub(length);
        ends.then_some(at)
    });
    if let Some(end) = end {
        cut(text, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::{ErrorList, FieldError, Path};
    use crate::json;

    fn length(error: &StatusError) -> usize {
        json::to_vec(&error.bounded().to_status()).len()
    }

    #[test]
    fn a_status_has_at_most_64_kib_whatever_it_quotes() {
        for text in ["x", "\u{1}", "\"", "<", "é", "日", "\n", "\u{2028}", "😀"] {
            let long = text.repeat(1 << 17);
            let list = ErrorList::from_iter(vec![FieldError::invalid(&Path::new("a").key(&long), &long, &long); 300]);
            let short = FieldError::invalid(&Path::new("a"), text, "no");
            let mut causes = StatusError::internal_error("no");
            causes.details_mut().causes = vec![Cause::default(); 20_000];
            for error in [
                StatusError::bad_request(&*long),
                StatusError::internal_error(&long),
                StatusError::not_found(&long, &long, &long),
                StatusError::invalid("apps", "Deployment", &long, &list),
                StatusError::invalid("apps", "Deployment", "a", &ErrorList::from_iter(vec![short; 20_000])),
                causes,
            ] {
                let length = length(&error);
                assert!(length <= 64 << 10, "{text:?}: {length}");
            }
        }
    }

    #[test]
    fn what_is_short_enough_stays_as_it_is() {
        let list = ErrorList::from_iter((0..60).map(|n| FieldError::invalid(&Path::new("a").index(n), "x", "no")));
        let error = StatusError::invalid("apps", "Deployment", "a", &list);
        assert!(matches!(error.bounded(), Cow::Borrowed(_)));
        let long = StatusError::bad_request("x".repeat(MAX - 100));
        assert_eq!(long.bounded().message.len(), MAX - 100);
    }
}
