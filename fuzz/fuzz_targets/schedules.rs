//! Schedules: the next activation is later, is one for every moment before it, and the last one of a span is within
//! it. The first bytes are a moment and the length of a span, the rest is the schedule.

#![no_main]

use go_compat::schedule::Schedule;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use libfuzzer_sys::fuzz_target;

/// From 1970 to 2100. Before, offsets of zones are not whole minutes, and the library of Go is led astray by them, too.
const SECONDS: i64 = 4_102_444_800;

fuzz_target!(|data: &[u8]| {
    let Some((head, text)) = data.split_first_chunk::<12>() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let Ok(schedule) = text.parse::<Schedule>() else {
        return;
    };
    let [a, b, c, d, e, f, g, h, span @ ..] = *head;
    let seconds = i64::from_le_bytes([a, b, c, d, e, f, g, h]).rem_euclid(SECONDS);
    let after = Timestamp::from_second(seconds).expect("within the range");
    let local = TimeZone::UTC;
    let next = schedule.next(after, &local);
    if let Some(next) = next {
        assert!(next > after, "{text:?} {after} {next}");
        if !text.contains("@every") {
            let half = next.duration_since(after).checked_div(2).expect("not by 0");
            let middle = after.checked_add(half).expect("between the two");
            assert_eq!(
                schedule.next(middle, &local),
                Some(next),
                "{text:?} {after} {middle}"
            );
        }
    }
    // Up to 50 days.
    let span = SignedDuration::from_secs(i64::from(u32::from_le_bytes(span) % 4_320_000));
    let Ok(until) = after.checked_add(span) else {
        return;
    };
    match schedule.latest(after, until, &local) {
        Some(due) => {
            assert!(
                next.is_some_and(|next| next <= due.latest),
                "{text:?} {after} {until} {due:?}"
            );
            assert!(due.latest <= until, "{text:?} {after} {until} {due:?}");
            let later = schedule.next(due.latest, &local);
            assert!(
                later.is_none_or(|later| later > until),
                "{text:?} {after} {until} {due:?}"
            );
        }
        None => assert!(next.is_none_or(|next| next > until), "{text:?} {after} {until}"),
    }
});
