//! The order of decisions.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use kruise_api::{
    names::conditions::{RESCHEDULE, SCHEDULABLE, UNITED_UPDATED},
    names::uniteddeployment::SUBSET_REVISION,
    uniteddeployment::{Child, KIND, Subset, UnitedDeploymentStatus},
};
use kruise_plan_kit::{Explain, Owner, Plan, Why, injected::is_injected};
use serde_json::Value;

use crate::{
    allocation::{Seen, allocate},
    conditions, events, explain,
    revision::Revisions,
    scheduling::{Rollout, State, adapt, reserve},
    snapshot::{Snapshot, Workload},
    status,
    subsets::Subsets,
    workload::{Parts, Share},
    writes,
};

/// Decides what the workloads of a UnitedDeployment need now.
pub fn plan(snapshot: &Snapshot<'_>, now: Timestamp) -> Plan {
    let united = snapshot.united;
    let mut plan = Plan::default();
    if united.metadata.deletion_timestamp.is_some() {
        let text = "is being deleted: the garbage collector deletes its workloads";
        plan.why.push(Why::of_set(text));
    } else if let Some((child, template)) = united.spec.child() {
        plan = Round::begin(snapshot, (child, template), now).run();
    } else {
        plan = without_template(snapshot, now);
    }
    if snapshot.explain == Explain::No {
        plan.why.clear();
    }
    plan
}

/// There is nothing to create. What exists stays.
fn without_template(snapshot: &Snapshot<'_>, now: Timestamp) -> Plan {
    let united = snapshot.united;
    let problem = "spec.template has none of the four templates";
    let owner = Owner::new(snapshot.api_version, KIND.kind, &united.metadata);
    let mut reported = united.status.clone();
    reported.observed_generation = united.metadata.generation;
    status::provisioned(&mut reported, Some(problem), now);
    Plan {
        events: vec![events::invalid(problem)],
        status: status::patch(united, &owner, &reported),
        why: vec![Why::of_set(format!("does nothing: {problem}"))],
        ..Plan::default()
    }
}

/// One plan in the making.
struct Round<'a> {
    snapshot: &'a Snapshot<'a>,
    child: Child,
    template: &'a Value,
    owner: Owner<'a>,
    revisions: Revisions,
    subsets: Subsets<'a>,
    status: UnitedDeploymentStatus,
    /// The state of each subset of the topology.
    states: Vec<State>,
    now: Timestamp,
    plan: Plan,
}

impl<'a> Round<'a> {
    fn begin(snapshot: &'a Snapshot<'a>, (child, template): (Child, &'a Value), now: Timestamp) -> Self {
        let united = snapshot.united;
        let owner = Owner::new(snapshot.api_version, KIND.kind, &united.metadata);
        let revisions = Revisions::find(snapshot, &owner, child);
        let subsets = Subsets::find(united, child, snapshot.workloads);
        let status = status::begin(united, &revisions, &subsets, now);
        Self {
            snapshot,
            child,
            template,
            owner,
            revisions,
            subsets,
            status,
            states: Vec::new(),
            now,
            plan: Plan::default(),
        }
    }

    fn topology(&self) -> &'a [Subset] {
        &self.snapshot.united.spec.topology.subsets
    }

