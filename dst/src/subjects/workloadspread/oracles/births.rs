//! Judges each pod when it is stored, by all that is stored at that moment.

use super::super::start::{POOL, SPREAD, SPREADS, Workload, node, subset};
use super::truth;
use crate::rules::moments;
use crate::rules::prelude::*;

/// How far anybody may lag behind what users write, and how long a record of a deletion may have an effect.
const LAG: SignedDuration = SignedDuration::from_secs(90);
/// How long a pod may take from its review until it is stored.
const REVIEWED: SignedDuration = SignedDuration::from_secs(30);

/// A new pod, and the WorkloadSpread that every webhook must know.
struct Birth<'a> {
    pod: &'a Object,
    /// Versions of the WorkloadSpread.
    spread: &'a [Arc<Object>],
    workload: Workload,
    mirror: &'a Mirror,
    /// When its creation was sent, if a manager did.
    sent: Option<Timestamp>,
}

/// Judges a pod of the workload that is new. `sent`: when a manager sent the creation of each pod last, by name.
pub fn judge(
    pod: &Object,
    mirror: &Mirror,
    workload: Workload,
    sent: &BTreeMap<String, Timestamp>,
) -> Option<Violation> {
    let mut spreads = mirror.of(SPREADS).objects.values();
    let spread = spreads.find(|versions| {
        moments::at(versions, pod.version).is_some_and(|now| &*now.name == SPREAD && !now.is_going())
    })?;
    let is_old = pod.at.duration_since(spread.first()?.created()) > LAG;
    let birth = Birth {
        pod,
        spread,
        workload,
        mirror,
        sent: sent.get(&*pod.name).copied(),
    };
    let is_judged = is_old && truth::is_of(pod, mirror, workload);
    is_judged.then(|| birth.judge()).flatten()
}

