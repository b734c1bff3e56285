//! Which sidecars are stopped in which way.

use kruise_api::names::conditions::SIDECAR_TERMINATED;
use kruise_plan_kit::injected::is_injected;
use kruise_views::{MarkedSidecar, MarkedView, NodeView, Phase, PodView};

/// The sidecars of a pod that have not ended, by the way in which they are stopped. Each list is in the order of names.
#[derive(Debug, Default)]
pub(super) struct Groups<'a> {
    /// They get another image.
    pub(super) in_place: Vec<&'a MarkedSidecar>,
    /// By a request. Their exit codes count.
    pub(super) normal: Vec<&'a MarkedSidecar>,
    /// By a request, once the phase of the pod is decided.
    pub(super) ignored: Vec<&'a MarkedSidecar>,
    /// What marks them does not go with the node: nothing stops them.
    pub(super) unstoppable: Vec<&'a MarkedSidecar>,
}

impl<'a> Groups<'a> {
    /// Sorts the sidecars of a pod on this node.
    pub(super) fn of(marked: &'a MarkedView, node: &NodeView) -> Self {
        let mut groups = Self::default();
        let mut sidecars: Vec<&MarkedSidecar> = marked.sidecars.iter().collect();
        sidecars.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        for sidecar in sidecars.into_iter().filter(|one| !marked.has_ended(&one.name)) {
            let group = match (node.is_virtual(), sidecar.by_request) {
                (true, _) if !sidecar.image.is_empty() => &mut groups.in_place,
                (false, true) if sidecar.ignores_exit_code => &mut groups.ignored,
                (false, true) => &mut groups.normal,
                (true, _) | (false, false) => &mut groups.unstoppable,
            };
            group.push(sidecar);
        }
        groups
    }
}

/// Names, in the order of the list.
pub(super) fn names<'a>(sidecars: &[&'a MarkedSidecar]) -> Vec<&'a str> {
    sidecars.iter().map(|sidecar| &*sidecar.name).collect()
}

/// Has the pod sidecars that run although its main containers have ended, as far as its restart policy asks for
/// that? The marked containers, if so.
pub(super) fn unended(pod: &PodView) -> Option<&MarkedView> {
    let marked = pod.marked.as_deref()?;
    let is_ending = !pod.deleting
        && !pod.restarts_always
        && pod.phase != Phase::Pending
        && (pod.is_active() || pod.condition(SIDECAR_TERMINATED).is_some())
        && pod.statuses.len() == pod.containers.len();
    let has_ended = |name: &str| {
        let is_final = marked.is_never_restarted
            || is_injected("FailureTakenForEnd")
            || pod.status_of(name).is_some_and(|status| status.succeeded);
        marked.has_ended(name) && is_final
    };
    let mut mains = pod.containers.iter().filter(|one| !marked.is_sidecar(&one.name));
    let mut sidecars = marked.sidecars.iter();
    let have_ended = if is_injected("OneMainAwaited") {
        mains.any(|main| has_ended(&main.name))
    } else {
        mains.all(|main| has_ended(&main.name))
    };
    let has_work = is_ending && have_ended && sidecars.any(|sidecar| !marked.has_ended(&sidecar.name));
    has_work.then_some(marked)
}

/// Has the pod a main container?
pub(super) fn has_main(pod: &PodView, marked: &MarkedView) -> bool {
    pod.containers.iter().any(|one| !marked.is_sidecar(&one.name))
}

/// Did every main container end with exit code 0?
pub(super) fn have_mains_succeeded(pod: &PodView, marked: &MarkedView) -> bool {
    let mut mains = pod.containers.iter().filter(|one| !marked.is_sidecar(&one.name));
    let succeeded = |name: &str| pod.status_of(name).is_some_and(|status| status.succeeded);
    is_injected("PhaseOfPodAssumed") || mains.all(|main| succeeded(&main.name))
}
