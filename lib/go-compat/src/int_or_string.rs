//! A count that is either absolute or a share of a total.

use std::fmt;

use serde::de::{self, Deserializer, Unexpected, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::Error;

/// `3` or `"30%"`: Kubernetes' `intstr.IntOrString`, in the same JSON form both ways.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IntOrString {
    /// An absolute count.
    Int(i32),
    /// Text, meant to be a percentage; not validated here.
    String(String),
}

/// What happens to a fraction of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To the next larger integer.
    Up,
    /// To the next smaller integer.
    Down,
}

impl IntOrString {
    /// The strict reading, used for partitions and by webhooks: a string must be a number followed by `%`. A fraction
    /// is allowed.
    ///
    /// # Errors
    /// [`Error::Percent`] if it is anything else.
    pub fn scaled_a(&self, total: i32, rounding: Rounding) -> Result<i32, Error> {
        match self {
            Self::Int(count) => Ok(*count),
            Self::String(text) => text
                .strip_suffix('%')
                .and_then(|number| number.parse::<f64>().ok())
                .filter(|percent| percent.is_finite())
                .map(|percent| share(percent, total, rounding))
                .ok_or_else(|| Error::Percent(text.clone())),
        }
    }

    /// The lenient reading, used by controllers: every string is a percentage, with or without `%`; what cannot be
    /// read counts as nothing. A fraction counts too: reading `12.5%` as nothing would block a rollout for good.
    pub fn scaled_b(&self, total: i32, rounding: Rounding) -> i32 {
        match self {
            Self::Int(count) => *count,
            Self::String(text) => {
                let number = text.replace('%', "");
                let plain = |c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-');
                let percent = if number.chars().all(plain) {
                    number.parse::<f64>().ok()
                } else {
                    None
                };
                percent
                    .filter(|percent| percent.is_finite())
                    .map_or(0, |percent| share(percent, total, rounding))
            }
        }
    }
}

/// `percent` of `total`. Go multiplies before it divides, and in this order the result can differ in the last bit.
fn share(percent: f64, total: i32, rounding: Rounding) -> i32 {
    let exact = percent * f64::from(total) / 100.0;
    // the cast saturates
    match rounding {
        Rounding::Up => exact.ceil() as i32,
        Rounding::Down => exact.floor() as i32,
    }
}

/// How many pods stay at the old revision, within `0..=replicas`.
///
/// A percentage below `100%` always lets at least one of several pods move on, however it rounds.
///
/// # Errors
/// [`Error::Percent`] if the value is a string without `%`.
pub fn partition(value: Option<&IntOrString>, replicas: i32) -> Result<i32, Error> {
    let Some(value) = value else { return Ok(0) };
    let kept = value.scaled_a(replicas, Rounding::Up)?;
    let below_all = matches!(value, IntOrString::String(text) if text != "100%");
    let kept = if replicas > 1 && kept == replicas && below_all {
        replicas - 1
    } else {
        kept
    };
    Ok(kept.clamp(0, replicas.max(0)))
}

impl Default for IntOrString {
    fn default() -> Self {
        Self::Int(0)
    }
}

impl From<i32> for IntOrString {
    fn from(count: i32) -> Self {
        Self::Int(count)
    }
}

impl From<&str> for IntOrString {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl fmt::Display for IntOrString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(count) => count.fmt(f),
            Self::String(text) => text.fmt(f),
        }
    }
}

impl Serialize for IntOrString {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int(count) => serializer.serialize_i32(*count),
            Self::String(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for IntOrString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IntOrText;
        impl Visitor<'_> for IntOrText {
            type Value = IntOrString;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a 32-bit integer or a string")
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<IntOrString, E> {
                i32::try_from(value)
                    .map(IntOrString::Int)
                    .map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<IntOrString, E> {
                i32::try_from(value)
                    .map(IntOrString::Int)
                    .map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &self))
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<IntOrString, E> {
                Ok(IntOrString::String(value.to_owned()))
            }
        }
        deserializer.deserialize_any(IntOrText)
    }
}

#[cfg(test)]
mod tests {
    use super::{IntOrString, Rounding, partition};

    fn text(value: &str) -> IntOrString {
        value.into()
    }

    #[test]
    fn json_form_is_a_bare_integer_or_string() {
        for json in ["3", "-1", "\"30%\"", "\"\""] {
            let value: IntOrString = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&value).unwrap(), json);
        }
        for bad in ["2147483648", "-2147483649", "1.5", "true", "{}", "null"] {
            assert!(serde_json::from_str::<IntOrString>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn strict_reading_wants_a_percent_sign() {
        assert_eq!(text("30%").scaled_a(10, Rounding::Up), Ok(3));
        assert_eq!(text("25%").scaled_a(10, Rounding::Up), Ok(3));
        assert_eq!(text("25%").scaled_a(10, Rounding::Down), Ok(2));
        assert_eq!(text("12.5%").scaled_a(16, Rounding::Up), Ok(2));
        assert_eq!(text("33.3%").scaled_a(1000, Rounding::Up), Ok(333));
        assert_eq!(IntOrString::Int(7).scaled_a(3, Rounding::Up), Ok(7));
        for bad in ["30", "", "%", "x%", "30%%", " 30%", "NaN%", "inf%"] {
            assert!(text(bad).scaled_a(10, Rounding::Up).is_err(), "{bad}");
        }
    }

    #[test]
    fn lenient_reading_ignores_the_sign_and_bad_text() {
        assert_eq!(text("30").scaled_b(10, Rounding::Up), 3);
        assert_eq!(text("25%").scaled_b(10, Rounding::Down), 2);
        assert_eq!(text("12.5%").scaled_b(16, Rounding::Up), 2);
        assert_eq!(text("-20%").scaled_b(10, Rounding::Up), -2);
        for nothing in ["", "x", "1e3%", "NaN", "inf%", "3 %"] {
            assert_eq!(text(nothing).scaled_b(10, Rounding::Up), 0, "{nothing}");
        }
    }

    #[test]
    fn huge_values_saturate() {
        assert_eq!(
            text("99999999999999999999%").scaled_b(i32::MAX, Rounding::Up),
            i32::MAX
        );
        assert_eq!(text("100%").scaled_b(i32::MAX, Rounding::Up), i32::MAX);
        assert_eq!(
            text("-99999999999999999999%").scaled_a(i32::MAX, Rounding::Up),
            Ok(i32::MIN)
        );
    }

    #[test]
    fn partition_below_all_keeps_less_than_all() {
        let kept = |value: IntOrString, replicas| partition(Some(&value), replicas).unwrap();
        assert_eq!(partition(None, 5), Ok(0));
        assert_eq!(kept(text("99%"), 5), 4);
        assert_eq!(kept(text("99%"), 1), 1);
        assert_eq!(kept(text("100%"), 5), 5);
        assert_eq!(kept(text("0%"), 5), 0);
        assert_eq!(kept(text("100.0%"), 5), 4);
        assert_eq!(kept(5.into(), 5), 5);
        assert_eq!(kept(9.into(), 5), 5);
        assert_eq!(kept((-1).into(), 5), 0);
        assert_eq!(kept(text("150%"), 4), 4);
        assert_eq!(kept(text("50%"), 0), 0);
        assert!(partition(Some(&text("50")), 4).is_err());
    }
}
