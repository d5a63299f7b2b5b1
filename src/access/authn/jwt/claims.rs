//! The claims that every issuer means alike.

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, Visitor};
use serde_json::Value;

/// Seconds by which clocks may differ.
const LEEWAY: i64 = 60;

/// Reads a claim; null is none, as for Go.
pub fn null_is_none<'de, T, D>(claim: D) -> Result<T, D::Error>
where
    T: serde::Deserialize<'de> + Default,
    D: serde::Deserializer<'de>,
{
    use serde::Deserialize as _;
    Option::<T>::deserialize(claim).map(Option::unwrap_or_default)
}

/// Claims of RFC 7519. What is absent is none.
#[derive(serde::Deserialize, Default, Debug)]
pub struct RegisteredClaims {
    #[serde(default, deserialize_with = "null_is_none")]
    pub iss: String,
    #[serde(default, deserialize_with = "null_is_none")]
    pub sub: String,
    #[serde(default)]
    pub aud: Audience,
    #[serde(default)]
    pub exp: Option<Moment>,
    #[serde(default)]
    pub nbf: Option<Moment>,
    #[serde(default)]
    pub iat: Option<Moment>,
    #[serde(default, deserialize_with = "null_is_none")]
    pub jti: String,
}

/// When a token is of no use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Untimely {
    Early,
    Expired,
    IssuedInTheFuture,
}

impl RegisteredClaims {
    /// Whether the token is in its time; `now` in seconds since 1970.
    pub fn check_time(&self, now: i64) -> Result<(), Untimely> {
        let after = |moment: Option<Moment>, by: i64| moment.is_some_and(|m| now.saturating_add(by) < m.0);
        if after(self.nbf, LEEWAY) {
            return Err(Untimely::Early);
        }
        if self.exp.is_some_and(|m| now.saturating_sub(LEEWAY) > m.0) {
            return Err(Untimely::Expired);
        }
        match after(self.iat, LEEWAY) {
            true => Err(Untimely::IssuedInTheFuture),
            false => Ok(()),
        }
    }
}

/// Whom a token is for: a text, or a list of texts. A token that names nobody has no such claim; `null` is no list.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Audience(pub Vec<String>);

impl<'de> Deserialize<'de> for Audience {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = || D::Error::custom("expected string or array value to unmarshal to Audience");
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Audience(vec![text])),
            Value::Array(texts) => {
                let texts = texts.into_iter().map(|text| match text {
                    Value::String(text) => Ok(text),
                    _ => Err(wrong()),
                });
                texts.collect::<Result<_, _>>().map(Audience)
            }
            _ => Err(wrong()),
        }
    }
}

/// Seconds since 1970; what follows the point of a number does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment(pub i64);

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl<'de> Visitor<'de> for Number {
            type Value = Moment;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("number value")
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Moment, E> {
                Ok(Moment(number))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Moment, E> {
                i64::try_from(number)
                    .map(Moment)
                    .map_err(|_| E::custom("a moment that is too far away"))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Moment, E> {
                // A double holds all whole numbers up to here; moments beyond are no moments.
                const MOST: f64 = 9_007_199_254_740_992.0;
                match number.abs() < MOST {
                    // Within the bound above the conversion is exact but for the fraction.
                    true => format!("{:.0}", number.trunc()).parse().map(Moment).map_err(E::custom),
                    false => Err(E::custom("a moment that is too far away")),
                }
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Moment, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Err(A::Error::custom("expected number value"))
            }
        }
        deserializer.deserialize_any(Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<RegisteredClaims, String> {
        serde_json::from_str(json).map_err(|e| e.to_string())
    }

    #[test]
    fn texts_that_are_null_are_none() {
        let claims = r#"{"iss": null, "sub": null, "jti": null, "exp": null}"#;
        let claims: RegisteredClaims = serde_json::from_str(claims).unwrap();
        assert_eq!([&*claims.iss, &*claims.sub, &*claims.jti], [""; 3]);
        assert!(claims.exp.is_none());
    }

    #[test]
    fn audiences_are_one_or_several() {
        let of = |json: &str| read(&format!("{{\"aud\":{json}}}")).map(|claims| claims.aud.0);
        assert_eq!(of("\"a\"").unwrap(), ["a"]);
        assert_eq!(of("[\"a\",\"b\"]").unwrap(), ["a", "b"]);
        assert!(read("{}").unwrap().aud.0.is_empty() && of("[]").unwrap().is_empty());
        for wrong in ["null", "5", "{}", "[1]"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn moments_are_numbers() {
        let of = |json: &str| read(&format!("{{\"exp\":{json}}}")).map(|claims| claims.exp.map(|m| m.0));
        assert_eq!(of("12").unwrap(), Some(12));
        assert_eq!(of("12.9").unwrap(), Some(12));
        assert_eq!(of("-1.5e1").unwrap(), Some(-15));
        assert_eq!(of("null").unwrap(), None);
        for wrong in ["\"12\"", "{}", "[]", "1e300", "18446744073709551615", "true"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn clocks_may_differ_by_a_minute() {
        let claims = read("{\"nbf\":1000,\"exp\":2000,\"iat\":1100}").unwrap();
        for (now, want) in [
            (939, Err(Untimely::Early)),
            (940, Err(Untimely::IssuedInTheFuture)),
            (1039, Err(Untimely::IssuedInTheFuture)),
            (1040, Ok(())),
            (2060, Ok(())),
            (2061, Err(Untimely::Expired)),
        ] {
            assert_eq!(claims.check_time(now), want, "{now}");
        }
        assert_eq!(RegisteredClaims::default().check_time(0), Ok(()));
    }
}
