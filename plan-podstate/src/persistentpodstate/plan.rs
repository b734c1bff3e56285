//! The order of decisions.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use kruise_api::persistentpodstate::{PersistentPodState, PersistentPodStateStatus};
use kruise_plan_kit::{
    Explain, Plan, Why,
    workloads::{Known, Workload},
};

use super::{
    events, explain,
    generate::generate,
    record::{Records, records},
    snapshot::Snapshot,
    status,
};

/// Time until what is not known yet is looked at again: a target that has yet to be read, or a node that is not in
/// the cache.
const AGAIN: Duration = Duration::from_secs(5);
/// Time until a target without a cache is asked for again, so that it goes on being read.
const ASK: Duration = Duration::from_mins(1);

/// Decides what a PersistentPodState needs now: itself, if a workload asks for it, and its records.
pub fn plan(snapshot: &Snapshot<'_>, now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    generate(snapshot, &mut plan);
    if let Some(state) = snapshot.state {
        if state.metadata.deletion_timestamp.is_some() {
            plan.why
                .push(Why::of_set("is being deleted: nothing is recorded"));
        } else if plan.writes.is_empty() || snapshot.explain == Explain::Yes {
            record(snapshot, state, &mut plan, now);
        }
    }
    if !plan.writes.is_empty() {
        // A status is for the version that it was planned from, which is about to change.
        plan.status = None;
    }
    let generators = snapshot.generators.iter();
    if generators.clone().any(|one| !one.workload.owns_pods_by_itself()) {
        plan.requeue_after([ASK]);
    }
    if snapshot.explain == Explain::No {
        plan.why.clear();
    }
    plan
}

fn record(snapshot: &Snapshot<'_>, state: &PersistentPodState, plan: &mut Plan, now: Timestamp) {
    let target = &state.spec.target_ref;
    let target = Workload::new(target.group(), &target.kind, &target.name);
    if !target.owns_pods_by_itself() {
        plan.requeue_after([ASK]);
    }
    let records = match &snapshot.target {
        Known::NotYet => {
            let text = format!("{} {} has yet to be read", target.kind, target.name);
            plan.why.push(Why::of_set(text));
            return plan.requeue_after([AGAIN]);
        }
        Known::Unreadable => {
            plan.events.push(events::unreadable(&target));
            plan.why
                .push(Why::of_set("the workload cannot be read: records stay"));
            return;
        }
        Known::Gone => {
            plan.why
                .push(Why::of_set("the workload does not exist: there are no records"));
            Records::default()
        }
        Known::Found(workload) if workload.deleting => {
            plan.why
                .push(Why::of_set("the workload is being deleted: there are no records"));
            Records::default()
        }
        Known::Found(workload) => records(snapshot, state, workload, now),
    };
    end(snapshot, state, records, plan);
}

fn end(snapshot: &Snapshot<'_>, state: &PersistentPodState, mut records: Records, plan: &mut Plan) {
    let needs = records.reads.needs(snapshot.memory, snapshot.explain);
    if !needs.is_empty() {
        // A plan with needs has no writes: the next one has them.
        plan.writes.clear();
        plan.events.clear();
        plan.needs = needs;
        return;
    }
    // What was read is in the status first: until the cache shows it, the same pods would be read again.
    plan.requeue_after(records.reads.again(AGAIN));
    if records.lacks_node {
        plan.requeue_after([AGAIN]);
    }
    if !records.stranded.is_empty() {
        plan.events.push(events::topology_gone(&records.stranded));
    }
    let states: BTreeMap<_, _> = records.states;
    if snapshot.explain == Explain::Yes {
        plan.why
            .insert(0, Why::of_set(explain::summary(&state.spec, &states)));
        plan.why.append(&mut records.why);
    }
    let after = PersistentPodStateStatus {
        observed_generation: state.metadata.generation,
        pod_states: states,
    };
    plan.status = status::patch(state, &after);
}
