//! The state that a budget and its pods must reach after the last edit and the last fault.

use super::{
    follow::{covers, replicas},
    truth,
};
use crate::engine::oracles::{Mirror, PODS};
use crate::subjects::{
    podunavailablebudget::start::{BUDGETS, Start},
    settled::expect,
};

/// The first difference.
pub fn unfinished(mirror: &Mirror, start: &Start) -> Result<(), String> {
    let Some(budget) = mirror.of(BUDGETS).now().find(|budget| !budget.is_going()) else {
        return Ok(());
    };
    let pods = mirror.of(PODS).now();
    let pods: Vec<_> = pods
        .filter(|pod| pod.is_active() && covers(budget, pod, mirror))
        .collect();
    for pod in &pods {
        for key in ["pub.kruise.io/related-pub", "kruise.io/related-pub"] {
            let found = pod.value()["metadata"]["annotations"][key].as_str();
            expect(
                format_args!("pod {}: {key}", pod.name),
                found,
                Some(&*budget.name),
            )?;
        }
    }
    let name = |what: &str| format!("budget {}: {what}", budget.name);
    let number = |member: &str| truth::number(budget, member);
    expect(name("entries"), truth::charged(budget).len(), 0)?;
    let generation = &budget.value()["metadata"]["generation"];
    expect(
        name("observedGeneration"),
        &budget.value()["status"]["observedGeneration"],
        generation,
    )?;
    let total = replicas(mirror, start.workload);
    expect(name("totalReplicas"), number("totalReplicas"), total)?;
    let desired = truth::desired(budget, total);
    expect(name("desiredAvailable"), number("desiredAvailable"), desired)?;
    let current = pods.iter().filter(|pod| truth::is_available(pod)).count() as i64;
    expect(name("currentAvailable"), number("currentAvailable"), current)?;
    let allowed = (current - desired).max(0);
    expect(name("unavailableAllowed"), number("unavailableAllowed"), allowed)
}
