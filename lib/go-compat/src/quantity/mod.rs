//! Resource quantities: `500m`, `1.5Gi`, `1e3`.
//!
//! A quantity is `mantissa × 10^exponent` in integers, so that comparing and rounding are exact. Parsing accepts what
//! Kubernetes accepts, rounds what is finer than a nano up (away from zero), and caps binary quantities at 2⁶³−1.
//! [`Quantity::canonical`] is the text a Go client writes, which keeps some texts as they were written.

mod parse;
mod text;

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::Error;

/// Which family of suffixes a quantity was written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// `Ki`, `Mi` …
    Binary,
    /// `m`, none, `k`, `M` …
    Decimal,
    /// `e3`, `E-6` …
    Exponent,
}

/// An amount of some resource. Equality and order are by amount: `1` equals `1000m`.
#[derive(Clone, Debug)]
pub struct Quantity {
    mantissa: i128,
    exponent: i32,
    format: Format,
    /// The text as given, where Go keeps it.
    kept: Option<Box<str>>,
}

impl Quantity {
    /// Reads a quantity from JSON: a string, or a number.
    ///
    /// # Errors
    /// As [`str::parse`]; [`Error::Quantity`] also for other JSON types.
    pub fn from_json(value: &Value) -> Result<Self, Error> {
        match value {
            Value::String(text) => text.trim().parse(),
            Value::Number(number) => number.to_string().parse(),
            other => Err(Error::Quantity(other.to_string())),
        }
    }

    /// The text Go writes for it.
    pub fn canonical(&self) -> String {
        self.kept
            .as_deref()
            .map_or_else(|| text::canonical(self), str::to_owned)
    }

    /// The same amount rounded up (away from zero) to a whole thousandth.
    #[must_use]
    pub fn round_up_to_milli(&self) -> Self {
        if self.exponent >= -3 {
            return self.clone();
        }
        let (mantissa, exponent) = parse::round_up(self.mantissa, self.exponent, -3);
        Self {
            mantissa,
            exponent,
            format: self.format,
            kept: None,
        }
    }

    /// The amount in thousandths, rounded up (away from zero); what is beyond `i128` is its bound.
    pub fn thousandths(&self) -> i128 {
        let (mantissa, exponent) = parse::round_up(self.mantissa, self.exponent, -3);
        let factor = 10_i128.checked_pow(exponent.saturating_add(3).unsigned_abs());
        let bound = if mantissa < 0 { i128::MIN } else { i128::MAX };
        match factor {
            _ if mantissa == 0 => 0,
            Some(factor) => mantissa.checked_mul(factor).unwrap_or(bound),
            None => bound,
        }
    }

    /// An amount in thousandths, written with decimal suffixes.
    pub fn from_thousandths(thousandths: i128) -> Self {
        Self {
            mantissa: thousandths,
            exponent: -3,
            format: Format::Decimal,
            kept: None,
        }
    }

    /// Another amount, in thousandths, written with suffixes of the same family.
    #[must_use]
    pub fn with_thousandths(&self, thousandths: i128) -> Self {
        Self {
            mantissa: thousandths,
            exponent: -3,
            format: self.format,
            kept: None,
        }
    }

    /// Is it nothing?
    pub fn is_zero(&self) -> bool {
        self.mantissa == 0
    }

    /// Is it less than nothing?
    pub fn is_negative(&self) -> bool {
        self.mantissa < 0
    }

    /// Mantissa without trailing zeros, and its exponent.
    fn stripped(&self) -> (i128, i64) {
        let (mut mantissa, mut exponent) = (self.mantissa, i64::from(self.exponent));
        while mantissa != 0 && mantissa % 10 == 0 {
            mantissa /= 10;
            exponent += 1;
        }
        (mantissa, exponent)
    }
}

impl FromStr for Quantity {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse::parse(text)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.canonical())
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_sign = self.mantissa.signum().cmp(&other.mantissa.signum());
        if by_sign != Ordering::Equal || self.mantissa == 0 {
            return by_sign;
        }
        let by_size = compare_sizes(self.stripped(), other.stripped());
        if self.mantissa < 0 {
            by_size.reverse()
        } else {
            by_size
        }
    }
}

/// Compares two amounts without regard to sign; neither is zero and mantissas end in a non-zero digit.
fn compare_sizes(a: (i128, i64), b: (i128, i64)) -> Ordering {
    let (size_a, size_b) = (a.0.unsigned_abs(), b.0.unsigned_abs());
    let (digits_a, digits_b) = (size_a.ilog10(), size_b.ilog10());
    let leading = (i64::from(digits_a) + a.1).cmp(&(i64::from(digits_b) + b.1));
    // same leading position: align both to the longer one; 38 digits always fit
    leading.then_with(|| {
        let longest = digits_a.max(digits_b);
        let align = |size: u128, digits: u32| size.saturating_mul(10_u128.pow(longest - digits));
        align(size_a, digits_a).cmp(&align(size_b, digits_b))
    })
}

#[cfg(test)]
mod tests;
