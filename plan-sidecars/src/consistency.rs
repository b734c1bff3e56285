//! Do containers run the images that the pod's specification names?

use kruise_plan_kit::{image::digest, inplace::is_pending, sidecars::UpgradeStates};
use kruise_views::PodView;

/// Looks at the containers of a pod that `which` names. An image by digest is compared with what runs; for all others
/// it counts whether they changed since the set last changed them. `states` is `None` if it cannot be read.
pub(crate) fn is_consistent(
    pod: &PodView,
    set: &str,
    states: Option<&UpgradeStates>,
    which: impl Fn(&str) -> bool,
) -> bool {
    if pod.containers.len() != pod.statuses.len() {
        return false;
    }
    let mut containers = pod.containers.iter().filter(|container| which(&container.name));
    let only_digests = loop {
        let Some(container) = containers.next() else {
            break true;
        };
        let Some(wanted) = digest(&container.image) else {
            break false;
        };
        let status = pod.status_of(&container.name);
        let running = status.and_then(|status| digest(after_scheme(&status.image_id)));
        if running != Some(wanted) {
            return false;
        }
    };
    if only_digests {
        return true;
    }
    let Some(states) = states else { return false };
    let before = states
        .0
        .get(set)
        .and_then(|state| state.last_container_statuses.as_ref());
    before
        .into_iter()
        .flatten()
        .filter(|(name, _)| which(name))
        .all(|(name, before)| {
            let status = pod.status_of(name);
            status.is_none_or(|status| !is_pending(status, before, pod.image_of(name).unwrap_or_default()))
        })
}

/// `docker-pullable://nginx@sha256:…` as it is without where it comes from.
fn after_scheme(image_id: &str) -> &str {
    image_id.split_once("://").map_or(image_id, |(_, id)| id)
}
