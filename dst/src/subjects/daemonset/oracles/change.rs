//! *"A pod is deleted or updated for a reason; updates leave partition, selector and nodes that may not run a pod
//! alone; what can be updated in place is; and no more nodes are without an available pod than may be."*

use super::create::is_in_window;
use super::known::{Known, Pod, continues, is_available, is_held, is_ready};
use super::spec::{Spec, revision};
use crate::rules::prelude::*;
use crate::rules::template::same_template;

/// What a write does to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Deletes it, or has a hook hold it before that.
    Removes,
    /// Updates it in place.
    Updates,
}

/// A pod, and the write to it.
struct Case<'a> {
    act: Act,
    /// It brings the pod to another revision.
    moves: bool,
    before: &'a Object,
    pod: &'a Pod<'a>,
    known: &'a Known<'a>,
    mirror: &'a Mirror,
}

/// What a write does to a pod, if anything that is judged here.
pub fn act(write: &Write<'_>, before: &Object, after: &Object) -> Option<Act> {
    if write.method == Method::Delete {
        return (!before.is_going()).then_some(Act::Removes);
    }
    if !is_held(before) && is_held(after) {
        return Some(Act::Removes);
    }
    let moves = !before.label(REVISION).is_empty() && before.label(REVISION) != after.label(REVISION);
    let leaves = before.state(GATE) == "True" && after.state(GATE) == "False";
    (moves || leaves || before.images() != after.images()).then_some(Act::Updates)
}

/// Judges a write to a pod of the DaemonSet.
pub fn judge(
    write: &Write<'_>,
    [before, after]: [&Object; 2],
    known: &Known<'_>,
    mirror: &Mirror,
) -> Option<Violation> {
    let act = act(write, before, after)?;
    // One that a hook held had its reason then.
    if act == Act::Removes && is_held(before) {
        return None;
    }
    let pod = known.pod(&before.uid)?;
    let moves = act == Act::Updates && before.label(REVISION) != after.label(REVISION);
    let case = Case {
        act,
        moves,
        before,
        pod,
        known,
        mirror,
    };
    let target = revision(mirror, after.label(REVISION));
    let is_free = |spec: &Spec<'_>| case.is_due(spec) || case.goes_on();
    let oracle = kept_by!(&known.specs, |spec|
        "a reason for each change": is_free(spec) || case.may_be_updated(spec);
        "pods go to the update revision": !moves || target.is_some_and(|target| spec.is_revision(target));
        "nodes that may run a pod": is_free(spec) || known.may_run(pod.node, spec);
        "in place where possible": is_free(spec) || act == Act::Updates || !case.must_be_in_place(spec);
        "selector": is_free(spec) || known.node_may_be(pod.node, |node| spec.selects(node));
        "partition": is_free(spec) || is_in_window(known, spec, pod.node);
        "availability": is_free(spec) || case.is_affordable(spec);
    )?;
    let (from, to) = (before.label(REVISION), after.label(REVISION));
    let why = format!("on {} ({act:?}, {from} to {to}); {}", pod.node, known.brief());
    write.breaks(oracle, why)
}

impl Case<'_> {
    /// Is there a reason for it that no update is?
    fn is_due(&self, spec: &Spec<'_>) -> bool {
        let continues = |node: &Object| continues(spec.template, node);
        let must_stay = self.known.node_must_be(self.pod.node, continues);
        let may_have_ended = self.pod.seen.may_be(|pod| pod.end().is_some());
        self.act == Act::Removes && (!must_stay || may_have_ended || self.is_too_much(spec))
    }

    /// May there be another pod in its place?
    fn is_too_much(&self, spec: &Spec<'_>) -> bool {
        let hash = spec.hash(self.mirror);
        let (own, seen) = (self.before, &self.pod.seen);
        let own_is_new = own.label(REVISION) == hash;
        let goes_first = |other: &Object| {
            if !self.known.is_ours(other) || other.is_going() {
                return false;
            }
            let is_new = other.label(REVISION) == hash;
            if spec.surges() && is_new != own_is_new {
                let serves = is_available(other, spec.min_ready_seconds, self.known.now);
                return !own_is_new && (serves || seen.may_be(|own| !is_ready(own)));
            }
            rank(other) < rank(own) || seen.may_be(|own| rank(other) < rank(own))
        };
        let mut others = self.known.on(self.pod.node);
        others.any(|other| other.seen.first().uid != own.uid && other.seen.may_be(goes_first))
    }

    /// Is it the second half of an update in place that began before?
    fn goes_on(&self) -> bool {
        self.act == Act::Updates && !self.moves && self.before.state(GATE) == "False"
    }

    /// May it be one that is to be updated?
    fn may_be_updated(&self, spec: &Spec<'_>) -> bool {
        let hash = spec.hash(self.mirror);
        let way = match self.act {
            // With surge an old pod goes when the new one serves.
            Act::Removes => !spec.surges(),
            Act::Updates => spec.in_place,
        };
        spec.updates() && way && self.pod.seen.may_be(|pod| pod.label(REVISION) != hash)
    }

    /// Can nobody doubt that it can be updated in place?
    fn must_be_in_place(&self, spec: &Spec<'_>) -> bool {
        let from = revision(self.mirror, self.before.label(REVISION)).filter(|one| !one.gone);
        let mut gates = items(&self.before.spec()["readinessGates"]);
        let has_gate = gates.any(|one| one["conditionType"] == GATE);
        let bare = without_what_changes_in_place;
        let differs_little = from.is_some_and(|from| {
            same_template(
                &bare(&from.value()["data"]["spec"]["template"]),
                &bare(spec.template),
            )
        });
        let is_there = |pod: &Object| {
            pod.label(REVISION) == self.before.label(REVISION) && pod.spec()["nodeName"].is_string()
        };
        spec.in_place && has_gate && differs_little && self.pod.seen.must_be(is_there)
    }

    fn is_affordable(&self, spec: &Spec<'_>) -> bool {
        let (known, node) = (self.known, self.pod.node);
        let most = spec.max_unavailable(known.most_desired(spec));
        // What is not ready costs nothing. What is ready and not available yet costs as much as any other, and does
        // not keep others of its kind from being updated.
        let is_young = |pod: &Object| !is_available(pod, spec.min_ready_seconds, known.now);
        self.pod.seen.may_be(|pod| !is_ready(pod))
            || known.unavailable(spec, node) < most
            || (self.pod.seen.may_be(is_young) && known.unready(spec, node) < most)
    }
}

/// A template without images, labels and annotations.
fn without_what_changes_in_place(template: &Value) -> Value {
    let mut bare = template.clone();
    bare["metadata"] = Value::Null;
    if let Some(containers) = bare["spec"]["containers"].as_array_mut() {
        for container in containers {
            container["image"] = Value::Null;
        }
    }
    bare
}

/// Of several pods on a node the first is kept.
fn rank(pod: &Object) -> (bool, Timestamp, Arc<str>) {
    (
        !pod.spec()["nodeName"].is_string(),
        pod.created(),
        pod.name.clone(),
    )
}
