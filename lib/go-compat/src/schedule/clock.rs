//! The next moment that fields select, on the clock of a time zone.
//!
//! The search goes from the largest unit to the smallest. A unit that does not match is advanced by one, and what
//! is below it begins anew. Where clocks are changed, the result depends on how Go reads local times that do not
//! exist or exist twice, so that reading is repeated here.

use jiff::{Timestamp, ToSpan as _, civil::DateTime, tz::TimeZone};

use super::fields::Fields;

const MINUTE: i64 = 60;
const HOUR: i64 = 3_600;
/// Years that are searched after that of the beginning.
const YEARS: i16 = 5;

/// The second in which a moment is.
pub(super) fn second_of(moment: Timestamp) -> i64 {
    moment
        .as_nanosecond()
        .div_euclid(1_000_000_000)
        .try_into()
        .unwrap_or(i64::MAX)
}

pub(super) fn next(fields: &Fields, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    if fields.select_nothing() {
        return None;
    }
    let mut clock = Clock {
        zone,
        second: second_of(after).checked_add(1)?,
        cut: false,
    };
    let last = clock.local()?.year().checked_add(YEARS)?;
    loop {
        if clock.local()?.year() > last {
            return None;
        }
        let found = clock.month(fields)?
            && clock.day(fields)?
            && clock.hour(fields)?
            && clock.minute(fields)?
            && clock.whole_minute()?;
        if found {
            return Timestamp::from_second(clock.second).ok();
        }
    }
}

/// A position of the search. A step returns `false` if a larger unit has changed and must be looked at again; `None`
/// beyond the times that can be computed with.
struct Clock<'a> {
    zone: &'a TimeZone,
    /// Seconds since 1970.
    second: i64,
    /// The smaller units already stand at their beginning.
    cut: bool,
}

impl Clock<'_> {
    fn local(&self) -> Option<DateTime> {
        let moment = Timestamp::from_second(self.second).ok()?;
        Some(self.zone.to_datetime(moment))
    }

    /// Goes to a local time. It never goes back to or before where the search stands: days that a zone leaves out
    /// would be looked for without end.
    fn go(&mut self, to: DateTime) -> Option<()> {
        let from = self.second;
        self.second = moment(to, self.zone)?;
        while self.second <= from {
            self.second += 24 * HOUR;
        }
        Some(())
    }

    /// Sets the units below one to their beginning, once in a search.
    fn cut(&mut self, to: DateTime) -> Option<()> {
        if !self.cut {
            self.cut = true;
            self.second = moment(to, self.zone)?;
        }
        Some(())
    }

    fn month(&mut self, fields: &Fields) -> Option<bool> {
        loop {
            let now = self.local()?;
            if fields.has_month(now.month()) {
                return Some(true);
            }
            self.cut(now.date().first_of_month().at(0, 0, 0, 0))?;
            let now = self.local()?;
            // A day that the next month does not have is counted on into the month after it.
            let next = now.date().first_of_month().checked_add(1.month()).ok()?;
            let next = next.checked_add((now.day() - 1).days()).ok()?;
            self.go(DateTime::from_parts(next, now.time()))?;
            if self.local()?.month() == 1 {
                return Some(false);
            }
        }
    }

    fn day(&mut self, fields: &Fields) -> Option<bool> {
        loop {
            let now = self.local()?;
            if fields.has_day(now.day(), now.weekday().to_sunday_zero_offset()) {
                return Some(true);
            }
            self.cut(now.date().at(0, 0, 0, 0))?;
            let now = self.local()?;
            self.go(DateTime::from_parts(now.date().tomorrow().ok()?, now.time()))?;
            // The clocks may have been changed at midnight.
            let hour = i64::from(self.local()?.hour());
            if hour > 12 {
                self.second += (24 - hour) * HOUR;
            } else {
                self.second -= hour * HOUR;
            }
            if self.local()?.day() == 1 {
                return Some(false);
            }
        }
    }

    fn hour(&mut self, fields: &Fields) -> Option<bool> {
        loop {
            let now = self.local()?;
            if fields.has_hour(now.hour()) {
                return Some(true);
            }
            self.cut(now.date().at(now.hour(), 0, 0, 0))?;
            self.second += HOUR;
            if self.local()?.hour() == 0 {
                return Some(false);
            }
        }
    }

    fn minute(&mut self, fields: &Fields) -> Option<bool> {
        loop {
            let now = self.local()?;
            if fields.has_minute(now.minute()) {
                return Some(true);
            }
            if !self.cut {
                self.cut = true;
                self.second -= self.second.rem_euclid(MINUTE);
            }
            self.second += MINUTE;
            if self.local()?.minute() == 0 {
                return Some(false);
            }
        }
    }

    /// Activations are at second 0.
    fn whole_minute(&mut self) -> Option<bool> {
        let second = i64::from(self.local()?.second());
        if second == 0 {
            return Some(true);
        }
        self.cut = true;
        self.second += MINUTE - second;
        Some(false)
    }
}

/// The second of a local time. In a gap or an overlap of the zone it is one of the two that Go chooses: the offset
/// is that at the time which results if the local time is first read as UTC.
fn moment(local: DateTime, zone: &TimeZone) -> Option<i64> {
    let as_utc = TimeZone::UTC.to_timestamp(local).ok()?.as_second();
    let offset_at = |second| {
        let moment = Timestamp::from_second(second).ok()?;
        Some(i64::from(zone.to_offset(moment).seconds()))
    };
    Some(as_utc - offset_at(as_utc - offset_at(as_utc)?)?)
}

#[cfg(test)]
mod tests {
    use jiff::{
        Timestamp,
        tz::{TimeZone, offset},
    };

    use crate::schedule::Schedule;

    fn next(schedule: &str, after: &str) -> Option<String> {
        let after: Timestamp = after.parse().unwrap();
        let schedule: Schedule = schedule.parse().unwrap();
        schedule
            .next(after, &TimeZone::UTC)
            .map(|found| found.to_string())
    }

    #[test]
    fn a_schedule_without_a_zone_follows_that_of_the_process() {
        let schedule: Schedule = "0 9 * * *".parse().unwrap();
        let after: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        let tokyo = TimeZone::fixed(offset(9));
        assert_eq!(
            schedule.next(after, &tokyo).unwrap().to_string(),
            "2026-01-02T00:00:00Z"
        );
    }

    #[test]
    fn what_never_comes_ends_the_search() {
        for never in ["0 0 30 2 *", ", * * * *", "* * , * ,", "* * * , *"] {
            assert_eq!(next(never, "2026-01-01T00:00:00Z"), None, "{never:?}");
        }
        assert_eq!(
            next("0 0 29 2 *", "2096-03-01T00:00:00Z"),
            None,
            "not within five years"
        );
        let last = Timestamp::MAX.to_string();
        assert_eq!(next("* * * * *", &last), None);
        assert_eq!(next("@every 1h", &last), None);
    }

    #[test]
    fn a_day_that_a_zone_leaves_out_does_not_hold_the_search() {
        // There was no 30 December 2011 in Samoa.
        assert_eq!(
            next("TZ=Pacific/Apia 0 0 31 * *", "2011-12-29T12:00:00Z").as_deref(),
            Some("2011-12-30T10:00:00Z")
        );
        assert_eq!(
            next("TZ=Pacific/Apia 0 0 30 * *", "2011-12-29T12:00:00Z").as_deref(),
            Some("2012-01-29T10:00:00Z")
        );
    }
}
