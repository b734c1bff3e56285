//! How long the entries of a status last.

use std::time::Duration;

use jiff::Timestamp;
use kruise_views::PodView;

/// How long a deletion or an eviction is expected to be seen.
pub const DISRUPTED: Duration = Duration::from_secs(20);
/// How long an update or a resize is expected to be seen.
pub const UPDATED: Duration = Duration::from_secs(10);

/// Is this an entry of this very pod, and not of an earlier one of its name? Times have whole seconds.
pub(super) fn is_of(pod: &PodView, since: Timestamp) -> bool {
    pod.created
        .is_none_or(|created| since.as_second() >= created.as_second())
}

/// For how long an entry lasts; `None` if it has expired.
pub(super) fn left(since: Timestamp, life: Duration, now: Timestamp) -> Option<Duration> {
    let end = since.as_millisecond().saturating_add(life.as_millis() as i64);
    let left = u64::try_from(end.saturating_sub(now.as_millisecond())).ok()?;
    (left > 0).then(|| Duration::from_millis(left))
}
