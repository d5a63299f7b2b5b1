//! Arithmetic of amounts by name, as quotas need it.

use std::collections::BTreeSet;

use keelson_machinery::quantity::Quantity;

pub use crate::core::pod_resources::{Amounts, add};

/// What is in `a` beyond `b`, never below zero; what only `b` has is zero.
pub fn grown(a: &Amounts, b: &Amounts) -> Amounts {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let zero = Quantity::from_int(0);
    let difference = |name: &String| match (a.get(name), b.get(name)) {
        (Some(a), Some(b)) => a.minus(b),
        (Some(a), None) => a.clone(),
        (None, _) => zero.clone(),
    };
    let at_least_zero = |amount: Quantity| if amount.is_negative() { zero.clone() } else { amount };
    names
        .into_iter()
        .map(|name| (name.clone(), at_least_zero(difference(name))))
        .collect()
}

/// Those of them that are not zero.
pub fn without_zeros(mut amounts: Amounts) -> Amounts {
    amounts.retain(|_, amount| !amount.is_zero());
    amounts
}

/// Those of them that have these names.
pub fn of_names<'a>(amounts: &Amounts, names: impl IntoIterator<Item = &'a String>) -> Amounts {
    let found = names.into_iter().filter_map(|name| amounts.get_key_value(name));
    found.map(|(name, amount)| (name.clone(), amount.clone())).collect()
}

/// `cpu=1,memory=2Gi`.
pub fn text(amounts: &Amounts) -> String {
    let texts = amounts.iter().map(|(name, amount)| format!("{name}={amount}"));
    texts.collect::<Vec<_>>().join(",")
}

/// A whole number.
pub fn count(number: usize) -> Quantity {
    Quantity::from_int(i64::try_from(number).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(text: &str) -> Amounts {
        let parts = text.split(',').filter(|part| !part.is_empty());
        let pair = |part: &str| {
            part.split_once('=')
                .map(|(name, amount)| (name.to_owned(), amount.to_owned()))
        };
        let pairs = parts.filter_map(pair);
        pairs
            .map(|(name, amount)| (name, Quantity::parse(&amount).unwrap()))
            .collect()
    }

    #[test]
    fn amounts_grow_and_never_shrink() {
        let grown = |a: &str, b: &str| text(&grown(&amounts(a), &amounts(b)));
        assert_eq!(grown("a=3,b=1", "a=1,b=2,c=1"), "a=2,b=0,c=0");
        assert_eq!(grown("", ""), "");
        assert_eq!(text(&without_zeros(amounts("a=0,b=1,c=0"))), "b=1");
        let all = amounts("a=1,b=2");
        assert_eq!(text(&of_names(&all, &["b".to_owned(), "c".to_owned()])), "b=2");
    }
}
