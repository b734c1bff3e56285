//! The order of decisions.

use std::sync::Arc;

use jiff::Timestamp;
use kruise_plan_kit::{
    Explain, Owner, Plan, Why,
    history::History,
    rollout::{Pod, Revisions, Rollout, add_ready, interrupted, refresh, unreadable, updated_in_place},
    trial::Trying,
};

use super::{
    claims::Places,
    create::NewPods,
    events, explain, history,
    numbers::{Counts, InPlace, Limits, Numbers, numbers},
    outlook, parts, pods,
    scale::{self, Scaling},
    snapshot::Snapshot,
    status,
    update::Updaters,
    volumes::Volumes,
};

/// Decides what a set needs now.
pub fn plan(snapshot: &Snapshot<'_>, now: Timestamp) -> Plan {
    let (set, spec, memory) = (snapshot.set, &snapshot.set.spec, snapshot.memory);
    if let Some(problem) = unreadable::selector(&spec.selector, &spec.template) {
        return nothing(snapshot, &problem, now);
    }
    let owner = Owner::new(snapshot.api_version, "CloneSet", &set.metadata);
    let claimed = pods::claim(set, snapshot.pods);
    let history = History::new(snapshot.revisions);
    let pulls_ahead = snapshot.options.images_ahead;
    let claims_hash = || go_compat::pod_template::claim_templates_hash(&spec.volume_claim_templates);
    let specified = history::specified(set, &claims_hash, pulls_ahead);
    let found = history.revisions_of(&owner, &specified, &memory.taken_names);
    let record_wait = found.record_wait(&set.status.update_revision);
    let strategy = parts::strategy(spec);
    let revisions = Revisions::new(&found.update, &history, strategy.policy);
    let pods = claimed.classify(set, &revisions, now);
    let limits = Limits::of(spec, snapshot.options.exclude_preparing_delete);
    let places = Places {
        owner,
        claims: snapshot.claims,
        pods: snapshot.pods,
        taken_names: &memory.taken_names,
        late: &memory.late,
        reuse: spec.scale_strategy.enable_pvc_reuse,
    };
    let charges = parts::charges(snapshot, &owner, limits, now);
    let names = [&*found.update.name, &*found.current.name].map(str::to_owned);
    let exists = pods.iter().any(|pod| pod.updated);
    let rollout = Rollout {
        owner,
        strategy,
        budget: parts::budget(spec, limits),
        lifecycle: spec.lifecycle.as_ref(),
        options: parts::options(snapshot),
        update: found.update,
        current: found.current,
        history,
        deletions: &events::DELETIONS,
        in_place_words: updated_in_place,
        after_deletion: &|pod| places.deletions(pod),
        charges: &charges,
        trying: Trying::new(&memory.trials, names.each_ref().map(String::as_str), exists, now),
        refused: &memory.refused,
        explain: snapshot.explain,
        now,
    };
    let mut plan = Plan::default();
    let alive = set.metadata.deletion_timestamp.is_none();
    if alive {
        let recorded = found.object.is_none();
        plan.writes.extend(found.object);
        plan.writes.extend(found.record);
        let hold = claimed.release(owner.uid, memory, now, &mut plan);
        let scaling = Scaling {
            new_pods: NewPods {
                places: &places,
                volumes: Volumes {
                    owner,
                    templates: &spec.volume_claim_templates,
                    labels: &spec.selector.match_labels,
                },
                version: &set.metadata.resource_version,
                ready_gate: snapshot.options.pod_ready_gate,
                selector: Arc::new(spec.selector.clone()),
            },
            node: snapshot.node,
        };
        let held_as_updated = snapshot.options.preparing_update_as_update;
        let counted = act(&rollout, &scaling, &pods, limits, held_as_updated, &mut plan);
        if let Some(hold) = hold {
            hold.keep(&mut plan);
        }
        if let Some(asks) = rollout.trial(|revision, _| scaling.new_pods.trial(&rollout, revision)) {
            return asks;
        }
        if rollout.explain == Explain::Yes {
            plan.outlook = outlook::of(&rollout, &pods, counted, spec.min_ready_seconds, &plan);
        }
        places.clean_up(&mut plan);
        let named = &spec.scale_strategy.pods_to_delete;
        plan.writes.extend(scale::prune(&owner, named, &pods));
        let images = parts::images(snapshot);
        let images = images.map(|images| images.plan(&rollout, &pods, recorded));
        plan.writes.extend(images.into_iter().flatten());
        let labels = pods.iter().map(Pod::label);
        plan.writes
            .extend(rollout.truncate(spec.revision_history_limit, labels));
        charges.write(&mut plan);
    } else {
        let text = "the set is being deleted: its pods go with it";
        plan.why.push(Why::of_set(text));
    }
    // What comes by itself is worth waiting for.
    let idle = alive && plan.writes.is_empty() && plan.requeue.is_none();
    let report = status::report(snapshot, &rollout, limits, found.collision_count, &pods, idle);
    plan.events.extend(report.events);
    plan.status = report.patch.filter(|_| record_wait.is_none());
    plan.requeue_after(record_wait);
    plan.stage = Some(report.stage);
    plan.requeue_after(report.requeue);
    plan.why.extend(report.why);
    plan
}