    /// The workload of a subset, if there is one.
    fn workload(&self, subset: &str) -> Option<&'a Workload> {
        self.subsets.current.get(subset).map(|found| found.workload)
    }

    fn partition(&self, subset: &str) -> i32 {
        if is_injected("SubsetPartitionIgnored") {
            return 0;
        }
        let partitions = &self.snapshot.united.spec.update_strategy.manual_update.partitions;
        partitions.get(subset).copied().unwrap_or(0).max(0)
    }

    fn run(mut self) -> Plan {
        self.plan.writes.extend(self.revisions.write.clone());
        self.schedule();
        let replicas = {
            let states = self.topology().iter().zip(&self.states);
            let seen = states.map(|(subset, state)| {
                let workload = self.workload(&subset.name);
                Seen {
                    subset,
                    workload: workload.map(|workload| (workload.replicas(), workload.view.ready)),
                    unschedulable: state.unschedulable,
                    marked: state.marked,
                    reserved: state.reserved,
                }
            });
            let seen: Vec<Seen<'_>> = seen.collect();
            allocate(&self.snapshot.united.spec, &seen)
        };
        match replicas {
            Ok(replicas) if self.snapshot.child_api_version.is_some() => self.provide(&replicas),
            Ok(_) => {
                let problem = format!("the cluster does not serve {}", crate::resource(self.child));
                self.plan.events.push(events::problem(&problem));
                self.hold(&problem);
            }
            Err(_) if is_injected("ContradictionIgnored") => {
                self.provide(&vec![0; self.topology().len()]);
            }
            Err(problem) => {
                self.plan.events.push(events::contradiction(&problem));
                self.hold(&problem);
            }
        }
        self.end()
    }

    /// Which subsets can take pods.
    fn schedule(&mut self) {
        let strategy = &self.snapshot.united.spec.topology.schedule_strategy;
        let adaptive = &strategy.adaptive;
        let mut conditions = self.status.conditions.iter();
        let updated = conditions.find(|condition| condition.kind == UNITED_UPDATED);
        let since = updated.and_then(|condition| condition.last_transition_time);
        for subset in self.topology() {
            let workload = self.workload(&subset.name);
            let partition = match self.child {
                // It has none.
                Child::Deployment => 0,
                _ => self.partition(&subset.name),
            };
            let mut entries = self.status.subset_statuses.iter_mut();
            let entry = entries.find(|entry| entry.name == subset.name);
            let Some(entry) = entry.filter(|_| strategy.is_adaptive()) else {
                self.states.push(State::default());
                continue;
            };
            if !strategy.reserves() {
                let (state, next) = adapt(entry, workload, adaptive, self.now);
                self.plan.requeue_after(next);
                self.states.push(state);
                continue;
            }
            let Some(workload) = workload else {
                self.states.push(State::default());
                continue;
            };
            let rollout = Rollout {
                revision: &self.revisions.updated,
                since,
                partition,
            };
            let (state, next, labels) = reserve(entry, workload, adaptive, rollout, self.now);
            entry.reserved_pods = state.reserved;
            self.plan.requeue_after(next);
            self.states.push(state);
            for (pod, is_reserved) in labels {
                self.plan
                    .writes
                    .push(writes::reserve(&self.owner, &pod, is_reserved));
            }
        }
    }

    /// Nothing is written but the status.
    fn hold(&mut self, problem: &str) {
        status::provisioned(&mut self.status, Some(problem), self.now);
        self.plan
            .why
            .push(Why::of_set(format!("holds all workloads as they are: {problem}")));
    }

    fn provide(&mut self, replicas: &[i32]) {
        let (mut problem, mut is_lacking): (Option<String>, bool) = (None, false);
        let (mut created, mut updated, mut grows) = (Vec::new(), 0, false);
        let topology = self.topology();
        let mut shares: Vec<(&Subset, State, i32)> = topology
            .iter()
            .zip(self.states.clone())
            .zip(replicas)
            .map(|((subset, state), replicas)| (subset, state, *replicas))
            .collect();
        shares.sort_by_key(|(subset, ..)| &subset.name);
        for (subset, state, replicas) in shares {
            let found = self.subsets.current.get(&*subset.name).copied();
            let found = found.filter(|found| found.workload.view.replicas > 0 || !is_injected("SubsetTwice"));
            let share = self.share(subset, state, replicas);
            self.note(subset, state, share);
            let revision = self.revisions.updated.clone();
            let stored = found.and_then(|found| found.workload.view.object.get("apiVersion")?.as_str());
            let parts = Parts {
                united: self.snapshot.united,
                child: self.child,
                template: self.template,
                revision: &revision,
                subset,
                patch: subset.patch.as_ref().filter(|patch| !patch.is_null()),
                share,
                api_version: stored
                    .or(self.snapshot.child_api_version)
                    .unwrap_or(self.child.api_version()),
            };
            grows |= found.is_none_or(|found| found.workload.replicas() < replicas);
            let write = match found {
                None => writes::create(self.snapshot, &self.owner, &parts).map(|write| {
                    created.push(write);
                    None
                }),
                Some(found) if found.is_orphan => Ok(Some(writes::adopt(&self.owner, found.workload))),
                Some(found) if found.workload.view.deleting => Ok(None),
                Some(found) => {
                    let unblocked = writes::unblock(&self.owner, found.workload, &parts);
                    self.plan.writes.extend(unblocked);
                    let on = (found.workload, &self.revisions);
                    writes::update(self.snapshot, &self.owner, on, &parts)
                }
            };
            match write {
                Ok(write) => {
                    updated += usize::from(write.is_some());
                    self.plan.writes.extend(write);
                }
                Err(wrong) => {
                    is_lacking |= found.is_none();
                    self.plan.events.push(events::problem(&wrong));
                    problem.get_or_insert(wrong);
                }
            }
        }
        let count = created.len();
        if let Some(step) = created.last_mut().and_then(|object| object.steps.last_mut()) {
            step.done = Some(events::created(count, self.child));
        }
        self.plan.writes.extend(created);
        // What cannot be made does not take the place of what runs.
        let deleted = self.remove(problem.is_none());
        let strategy = &self.snapshot.united.spec.topology.schedule_strategy;
        if grows && strategy.is_adaptive() {
            let seconds = u64::try_from(strategy.adaptive.critical_seconds()).unwrap_or(0);
            self.plan.requeue_after([Duration::from_secs(seconds)]);
        }
        // An error counts as long as there is something left to do.
        let memory = self.snapshot.memory;
        let adopts = self.subsets.current.values().any(|found| found.is_orphan);
        let is_provided = count == 0 && deleted == 0 && !adopts && !is_lacking;
        let error = memory.scale_error.as_deref().filter(|_| !is_provided);
        if is_provided || error.is_some() {
            status::provisioned(&mut self.status, error, self.now);
        }
        let error = memory.update_error.clone().filter(|_| updated > 0);
        let problem = problem.or(error);
        if problem.is_some() || updated == 0 {
            status::updated(&mut self.status, problem.as_deref(), self.now);
        }
    }

    fn share(&self, subset: &Subset, state: State, replicas: i32) -> Share {
        let ready = self
            .workload(&subset.name)
            .map_or(0, |workload| workload.view.ready);
        let missing = replicas.saturating_sub(ready).saturating_add(state.overdue);
        let reserves = self.snapshot.united.spec.topology.schedule_strategy.reserves();
        let limited = reserves && state.unschedulable && missing > 0;
        let lost = i32::from(is_injected("ShareLost") && replicas > 1);
        let replicas = replicas.saturating_sub(lost);
        Share {
            replicas,
            partition: self.partition(&subset.name).min(replicas),
            max_unavailable: limited.then_some(missing),
        }
    }

    /// Writes the share of a subset to its entry.
    fn note(&mut self, subset: &Subset, state: State, share: Share) {
        let workload = self.workload(&subset.name);
        if self.snapshot.explain == Explain::Yes {
            let why = explain::subset(&subset.name, workload, state, share);
            self.plan.why.push(why);
        }
        let mut entries = self.status.subset_statuses.iter_mut();
        let Some(entry) = entries.find(|entry| entry.name == subset.name) else {
            return;
        };
        entry.replicas = share.replicas;
        entry.partition = share.partition;
        let reserves = self.snapshot.united.spec.topology.schedule_strategy.reserves();
        let is_larger = workload.is_some_and(|workload| workload.replicas() < share.replicas);
        if reserves && state.marked && !state.unschedulable && is_larger {
            // Its new pods are reserved until they are healthy.
            let message = "subset just recovered scaled up".to_owned();
            let again = ("False", RESCHEDULE);
            conditions::set(&mut entry.conditions, SCHEDULABLE, again, message, self.now);
        }
    }

    /// Deletes workloads that no subset has any more, if all others could be made. Returns how many.
    fn remove(&mut self, all_made: bool) -> usize {
        let topology: BTreeSet<&str> = self
            .topology()
            .iter()
            .map(|subset| subset.name.as_str())
            .collect();
        let left = self.subsets.current.iter().filter(|(name, found)| {
            let is_empty = found.workload.replicas() == 0;
            !topology.contains(**name) || is_empty && is_injected("EmptySubsetDeleted")
        });
        let left: Vec<&Workload> = left.map(|(_, found)| found.workload).collect();
        for entry in &mut self.status.subset_statuses {
            if !topology.contains(&*entry.name) {
                (entry.replicas, entry.partition) = (0, 0);
            }
        }
        let others = |child: Child| {
            let others = self.subsets.others.iter().copied();
            others
                .filter(move |workload| workload.child == child)
                .collect::<Vec<_>>()
        };
        let mut groups = Vec::new();
        if all_made {
            groups.push((self.child, left, "its subset has left the topology"));
            for child in Child::ALL {
                groups.push((child, others(child), "the template is of another kind"));
            }
        }
        let mut deleted = 0;
        for (child, workloads, reason) in groups {
            let workloads = workloads.into_iter().filter(|workload| !workload.view.deleting);
            let mut writes: Vec<_> = workloads
                .map(|workload| writes::delete(&self.owner, workload, reason))
                .collect();
            let count = writes.len();
            if let Some(step) = writes.last_mut().and_then(|object| object.steps.last_mut()) {
                step.done = Some(events::deleted(count, child));
            }
            deleted += count;
            self.plan.writes.extend(writes);
        }
        for workload in self
            .subsets
            .duplicates
            .iter()
            .filter(|workload| !workload.view.deleting)
        {
            let mut write = writes::delete(&self.owner, workload, "its subset has an older workload");
            for step in &mut write.steps {
                step.failed = Some(events::not_deleted());
            }
            deleted += 1;
            self.plan.writes.push(write);
        }
        deleted
    }

    fn end(mut self) -> Plan {
        status::complete(&mut self.status);
        let united = self.snapshot.united;
        let used = self.used().filter(|_| !is_injected("UsedRevisionDeleted"));
        let used: BTreeSet<&str> = used.collect();
        let surplus = self.revisions.truncate(&self.owner, united, &used);
        self.plan.writes.extend(surplus);
        self.plan.status = status::patch(united, &self.owner, &self.status);
        self.plan
    }

    /// Revisions that workloads and pods name.
    fn used(&self) -> impl Iterator<Item = &str> {
        let workloads = self.subsets.current.values().map(|found| found.workload);
        workloads.flat_map(|workload| {
            let own = workload.view.labels.get(SUBSET_REVISION).map(String::as_str);
            let pods = workload
                .pods
                .iter()
                .filter_map(|pod| pod.labels.get(SUBSET_REVISION));
            own.into_iter().chain(pods)
        })
    }
}
