//! What kinds share whose objects come to an end: deadlines, conditions, and the deletion some time after the end.
//!
//! Times are computed from what is stored, in every plan. So neither a restart nor a lost timer loses one.

mod conditions;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_api::meta::ObjectMeta;

use crate::{Intent, ObjectWrites, Owner, Phase, Precondition, ResourceId, write::Write};

pub use conditions::{get, has_ended, remove, set};

/// The time as it is stored: whole seconds.
pub fn stored(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// How long it is until `seconds` after a stored time; `None` if that time has come.
pub fn left(since: Timestamp, seconds: i64, now: Timestamp) -> Option<Duration> {
    let end = since.checked_add(SignedDuration::from_secs(seconds.max(0)));
    // No clock shows a time that cannot be represented.
    let end = end.unwrap_or(Timestamp::MAX);
    let left = end.duration_since(now);
    left.is_positive().then(|| left.unsigned_abs())
}

/// Least and longest time between two attempts at what fails.
const LEAST: SignedDuration = SignedDuration::from_secs(10);
const LONGEST: SignedDuration = SignedDuration::from_mins(5);

/// How long it is until what was tried at `tried`, and failed, is tried again; `None` if it is now. Intervals
/// double: the next one is as long as the time from `start` to the last attempt. Computed from what is stored, so
/// that neither a restart nor another manager begins anew.
pub fn back_off(start: Timestamp, tried: Timestamp, now: Timestamp) -> Option<Duration> {
    let interval = tried.duration_since(start).clamp(LEAST, LONGEST);
    let left = interval - now.duration_since(tried);
    // A clock that is behind the server's must not wait for longer.
    left.is_positive().then(|| left.min(LONGEST).unsigned_abs())
}

/// That a job is as it was when it was read. One that has changed since may be wanted longer.
pub fn unchanged(metadata: &ObjectMeta) -> Precondition {
    Precondition::UidAndVersion(metadata.uid.clone(), metadata.resource_version.clone())
}

/// Deletes a job that ended long enough ago.
pub fn delete(owner: &Owner<'_>, resource: ResourceId, precondition: Precondition) -> ObjectWrites {
    let write = Write::Delete {
        intent: Intent::DELETE_JOB,
        target: owner.target(resource, owner.name),
        precondition,
    };
    ObjectWrites::alone(Phase::Cleanup, write, "ttlSecondsAfterFinished is over")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_counted_from_the_stored_time_and_never_negative() {
        let at = |millis| Timestamp::from_millisecond(millis).unwrap();
        assert_eq!(left(at(1000), 10, at(3500)), Some(Duration::from_millis(7500)));
        assert_eq!(left(at(1000), 10, at(11_000)), None);
        assert_eq!(left(at(1000), 0, at(1000)), None);
        assert_eq!(left(at(1000), -5, at(500)), Some(Duration::from_millis(500)));
        assert!(left(at(1000), i64::MAX, at(1000)).is_some(), "the end of time");
        assert_eq!(stored(at(1999)), at(1000));
    }

    #[test]
    fn intervals_of_a_back_off_double_from_ten_seconds_to_five_minutes() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut tried = 0;
        let mut intervals = Vec::new();
        for _ in 0..8 {
            let left = back_off(at(0), at(tried), at(tried)).unwrap();
            let next = tried + i64::try_from(left.as_secs()).unwrap();
            assert!(back_off(at(0), at(tried), at(next - 1)).is_some());
            assert_eq!(back_off(at(0), at(tried), at(next)), None);
            intervals.push(left.as_secs());
            tried = next;
        }
        assert_eq!(intervals, [10, 10, 20, 40, 80, 160, 300, 300]);
        // Clocks that differ.
        assert_eq!(back_off(at(50), at(0), at(0)).unwrap().as_secs(), 10);
        assert_eq!(back_off(at(0), at(9000), at(0)).unwrap().as_secs(), 300);
    }
}
