//! Who wants a pod, as the documentation of budgets explains it.

use super::super::start::{BUDGETS, DEPLOYMENTS, REPLICASETS};
use super::truth::recent;
use crate::rules::prelude::*;

/// How long a pod may run that nobody wants: managers may be away, and whoever deletes tries again later and later.
const LET_GO: SignedDuration = SignedDuration::from_mins(5);

/// Every version of the Deployment of a pod, or of its ReplicaSet if that has none; `None` for pods of others.
pub fn top<'m>(pod: &Object, mirror: &'m Mirror) -> Option<&'m Vec<Arc<Object>>> {
    let set = mirror.of(REPLICASETS).objects.get(pod.owner())?;
    mirror
        .of(DEPLOYMENTS)
        .objects
        .get(set.last()?.owner())
        .or(Some(set))
}

/// `spec.replicas` of a Deployment or a ReplicaSet.
pub fn replicas(workload: &Object) -> i64 {
    workload.spec()["replicas"].as_i64().unwrap_or(1)
}

/// Is a workload gone, being deleted with its pods, or without any?
fn wants_none(workload: &Object) -> bool {
    let orphans = texts(&workload.metadata()["finalizers"]).any(|one| one == "orphan");
    workload.gone || (workload.is_going() && !orphans) || replicas(workload) == 0
}

/// Does nobody want a pod now?
pub fn is_unwanted(pod: &Object, mirror: &Mirror) -> bool {
    let newest = top(pod, mirror).and_then(|versions| versions.last());
    newest.is_some_and(|workload| wants_none(workload))
}

/// Has anybody a reason to believe that nobody wants a pod, however late?
pub fn may_seem_unwanted(pod: &Object, mirror: &Mirror, at: Timestamp) -> bool {
    let versions = top(pod, mirror);
    versions.is_some_and(|versions| recent(versions, at).any(|workload| wants_none(workload)))
}

/// Since when nobody wants the pods that run, by uid.
#[derive(Default)]
pub struct Unwanted(BTreeMap<Arc<str>, Timestamp>);

impl Unwanted {
    /// Is there one that has been kept for too long?
    pub fn judge(&mut self, mirror: &Mirror) -> Option<Violation> {
        let newest = [PODS, BUDGETS, REPLICASETS, DEPLOYMENTS]
            .into_iter()
            .filter_map(|of| {
                let change = mirror.of(of).changes.last()?;
                mirror.last(of, &change.uid).map(|object| object.at)
            });
        let now = newest.max()?;
        let pods = mirror.of(PODS).now();
        let unwanted = pods.filter(|pod| pod.is_active() && is_unwanted(pod, mirror));
        let unwanted: Vec<_> = unwanted.collect();
        self.0.retain(|uid, _| unwanted.iter().any(|pod| pod.uid == *uid));
        for pod in &unwanted {
            self.0.entry(pod.uid.clone()).or_insert(now);
        }
        let is_kept = |since: &Timestamp| now.duration_since(*since) > LET_GO;
        let kept = unwanted
            .iter()
            .find(|pod| self.0.get(&pod.uid).is_some_and(is_kept));
        never!(Violation::of, "a pod nobody wants is let go",
            some kept in kept => "pod {} still runs: {}", kept.name, kept.metadata());
        None
    }
}
