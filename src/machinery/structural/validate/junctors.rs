//! `anyOf`, `oneOf`, `allOf` and `not`.

use super::findings::{Fault, Found};
use super::{Outcome, Walk};
use crate::field::text::quote;
use crate::structural::schema::JsonSchema;
use crate::structural::spot::Spot;
use crate::structural::view::View;

/// The alternative that most of the checks held of.
#[derive(Default)]
struct Best {
    matched: Option<u64>,
    found: Vec<Found>,
}

impl Best {
    fn offer(&mut self, matched: u64, found: Vec<Found>) {
        if self.matched.is_none_or(|best| matched > best) {
            *self = Best {
                matched: Some(matched),
                found,
            };
        }
    }
}

impl Walk {
    /// What a value has to fit too. Nothing below is compared with what it was.
    pub(super) fn junctors(&mut self, schema: &JsonSchema, new: &View<'_>, spot: &Spot<'_>) -> Outcome {
        // The check as a whole counts for one.
        let mut outcome = Outcome {
            valid: true,
            matched: 1,
        };
        if schema.junctors.is_none() {
            return outcome;
        }
        if !schema.any_of().is_empty() {
            outcome.add(self.any_of(schema.any_of(), new, spot));
        }
        if !schema.one_of().is_empty() {
            outcome.add(self.one_of(schema.one_of(), new, spot));
        }
        if !schema.all_of().is_empty() {
            outcome.add(self.all_of(schema.all_of(), new, spot));
        }
        if let Some(not) = schema.not()
            && self.apart(not, new, spot).0.valid
        {
            outcome.valid = false;
            self.composite(spot, "must not validate the schema (not)");
        }
        outcome
    }

    /// What came of an alternative, and its faults, which are not told as yet.
    fn apart(&mut self, schema: &JsonSchema, new: &View<'_>, spot: &Spot<'_>) -> (Outcome, Vec<Found>) {
        let told = std::mem::take(&mut self.found);
        let outcome = self.value(schema, new, None, spot);
        (outcome, std::mem::replace(&mut self.found, told))
    }

    fn any_of(&mut self, schemas: &[JsonSchema], new: &View<'_>, spot: &Spot<'_>) -> Outcome {
        let mut best = Best::default();
        for schema in schemas {
            let (outcome, found) = self.apart(schema, new, spot);
            if outcome.valid {
                return outcome;
            }
            best.offer(outcome.matched, found);
        }
        self.composite(spot, "must validate at least one schema (anyOf)");
        self.tell(best)
    }

    fn one_of(&mut self, schemas: &[JsonSchema], new: &View<'_>, spot: &Spot<'_>) -> Outcome {
        let (mut best, mut fitting) = (Best::default(), Vec::new());
        for schema in schemas {
            let (outcome, found) = self.apart(schema, new, spot);
            match outcome.valid {
                true => fitting.push(outcome),
                false if fitting.is_empty() => best.offer(outcome.matched, found),
                false => {}
            }
        }
        let why = match fitting.as_slice() {
            [one] => return *one,
            [] => "Found none valid".to_owned(),
            several => format!("Found {} valid alternatives", several.len()),
        };
        let text = format!("must validate one and only one schema (oneOf). {why}");
        self.composite(spot, &text);
        match fitting.is_empty() {
            true => self.tell(best),
            false => Outcome {
                valid: false,
                matched: 0,
            },
        }
    }

    fn all_of(&mut self, schemas: &[JsonSchema], new: &View<'_>, spot: &Spot<'_>) -> Outcome {
        let (mut all, mut fitting) = (Outcome::NOTHING, 0);
        for schema in schemas {
            let outcome = self.value(schema, new, None, spot);
            fitting += usize::from(outcome.valid);
            all.add(outcome);
        }
        if fitting < schemas.len() {
            let none = if fitting == 0 { ". None validated" } else { "" };
            self.composite(spot, &format!("must validate all the schemas (allOf){none}"));
        }
        all
    }

    /// Tells the faults of the best alternative.
    fn tell(&mut self, best: Best) -> Outcome {
        best.found.into_iter().for_each(|one| self.push(one));
        Outcome {
            valid: false,
            matched: best.matched.unwrap_or_default(),
        }
    }

    /// A fault of a value as a whole, which is told of no field.
    fn composite(&mut self, spot: &Spot<'_>, text: &str) {
        let text = format!("{} {text}", quote(&spot.name()));
        self.push(Found {
            fault: Fault::Whole(text),
            name: String::new(),
            value: "".into(),
        });
    }
}
