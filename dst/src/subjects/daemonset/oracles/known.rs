//! What the sender of a write for a DaemonSet may have believed of it, of its pods and of the nodes.

use super::super::start::DAEMONSETS;
use super::spec::Spec;
use crate::rules::belief::{self, Seen, Wrote};
use crate::rules::fit;
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
    let ready = pod
        .condition("Ready")
        .and_then(|ready| time(&ready["lastTransitionTime"]));
    let long_enough = |since: Timestamp| now.as_second() - since.as_second() >= min_ready_seconds;
    let is_old = min_ready_seconds == 0 || ready.is_some_and(long_enough);
    is_ready(pod) && is_old && pod.state(GATE) != "False" && !pod.is_going()
}

/// What every pod of a DaemonSet tolerates: key and effect.
pub static TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

/// May a pod of the template be created on the node?
pub fn runs(template: &Value, node: &Object) -> bool {
    fit::runs(template, node, &TOLERATED)
}

/// May one that is there stay?
pub fn continues(template: &Value, node: &Object) -> bool {
    fit::continues(template, node, &TOLERATED)
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
        let pods = pods.filter_map(|seen| {
            let node = node_of(seen.first())?;
            Some(Pod { seen, node })
        });
        Self {
            uid: uid.into(),
            specs: belief::specs(versions.filter(|version| !version.is_going()), Spec::of),
            pods: pods.collect(),
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
        self.node_may_be(node, |node| runs(spec.template, node))
    }

    /// Must it be?
    pub fn must_run(&self, node: &str, spec: &Spec<'_>) -> bool {
        self.node_must_be(node, |node| runs(spec.template, node))
    }

    /// Most nodes that are to have a pod.
    pub fn most_desired(&self, spec: &Spec<'_>) -> i64 {
        self.nodes.keys().filter(|node| self.may_run(node, spec)).count() as i64
    }

    /// Least of them.
    pub fn least_desired(&self, spec: &Spec<'_>) -> i64 {
        self.nodes.keys().filter(|node| self.must_run(node, spec)).count() as i64
    }

    /// Most nodes that count in the partition: they are to have a pod, or have one.
    pub fn most_counted(&self, spec: &Spec<'_>) -> i64 {
        let is_its = |pod: &&Pod<'_>| pod.seen.may_be(|object| self.is_ours(object));
        let with_pod = self.pods.iter().filter(is_its).map(|pod| pod.node);
        let nodes = self.nodes.keys().copied().filter(|node| self.may_run(node, spec));
        nodes.chain(with_pod).collect::<BTreeSet<_>>().len() as i64
    }

    /// Nodes, but for one, that must be to have a pod and of which no pod can serve.
    fn out_of_service(&self, spec: &Spec<'_>, but: &str, serves: impl Fn(&Object) -> bool) -> i64 {
        let may_serve = |node: &str| {
            let serves = |object: &Object| self.is_ours(object) && !is_held(object) && serves(object);
            self.on(node).any(|pod| pod.seen.may_be(serves))
        };
        let out = |node: &&str| self.must_run(node, spec) && !may_serve(node);
        self.others(but).filter(out).count() as i64
    }

    /// Names of all nodes that may exist, without this one.
    fn others<'s>(&'s self, but: &'s str) -> impl Iterator<Item = &'a str> + 's {
        self.nodes.keys().copied().filter(move |node| *node != but)
    }

    /// Is it a pod of the DaemonSet that neither goes nor is held, and of this revision, or of another one?
    fn stays(&self, pod: &Object, hash: &str, is_of: bool) -> bool {
        self.is_ours(pod) && !pod.is_going() && !is_held(pod) && (pod.label(REVISION) == hash) == is_of
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
        let mut sets = self.mirror.versions(DAEMONSETS, &self.uid).iter();
        sets.any(|set| believed(set) > nodes.len() as i64)
    }

    /// Nodes, but for one, that must have their new pod or be about to have it.
    pub fn updated(&self, spec: &Spec<'_>, but: &str) -> i64 {
        let hash = spec.hash(self.mirror);
        let is_updated = |node: &&str| {
            let has_new = self
                .on(node)
                .any(|pod| pod.seen.must_be(|pod| self.stays(pod, hash, true)));
            let may_have_old = self
                .on(node)
                .any(|pod| pod.seen.may_be(|pod| self.stays(pod, hash, false)));
            self.node_must_be(node, |_| true) && (has_new || (self.must_run(node, spec) && !may_have_old))
        };
        self.others(but).filter(is_updated).count() as i64
    }

    /// Nodes, but for one, that must have an old pod and a new one that is not available. Where the old one is not
    /// ready, the new one does not count.
    pub fn surging(&self, spec: &Spec<'_>, but: &str) -> i64 {
        let hash = spec.hash(self.mirror);
        let is_old = |pod: &Object| self.stays(pod, hash, false) && pod.is_active() && is_ready(pod);
        let is_young = |pod: &Object| {
            let is_new = self.is_ours(pod) && pod.is_active() && pod.label(REVISION) == hash;
            is_new && !is_available(pod, spec.min_ready_seconds, self.now)
        };
        let has = |node: &str, is: &dyn Fn(&Object) -> bool| self.on(node).any(|pod| pod.seen.must_be(is));
        let surges = |node: &&str| self.must_run(node, spec) && has(node, &is_old) && has(node, &is_young);
        self.others(but).filter(surges).count() as i64
    }

    /// What may have been believed.
    pub fn brief(&self) -> String {
        let specs: Vec<String> = self.specs.iter().map(Spec::brief).collect();
        let desired = |spec| (self.least_desired(spec), self.most_desired(spec));
        let desired: Vec<_> = self.specs.iter().map(desired).collect();
        format!(
            "{}; nodes that are to have a pod: {desired:?}",
            specs.join(" or ")
        )
    }
}
