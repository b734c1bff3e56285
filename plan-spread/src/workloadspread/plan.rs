//! The order of decisions.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use kruise_api::workloadspread::{SubsetStatus, WorkloadSpread, WorkloadSpreadStatus};
use kruise_plan_kit::{
    Explain, ObjectWrites, Plan, StatusPatch, Step, Target, Why,
    injected::is_injected,
    pod_writes::{Guard, delete},
    spread::{has_ordinals, limits, status_patch},
    workloads::{Known, Workload},
};
use kruise_views::PodView;

use super::{
    adaptive::mark,
    adopt::adopt,
    cost,
    count::{Counted, count},
    events, explain,
    groups::{Group, groups},
    snapshot::Snapshot,
    target,
};

/// Time until what is not known yet is looked at again.
const AGAIN: Duration = Duration::from_secs(5);
/// Time until a target without a cache is asked for again, so that it goes on being read.
const ASK: Duration = Duration::from_mins(1);

/// Decides what a WorkloadSpread needs now.
pub fn plan(snapshot: &Snapshot<'_>, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let spread = snapshot.spread;
    if spread.metadata.deletion_timestamp.is_some() {
        plan.why.push(Why::of_set("is being deleted: nothing is counted"));
    } else if let Some(named) = &spread.spec.target_ref {
        let target = Workload::new(named.group(), &named.kind, &named.name);
        of_target(snapshot, &target, &mut plan, now);
    } else {
        plan.events.push(events::unresolved("targetRef is missing"));
    }
    if snapshot.explain == Explain::No {
        plan.why.clear();
    }
    plan
}

fn of_target(snapshot: &Snapshot<'_>, target: &Workload, plan: &mut Plan, now: Timestamp) {
    let spec = &snapshot.spread.spec;
    let is_watched = target.owns_pods_by_itself() || target.group_kind() == ("batch", "Job");
    let has_paths = spec
        .target_filter
        .as_ref()
        .is_some_and(|filter| !filter.replicas_path_list.is_empty());
    if !is_watched || has_paths {
        plan.requeue_after([ASK]);
    }
    let found = match snapshot.target {
        Known::NotYet => {
            let text = format!("{} {} has yet to be read", target.kind, target.name);
            plan.why.push(Why::of_set(text));
            return plan.requeue_after([AGAIN]);
        }
        Known::Unreadable => {
            plan.events.push(events::unreadable(target));
            let text = "the workload cannot be read: the status stays";
            return plan.why.push(Why::of_set(text));
        }
        Known::Gone => None,
        Known::Found(workload) => Some(workload).filter(|workload| !workload.deleting),
    };
    let limits = match found {
        // It wants no pods.
        None => limits(spec, Some(0)),
        Some(workload) => {
            target::replicas(spec, workload, snapshot.listed).and_then(|replicas| limits(spec, replicas))
        }
    };
    let limits = match limits {
        Ok(limits) => limits,
        Err(error) => {
            plan.events.push(events::unresolved(&error));
            let text = format!("the status stays as it is: {error}");
            return plan.why.push(Why::of_set(text));
        }
    };
    let Some(workload) = found else {
        plan.why
            .push(Why::of_set("the workload does not exist: it has no pods"));
        return end(snapshot, &limits, BTreeMap::new(), BTreeMap::new(), plan, now);
    };
    let mut groups = groups(snapshot.spread, snapshot.pods, snapshot.before);
    let mut adoptions = adopt(snapshot, &mut groups, &limits, now);
    let needs = adoptions.reads.needs(snapshot.memory, snapshot.explain);
    if !needs.is_empty() {
        // A plan with needs has no writes: the next one has them.
        plan.needs = needs;
        return;
    }
    plan.requeue_after(adoptions.reads.again(AGAIN));
    plan.attempts.extend(adoptions.attempts);
    let latest = target::latest(spec, workload, snapshot.replica_sets);
    let mut steps: BTreeMap<Box<str>, Vec<Step>> = BTreeMap::new();
    let costs = cost::costs(spec, &groups, &limits, latest.as_deref(), now);
    for pod in snapshot.pods {
        let cost = costs.get(&pod.uid).and_then(|cost| cost::step(pod, *cost));
        steps.entry(pod.uid.clone()).or_default().extend(cost);
    }
    for (uid, step) in adoptions.steps {
        steps.entry(uid).or_default().push(step);
    }
    if snapshot.explain == Explain::Yes {
        plan.why.extend(explain::pods(snapshot.spread, &groups, &costs));
    }
    end(snapshot, &limits, groups, steps, plan, now);
}

