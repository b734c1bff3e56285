//! The five fields of a schedule as sets of numbers.

use std::str::FromStr;

use crate::Error;

/// The error of a schedule that cannot be read.
pub(super) fn wrong(reason: impl Into<String>) -> Error {
    Error::Schedule(reason.into())
}

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// What one field may hold. Names count from its least value.
struct Bounds {
    name: &'static str,
    least: u32,
    most: u32,
    names: &'static [&'static str],
}

const fn bounds(name: &'static str, least: u32, most: u32, names: &'static [&'static str]) -> Bounds {
    Bounds {
        name,
        least,
        most,
        names,
    }
}

const MINUTE: Bounds = bounds("minute", 0, 59, &[]);
const HOUR: Bounds = bounds("hour", 0, 23, &[]);
const DAY_OF_MONTH: Bounds = bounds("day of month", 1, 31, &[]);
const MONTH: Bounds = bounds("month", 1, 12, &MONTHS);
const DAY_OF_WEEK: Bounds = bounds("day of week", 0, 6, &DAYS);

/// The numbers that a field selects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Numbers {
    /// Bit n is set if n is selected.
    bits: u64,
    /// An item without limits: `*` or `?`, whose step is at most 1.
    unlimited: bool,
}

impl Numbers {
    fn contains(self, number: i8) -> bool {
        u32::try_from(number)
            .ok()
            .and_then(|number| self.bits.checked_shr(number))
            .is_some_and(|bits| bits & 1 == 1)
    }
}

/// The moments that five fields select.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    minute: Numbers,
    hour: Numbers,
    day_of_month: Numbers,
    month: Numbers,
    day_of_week: Numbers,
}

impl Fields {
    /// Those of `@daily` and the like.
    pub(super) fn of_descriptor(text: &str) -> Option<Self> {
        let fields = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            _ => return None,
        };
        fields.parse().ok()
    }

    /// A field without numbers, such as `,`, would be searched for minute by minute.
    pub(super) fn select_nothing(&self) -> bool {
        let days = [self.day_of_month, self.day_of_week];
        let empty = |numbers: &Numbers| numbers.bits == 0;
        [self.minute, self.hour, self.month].iter().any(empty) || days.iter().all(empty)
    }

    pub(super) fn has_month(&self, month: i8) -> bool {
        self.month.contains(month)
    }

    /// Is a day selected? Days of the week count from Sunday, 0. Where both fields of days have limits, either
    /// selects it.
    pub(super) fn has_day(&self, of_month: i8, of_week: i8) -> bool {
        let (of_month, of_week) = (
            self.day_of_month.contains(of_month),
            self.day_of_week.contains(of_week),
        );
        if self.day_of_month.unlimited || self.day_of_week.unlimited {
            of_month && of_week
        } else {
            of_month || of_week
        }
    }

    pub(super) fn has_hour(&self, hour: i8) -> bool {
        self.hour.contains(hour)
    }

    pub(super) fn has_minute(&self, minute: i8) -> bool {
        self.minute.contains(minute)
    }
}

impl FromStr for Fields {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let given: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day_of_month, month, day_of_week] = given.as_slice() else {
            return Err(wrong(format!("expected exactly 5 fields, found {}", given.len())));
        };
        Ok(Self {
            minute: numbers(&MINUTE, minute)?,
            hour: numbers(&HOUR, hour)?,
            day_of_month: numbers(&DAY_OF_MONTH, day_of_month)?,
            month: numbers(&MONTH, month)?,
            day_of_week: numbers(&DAY_OF_WEEK, day_of_week)?,
        })
    }
}

/// What a list selects. Items that are empty are no items.
fn numbers(bounds: &Bounds, list: &str) -> Result<Numbers, Error> {
    let mut selected = Numbers::default();
    for item in list.split(',').filter(|item| !item.is_empty()) {
        let more = range(bounds, item)?;
        selected.bits |= more.bits;
        selected.unlimited |= more.unlimited;
    }
    Ok(selected)
}

/// `*`, `a`, `a-b`, each with or without `/step`.
fn range(bounds: &Bounds, item: &str) -> Result<Numbers, Error> {
    let at = |reason: String| wrong(format!("{}: {reason}: {item:?}", bounds.name));
    let mut parts = item.split('/');
    let limits = parts.next().unwrap_or_default();
    let step = parts.next();
    if parts.next().is_some() {
        return Err(at("too many slashes".to_owned()));
    }
    let step = step.map(|text| number(bounds, text, false)).transpose()?;
    let mut limits = limits.split('-');
    let first = limits.next().unwrap_or_default();
    let second = limits.next();
    let all = ["*", "?"].contains(&first);
    let (from, to) = if all {
        // What follows a hyphen after it does not count.
        (bounds.least, bounds.most)
    } else {
        let from = number(bounds, first, true)?;
        let to = match second {
            Some(text) => number(bounds, text, true)?,
            // A step after one number runs from it to the end.
            None if step.is_some() => bounds.most,
            None => from,
        };
        if limits.next().is_some() {
            return Err(at("too many hyphens".to_owned()));
        }
        if from < bounds.least {
            return Err(at(format!("{from} is below the least, {}", bounds.least)));
        }
        if to > bounds.most {
            return Err(at(format!("{to} is above the most, {}", bounds.most)));
        }
        if from > to {
            return Err(at("the range ends before it begins".to_owned()));
        }
        (from, to)
    };
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(at("a step must be above 0".to_owned()));
    }
    let bits = (from..=to)
        .filter(|number| (number - from) % step == 0)
        .fold(0, |bits, number| bits | 1 << number);
    Ok(Numbers {
        bits,
        unlimited: all && step == 1,
    })
}

fn number(bounds: &Bounds, text: &str, named: bool) -> Result<u32, Error> {
    let lower = text.to_lowercase();
    let by_name = bounds.names.iter().position(|name| named && *name == lower);
    let index = by_name.and_then(|index| u32::try_from(index).ok());
    index
        .map(|index| index + bounds.least)
        .or_else(|| text.parse().ok())
        .ok_or_else(|| wrong(format!("{}: {text:?} is no number", bounds.name)))
}
