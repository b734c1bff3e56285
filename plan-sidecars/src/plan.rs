//! The order of decisions.

use jiff::Timestamp;
use kruise_plan_kit::{
    Chain, EventNote, Explain, Plan, Why, events,
    planted::{Bug, is_planted},
    sidecars::{Hashes, hashes_of},
};
use serde_json::{Value, json};

use crate::{
    choose::{Busy, Choice, choose},
    condition, history, hot,
    observe::Observed,
    pod::{Pod, classify},
    repair::{Repair, on_their_way, owners, repair},
    repairs::Repairs,
    sidecars::Sidecars,
    status, uninjected,
    upgrade::{Goal, upgrade},
};

/// Decides what the pods of a set need now.
pub fn plan(observed: &Observed<'_>, now: Timestamp) -> Plan {
    let set = observed.set;
    let mut plan = Plan::default();
    if set.metadata.deletion_timestamp.is_some() {
        say(
            observed,
            &mut plan,
            "the set is being deleted: its pods keep their sidecars",
        );
        return plan;
    }
    let spec = serde_json::to_value(&set.spec).unwrap_or_default();
    let hashes = hashes_of(&json!({"metadata": {"annotations": set.metadata.annotations}, "spec": spec}));
    let sidecars = Sidecars::of(&spec);
    let pods = classify(observed, &spec, &sidecars, &hashes);
    let mut found = history::find(observed, &spec, &hashes);
    let uninjected = uninjected::find(observed, &spec);
    let owners = owners(observed, &uninjected, observed.repairs);
    let gone = on_their_way(observed, &owners, &spec, now);
    let mut upgraded = 0;
    plan.status = status::report(observed, &found, &pods);
    plan.chains.extend(found.chain.take());
    explain(observed, &spec, &pods, &mut plan);
    if let Some(held) = held(observed) {
        say(observed, &mut plan, held);
    } else {
        let goal = Goal {
            sidecars: &sidecars,
            hashes: &hashes,
            revision: &found.name,
        };
        upgraded = act(observed, &pods, &goal, gone, &mut plan, now);
    }
    let all = Repair {
        pods: &pods,
        uninjected: &uninjected,
        owners: &owners,
        upgraded,
        gone,
    };
    repair(observed, &all, &mut plan, now);
    if gone > 0 {
        plan.requeue_after(observed.repairs.lapses(now));
    }
    plan.chains.extend(history::truncate(observed, &found, &pods));
    plan
}

/// Why nothing is upgraded at all.
fn held(observed: &Observed<'_>) -> Option<&'static str> {
    let strategy = &observed.set.spec.update_strategy;
    if strategy.kind == "NotUpdate" {
        return Some("injects only: updateStrategy.type is NotUpdate");
    }
    (strategy.paused && !is_planted(Bug::SetPausedIgnored)).then_some("upgrades are paused")
}

/// What a plan for this snapshot teaches about pods without sidecars, once it is known which of its writes are sent.
pub fn learn(repairs: &mut Repairs, observed: &Observed<'_>, plan: &Plan, now: Timestamp) {
    let begins = repairs.is_new();
    if !begins && !repairs.concerns(plan) {
        return;
    }
    let spec = serde_json::to_value(&observed.set.spec).unwrap_or_default();
    if begins {
        repairs.begin(now, uninjected::leaving(observed, &spec));
    }
    let uninjected = uninjected::find(observed, &spec);
    let before = repairs.clone();
    let generation = observed.set.metadata.generation;
    repairs.learn(&owners(observed, &uninjected, &before), plan, generation, now);
}

/// Upgrades pods; returns how many of them are in service until then.
fn act(
    observed: &Observed<'_>,
    pods: &[Pod<'_>],
    goal: &Goal<'_>,
    gone: usize,
    plan: &mut Plan,
    now: Timestamp,
) -> usize {
    let hash: &Hashes = goal.hashes;
    let mut busy = Busy {
        gone,
        ..Busy::default()
    };
    // Where more than images differ, the empty image may be another one, too: such pods are left as they are.
    for pod in pods.iter().filter(|pod| pod.upgradable) {
        if let Some(chain) = hot::settle(observed, pod, goal.sidecars, &hash.full, now) {
            busy.pods.insert(&pod.view.uid);
            plan.chains.push(chain);
        }
    }
    let (mut chains, mut events, mut upgraded) = (Vec::new(), Vec::new(), 0);
    let mut change = |pod: &Pod<'_>| match upgrade(observed, goal, pod, now) {
        Ok(chain) => {
            chains.push(chain);
            upgraded += usize::from(pod.ready && pod.consistent);
            true
        }
        Err(error) => {
            events.push(EventNote {
                reason: &events::INVALID_POD_METADATA,
                message: format!("pod {} is not upgraded: annotation {error}", pod.about()),
            });
            false
        }
    };
    let Choice {
        stranded,
        why,
        requeue,
    } = choose(observed, pods, goal.sidecars, &busy, &mut change, now);
    plan.chains.extend(chains);
    plan.events.extend(events);
    plan.why.extend(why);
    plan.requeue = requeue;
    let set = &observed.set.metadata.name;
    let back = pods
        .iter()
        .filter(|pod| pod.updated && !busy.pods.contains(&*pod.view.uid))
        .filter(|pod| condition::is_stranded(pod, set));
    let told: Vec<Chain> = stranded
        .iter()
        .filter_map(|pod| condition::tell(observed, pod, false, now))
        .chain(back.filter_map(|pod| condition::tell(observed, pod, true, now)))
        .map(|step| Chain::of_pod(vec![step]))
        .collect();
    plan.chains.extend(told);
    if !stranded.is_empty() {
        plan.events.push(EventNote {
            reason: &events::NOT_UPGRADABLE,
            message: format!(
                "SidecarSet in-place update detected {} not upgradable pod(s) in this round, will skip them.",
                stranded.len()
            ),
        });
    }
    upgraded
}

fn say(observed: &Observed<'_>, plan: &mut Plan, text: &str) {
    if observed.explain == Explain::Yes {
        plan.why.push(Why::of_set(text));
    }
}

/// Explains the set and each updated pod.
fn explain(observed: &Observed<'_>, spec: &Value, pods: &[Pod<'_>], plan: &mut Plan) {
    if observed.explain == Explain::No {
        return;
    }
    let updated = pods.iter().filter(|pod| pod.updated).count();
    let text = format!(
        "{} pods have its sidecars, {updated} of them are up to date",
        pods.len()
    );
    say(observed, plan, &text);
    let limit = |name: &str| match spec.pointer(&format!("/updateStrategy/{name}")) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => (if name == "partition" { "0" } else { "1" }).to_owned(),
    };
    let text = format!(
        "keeps {} as they are and lets {} be out of service",
        limit("partition"),
        limit("maxUnavailable")
    );
    say(observed, plan, &text);
    for pod in pods.iter().filter(|pod| pod.updated) {
        let text = match (pod.consistent, pod.ready) {
            (true, true) => "is up to date and in service",
            (true, false) => "is up to date, not in service yet",
            (false, _) => "is being upgraded: its containers do not run the new images yet",
        };
        plan.why.push(Why::new(pod.about(), text));
    }
}
