//! The state that a budget and its pods must reach after the last edit and the last fault.

use super::super::start::{BUDGETS, DEPLOYMENTS, GUESTS, Start};
use super::follow::{covers, replicas};
use super::{truth, wanted};
use crate::rules::prelude::*;
use crate::rules::settled::observed;

/// The first difference.
pub fn unfinished(mirror: &Mirror, start: &Start) -> Result<(), String> {
    if start.guests {
        rolled_out(mirror)?;
    }
    let Some(budget) = mirror.of(BUDGETS).now().find(|budget| !budget.is_going()) else {
        return Ok(());
    };
    let pods = mirror.of(PODS).now();
    let pods: Vec<_> = pods
        .filter(|pod| pod.is_active() && covers(budget, pod, mirror))
        .collect();
    for (pod, key) in pods.iter().flat_map(|pod| truth::NAMED.map(|key| (pod, key))) {
        expect(
            format_args!("{key} of {}", pod.name),
            text(&pod.annotations()[key]),
            &*budget.name,
        )?;
    }
    expect("entries of the budget", truth::charged(budget).len(), 0)?;
    observed(budget)?;
    let total = match (start.guests, start.target) {
        (false, _) => replicas(mirror, start.workload),
        (true, true) => {
            let mut all = mirror.of(DEPLOYMENTS).now();
            let target = all.find(|one| *one.name == *GUESTS[0] && !one.is_going());
            target.map_or(0, |target| wanted::replicas(target))
        }
        (true, false) => {
            let tops = pods.iter().filter_map(|pod| wanted::top(pod, mirror)?.last());
            let tops: BTreeMap<_, _> = tops.map(|top| (&top.uid, wanted::replicas(top))).collect();
            tops.values().sum()
        }
    };
    let desired = truth::desired(budget, total);
    let current = pods.iter().filter(|pod| truth::is_available(pod)).count() as i64;
    counts!(budget.status() => "totalReplicas": total, "desiredAvailable": desired, "currentAvailable": current,
        "unavailableAllowed": (current - desired).max(0))
}

/// Guests have the pods that they want, and nobody else has any.
fn rolled_out(mirror: &Mirror) -> Result<(), String> {
    let pods: Vec<_> = mirror.of(PODS).now().filter(|pod| pod.is_active()).collect();
    wrong!(some unwanted in pods.iter().find(|pod| wanted::is_unwanted(pod, mirror))
        => "pod {} runs, and nobody wants it", unwanted.name);
    let all = mirror.of(DEPLOYMENTS).now();
    let mut guests = all.filter(|one| GUESTS.contains(&&*one.name));
    guests.try_for_each(|guest| {
        let is_its = |pod: &&&Arc<Object>| {
            let top = wanted::top(pod, mirror).and_then(|top| top.last());
            top.is_some_and(|top| top.uid == guest.uid) && truth::is_available(pod)
        };
        let its = pods.iter().filter(is_its).count() as i64;
        expect(
            format_args!("pods of {}", guest.name),
            its,
            wanted::replicas(guest),
        )
    })
}
