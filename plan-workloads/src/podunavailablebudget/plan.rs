//! The order of decisions.

use jiff::Timestamp;
use kruise_api::podunavailablebudget::PodUnavailableBudget;
use kruise_plan_kit::{
    Explain, Need, Plan, ResourceId, StatusPatch, Target, Why,
    ledger::{self, Count, Refusal, status_patch},
};

use super::{events, links, snapshot::Snapshot};

/// Decides what a budget needs now.
pub fn plan(snapshot: &Snapshot<'_>, now: Timestamp) -> Plan {
    let budget = snapshot.budget;
    if budget.metadata.deletion_timestamp.is_some() {
        return Plan {
            why: vec![Why::of_set("the budget is being deleted")],
            ..Plan::default()
        };
    }
    let counted = ledger::count(budget, &snapshot.covered(), now);
    if let Ok(count) = &counted
        && snapshot.may_read
        && !count.unproven.is_empty()
    {
        return Plan {
            needs: count.unproven.iter().map(|name| live(budget, name)).collect(),
            ..Plan::default()
        };
    }
    let mut plan = Plan {
        writes: links::writes(snapshot),
        ..Plan::default()
    };
    match counted {
        Ok(count) => report(snapshot, &count, &mut plan),
        Err(error) => {
            plan.why
                .push(Why::of_set(format!("the budget is not counted: {error}")));
            plan.events.push(events::unreadable(&error));
        }
    }
    plan
}

fn live(budget: &PodUnavailableBudget, pod: &str) -> Need {
    Need::Live(
        ResourceId::PODS,
        budget.metadata.namespace.clone(),
        pod.to_owned(),
    )
}

/// The status, and what there is to report about it.
fn report(snapshot: &Snapshot<'_>, count: &Count, plan: &mut Plan) {
    let (budget, metadata) = (snapshot.budget, &snapshot.budget.metadata);
    let patch = status_patch(&budget.status, &count.status);
    if !snapshot.pods.iter().any(|pod| pod.is_active()) {
        plan.events.push(events::no_pods());
    }
    let key = metadata.key();
    let not_deleted = count.not_deleted.iter();
    plan.events
        .extend(not_deleted.map(|pod| events::not_deleted(pod, &key)));
    plan.requeue = count.again;
    plan.status = patch.map(|patch| StatusPatch {
        target: Target {
            resource: kruise_api::podunavailablebudget::RESOURCE,
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
        },
        version: metadata.resource_version.clone(),
        patch,
        urgent: budget.status.observed_generation != metadata.generation,
    });
    if snapshot.explain == Explain::Yes {
        explain(snapshot, count, plan);
    }
}

fn explain(snapshot: &Snapshot<'_>, count: &Count, plan: &mut Plan) {
    let status = &count.status;
    let text = if status.desired_available == 0 {
        "keeps no pods: none has to be available".to_owned()
    } else {
        let (current, desired) = (status.current_available, status.desired_available);
        let allowed = status.unavailable_allowed;
        format!("{current} pods are available, {desired} must be: {allowed} may become unavailable")
    };
    plan.why.push(Why::of_set(text));
    if snapshot.unwanted > 0 {
        let text = format!(
            "{} pods are not counted: their workload is gone, is being deleted, or wants no pods",
            snapshot.unwanted
        );
        plan.why.push(Why::of_set(text));
    }
    for (entries, what) in [
        (&status.disrupted_pods, "its deletion or eviction"),
        (&status.unavailable_pods, "its update"),
    ] {
        let waits = entries.0.iter().map(|(name, since)| {
            let text = format!("counts as unavailable: {what} was allowed at {since}");
            Why::new(name.as_str(), text)
        });
        plan.why.extend(waits);
    }
    if status.unavailable_allowed == 0 && status.desired_available > 0 {
        let name = &snapshot.budget.metadata.name;
        let text = format!("requests are refused: {}", Refusal::Exhausted.message(name));
        plan.why.push(Why::of_set(text));
    }
}
