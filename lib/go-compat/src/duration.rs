//! Durations as Go writes them: `15s`, `1h2m3.5s`, `300ms`.
//!
//! Go counts nanoseconds in 64 bits; so do we, and text beyond that is refused as Go refuses it.

use jiff::SignedDuration;

use crate::Error;

/// Nanoseconds of each unit.
const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads a duration.
///
/// # Errors
/// [`Error::Duration`] if a number lacks its unit, or there are more than 2⁶³−1 nanoseconds.
pub fn parse(text: &str) -> Result<SignedDuration, Error> {
    let wrong = || Error::Duration(text.to_owned());
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest.is_empty() {
        return Err(wrong());
    }
    let mut total = 0_i128;
    while rest != "0" && !rest.is_empty() {
        let (number, tail) = split(rest, |c| c.is_ascii_digit() || c == '.');
        let (unit, tail) = split(tail, |c| !c.is_ascii_digit() && c != '.');
        let (_, size) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        total = total
            .checked_add(scaled(number, *size).ok_or_else(wrong)?)
            .ok_or_else(wrong)?;
        rest = tail;
        if rest == "0" {
            return Err(wrong());
        }
    }
    let nanoseconds = i64::try_from(if negative { -total } else { total }).map_err(|_| wrong())?;
    Ok(SignedDuration::from_nanos(nanoseconds))
}

fn split(text: &str, accept: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !accept(c)).unwrap_or(text.len()))
}

/// A decimal number of units, cut to whole nanoseconds.
fn scaled(number: &str, size: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let units: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let (mut part, mut place) = (0_i128, size);
    // digits beyond a nanosecond's share count for nothing
    for digit in fraction.chars().take(18) {
        part = part * 10 + i128::from(digit.to_digit(10)?);
        place = place.checked_mul(10)?;
    }
    let part = part.checked_mul(size)?.checked_mul(size)?.checked_div(place)?;
    units.checked_mul(size)?.checked_add(part)
}

/// The text Go prints: hours, minutes and seconds down from the largest that is not zero, or a fraction of a second
/// in its own unit.
pub fn format(duration: SignedDuration) -> String {
    let nanoseconds = duration.as_nanos();
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let size = nanoseconds.unsigned_abs();
    let text = match size {
        0 => "0s".to_owned(),
        1..1_000 => format!("{size}ns"),
        1_000..1_000_000 => format!("{}µs", decimal(size, 1_000)),
        1_000_000..1_000_000_000 => format!("{}ms", decimal(size, 1_000_000)),
        _ => {
            let seconds = decimal(size % 60_000_000_000, 1_000_000_000);
            match (size / 3_600_000_000_000, size / 60_000_000_000 % 60) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    };
    format!("{sign}{text}")
}

fn decimal(size: u128, unit: u128) -> String {
    let digits = usize::try_from(unit.ilog10()).unwrap_or_default();
    let fraction = format!("{:0digits$}", size % unit);
    match fraction.trim_end_matches('0') {
        "" => (size / unit).to_string(),
        fraction => format!("{}.{fraction}", size / unit),
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use proptest::prelude::*;

    use super::{format, parse};

    #[test]
    fn text_and_duration() {
        for (text, nanoseconds) in [
            ("0s", 0),
            ("1ns", 1),
            ("1.5µs", 1_500),
            ("300ms", 300_000_000),
            ("15s", 15_000_000_000),
            ("1m0s", 60_000_000_000),
            ("1h2m3.5s", 3_723_500_000_000),
            ("-1.000000001s", -1_000_000_001),
            ("2562047h47m16.854775807s", i64::MAX),
        ] {
            assert_eq!(parse(text), Ok(SignedDuration::from_nanos(nanoseconds)), "{text}");
            assert_eq!(format(SignedDuration::from_nanos(nanoseconds)), text);
        }
        for (text, nanoseconds) in [
            ("0", 0),
            ("-0", 0),
            ("+5s", 5_000_000_000),
            ("90m", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("1us", 1_000),
        ] {
            assert_eq!(parse(text), Ok(SignedDuration::from_nanos(nanoseconds)), "{text}");
        }
    }

    #[test]
    fn malformed_text_is_refused() {
        for bad in [
            "",
            "-",
            "15",
            "s",
            ".s",
            "1.2.3s",
            "1d",
            "1s0",
            "1 s",
            "1h-2m",
            "2562047h47m16.854775808s",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn printed_durations_read_back(nanoseconds in any::<i64>()) {
            let duration = SignedDuration::from_nanos(nanoseconds);
            prop_assume!(nanoseconds != i64::MIN);
            prop_assert_eq!(parse(&format(duration)), Ok(duration));
        }
    }
}
