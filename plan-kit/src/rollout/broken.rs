//! Pods that are not coming into service by themselves.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kruise_api::names::conditions::READY;
use kruise_views::Truth;

use super::Pod;

/// How long a pod may take to become ready, if its node reports no failure.
const PATIENCE: SignedDuration = SignedDuration::from_mins(10);

/// How long it is still worth waiting for a pod that is out of service: until its containers fail, or it has not been
/// ready for ten minutes. `None` if it is ready, and withheld by something else.
pub fn worth_waiting(pod: &Pod<'_>, now: Timestamp) -> Option<Duration> {
    if pod.service.is_ready() {
        return None;
    }
    if pod.view.statuses.iter().any(|status| status.failing) {
        return Some(Duration::ZERO);
    }
    let unready = pod
        .view
        .condition(READY)
        .filter(|ready| ready.status != Truth::True);
    let since = unready.and_then(|ready| ready.since).or(pod.view.created)?;
    let left = PATIENCE.saturating_sub(now.duration_since(since));
    Some(Duration::try_from(left).unwrap_or_default())
}
