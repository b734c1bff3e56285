//! The last activation of a span of time. A caller that was away for a year asks for it as cheaply as one that was not.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use super::{Schedule, Times, clock};

/// Activations that are counted one by one.
const COUNTED: u32 = 100;
/// Length of the end of a span whose activations are followed one by one.
const FOLLOWED: SignedDuration = SignedDuration::from_hours(26);

/// The activations of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The last one.
    pub latest: Timestamp,
    /// Are there more than a hundred?
    pub many: bool,
}

impl Schedule {
    /// The last activation after one moment and not after another, of those that [`Schedule::next`] finds one after the
    /// other; `None` if there is none. `local` is the time zone of the process.
    pub fn latest(&self, after: Timestamp, until: Timestamp, local: &TimeZone) -> Option<Due> {
        if let Times::Every(period) = self.times {
            return every(period, after, until);
        }
        let next = |from| self.next(from, local).filter(|found| *found <= until);
        let mut latest = next(after)?;
        for _ in 0..COUNTED {
            match next(latest) {
                Some(later) => latest = later,
                None => return Some(Due { latest, many: false }),
            }
        }
        let mut from = latest;
        // Halves the span until its end, in which all are followed, has an activation. There is one after `from`.
        let mut to = until;
        while to.duration_since(from) > FOLLOWED {
            let half = to.duration_since(from).checked_div(2)?;
            let middle = from.checked_add(half).ok()?;
            match next(middle) {
                Some(later) => from = later,
                None => to = middle,
            }
            latest = latest.max(from);
        }
        while let Some(later) = next(latest) {
            latest = later;
        }
        Some(Due { latest, many: true })
    }
}

/// The last of the moments that follow each other at this distance.
fn every(period: SignedDuration, after: Timestamp, until: Timestamp) -> Option<Due> {
    let (from, period) = (clock::second_of(after), period.as_secs().max(1));
    let count = until
        .as_second()
        .checked_sub(from)?
        .checked_div(period)
        .filter(|count| *count > 0)?;
    let latest = period
        .checked_mul(count)
        .and_then(|passed| from.checked_add(passed))?;
    Some(Due {
        latest: Timestamp::from_second(latest).ok()?,
        many: count > i64::from(COUNTED),
    })
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp, tz::TimeZone};

    use super::Due;
    use crate::schedule::Schedule;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn latest(schedule: &str, after: &str, until: &str) -> Option<(String, bool)> {
        let schedule: Schedule = schedule.parse().unwrap();
        let Due { latest, many } = schedule.latest(at(after), at(until), &TimeZone::UTC)?;
        Some((latest.to_string(), many))
    }

    #[test]
    fn the_last_activation_of_a_span_is_found_however_long_it_is() {
        let (begin, end) = ("2026-01-01T00:00:00Z", "2026-01-08T00:00:30Z");
        for (schedule, expected) in [
            ("* * * * *", Some(("2026-01-08T00:00:00Z".to_owned(), true))),
            ("0 9 * * *", Some(("2026-01-07T09:00:00Z".to_owned(), false))),
            ("* * 2 * *", Some(("2026-01-02T23:59:00Z".to_owned(), true))),
            ("0 0 9 * *", None),
            ("@every 1h30m", Some(("2026-01-08T00:00:00Z".to_owned(), true))),
            ("@every 25h", Some(("2026-01-07T06:00:00Z".to_owned(), false))),
            ("@every 200h", None),
        ] {
            assert_eq!(latest(schedule, begin, end), expected, "{schedule}");
        }
        let years = latest("* * 1-6 1 *", "2021-06-01T00:00:00Z", "2026-12-31T00:00:00Z");
        assert_eq!(years, Some(("2026-01-06T23:59:00Z".to_owned(), true)));
    }

    #[test]
    fn a_span_that_begins_at_an_activation_or_later_than_its_end_is_right_too() {
        let (one, two) = ("2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z");
        assert_eq!(latest("* * * * *", one, two), Some((two.to_owned(), false)));
        assert_eq!(latest("* * * * *", two, two), None);
        assert_eq!(latest("* * * * *", two, one), None);
        assert_eq!(latest("@every 1m", two, one), None);
        assert_eq!(latest("@every 1m", one, two), Some((two.to_owned(), false)));
        for (until, many) in [("2026-01-01T01:40:00Z", false), ("2026-01-01T01:41:00Z", true)] {
            for schedule in ["* * * * *", "@every 1m"] {
                let hundred = latest(schedule, "2026-01-01T00:00:00Z", until);
                assert_eq!(hundred, Some((until.to_owned(), many)), "{schedule}");
            }
        }
    }

    #[test]
    fn it_is_the_one_that_following_them_one_by_one_ends_at() {
        let zones = [
            "Europe/Oslo",
            "America/New_York",
            "Australia/Lord_Howe",
            "Asia/Tokyo",
        ];
        let schedules = [
            "*/7 * * * *",
            "30 2 * * *",
            "*/20 1-3 * * SUN",
            "0 0 1,15 * *",
            "5/10 */5 * 3,11 *",
        ];
        for zone in zones {
            for text in schedules {
                let schedule: Schedule = format!("TZ={zone} {text}").parse().unwrap();
                let begin = at("2026-02-27T11:22:33Z");
                for hours in [1, 30, 200, 1000, 1500, 6500] {
                    let until = begin + SignedDuration::from_hours(hours);
                    let mut last = None;
                    let mut from = begin;
                    while let Some(next) = schedule.next(from, &TimeZone::UTC).filter(|next| *next <= until) {
                        (last, from) = (Some(next), next);
                    }
                    let due = schedule.latest(begin, until, &TimeZone::UTC);
                    assert_eq!(due.map(|due| due.latest), last, "{zone} {text} {hours}");
                }
            }
        }
    }
}
