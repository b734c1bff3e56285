//! The order of decisions.

use jiff::Timestamp;
use kruise_plan_kit::{
    Explain, Owner, Plan, Why,
    history::History,
    ledger::Charges,
    revision::Revision,
    rollout::{Pod, Revisions, Rollout, add_ready, refresh, unreadable, updated_in_place},
    trial::Trying,
};

use super::{
    Ordinals,
    claims::Claims,
    create::NewPods,
    decision::Decision,
    events, explain,
    limits::Limits,
    members::Members,
    outlook, parts,
    resize::Resize,
    retention::{self, Retention},
    revisions,
    scale::Next,
    snapshot::Snapshot,
    status,
};

/// Decides what a set needs now.
pub fn plan(snapshot: &Snapshot<'_>, now: Timestamp) -> Plan {
    let (set, spec) = (snapshot.set, &snapshot.set.spec);
    let start = if snapshot.options.start_ordinal {
        spec.ordinals.start
    } else {
        0
    };
    let limits = Limits::of(spec);
    let ordinals = Ordinals::of(start, limits.replicas, &spec.reserve_ordinals);
    let ordinals = match (unreadable::selector(&spec.selector, &spec.template), ordinals) {
        (None, Ok(ordinals)) => ordinals,
        (Some(problem), _) | (None, Err(problem)) => return nothing(snapshot, &problem, now),
    };
    let owner = Owner::new(snapshot.api_version, "StatefulSet", &set.metadata);
    let history = History::new(snapshot.revisions);
    let pulls_ahead = snapshot.options.images_ahead;
    let specified = revisions::specified(set, pulls_ahead);
    let found = history.revisions_of(&owner, &specified, &snapshot.memory.taken_names);
    let record_wait = found.record_wait(&set.status.update_revision);
    let strategy = parts::strategy(spec);
    let revisions = Revisions::new(&found.update, &history, strategy.policy);
    let grades = (&revisions, limits.min_ready_seconds);
    let members = Members::new(set, snapshot.pods, &ordinals, grades, now);
    let retention = snapshot
        .options
        .delete_claims
        .then(|| Retention::of(&spec.claim_retention));
    let reference = retention::owner_of(owner.api_version, owner.kind, owner.name, owner.uid);
    let owners = retention.map_or_else(Vec::new, |retention| retention.owners(&reference));
    let is_top = set.metadata.controller().is_none();
    let charges = Charges::new(snapshot.budgets, now)
        .of_workload(owner.workload(), limits.replicas)
        .unwanted(is_top && limits.replicas == 0);
    let names = [&*found.update.name, &*found.current.name].map(str::to_owned);
    let exists = members
        .all()
        .any(|member| member.is_active() && member.pod.updated);
    let decision = Decision {
        set,
        options: snapshot.options,
        limits,
        ordinals,
        members,
        claims: Claims::new(owner, spec, &owners, snapshot.claim),
        retention,
        resize: Resize::new(
            &spec.volume_claim_templates,
            snapshot.options.resize_claims && spec.volume_claim_update_strategy.kind == "OnPodRollingUpdate",
            snapshot.class,
        ),
        rollout: Rollout {
            owner,
            strategy,
            budget: parts::budget(limits),
            lifecycle: spec.lifecycle.as_ref(),
            options: parts::options(snapshot.options),
            update: found.update,
            current: found.current,
            history,
            deletions: &events::DELETIONS,
            in_place_words: updated_in_place,
            after_deletion: &|_| Vec::new(),
            charges: &charges,
            trying: Trying::new(
                &snapshot.memory.trials,
                names.each_ref().map(String::as_str),
                exists,
                now,
            ),
            refused: &snapshot.memory.refused,
            explain: snapshot.explain,
            now,
        },
        refused_names: &snapshot.memory.refused_names,
        find_pod: snapshot.pod,
    };
    let mut plan = Plan::default();
    let alive = set.metadata.deletion_timestamp.is_none();
    if alive {
        let recorded = found.object.is_none();
        plan.writes.extend(found.object);
        plan.writes.extend(found.record);
        if let Some(asks) = decide(snapshot, &decision, recorded, &mut plan) {
            return asks;
        }
        charges.write(&mut plan);
    } else {
        let text = "the set is being deleted: its pods go with it";
        plan.why.push(Why::of_set(text));
    }
    // What comes by itself is worth waiting for.
    let idle = alive && plan.writes.is_empty() && plan.requeue.is_none();
    let report = status::report(snapshot, &decision, found.collision_count, idle);
    plan.events.extend(report.events);
    plan.status = report.patch.filter(|_| record_wait.is_none());
    plan.requeue_after(record_wait);
    plan.stage = Some(report.stage);
    plan.requeue_after(report.requeue);
    plan.why.extend(report.why);
    plan
}

/// Decides for a set that stays. Returns the plan that only asks, if something has to be known first.
fn decide(snapshot: &Snapshot<'_>, decision: &Decision<'_>, recorded: bool, plan: &mut Plan) -> Option<Plan> {
    let rollout = &decision.rollout;
    let hold = decision
        .members
        .release(rollout.owner.uid, snapshot.memory, rollout.now, plan);
    let new_pods = decision.new_pods();
    decision.act(&new_pods, plan);
    if let Some(hold) = hold {
        hold.keep(plan);
    }
    let asks = rollout.trial(|revision: &Revision, pod: &str| new_pods.trial(revision, pod));
    if asks.is_some() {
        return asks;
    }
    if snapshot.explain == Explain::Yes {
        plan.outlook = outlook::of(decision, plan);
    }
    let images = parts::images(snapshot, decision.limits);
    let pods: Vec<Pod<'_>> = decision.slots().collect();
    let images = images.map(|images| images.plan(rollout, &pods, recorded));
    plan.writes.extend(images.into_iter().flatten());
    let labels = decision.members.all().map(|member| member.pod.label());
    let limit = snapshot.set.spec.revision_history_limit;
    plan.writes.extend(rollout.truncate(limit, labels));
    None
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

impl Decision<'_> {
    fn new_pods(&self) -> NewPods<'_> {
        NewPods::new(
            &self.rollout,
            &self.claims,
            &self.set.spec,
            self.options.index_label,
            self.options.pod_ready_gate,
        )
    }

    fn act(&self, new_pods: &NewPods<'_>, plan: &mut Plan) {
        let owner = &self.rollout.owner;
        plan.writes.extend(self.members.adopt(owner));
        let active: Vec<Pod<'_>> = self.active().collect();
        let ready = refresh(&self.rollout, &active, plan);
        let decided = plan.writes.len();
        if self.fill(new_pods, plan) == Next::Go && self.remove_condemned(plan) == Next::Go {
            self.update(plan);
        }
        self.repair(plan);
        add_ready(ready, decided, plan);
        explain::explain(self, plan);
    }
}
