//! The requests that were created for a pod: what they have done, and whether another one is needed.

use jiff::{SignedDuration, Timestamp};
use kruise_api::{
    containerrecreaterequest::{ContainerRecreateRequest, RequestedContainer},
    names::sidecarterminator::REQUEST_PREFIX,
};
use kruise_views::{MarkedSidecar, MarkedView, PodView};

/// The longest pause between two requests for a sidecar, in seconds.
const LONGEST_PAUSE: i64 = 300;

/// The requests of this controller for one pod.
pub(super) struct Requests<'a> {
    pod: &'a PodView,
    marked: &'a MarkedView,
    all: Vec<&'a ContainerRecreateRequest>,
}

/// When a sidecar may be requested to stop.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// From this time on. Has it begun anew since the last request?
    At(Timestamp, bool),
    /// Not before the pod reports something else.
    Later,
}

/// The largest number that a name is continued from.
const MOST: u32 = 1_000_000;

impl<'a> Requests<'a> {
    /// Those that have the names of this controller.
    pub(super) fn of(
        pod: &'a PodView,
        marked: &'a MarkedView,
        requests: &[&'a ContainerRecreateRequest],
    ) -> Self {
        let stem = stem(pod);
        let own = requests
            .iter()
            .copied()
            .filter(|one| one.metadata.name.starts_with(&stem));
        let mut all: Vec<&ContainerRecreateRequest> = own.collect();
        all.sort_unstable_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
        Self { pod, marked, all }
    }

    /// Those that have not ended.
    pub(super) fn open(&self) -> impl Iterator<Item = &'a ContainerRecreateRequest> {
        let all = self.all.iter().copied();
        all.filter(|one| !one.has_ended() && one.metadata.deletion_timestamp.is_none())
    }

    /// Is a request still about to stop something?
    pub(super) fn are_at_work(&self) -> bool {
        self.open().any(|request| {
            let mut containers = request.spec.containers.iter();
            containers.any(|container| !self.is_done(request, container))
        })
    }

    /// Has the container ended, or begun anew after the agent stopped it?
    fn is_done(&self, request: &ContainerRecreateRequest, container: &RequestedContainer) -> bool {
        let mut states = request.status.container_recreate_states.iter();
        let is_killed = states.any(|state| state.name == container.name && state.is_killed);
        self.marked.has_ended(&container.name) || (is_killed && self.is_new_run(container))
    }

    /// Is the run of the container another one than when the request was created?
    fn is_new_run(&self, container: &RequestedContainer) -> bool {
        match (&container.status_context, self.pod.status_of(&container.name)) {
            (Some(before), Some(status)) => {
                *before.container_id != *status.container_id || status.restart_count > before.restart_count
            }
            (None, _) | (_, None) => false,
        }
    }

    /// When this sidecar, which has not ended, may be requested to stop.
    pub(super) fn due(&self, sidecar: &MarkedSidecar, now: Timestamp) -> Due {
        let Some(status) = self.pod.status_of(&sidecar.name) else {
            return Due::Later;
        };
        let of_sidecar = self.all.iter().filter_map(|request| {
            let mut containers = request.spec.containers.iter();
            let container = containers.find(|one| *one.name == *sidecar.name)?;
            let status = &request.status;
            let end = status.completion_time.or(request.metadata.creation_timestamp);
            Some((end.unwrap_or(now), container))
        });
        let before: Vec<(Timestamp, &RequestedContainer)> = of_sidecar.collect();
        let Some(last) = before.iter().map(|(end, _)| *end).max() else {
            // Admission refuses a container that never ran.
            return if status.container_id.is_empty() {
                Due::Later
            } else {
                Due::At(now, false)
            };
        };
        if status.running_since.is_none() {
            return Due::Later;
        }
        let is_new = before.iter().all(|(_, container)| self.is_new_run(container));
        let count = u32::try_from(before.len()).unwrap_or(u32::MAX);
        let pause = pause(count, is_new);
        let due = last.checked_add(SignedDuration::from_secs(pause));
        Due::At(due.unwrap_or(now), is_new)
    }

    /// A name that none of them has: `base` itself, or `base` with a number.
    pub(super) fn next_name(&self, base: &str, is_taken: impl Fn(&str) -> bool) -> String {
        let number = |name: &str| {
            let rest = name.strip_prefix(base)?;
            match rest.strip_prefix('-') {
                None => rest.is_empty().then_some(1),
                // Nobody makes so many; a name that somebody else chose is not continued.
                Some(number) => number.parse::<u32>().ok().filter(|number| *number <= MOST),
            }
        };
        let numbers = self.all.iter().filter_map(|one| number(&one.metadata.name));
        let mut names = (numbers.max().unwrap_or(0)..).map(|last| match last.saturating_add(1) {
            1 => base.to_owned(),
            number => format!("{base}-{number}"),
        });
        names.find(|name| !is_taken(name)).unwrap_or_default()
    }
}

/// The beginning of the names of all requests for a pod, and the name of the first.
pub(super) fn stem(pod: &PodView) -> String {
    format!("{REQUEST_PREFIX}{}", pod.uid)
}

/// Seconds from the last of so many requests for a sidecar to the next. A sidecar that began anew is stopped again
/// at once for the first time. What the pod reports of one that was stopped may come a little later than the end of
/// its request.
fn pause(requests: u32, is_new_run: bool) -> i64 {
    if requests <= 1 && is_new_run {
        return 0;
    }
    let doubled = 5_i64.checked_shl(requests.min(10)).unwrap_or(LONGEST_PAUSE);
    doubled.min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::pause;

    #[test]
    fn pauses_double_up_to_five_minutes_and_the_first_after_a_new_run_is_none() {
        let pauses = |is_new| [1, 2, 3, 6, 7, 1000].map(|count| pause(count, is_new));
        assert_eq!(pauses(false), [10, 20, 40, 300, 300, 300]);
        assert_eq!(pauses(true), [0, 20, 40, 300, 300, 300]);
    }
}
