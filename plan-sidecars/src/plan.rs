//! The order of decisions.

use jiff::Timestamp;
use kruise_plan_kit::{
    EventNote, Explain, ObjectWrites, Plan, Why,
    availability::settling,
    events,
    injected::is_injected,
    ledger::{Ask, Charges, Operation},
    rollout::{Course, Stage},
    sidecars::{Hashes, hashes_of},
};
use serde_json::{Value, json};

use crate::reasons;
use crate::{
    choose::{Busy, Choice, choose, kept},
    condition, history, hot,
    pod::{Pod, classify},
    repair::{Repair, on_their_way, owners, repair},
    repairs::Repairs,
    sidecars::Sidecars,
    snapshot::Snapshot,
    status, uninjected,
    upgrade::{Goal, upgrade},
};

/// How far the upgrade of the pods is.
fn stage(snapshot: &Snapshot<'_>, revision: &str, pods: &[Pod<'_>], held: Option<&str>) -> Stage {
    let old = pods.iter().filter(|pod| !pod.updated).count();
    let kept = kept(snapshot, pods.len()).map_or(usize::MAX, |kept| kept.max(0) as usize);
    let course = match held {
        _ if old == 0 => Course::Done,
        Some(held) => Course::Held(held.to_owned()),
        None if old <= kept => Course::Held("the partition keeps the other pods as they are".to_owned()),
        None => Course::Moving,
    };
    Stage {
        reported: snapshot.set.status.latest_revision.clone(),
        revision: revision.to_owned(),
        has_old: old > 0,
        course,
    }
}

/// Decides what the pods of a set need now.
pub fn plan(snapshot: &Snapshot<'_>, now: Timestamp) -> Plan {
    let set = snapshot.set;
    let mut plan = Plan::default();
    if set.metadata.deletion_timestamp.is_some() {
        say(
            snapshot,
            &mut plan,
            "the set is being deleted: its pods keep their sidecars",
        );
        return plan;
    }
    let spec = serde_json::to_value(&set.spec).unwrap_or_default();
    let hashes = hashes_of(&json!({"metadata": {"annotations": set.metadata.annotations}, "spec": spec}));
    let sidecars = Sidecars::of(&spec);
    let pods = classify(snapshot, &spec, &sidecars, &hashes, now);
    plan.requeue_after(pods.iter().filter_map(|pod| settling(pod.view, now)));
    let mut found = history::find(snapshot, &spec, &hashes);
    let uninjected = uninjected::find(snapshot, &spec);
    let owners = owners(snapshot, &uninjected, snapshot.repairs);
    let gone = on_their_way(snapshot, &owners, &spec, now);
    let charges = Charges::new(snapshot.budgets, now);
    let mut upgraded = 0;
    plan.writes.extend(found.object.take());
    explain(snapshot, &spec, &pods, &mut plan);
    plan.events.extend(overwritten(&pods));
    let held = held(snapshot);
    let conditions_are_due = held.is_none() && pods.iter().any(|pod| condition::is_due(snapshot, pod));
    plan.status = status::report(snapshot, &found, &pods, conditions_are_due);
    plan.stage = Some(stage(snapshot, &found.name, &pods, held));
    if let Some(held) = held {
        say(snapshot, &mut plan, held);
    } else {
        let goal = Goal {
            sidecars: &sidecars,
            hashes: &hashes,
            revision: &found.name,
        };
        upgraded = act(snapshot, &pods, &goal, (gone, &charges), &mut plan, now);
    }
    let all = Repair {
        pods: &pods,
        uninjected: &uninjected,
        owners: &owners,
        upgraded,
        gone,
        charges: &charges,
    };
    repair(snapshot, &all, &mut plan, now);
    if gone > 0 {
        plan.requeue_after(snapshot.repairs.lapses(now));
    }
    plan.writes.extend(history::truncate(snapshot, &found, &pods));
    charges.write(&mut plan);
    plan
}