/// The plan of a set that cannot be read.
fn nothing(snapshot: &Snapshot<'_>, problem: &str, now: Timestamp) -> Plan {
    let (status, event) = status::unreadable(snapshot, problem, now);
    Plan {
        status,
        events: vec![event],
        why: vec![Why::of_set(format!("nothing is done: {problem}"))],
        ..Plan::default()
    }
}

/// Decides about the pods. Returns what there was room for.
fn act(
    rollout: &Rollout<'_>,
    scaling: &Scaling<'_, '_>,
    pods: &[Pod<'_>],
    limits: Limits,
    held_as_updated: bool,
    plan: &mut Plan,
) -> (Limits, Numbers) {
    let ready = refresh(rollout, pods, plan);
    let decided = plan.writes.len();
    let counted = change(rollout, scaling, pods, limits, held_as_updated, plan);
    add_ready(ready, decided, plan);
    if rollout.explain == Explain::Yes {
        explain::explain_pods(pods, plan);
    }
    counted
}

fn change(
    rollout: &Rollout<'_>,
    scaling: &Scaling<'_, '_>,
    pods: &[Pod<'_>],
    limits: Limits,
    held_as_updated: bool,
    plan: &mut Plan,
) -> (Limits, Numbers) {
    let rolls_back = rollout.options.goes_back && rollout.update.name != rollout.current.name;
    let mut updaters = Updaters::new(rollout);
    let limits = Limits { rolls_back, ..limits };
    let limits = Limits {
        in_place: in_place(&mut updaters, pods, limits),
        ..limits
    };
    let count = |updated, held_as_updated| Counts::of(pods, updated, held_as_updated);
    let counted = numbers(
        limits,
        count(false, held_as_updated),
        count(true, held_as_updated),
    );
    let removes = scaling.scale(rollout, pods, counted, plan);
    if rollout.explain == Explain::Yes {
        explain::explain(limits, counted, plan);
    }
    let updating = numbers(limits, count(false, false), count(true, false));
    if !removes {
        updaters.update(rollout, pods, updating, plan);
        if updating.update == 0 {
            plan.writes.extend(interrupted::repair(rollout, pods));
        }
    }
    (limits, updating)
}

/// Which updates can all pods make in place? Asked only where it matters: each revision costs a comparison of
/// templates.
fn in_place(updaters: &mut Updaters<'_>, pods: &[Pod<'_>], limits: Limits) -> InPlace {
    let leaving = |updated: bool| pods.iter().filter(move |pod| pod.updated == updated);
    let surges = limits.max_surge > 0;
    InPlace {
        forward: surges && updaters.forward.all_in_place(leaving(false)),
        back: surges && limits.rolls_back && updaters.back.all_in_place(leaving(true)),
    }
}
