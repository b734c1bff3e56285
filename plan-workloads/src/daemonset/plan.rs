//! The order of decisions.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use kruise_plan_kit::{
    EventNote, Explain, Owner, Plan, Why,
    history::History,
    ledger::Charges,
    newest::{Newest, newest},
    revision::Revision,
    rollout::{Pod, Policy, Revisions, Rollout, add_ready, refresh, unreadable},
    trial::Trying,
};

use super::{
    create::NewPods,
    decision::Decision,
    events, explain,
    limits::Limits,
    outlook, parts,
    places::{Place, Places},
    revisions,
    snapshot::Snapshot,
    status,
    steps::Steps,
};

/// Decides what a set needs now.
pub fn plan(snapshot: &Snapshot<'_>, now: Timestamp) -> Plan {
    let (set, spec) = (snapshot.set, &snapshot.set.spec);
    let owner = Owner::new(snapshot.api_version, "DaemonSet", &set.metadata);
    if set.metadata.deletion_timestamp.is_some() {
        return Plan {
            why: vec![Why::of_set("the set is being deleted: its pods go with it")],
            ..Plan::default()
        };
    }
    if spec.selector.is_empty() {
        let problem = "the selector is empty, and would select all pods";
        return nothing(snapshot, problem, Some(events::selecting_all(&owner)), now);
    }
    if let Some(problem) = unreadable::selector(&spec.selector, &spec.template) {
        return nothing(snapshot, &problem, None, now);
    }
    let desired = snapshot.nodes.iter().filter(|placed| placed.fit.runs()).count();
    let limits = Limits::of(spec, i32::try_from(desired).unwrap_or(i32::MAX));
    let history = History::new(snapshot.revisions);
    let specified = revisions::specified(set, &history, snapshot.options.images_ahead);
    let found = history.revisions_of(&owner, &specified, &snapshot.memory.taken_names);
    let record_wait = found.record_wait(&set.status.update_revision);
    let equal = history.twins(&found.update.template);
    let twins: Vec<String> = equal
        .filter(|view| *view.name != *found.update.name)
        .map(|view| view.name.to_string())
        .collect();
    let strategy = parts::strategy(spec);
    // A pod that surges is a new one, whatever its predecessor runs.
    let surges = limits.max_surge > 0;
    let policy = if surges { Policy::Recreate } else { strategy.policy };
    let classes = Revisions::new(&found.update, &history, policy);
    let places = Places::new(
        set,
        (snapshot.nodes, snapshot.pods),
        (&classes, &twins),
        limits.min_ready_seconds,
        now,
    );
    let current = revisions::outdated(&history, &places);
    // A budget counts the pods that there are. A node whose pod is gone, or is to come, is to have one nevertheless.
    let charges = Charges::new(snapshot.budgets, now).of_workload(owner.workload(), limits.desired);
    let current = current.unwrap_or_else(|| found.update.clone());
    let names = [&*found.update.name, &*current.name].map(str::to_owned);
    let exists = places
        .members()
        .any(|member| member.is_living() && member.pod.updated);
    let decision = Decision {
        set,
        options: snapshot.options,
        limits,
        places,
        placement: snapshot.placement,
        rollout: Rollout {
            owner,
            strategy,
            budget: parts::budget(limits),
            lifecycle: spec.lifecycle.as_ref(),
            options: parts::options(snapshot.options),
            current,
            update: found.update,
            history,
            deletions: &events::DELETIONS,
            in_place_words: events::updated_in_place,
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
        memory: snapshot.memory,
    };
    let recorded = found.object.is_none();
    let mut plan = Plan::default();
    plan.writes.extend(found.object);
    plan.writes.extend(found.record);
    let withheld = match decide(snapshot, &decision, (&twins, recorded), &mut plan) {
        Ok(withheld) => withheld,
        Err(asks) => return *asks,
    };
    charges.write(&mut plan);
    // What comes by itself is worth waiting for.
    let idle = plan.writes.is_empty() && plan.requeue.is_none();
    let counts = status::Round {
        collision_count: found.collision_count,
        withheld,
        idle,
    };
    let report = status::report(snapshot, &decision, &counts);
    plan.events.extend(report.events);
    plan.status = report.patch.filter(|_| record_wait.is_none());
    plan.requeue_after(record_wait);
    plan.stage = Some(report.stage);
    plan.requeue_after(report.requeue);
    plan.why.extend(report.why);
    plan
}

/// Decides about pods and what goes with them. Returns how many nodes get no pod because of the partition; as an
/// error the plan that only asks, if something has to be known first.
fn decide(
    snapshot: &Snapshot<'_>,
    decision: &Decision<'_>,
    (twins, recorded): (&[String], bool),
    plan: &mut Plan,
) -> Result<usize, Box<Plan>> {
    let newest = decision.newest();
    let new_pods = decision.new_pods(&newest);
    let withheld = decision.act(&new_pods, twins, plan);
    let node_of = |pod: &str| decision.node_of(pod).unwrap_or_default();
    let tried = |revision: &Revision, pod: &str| new_pods.trial(revision, node_of(pod));
    if let Some(asks) = decision.rollout.trial(tried) {
        return Err(Box::new(asks));
    }
    plan.newest = Some(newest.clone());
    if snapshot.explain == Explain::Yes {
        plan.outlook = outlook::of(decision, withheld, plan);
    }
    let images = parts::images(snapshot, &decision.places, decision.limits);
    let pods: Vec<Pod<'_>> = decision.active().collect();
    let images = images.map(|images| images.plan(&decision.rollout, &pods, recorded));
    plan.writes.extend(images.into_iter().flatten());
    plan.writes.extend(decision.truncate(twins));
    Ok(withheld)
}

/// The plan of a set that cannot be read.
fn nothing(snapshot: &Snapshot<'_>, problem: &str, event: Option<EventNote>, now: Timestamp) -> Plan {
    let (status, note) = status::unreadable(snapshot, problem, now);
    Plan {
        status,
        events: vec![event.unwrap_or(note)],
        why: vec![Why::of_set(format!("nothing is done: {problem}"))],
        ..Plan::default()
    }
}

impl<'p> Decision<'p> {
    fn new_pods<'n>(&'n self, newest: &'n Newest) -> NewPods<'n> {
        let names = self
            .places
            .members()
            .map(|member| member.pod.view.name.to_string());
        let foreign = self.memory.taken_names.iter().cloned();
        let taken: BTreeSet<String> = names.chain(foreign).collect();
        NewPods::new(self.set, &self.rollout, self.options, (taken, newest))
    }

    /// The node of the pod of this name.
    fn node_of(&self, pod: &str) -> Option<&'p str> {
        let mut places = self.places.all.iter();
        let has = |place: &&Place<'_>| place.members.iter().any(|member| *member.pod.view.name == *pod);
        places.find(has).map(|place| place.name)
    }

    /// Decides. Returns how many nodes get no pod because of the partition.
    fn act(&self, new_pods: &NewPods<'_>, twins: &[String], plan: &mut Plan) -> usize {
        let owner = &self.rollout.owner;
        let hold = self
            .places
            .release(owner.uid, self.memory, self.rollout.now, plan);
        plan.writes.extend(self.places.adopt(owner));
        let active: Vec<Pod<'_>> = self.active().collect();
        let ready = refresh(&self.rollout, &active, plan);
        let decided = plan.writes.len();
        let mut steps = Steps::new(self.limits.burst);
        let withheld = self.manage(new_pods, &mut steps, plan);
        self.update(new_pods, &mut steps, plan);
        add_ready(ready, decided, plan);
        if let Some(hold) = hold {
            hold.keep(plan);
        }
        let hash = self.rollout.label_of(&self.rollout.update);
        let relabelled = self.places.relabel(hash, twins);
        add_ready(relabelled, decided, plan);
        explain::explain(self, plan);
        withheld
    }

    /// The newest pod that each node had.
    fn newest(&self) -> Arc<Newest> {
        let owner = &self.rollout.owner;
        let places = self.places.all.iter().map(|place| {
            let members = place.members.iter();
            (place.name, members.map(|member| &**member.pod.view))
        });
        newest(self.memory, (owner.name, owner.uid), places, self.rollout.now)
    }
}
