//! Sidecars that are upgraded by starting their other container first.

use jiff::Timestamp;
use kruise_plan_kit::{
    EventNote, FailureNote, Intent, ObjectWrites, Part, PodChange,
    injected::is_injected,
    lifecycle::go_time,
    pod_writes::Guard,
    sidecars::{Working, names},
};
use kruise_views::Phase;

use crate::reasons;
use crate::{
    consistency::is_consistent,
    pod::Pod,
    sidecars::Sidecars,
    snapshot::Snapshot,
    upgrade::{Change, patch},
};

/// The sidecar that has taken over works alone: its twin gets the empty image.
const EMPTY_TWIN: Intent = Intent::of_update("empty-twin").of_pod(PodChange::Updated);

/// One of them.
pub(crate) struct Hot<'h> {
    pub(crate) name: &'h str,
    pub(crate) twins: &'h [String; 2],
    /// What a twin that idles runs.
    pub(crate) empty: &'h str,
    /// What is wanted.
    pub(crate) image: &'h str,
}

/// Starts the wanted image in the twin whose restart harms nobody, and makes that one the working twin.
pub(crate) fn upgrade(
    snapshot: &Snapshot<'_>,
    pod: &Pod<'_>,
    hot: &Hot<'_>,
    working: &mut Working,
    change: &mut Change,
) {
    let view = pod.view;
    let [target, other] = choose(snapshot, pod, hot, working);
    if view.image_of(other) == Some(hot.image) {
        let goes_back = working.of(hot.name)[0] == *target && view.image_of(target) != Some(hot.empty);
        if goes_back {
            // What was to take over does not, and the twin that still serves is what is wanted again.
            working.0.insert(hot.name.to_owned(), other.clone());
            rest(change, pod, target, other, hot.empty);
        }
        return;
    }
    change.image(view, target, hot.image);
    working.0.insert(hot.name.to_owned(), target.clone());
    let version = &snapshot.set.metadata.resource_version;
    let of_other = view.annotations.get(&version_key(other)).unwrap_or("0");
    change.annotate(alternative_key(target), of_other);
    change.annotate(version_key(target), version);
    change.annotate(alternative_key(other), version);
}

/// The twin to upgrade, and the other one: the idle one first, then the only broken one, then the one that does not
/// work.
fn choose<'h>(snapshot: &Snapshot<'_>, pod: &Pod<'_>, hot: &Hot<'h>, working: &Working) -> [&'h String; 2] {
    let [first, second] = hot.twins;
    let idles = |twin: &String| pod.view.image_of(twin) == Some(hot.empty);
    if idles(first) {
        return [first, second];
    }
    if idles(second) {
        return [second, first];
    }
    let serves = |twin: &String| {
        let ready = pod.view.status_of(twin).is_some_and(|status| status.ready);
        let set = &snapshot.set.metadata.name;
        ready && is_consistent(pod.view, set, pod.states.as_ref(), |name| name == twin)
    };
    match (serves(first), serves(second)) {
        (false, true) => [first, second],
        (true, false) => [second, first],
        _ if working.of(hot.name)[0] == *first => [second, first],
        _ => [first, second],
    }
}

/// Ends the upgrades of a pod whose working twins serve: the others idle from now on.
pub(crate) fn settle(
    snapshot: &Snapshot<'_>,
    pod: &Pod<'_>,
    sidecars: &Sidecars,
    hash: &str,
    now: Timestamp,
) -> Option<ObjectWrites> {
    let view = pod.view;
    let pairs: Vec<([String; 2], &str)> = sidecars
        .hot()
        .map(|(name, _, empty)| (pod.working.of(name), empty))
        .collect();
    let is_left_over = |container: &str| pairs.iter().any(|([_, other], _)| *other == *container);
    let mut change = Change::default();
    for ([works, other], empty) in &pairs {
        let is_real = |twin: &String| view.image_of(twin).is_some_and(|image| image != *empty);
        if is_real(works) && is_real(other) {
            rest(&mut change, pod, other, works, empty);
        }
    }
    if change.images.is_empty() {
        return None;
    }
    let set = &snapshot.set.metadata.name;
    let consistent = is_consistent(view, set, pod.states.as_ref(), |name| {
        sidecars.has(name) && !is_left_over(name)
    });
    let in_service = view.phase == Phase::Running && view.is_true("Ready");
    let all_ready = || {
        let mut needed = view.statuses.iter().filter(|status| !is_left_over(&status.name));
        needed.all(|status| status.ready)
    };
    if !is_injected("HotBeforeReady") && (!consistent || !(in_service || all_ready())) {
        return None;
    }
    let time = go_time(now);
    change.record(snapshot, pod, hash, &time);
    let reason = "its new sidecar serves: the old one idles";
    let body = change.body(view);
    let mut step = patch(view, EMPTY_TWIN, Part::Main, body, Guard::Unchanged, reason);
    let about = pod.about();
    step.done = Some(EventNote::new(
        &reasons::RESET_SUCCEED,
        format!("reset sidecar container image empty successfully (pod {about})"),
    ));
    step.failed = Some(FailureNote {
        reason: &reasons::RESET_FAILED,
        prefix: "reset sidecar container image empty failed: ".to_owned(),
        suffix: format!(" (pod {about})"),
    });
    Some(ObjectWrites::of_pod(vec![step]))
}

/// One twin idles, the other works alone.
fn rest(change: &mut Change, pod: &Pod<'_>, idle: &str, works: &str, empty: &str) {
    change.image(pod.view, idle, empty);
    change.annotate(version_key(idle), "0");
    change.annotate(alternative_key(works), "0");
}

fn version_key(container: &str) -> String {
    format!("{}{container}", names::VERSION_PREFIX)
}

fn alternative_key(container: &str) -> String {
    format!("{}{container}", names::VERSION_ALT_PREFIX)
}