/// Reports a sidecar that a workload takes for a container of its own. One event is enough.
fn overwritten(pods: &[Pod<'_>]) -> Option<EventNote> {
    let (pod, container) = pods
        .iter()
        .find_map(|pod| Some((pod, pod.overwritten.as_deref()?)))?;
    let message = format!(
        "pod {}: its workload has changed the image of sidecar {container}, because its template has a container of that \
         name: rename one of them",
        pod.about()
    );
    Some(EventNote::new(&events::CONTAINER_REPLACED, message))
}

/// Why nothing is upgraded at all.
fn held(snapshot: &Snapshot<'_>) -> Option<&'static str> {
    let strategy = &snapshot.set.spec.update_strategy;
    if strategy.kind == "NotUpdate" {
        return Some("injects only: updateStrategy.type is NotUpdate");
    }
    (strategy.paused && !is_injected("SetPausedIgnored")).then_some("upgrades are paused")
}

/// What a plan for this snapshot teaches about pods without sidecars, once it is known which of its writes are sent.
pub fn learn(repairs: &mut Repairs, snapshot: &Snapshot<'_>, plan: &Plan, now: Timestamp) {
    let begins = repairs.is_new();
    if !begins && !repairs.concerns(plan) {
        return;
    }
    let spec = serde_json::to_value(&snapshot.set.spec).unwrap_or_default();
    if begins {
        repairs.begin(now, uninjected::leaving(snapshot, &spec));
    }
    let uninjected = uninjected::find(snapshot, &spec);
    let before = repairs.clone();
    let generation = snapshot.set.metadata.generation;
    repairs.learn(&owners(snapshot, &uninjected, &before), plan, generation, now);
}

/// Upgrades pods; returns how many of them are in service until then.
fn act(
    snapshot: &Snapshot<'_>,
    pods: &[Pod<'_>],
    goal: &Goal<'_>,
    (gone, charges): (usize, &Charges<'_>),
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
        let Some(object) = hot::settle(snapshot, pod, goal.sidecars, &hash.full, now) else {
            continue;
        };
        // The twin that idles from then on restarts.
        if let Err(why) = charges.ask(pod.view, Operation::Update) {
            say_of(snapshot, plan, pod, why);
        } else {
            busy.pods.insert(&pod.view.uid);
            plan.writes.push(object);
        }
    }
    let (mut writes, mut events, mut upgraded) = (Vec::new(), Vec::new(), 0);
    let mut change = |pod: &Pod<'_>| match upgrade(snapshot, goal, pod, now) {
        Ok(upgrade) => {
            if upgrade.restarts {
                charges.ask(pod.view, Operation::Update)?;
            }
            writes.push(upgrade.object);
            upgraded += usize::from(pod.ready && pod.consistent);
            Ok(())
        }
        Err(error) => {
            let message = format!("pod {} is not upgraded: annotation {error}", pod.about());
            events.push(EventNote::new(&reasons::INVALID_POD_METADATA, message));
            Err("is not upgraded: an annotation cannot be merged".to_owned())
        }
    };
    let Choice {
        stranded,
        why,
        requeue,
    } = choose(snapshot, pods, goal.sidecars, &busy, &mut change, now);
    plan.writes.extend(writes);
    plan.events.extend(events);
    plan.why.extend(why);
    plan.requeue = requeue;
    let set = &snapshot.set.metadata.name;
    let back = pods
        .iter()
        .filter(|pod| pod.updated && !busy.pods.contains(&*pod.view.uid))
        .filter(|pod| condition::is_stranded(pod, set));
    let told: Vec<ObjectWrites> = stranded
        .iter()
        .filter_map(|pod| condition::tell(snapshot, pod, false, now))
        .chain(back.filter_map(|pod| condition::tell(snapshot, pod, true, now)))
        .map(|step| ObjectWrites::of_pod(vec![step]))
        .collect();
    plan.writes.extend(told);
    if !stranded.is_empty() {
        let message = format!(
            "SidecarSet in-place update detected {} not upgradable pod(s) in this round, will skip them.",
            stranded.len()
        );
        plan.events
            .push(EventNote::new(&reasons::NOT_UPGRADABLE, message));
    }
    upgraded
}

fn say(snapshot: &Snapshot<'_>, plan: &mut Plan, text: &str) {
    if snapshot.explain == Explain::Yes {
        plan.why.push(Why::of_set(text));
    }
}

fn say_of(snapshot: &Snapshot<'_>, plan: &mut Plan, pod: &Pod<'_>, text: String) {
    if snapshot.explain == Explain::Yes {
        plan.why.push(Why::new(pod.about(), text));
    }
}

/// Explains the set and each updated pod.
fn explain(snapshot: &Snapshot<'_>, spec: &Value, pods: &[Pod<'_>], plan: &mut Plan) {
    if snapshot.explain == Explain::No {
        return;
    }
    let updated = pods.iter().filter(|pod| pod.updated).count();
    let text = format!(
        "{} pods have its sidecars, {updated} of them are up to date",
        pods.len()
    );
    say(snapshot, plan, &text);
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
    say(snapshot, plan, &text);
    for pod in pods.iter().filter(|pod| pod.updated) {
        let text = match (pod.consistent, pod.ready) {
            (true, true) => "is up to date and in service",
            (true, false) => "is up to date, not in service yet",
            (false, _) => "is being upgraded: its containers do not run the new images yet",
        };
        plan.why.push(Why::new(pod.about(), text));
    }
}
