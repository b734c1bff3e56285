//! The state that a WorkloadSpread and the pods must reach after the last edit and the last fault.

use super::super::start::{SPREADS, Workload};
use super::truth;
use crate::rules::prelude::*;
use crate::rules::settled::observed;

/// The annotation by which workloads choose the pods that go first.
const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// What is not yet as it should be. `refilled`: the workload was emptied and filled while all was calm.
pub fn unfinished(mirror: &Mirror, workload: Workload, refilled: bool) -> Result<(), String> {
    let Some(spread) = mirror.of(SPREADS).now().find(|spread| !spread.is_going()) else {
        return Ok(());
    };
    let pods = mirror.of(PODS).now();
    let pods: Vec<&Arc<Object>> = pods
        .filter(|pod| pod.is_active() && truth::is_of(pod, mirror, workload))
        .collect();
    let end = End {
        spread,
        replicas: truth::replicas(mirror, workload),
        pods,
        workload,
    };
    end.status()?;
    end.costs()?;
    if refilled { end.filled() } else { Ok(()) }
}

/// A WorkloadSpread, and the active pods of its workload.
struct End<'a> {
    spread: &'a Object,
    replicas: i64,
    pods: Vec<&'a Arc<Object>>,
    workload: Workload,
}

impl End<'_> {
    /// Every count is that of the pods that are there, and nothing is expected any more.
    fn status(&self) -> Result<(), String> {
        observed(self.spread)?;
        self.list("all", list(&self.spread.status()["subsetStatuses"]), |_| true)?;
        for (version, list) in truth::all_statuses(self.spread) {
            self.list(version, list, |pod| truth::version(pod, self.workload) == version)?;
        }
        let mut counted = self.pods.iter().filter(|pod| truth::subset_of(pod).is_some());
        let is_missing =
            |pod: &&&Arc<Object>| truth::statuses(self.spread, truth::version(pod, self.workload)).is_empty();
        wrong!(some pod in counted.find(is_missing) => "the version of pod {} is not counted", pod.name);
        Ok(())
    }

    fn list(&self, of: &str, list: &[Value], is_of: impl Fn(&Object) -> bool) -> Result<(), String> {
        let subsets = truth::subsets(self.spread);
        expect(format_args!("subsets of {of}"), list.len(), subsets.len())?;
        for (subset, status) in subsets.iter().zip(list) {
            let what = |member: &str| format!("{member} of {} of {of}", subset["name"]);
            expect(what("name"), &status["name"], &subset["name"])?;
            let pods = self.pods.iter().filter(|pod| is_of(pod) && is_in(pod, subset));
            let count = pods.count() as i64;
            expect(what("replicas"), status["replicas"].as_i64(), Some(count))?;
            let limit = truth::limit(subset, self.replicas);
            let missing = limit.map_or(-1, |limit| (limit - count).max(0));
            expect(what("missing"), status["missingReplicas"].as_i64(), Some(missing))?;
            let entries = ["creatingPods", "deletingPods"].map(|entries| pairs(&status[entries]).count());
            expect(what("entries"), entries, [0, 0])?;
            wrong!(truth::is_marked(status) => "{}", what("mark"));
        }
        Ok(())
    }

    /// Pods of later subsets go first, and before all others those that are too many for theirs. While pods of several
    /// versions are there, which of them is the newest is not looked at.
    fn costs(&self) -> Result<(), String> {
        let versions = self.pods.iter().map(|pod| truth::version(pod, self.workload));
        if versions.collect::<BTreeSet<_>>().len() > 1 {
            return Ok(());
        }
        let subsets = truth::subsets(self.spread);
        for (place, subset) in (0..).zip(subsets) {
            let pods = self.pods.iter().filter(|pod| is_in(pod, subset));
            let cost = |pod: &Object| {
                let text = pod.annotations()[COST].as_str();
                text.and_then(|text| text.parse::<i64>().ok())
            };
            let found: Vec<Option<i64>> = pods.map(|pod| cost(pod)).collect();
            let limit = truth::limit(subset, self.replicas).unwrap_or(i64::MAX);
            let kept = Some(100 * (subsets.len() as i64 - place));
            let surplus = Some(-100 * (place + 1));
            let too_many = (found.len() as i64 - limit).max(0);
            let is_right = found.iter().all(|cost| *cost == kept || *cost == surplus)
                && found.iter().filter(|cost| **cost == surplus).count() as i64 == too_many;
            wrong!(!is_right => "costs of {} are {found:?}: {too_many} pods are too many", subset["name"]);
        }
        Ok(())
    }

    /// *"The first subset is filled first."* New pods have filled the subsets in their order. Pods that the limits
    /// leave over are put into the subset of their node later. Limits that depend on the replicas were zero for a
    /// moment, so what their pods did then is not said.
    fn filled(&self) -> Result<(), String> {
        if truth::has_percentages(self.spread) {
            return Ok(());
        }
        let subsets = truth::subsets(self.spread);
        let limits = subsets.iter().map(|subset| truth::limit(subset, self.replicas));
        let all = limits.collect::<Option<Vec<i64>>>();
        let are_over = all.is_some_and(|limits| limits.iter().sum::<i64>() < self.replicas);
        let mut left = self.replicas;
        for subset in subsets {
            let count = self.pods.iter().filter(|pod| is_in(pod, subset)).count() as i64;
            let wanted = truth::limit(subset, self.replicas).map_or(left, |limit| limit.min(left));
            let name = &subset["name"];
            wrong!(are_over && count < wanted || !are_over && count != wanted
                => "{count} pods filled {name}, and not {wanted}");
            left -= wanted;
        }
        Ok(())
    }
}

fn is_in(pod: &Object, subset: &Value) -> bool {
    truth::subset_of(pod).is_some_and(|name| subset["name"] == name.as_str())
}
