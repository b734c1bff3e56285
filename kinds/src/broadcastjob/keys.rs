//! Keys: the BroadcastJobs that a change of a node enqueues.

use std::{collections::BTreeSet, sync::Arc};

use kruise_api::broadcastjob::BroadcastJob;
use kruise_views::{NodeView, PodView};
use kube_cache::{Delta, ObjectKey};

use crate::{fits::Verdicts, placing::Placing};
use kruise_runtime::parsed::Parsed;

/// The BroadcastJobs that may run on the node, or may not any more, since the change, and those with a pod there,
/// which is judged by its own specification. An ended job creates nothing, whatever nodes join.
pub(super) fn of_node(
    delta: &Delta<NodeView>,
    all: &dyn Fn() -> Vec<Arc<Parsed<Placing<BroadcastJob>>>>,
    pods_on: &dyn Fn(&str) -> Vec<Arc<PodView>>,
) -> BTreeSet<ObjectKey> {
    let Some(mut verdicts) = Verdicts::of(delta) else {
        return BTreeSet::new();
    };
    let node = delta.latest().map_or("", |node| &*node.name);
    let with_pod = pods_on(node);
    let with_pod = with_pod.iter().filter_map(|pod| {
        let owner = pod.controller.as_deref()?;
        Some(ObjectKey::new(&*pod.namespace, &*owner.name))
    });
    let mut keys: BTreeSet<ObjectKey> = with_pod.collect();
    let jobs = all();
    for job in &jobs {
        let Ok(placing) = &job.object else { continue };
        let is_over = placing.object.status.completion_time.is_some()
            && !placing.object.spec.completion_policy.is_never();
        if !is_over && verdicts.have_changed(&placing.placement) {
            keys.insert(ObjectKey::of(&**job));
        }
    }
    keys
}