fn end(
    snapshot: &Snapshot<'_>,
    limits: &[Option<i32>],
    groups: BTreeMap<String, Group<'_>>,
    mut steps: BTreeMap<Box<str>, Vec<Step>>,
    plan: &mut Plan,
    now: Timestamp,
) {
    let spread = snapshot.spread;
    let counted = count(spread, &groups, limits, now);
    let status = &counted.status;
    let mut deleted = BTreeSet::new();
    for (pod, subset) in failed(spread, &groups, &counted) {
        deleted.insert(pod.uid.clone());
        let reason = format!("no node can take it in subset {subset}: its successor goes to another one");
        let mut step = delete(pod, Guard::Unchanged, reason);
        step.failed = Some(events::cannot_delete(&pod.name));
        steps.insert(pod.uid.clone(), vec![step]);
    }
    if snapshot.explain == Explain::Yes {
        let mut why = explain::subsets(spread, status, limits);
        why.append(&mut plan.why);
        plan.why = why;
    }
    plan.status = report(spread, status);
    let writes = steps.into_values().filter(|steps| !steps.is_empty());
    plan.writes.extend(writes.map(ObjectWrites::of_pod));
    plan.events.extend(counted.events);
    if !is_injected("EntriesKept") {
        plan.requeue_after(counted.again);
    }
}

/// Pods that wait too long for a node, each with its subset. Only in subsets whose stored mark keeps the webhook
/// from choosing them again for the successors.
fn failed<'c, 'a>(
    spread: &'c WorkloadSpread,
    groups: &'c BTreeMap<String, Group<'a>>,
    counted: &'c Counted<'a>,
) -> impl Iterator<Item = (&'a PodView, &'c str)> {
    let stored = &spread.status;
    counted.failed.iter().filter_map(move |(pod, index)| {
        let subset = spread.spec.subsets.get(*index)?;
        let is_marked = |list: &[SubsetStatus]| {
            let mut all = list.iter();
            all.any(|one| one.name == subset.name && mark(one).is_some())
        };
        let has_pod = |group: &Group<'_>| group.pods.iter().any(|(have, _)| have.uid == pod.uid);
        let version = groups.iter().find(|(_, group)| has_pod(group))?.0;
        let of_version = stored.versioned_subset_statuses.get(version);
        let is_marked = is_marked(&stored.subset_statuses)
            && (has_ordinals(&spread.spec) || of_version.is_some_and(|list| is_marked(list)));
        is_marked.then_some((&***pod, subset.name.as_str()))
    })
}

/// The write of the status, if it differs from what is stored.
fn report(spread: &WorkloadSpread, status: &WorkloadSpreadStatus) -> Option<StatusPatch> {
    let mut patch = status_patch(&spread.status, status)?;
    // The definition of a status that was never written requires nothing, but observers wait for the generation.
    if let Some(members) = patch.get_mut("status").and_then(|status| status.as_object_mut()) {
        members.insert("observedGeneration".to_owned(), status.observed_generation.into());
    }
    let metadata = &spread.metadata;
    Some(StatusPatch {
        target: Target {
            resource: kruise_api::workloadspread::RESOURCE,
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
        },
        version: metadata.resource_version.clone(),
        patch,
        // The webhook decides by it.
        urgent: true,
    })
}
