//! Text to quantity.

use super::{Format, Quantity};
use crate::Error;

/// Finest scale that is kept.
const NANO: i32 = -9;
/// Up to this many digits Go computes in 64 bits and may keep the text as given.
const SHORT_DIGITS: usize = 18;

/// The pieces of a quantity's text.
struct Pieces<'a> {
    negative: bool,
    /// Digits before the point, without leading zeros; at least `0`.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

struct Suffix {
    format: Format,
    /// Power of two for binary suffixes, of ten otherwise.
    power: i32,
}

pub(super) fn parse(text: &str) -> Result<Quantity, Error> {
    let wrong = || Error::Quantity(text.to_owned());
    let pieces = split(text).ok_or_else(wrong)?;
    let suffix = read_suffix(pieces.suffix).ok_or_else(wrong)?;
    let too_long = || Error::QuantityTooLong(text.to_owned());
    let digits = format!("{}{}", pieces.whole, pieces.fraction);
    let significant = digits.trim_start_matches('0');
    let fraction_digits = i32::try_from(pieces.fraction.len()).map_err(|_| too_long())?;
    if significant.len() > 38 {
        return Err(too_long());
    }
    let size: i128 = if significant.is_empty() {
        0
    } else {
        significant.parse().map_err(|_| wrong())?
    };
    let mut quantity = match suffix.format {
        Format::Binary => binary(size, fraction_digits, suffix.power).ok_or_else(too_long)?,
        format => decimal(size, suffix.power.saturating_sub(fraction_digits), format),
    };
    if pieces.negative {
        quantity.mantissa = -quantity.mantissa;
    }
    if keeps_text(&pieces, &digits, &suffix) {
        quantity.kept = Some(text.into());
    }
    Ok(quantity)
}

fn decimal(size: i128, exponent: i32, format: Format) -> Quantity {
    let (mantissa, exponent) = round_up(size, exponent, NANO);
    Quantity {
        mantissa,
        exponent,
        format,
        kept: None,
    }
}

fn binary(size: i128, fraction_digits: i32, power: i32) -> Option<Quantity> {
    let fraction = 10_i128.checked_pow(u32::try_from(fraction_digits).ok()?)?;
    let format = Format::Binary;
    if size / fraction > i128::from(i64::MAX) >> power {
        return Some(Quantity {
            mantissa: i128::from(i64::MAX),
            exponent: 0,
            format,
            kept: None,
        });
    }
    let scaled = size.checked_mul(1_i128 << power)?;
    let (mantissa, exponent) = round_up(scaled, -fraction_digits, NANO);
    let below_one = scaled < fraction && fraction_digits > 0;
    let format = if below_one { Format::Decimal } else { format };
    Some(Quantity {
        mantissa,
        exponent,
        format,
        kept: None,
    })
}

/// Rounds away from zero so that nothing finer than `10^limit` is left.
pub(super) fn round_up(mantissa: i128, exponent: i32, limit: i32) -> (i128, i32) {
    if exponent >= limit {
        return (mantissa, exponent);
    }
    let steps = limit.saturating_sub(exponent).unsigned_abs();
    let Some(unit) = 10_i128.checked_pow(steps) else {
        // finer than anything representable: the smallest step in its direction
        return (mantissa.signum(), limit);
    };
    let rest = (mantissa % unit).signum();
    (mantissa / unit + rest, limit)
}

/// Go keeps a text it takes to be canonical already. Its test is cheap and lets through more than that (`+5`,
/// `1.500`), and the hash of a template shows it.
fn keeps_text(pieces: &Pieces<'_>, digits: &str, suffix: &Suffix) -> bool {
    let fraction = pieces.fraction.len();
    if suffix.format == Format::Binary {
        // power × 3/10 is about the number of decimal digits of the suffix
        let spare = 14 - pieces.whole.len() as i64 - i64::from(suffix.power) * 3 / 10;
        return spare >= 0 && fraction == 0 && low_bits(digits);
    }
    let scale = i64::from(suffix.power) - fraction as i64;
    let short = pieces.whole.len() + fraction <= SHORT_DIGITS && scale >= i64::from(NANO);
    short && scale % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0')
}

/// Is the number not a multiple of eight?
fn low_bits(digits: &str) -> bool {
    digits.parse::<i64>().is_ok_and(|value| value & 7 != 0)
}

fn split(text: &str) -> Option<Pieces<'_>> {
    if text.is_empty() {
        return None;
    }
    let (negative, rest) = match text.as_bytes() {
        [b'-', ..] => (true, text.get(1..)?),
        [b'+', ..] => (false, text.get(1..)?),
        _ => (false, text),
    };
    let rest = rest.trim_start_matches('0');
    let (whole, rest) = take(rest, |c| c.is_ascii_digit());
    let (fraction, suffix) = rest
        .strip_prefix('.')
        .map_or(("", rest), |rest| take(rest, |c| c.is_ascii_digit()));
    let (_, tail) = take(suffix, |c| "eEinumkKMGTP".contains(c));
    let tail = tail.strip_prefix(['-', '+']).unwrap_or(tail);
    let whole = if whole.is_empty() { "0" } else { whole };
    tail.chars().all(|c| c.is_ascii_digit()).then_some(Pieces {
        negative,
        whole,
        fraction,
        suffix,
    })
}

fn take(text: &str, accept: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !accept(c)).unwrap_or(text.len()))
}

fn read_suffix(suffix: &str) -> Option<Suffix> {
    let (format, power) = match suffix {
        "Ki" => (Format::Binary, 10),
        "Mi" => (Format::Binary, 20),
        "Gi" => (Format::Binary, 30),
        "Ti" => (Format::Binary, 40),
        "Pi" => (Format::Binary, 50),
        "Ei" => (Format::Binary, 60),
        "n" => (Format::Decimal, -9),
        "u" => (Format::Decimal, -6),
        "m" => (Format::Decimal, -3),
        "" => (Format::Decimal, 0),
        "k" => (Format::Decimal, 3),
        "M" => (Format::Decimal, 6),
        "G" => (Format::Decimal, 9),
        "T" => (Format::Decimal, 12),
        "P" => (Format::Decimal, 15),
        "E" => (Format::Decimal, 18),
        // Go narrows the exponent to 32 bits without looking
        _ => (
            Format::Exponent,
            suffix.strip_prefix(['e', 'E'])?.parse::<i64>().ok()? as i32,
        ),
    };
    Some(Suffix { format, power })
}
