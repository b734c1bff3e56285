//! Adding and removing pods.

use kruise_plan_kit::{
    EventNote, Intent, ObjectWrites, Owner, Part, Patch, Phase, Plan, Precondition, Why, Write,
    lifecycle::State,
    order::sort_for_removal,
    readiness,
    revision::Revision,
    rollout::{Class, Pod, Rollout},
};
use kruise_views::NodeView;
use serde_json::{Value, json};

use super::reasons;
use super::{create::NewPods, numbers::Numbers};

/// Consumed entries of `podsToDelete` go from the spec.
const PRUNE_PODS_TO_DELETE: Intent = Intent::of_update("prune-pods-to-delete");

/// How pods are added and removed.
pub(super) struct Scaling<'a, 'n> {
    pub(super) new_pods: NewPods<'a>,
    /// Finds a node.
    pub(super) node: &'n dyn Fn(&str) -> Option<&'n NodeView>,
}

impl Scaling<'_, '_> {
    /// Adds or removes pods. Says whether pods are removed: updating others waits for the next plan, which sees what is
    /// left.
    pub(super) fn scale(
        &self,
        rollout: &Rollout<'_>,
        pods: &[Pod<'_>],
        numbers: Numbers,
        plan: &mut Plan,
    ) -> bool {
        let returning = keep(rollout, pods);
        if !returning.is_empty() {
            plan.writes.extend(returning);
            return true;
        }
        if numbers.up > numbers.up_limit {
            let message = format!(
                "scaleUp is limited because of scaleStrategy.maxUnavailable, limit: {}",
                numbers.up_limit
            );
            plan.why.push(Why::of_set(&*message));
            plan.events
                .push(EventNote::new(&reasons::SCALE_UP_LIMITED, message));
        }
        if numbers.up_limit > 0 {
            let count = numbers.up_limit as usize;
            let old = numbers.up_old.min(numbers.up_limit) as usize;
            let created = self.new_pods.create(rollout, count, old, plan);
            if !created.is_empty() {
                plan.writes.extend(created);
                return false;
            }
        }
        self.remove_surplus(rollout, pods, numbers, plan)
    }

    fn remove_surplus(
        &self,
        rollout: &Rollout<'_>,
        pods: &[Pod<'_>],
        numbers: Numbers,
        plan: &mut Plan,
    ) -> bool {
        let mut removed = Vec::new();
        let of_class = |class| pods.iter().filter(move |pod| pod.class() == class);
        for pod in of_class(Class::PreparingDelete) {
            if rollout.may_remove(pod, plan) {
                removed.extend(rollout.remove(pod, "its preDelete hook let it go"));
            }
        }
        let mut left = numbers.delete_available;
        let mut waiting = Vec::new();
        let mut remove = |pod, reason: &str, plan: &mut Plan| {
            if costs(pod) > left {
                waiting.push(pod);
            } else if rollout.may_remove(pod, plan) {
                left -= costs(pod);
                removed.extend(rollout.remove(pod, reason));
            }
        };
        for pod in of_class(Class::Specified) {
            remove(pod, "it was asked for by name or label", plan);
        }
        if numbers.down > 0 && !pods.iter().any(is_planned) {
            for pod in self.victims(&rollout.update, pods, numbers) {
                remove(pod, "there are more pods than replicas", plan);
            }
        }
        for pod in waiting {
            let text = "to be deleted, held by maxUnavailable: too few other pods are available";
            plan.why.push(Why::new(&*pod.view.name, text));
        }
        let removes = !removed.is_empty();
        plan.writes.extend(removed);
        removes
    }

    fn victims<'m, 'a>(&self, update: &Revision, pods: &'m [Pod<'a>], numbers: Numbers) -> Vec<&'m Pod<'a>> {
        let (down, down_old) = (numbers.down as usize, numbers.down_old.min(numbers.down) as usize);
        let topology = topology_keys(update);
        let zone_of = |node: &str, key: &str| (self.node)(node).and_then(|node| node.labels().get(key));
        let mut chosen = Vec::with_capacity(down);
        for (updated, count) in [(false, down_old), (true, down - down_old)] {
            if count == 0 {
                continue;
            }
            let mut group: Vec<&Pod<'_>> = pods.iter().filter(|pod| pod.updated == updated).collect();
            sort_for_removal(&mut group, |pod| pod.candidate(), &topology, &zone_of);
            chosen.extend(group.into_iter().take(count));
        }
        chosen
    }
}

/// Is the pod going to be deleted whatever the number of replicas?
fn is_planned(pod: &Pod<'_>) -> bool {
    matches!(pod.class(), Class::PreparingDelete | Class::Specified)
}

/// Pods held before deletion that return to service: where replicas are short, and nobody asked for this very pod to be
/// deleted. Where hooks take pods out of service there is no way back: the pod is being drained.
fn keep(rollout: &Rollout<'_>, pods: &[Pod<'_>]) -> Vec<ObjectWrites> {
    if readiness::marks(rollout.lifecycle) {
        return Vec::new();
    }
    let replicas = rollout.budget.replicas as usize;
    let staying = pods.iter().filter(|pod| !is_planned(pod)).count();
    let returning = pods
        .iter()
        .filter(|pod| pod.state == State::PreparingDelete && !pod.specified);
    let returning = returning.take(replicas.saturating_sub(staying));
    returning
        .map(|pod| {
            let next = (Intent::SET_LIFECYCLE, State::PreparingNormal);
            ObjectWrites::of_pod(vec![rollout.enter(pod, next, &[], "replicas are short again")])
        })
        .collect()
}

/// A pod out of service is deleted free of charge; one in service is one of those that may be deleted now.
fn costs(pod: &Pod<'_>) -> i32 {
    i32::from(pod.service.is_available())
}

fn topology_keys(update: &Revision) -> Vec<String> {
    let constraints = update.template.pointer("/spec/topologySpreadConstraints");
    constraints
        .and_then(|constraints| constraints.as_array())
        .into_iter()
        .flatten()
        .filter_map(|constraint| constraint.get("topologyKey")?.as_str().map(str::to_owned))
        .collect()
}

/// Removes names from `podsToDelete` that are not, or no longer, pods of the set.
pub(super) fn prune(owner: &Owner<'_>, named: &[String], pods: &[Pod<'_>]) -> Option<ObjectWrites> {
    let is_pod = |name: &&String| pods.iter().any(|pod| *pod.view.name == ***name);
    let kept: Vec<&String> = named.iter().filter(is_pod).collect();
    if kept.len() == named.len() {
        return None;
    }
    let path = "/spec/scaleStrategy/podsToDelete";
    let operation = if kept.is_empty() {
        json!({"op": "remove", "path": path})
    } else {
        json!({"op": "replace", "path": path, "value": kept})
    };
    let write = Write::Patch {
        intent: PRUNE_PODS_TO_DELETE,
        target: owner.target(kruise_api::cloneset::RESOURCE, owner.name),
        part: Part::Main,
        patch: Patch::Json(Value::Array(vec![operation])),
        precondition: Precondition::Test(path.into(), json!(named)),
    };
    Some(ObjectWrites::alone(Phase::Cleanup, write, "these pods are gone"))
}
