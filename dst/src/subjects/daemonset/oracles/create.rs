//! *"One pod for each node that may run it, of the current template, pinned to its node; a second one only while
//! the node is updated with surge, within the limits of surge, partition and selector."*

use super::known::{Known, Pod, TOLERATED, is_held, is_ready, is_selected};
use super::spec::Spec;
use crate::rules::prelude::*;
use crate::subjects::nodes::{node_of, pinned};

/// Judges the creation of a pod. `surges`: may some version of the DaemonSet have two pods on a node?
pub fn judge(
    write: &Write<'_>,
    new: &Object,
    known: &Known<'_>,
    mirror: &Mirror,
    surges: bool,
) -> Option<Violation> {
    let node = pinned(new.spec()).unwrap_or_default();
    never!(write, "a pod has its form", node.is_empty() => "it is not pinned to a node");
    never!(write, "a pod has its form", some what in misformed(new) => "{what}");
    let other = if surges { None } else { other(new, node, mirror) };
    never!(write, "one pod for each node",
        some other in other => "{} is there, though nobody surges", other.name);
    let case = Case {
        node,
        new,
        known,
        mirror,
    };
    let oracle = case.broken()?;
    let why = format!("{} on {node}; {}", new.label(REVISION), known.brief());
    write.breaks(oracle, why)
}

/// A new pod, and what its creator may have believed.
struct Case<'a> {
    node: &'a str,
    new: &'a Object,
    known: &'a Known<'a>,
    mirror: &'a Mirror,
}

impl Case<'_> {
    fn broken(&self) -> Option<&'static str> {
        let (known, node) = (self.known, self.node);
        let is_second = self.beside().next().is_some();
        let there = |pod: &Pod<'_>| pod.seen.must_be(|pod| known.is_ours(pod));
        let fits = |spec: &Spec<'_>| {
            if spec.surges() {
                self.beside().count() <= 1
            } else {
                !known.on(node).any(there)
            }
        };
        kept_by!(&known.specs, |spec|
            "nodes that may run a pod": known.may_run(node, spec);
            "one pod for each node": fits(spec);
            "revisions of new pods": self.is_new(spec);
            "a second pod is for an update": !is_second || (spec.updates() && self.replaces(spec));
            "selector": !is_second || known.node_may_be(node, |node| spec.selects(node));
            "partition": !is_second || is_in_window(known, spec, node);
            "surge": !is_second || self.is_affordable(spec);
            "first creations in parts":
                is_second || !spec.partitioned_scaling || may_be_first(known, spec, node, self.mirror);
        )
    }

    /// Is it of the revision of the template?
    fn is_new(&self, spec: &Spec<'_>) -> bool {
        let hash = spec.hash(self.mirror);
        !hash.is_empty() && self.new.label(REVISION) == hash
    }

    /// Pods on the node that must be there to stay.
    fn beside(&self) -> impl Iterator<Item = &Pod<'_>> {
        let live = |pod: &Object| self.known.is_ours(pod) && pod.is_active();
        self.known.on(self.node).filter(move |pod| pod.seen.must_be(live))
    }

    /// May all of them be old ones?
    fn replaces(&self, spec: &Spec<'_>) -> bool {
        let hash = spec.hash(self.mirror);
        let is_old = |pod: &Object| pod.label(REVISION) != hash && !is_held(pod);
        self.beside().all(|pod| pod.seen.may_be(is_old))
    }

    fn is_affordable(&self, spec: &Spec<'_>) -> bool {
        let may_be_down = self.beside().any(|pod| pod.seen.may_be(|pod| !is_ready(pod)));
        let most = spec.max_surge(self.known.most_desired(spec));
        may_be_down || self.known.surging(spec, self.node) < most
    }
}

/// May the node be one of those that the partition lets be updated?
pub fn is_in_window(known: &Known<'_>, spec: &Spec<'_>, node: &str) -> bool {
    let kept = spec.partition(known.least_desired(spec));
    known.updated(spec, node) < known.most_counted(spec) - kept
}

/// May a node without a pod have one already, though the partition limits first creations? One that lost its pod
/// may: it had one as far as anybody can see, or has a lower name than one with a pod.
fn may_be_first(known: &Known<'_>, spec: &Spec<'_>, node: &str, mirror: &Mirror) -> bool {
    let kept = spec.partition(known.least_desired(spec));
    if spec.on_delete || kept == 0 {
        return true;
    }
    let hash = spec.hash(mirror);
    let has_new = |pod: &Object| known.is_ours(pod) && !pod.is_going() && pod.label(REVISION) == hash;
    let others = known.pods.iter().filter(|pod| pod.node != node);
    let updated = others.clone().filter(|pod| pod.seen.must_be(has_new));
    let updated: BTreeSet<&str> = updated.map(|pod| pod.node).collect();
    let mut later = others.filter(|pod| pod.node > node);
    let current = |set: &Object| number(&set.status()["currentNumberScheduled"]);
    (updated.len() as i64) < known.most_desired(spec) - kept
        || later.any(|pod| pod.seen.may_be(|pod| known.is_ours(pod)))
        || known.may_have_lost(current)
}

/// Another pod of the same DaemonSet that is on the node.
fn other<'m>(new: &Object, node: &str, mirror: &'m Mirror) -> Option<&'m Object> {
    let mut pods = mirror.of(PODS).now();
    let found = pods.find(|pod| {
        pod.uid != new.uid && pod.owner() == new.owner() && is_selected(pod) && node_of(pod) == Some(node)
    });
    found.map(|pod| &**pod)
}

/// What a new pod lacks.
fn misformed(pod: &Object) -> Option<String> {
    let spec = pod.spec();
    let tolerates = |key: &str, effect: &str| {
        let mut all = items(&spec["tolerations"]).filter(|one| one["key"] == key && one["effect"] == effect);
        all.any(|one| one["operator"] == "Exists" && one["tolerationSeconds"].is_null())
    };
    if let Some((key, effect)) = TOLERATED.iter().find(|(key, effect)| !tolerates(key, effect)) {
        return Some(format!("it does not tolerate {key}:{effect}"));
    }
    let gates = items(&spec["readinessGates"]);
    let gates = gates.filter(|one: &&Value| one["conditionType"] == GATE).count();
    (gates > 1).then(|| format!("it has {gates} gates {GATE}"))
}

/// Is there a revision of this hash?
pub fn has_revision(pod: &Object, mirror: &Mirror) -> bool {
    let mut revisions = mirror.of(REVISIONS).now();
    revisions.any(|one| one.owner() == pod.owner() && one.label(REVISION) == pod.label(REVISION))
}