impl Birth<'_> {
    fn judge(&self) -> Option<Violation> {
        match truth::subset_of(self.pod) {
            Some(name) => self.is_injected(&name).or_else(|| self.fits(&name)),
            None => self.finds_no_room(),
        }
    }

    fn version(&self) -> &str {
        truth::version(self.pod, self.workload)
    }

    fn before(&self, lag: SignedDuration) -> Timestamp {
        moments::before(self.pod.at, lag)
    }

    /// Versions of the WorkloadSpread since then.
    fn since(&self, from: Timestamp) -> &[Arc<Object>] {
        moments::since(self.spread, from, self.pod.version)
    }

    /// *"Inject: the required terms, and the patch."*
    fn is_injected(&self, name: &str) -> Option<Violation> {
        let place = (0..).take(9).find(|place| subset(*place) == name).unwrap_or(9);
        let affinity = &self.pod.spec()["affinity"]["nodeAffinity"];
        let required = &affinity["requiredDuringSchedulingIgnoredDuringExecution"];
        let terms = list(&required["nodeSelectorTerms"]);
        let is_node = |one: &Value| one["values"][0] == node(place);
        let requires = |term: &Value| items(&term["matchExpressions"]).any(is_node);
        let is_right = self.pod.label(POOL) == name && !terms.is_empty() && terms.iter().all(requires);
        never!(Violation::of, "pods get what their subset adds",
            !is_right => "pod {} of subset {name}: {}", self.pod.name, self.pod.value());
        None
    }

    /// *"The number of active pods that were injected into a subset is never above its limit"*, of one version. Not
    /// counted are pods that were put there when they ran already, and those whose deletion was granted, whatever
    /// became of it.
    fn fits(&self, name: &str) -> Option<Violation> {
        let most = self.most(name)?;
        let granted = self.granted();
        let pods = self.mirror.of(PODS).objects.values();
        let in_it = pods.filter_map(|versions| {
            let pod = moments::at(versions, self.pod.version)?;
            let counts = pod.is_active()
                && truth::is_of(pod, self.mirror, self.workload)
                && truth::version(pod, self.workload) == self.version()
                && truth::subset_of(pod).as_deref() == Some(name)
                && self.is_settled(versions, name)
                && !granted.contains(&&*pod.name);
            counts.then_some(&*pod.name)
        });
        let in_it: Vec<&str> = in_it.collect();
        let now = moments::at(self.spread, self.pod.version).map(|spread| spread.status());
        never!(Violation::of, "no subset takes more pods than its limit",
            in_it.len() as i64 > most
                => "pod {} came into subset {name}, which has {in_it:?} and takes {most}: {now:?}", self.pod.name);
        None
    }

    /// Was the pod injected, or was it put there long ago?
    fn is_settled(&self, versions: &[Arc<Object>], name: &str) -> bool {
        let is_there = |pod: &Object| truth::subset_of(pod).as_deref() == Some(name);
        let first = versions.first().is_some_and(|pod| is_there(pod));
        first || {
            let then = self.before(LAG);
            let old = versions.iter().take_while(|pod| pod.at <= then).last();
            old.is_some_and(|pod| is_there(pod))
        }
    }

    /// The highest limit that the sender of the review may have counted with; nothing if there may have been none:
    /// by every specification since that of the status.
    fn most(&self, name: &str) -> Option<i64> {
        let generation = |spread: &Object| number(spread.generation());
        let observed = |spread: &Object| number(&spread.status()["observedGeneration"]);
        let recent = self.since(self.before(REVIEWED));
        let counted = recent.iter().map(|spread| observed(spread)).min().unwrap_or(0);
        let specs = self
            .spread
            .iter()
            .take_while(|spread| spread.version <= self.pod.version);
        let replicas = self.replicas();
        let limits = specs
            .filter(|spread| generation(spread) >= counted)
            .flat_map(|spread| truth::subsets(spread).iter().filter(|one| one["name"] == name))
            .map(|subset| truth::limit(subset, replicas));
        limits.collect::<Option<Vec<i64>>>()?.into_iter().max()
    }

    /// Most replicas that anybody may believe to be wanted.
    fn replicas(&self) -> i64 {
        let (workloads, from) = (self.mirror.of(self.workload.resource()), self.before(LAG));
        let all = workloads.objects.values();
        let versions = all.flat_map(|versions| moments::since(versions, from, self.pod.version));
        versions.map(|version| truth::wanted(version)).max().unwrap_or(0)
    }

    /// Names of pods whose deletion was recorded.
    fn granted(&self) -> Vec<&str> {
        let recent = self.since(self.before(LAG)).iter();
        let subsets = recent
            .flat_map(|spread| truth::all_statuses(spread))
            .flat_map(|(_, list)| list);
        subsets
            .flat_map(|subset| pairs(&subset["deletingPods"]))
            .map(|(name, _)| name)
            .collect()
    }

    /// *"A pod passes without a subset only if none has room."* At some moment of its review, no subset missed a
    /// pod. Where limits leave pods over, the reviewer may look at what it had seen before.
    fn finds_no_room(&self) -> Option<Violation> {
        let reviewed = self.before(REVIEWED);
        let from = self.sent.filter(|_| self.is_surprising()).unwrap_or(reviewed);
        let recent = self.since(from);
        let newest = recent.last().map(|spread| spread.status());
        never!(Violation::of, "pods pass without a subset only if none has room",
            recent.iter().all(|spread| self.has_room(spread)) => "pod {} is in no subset: {newest:?}", self.pod.name);
        None
    }

    /// Do all limits that anybody may believe in have room for all replicas?
    fn is_surprising(&self) -> bool {
        let replicas = self.replicas();
        let recent = self.since(self.before(LAG));
        recent.iter().all(|spread| {
            let subsets = truth::subsets(spread).iter();
            let limits: Option<Vec<i64>> = subsets.map(|one| truth::limit(one, replicas)).collect();
            limits.is_none_or(|limits| limits.iter().sum::<i64>() >= replicas)
        })
    }

    fn has_room(&self, spread: &Object) -> bool {
        let statuses = truth::statuses(spread, self.version());
        if statuses.is_empty() {
            // What percentages come to when nothing was counted yet depends on what the reviewer knew of the workload.
            let mut subsets = truth::subsets(spread).iter();
            return !truth::has_percentages(spread) && subsets.any(|one| truth::limit(one, 0) != Some(0));
        }
        let mut statuses = statuses.iter();
        statuses.any(|one| one["missingReplicas"] != 0 && !truth::is_marked(one))
    }
}
