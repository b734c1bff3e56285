//! What the sender of a write for a DaemonSet may have believed of it, of its pods and of the nodes.

use super::super::start::DAEMONSETS;
use super::fit;
use super::spec::Spec;
use crate::rules::belief::{self, Rule, Seen, Wrote};
use crate::rules::prelude::*;
use crate::subjects::nodes::node_of;

/// A pod as the sender may have seen it.
pub struct Pod<'a> {
    /// Its versions.
    pub seen: Seen<'a>,
    /// The node that it is for.
    pub node: &'a str,
}

/// What the sender of a write may have believed.
pub struct Known<'a> {
    /// Uid of the DaemonSet.
    pub uid: Arc<str>,
    /// Its specifications, each of which may have been taken for the newest.
    pub specs: Vec<Spec<'a>>,
    /// Pods that may be its own.
    pub pods: Vec<Pod<'a>>,
    /// Nodes by name: there may have been several of one name.
    nodes: BTreeMap<&'a str, Vec<Seen<'a>>>,
    /// When the write was accepted.
    pub now: Timestamp,
    mirror: &'a Mirror,
}

/// Do labels make it a pod of the DaemonSet?
pub fn is_selected(pod: &Object) -> bool {
    pod.label("app") == "web"
}

/// Has it ended by itself?
pub fn has_ended(pod: &Object) -> bool {
    let phase = &pod.value()["status"]["phase"];
    phase == "Failed" || phase == "Succeeded"
}

/// Does a hook hold it before its deletion?
pub fn is_held(pod: &Object) -> bool {
    pod.label(STATE) == "PreparingDelete"
}

/// Is it ready, whatever its phase?
pub fn is_ready(pod: &Object) -> bool {
    pod.state("Ready") == "True"
}

/// Is it ready for long enough, and in no update in place?
pub fn is_available(pod: &Object, min_ready_seconds: i64, now: Timestamp) -> bool {
    let since = pod
        .condition("Ready")
        .and_then(|ready| ready["lastTransitionTime"].as_str()?.parse::<Timestamp>().ok());
    let long_enough = min_ready_seconds == 0
        || since.is_some_and(|since| now.as_second() - since.as_second() >= min_ready_seconds);
    is_ready(pod) && long_enough && pod.state(GATE) != "False" && !pod.is_going()
}

impl<'a> Known<'a> {
    /// What the sender may have believed of the DaemonSet with this uid.
    pub fn of(write: &Write<'_>, mirror: &'a Mirror, uid: &str, wrote: &Wrote) -> Self {
        let versions = write.sees(mirror, DAEMONSETS, uid).versions.iter();
        let is_ours = |object: &Object| object.owner() == uid && is_selected(object);
        let pods = belief::pods(write, mirror, wrote).filter(|seen| seen.may_be(is_ours));
        let newest = write.newest_before(mirror.of(NODES));
        let mut nodes: BTreeMap<&str, Vec<Seen<'a>>> = BTreeMap::new();
        for seen in write
            .sees_all(mirror, NODES)
            .filter_map(|seen| seen.until(newest))
        {
            nodes.entry(seen.name()).or_default().push(seen);
        }
        Self {
            uid: uid.into(),
            specs: belief::specs(versions.filter(|version| !version.is_going()), |set| {
                Spec::of(set)
            }),
            pods: pods
                .filter_map(|seen| {
                    Some(Pod {
                        seen,
                        node: node_of(seen.first())?,
                    })
                })
                .collect(),
            nodes,
            now: write.now,
            mirror,
        }
    }

    /// Is it a pod of the DaemonSet that is there?
    pub fn is_ours(&self, pod: &Object) -> bool {
        pod.owner() == &*self.uid && is_selected(pod) && !pod.gone
    }

    /// The pod of a uid.
    pub fn pod(&self, uid: &str) -> Option<&Pod<'a>> {
        self.pods.iter().find(|pod| &*pod.seen.first().uid == uid)
    }

    /// Pods that may be on a node.
    pub fn on<'s>(&'s self, node: &'s str) -> impl Iterator<Item = &'s Pod<'a>> {
        self.pods.iter().filter(move |pod| pod.node == node)
    }

    /// May this be believed of a node?
    pub fn node_may_be(&self, name: &str, believed: impl Fn(&Object) -> bool) -> bool {
        let mut seen = self.nodes.get(name).into_iter().flatten();
        seen.any(|node| node.may_be(|object| !object.gone && believed(object)))
    }

    /// Must this be believed of a node?
    pub fn node_must_be(&self, name: &str, believed: impl Fn(&Object) -> bool) -> bool {
        let seen = || self.nodes.get(name).into_iter().flatten();
        let is_there = seen().any(|node| node.must_be(|object| !object.gone));
        is_there && !self.node_may_be(name, |object| !believed(object))
    }

    /// May the node be one that is to have a pod?
    pub fn may_run(&self, node: &str, spec: &Spec<'_>) -> bool {
        self.node_may_be(node, |node| fit::runs(spec.template, node))
    }

    /// Must it be?
    pub fn must_run(&self, node: &str, spec: &Spec<'_>) -> bool {
        self.node_must_be(node, |node| fit::runs(spec.template, node))
    }

    /// Most nodes that are to have a pod.
    pub fn most_desired(&self, spec: &Spec<'_>) -> i64 {
        self.nodes.keys().filter(|node| self.may_run(node, spec)).count() as i64
    }

    /// Least of them.
    pub fn least_desired(&self, spec: &Spec<'_>) -> i64 {
        self.nodes.keys().filter(|node| self.must_run(node, spec)).count() as i64
    }

    /// Names of all nodes that there may be, or that may have a pod.
    fn places(&self) -> BTreeSet<&str> {
        let pods = self.pods.iter().map(|pod| pod.node);
        self.nodes.keys().copied().chain(pods).collect()
    }

    /// Most nodes that count in the partition: they are to have a pod, or have one.
    pub fn most_counted(&self, spec: &Spec<'_>) -> i64 {
        let counts = |node: &&&str| {
            self.may_run(node, spec)
                || self
                    .on(node)
                    .any(|pod| pod.seen.may_be(|object| self.is_ours(object)))
        };
        self.places().iter().filter(counts).count() as i64
    }

    /// Nodes, but for one, that must be to have a pod and of which no pod can serve.
    fn out_of_service(&self, spec: &Spec<'_>, but: &str, serves: impl Fn(&Object) -> bool) -> i64 {
        let may_serve = |node: &str| {
            let serves = |object: &Object| self.is_ours(object) && !is_held(object) && serves(object);
            self.on(node).any(|pod| pod.seen.may_be(serves))
        };
        let others = self.nodes.keys().filter(|node| **node != but);
        others
            .filter(|node| self.must_run(node, spec) && !may_serve(node))
            .count() as i64
    }

    /// Nodes, but for one, that must be to have a pod and of which no pod can be available.
    pub fn unavailable(&self, spec: &Spec<'_>, but: &str) -> i64 {
        self.out_of_service(spec, but, |pod| {
            is_available(pod, spec.min_ready_seconds, self.now)
        })
    }

    /// The same, where old pods count as soon as they are ready.
    pub fn unready(&self, spec: &Spec<'_>, but: &str) -> i64 {
        let hash = spec.hash(self.mirror);
        self.out_of_service(spec, but, |pod| {
            let least = if pod.label(REVISION) == hash {
                spec.min_ready_seconds
            } else {
                0
            };
            is_available(pod, least, self.now)
        })
    }

    /// May the sender believe that as many nodes lost their pods since a status was reported?
    pub fn may_have_lost(&self, believed: impl Fn(&Object) -> i64) -> bool {
        let is_there = |pod: &&Pod<'_>| pod.seen.must_be(|object| self.is_ours(object));
        let nodes: BTreeSet<&str> = self.pods.iter().filter(is_there).map(|pod| pod.node).collect();
        let sets = self.mirror.of(DAEMONSETS).objects.get(&*self.uid);
        let mut reported = sets.into_iter().flatten().map(|set| believed(set));
        reported.any(|reported| reported > nodes.len() as i64)
    }

    /// Nodes, but for one, that must have their new pod or be about to have it.
    pub fn updated(&self, spec: &Spec<'_>, but: &str) -> i64 {
        let hash = spec.hash(self.mirror);
        let is_new = |object: &Object| {
            self.is_ours(object) && !object.is_going() && object.label(REVISION) == hash && !is_held(object)
        };
        let is_old = |object: &Object| {
            self.is_ours(object) && !object.is_going() && object.label(REVISION) != hash && !is_held(object)
        };
        let others = self.nodes.keys().filter(|node| **node != but);
        others
            .filter(|node| {
                let has_new = self.on(node).any(|pod| pod.seen.must_be(is_new));
                let may_have_old = self.on(node).any(|pod| pod.seen.may_be(is_old));
                self.node_must_be(node, |_| true) && (has_new || (self.must_run(node, spec) && !may_have_old))
            })
            .count() as i64
    }

    /// Nodes, but for one, that must have an old pod and a new one that is not available. Where the old one is not ready, the
    /// new one does not count.
    pub fn surging(&self, spec: &Spec<'_>, but: &str) -> i64 {
        let hash = spec.hash(self.mirror);
        let is_old = |object: &Object| {
            self.is_ours(object)
                && object.is_active()
                && is_ready(object)
                && object.label(REVISION) != hash
                && !is_held(object)
        };
        let is_young = |object: &Object| {
            self.is_ours(object)
                && object.is_active()
                && object.label(REVISION) == hash
                && !is_available(object, spec.min_ready_seconds, self.now)
        };
        let others = self
            .nodes
            .keys()
            .filter(|node| **node != but && self.must_run(node, spec));
        others
            .filter(|node| {
                self.on(node).any(|pod| pod.seen.must_be(is_old))
                    && self.on(node).any(|pod| pod.seen.must_be(is_young))
            })
            .count() as i64
    }

    /// The first of some rules that no specification keeps together with those before it.
    pub fn broken(&self, rules: &[Rule<'_, Spec<'a>>]) -> Option<&'static str> {
        belief::broken(&self.specs, rules)
    }

    /// What may have been believed.
    pub fn brief(&self) -> String {
        let specs: Vec<String> = self.specs.iter().map(Spec::brief).collect();
        let desired = self
            .specs
            .iter()
            .map(|spec| (self.least_desired(spec), self.most_desired(spec)));
        format!(
            "{}; nodes that are to have a pod: {:?}",
            specs.join(" or "),
            desired.collect::<Vec<_>>()
        )
    }
}
