//! The order of decisions.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kruise_api::advancedcronjob::Concurrency;
use kruise_plan_kit::{Owner, Plan, Why, injected::is_injected, lifecycle::go_time};
use kruise_views::ScheduledJobView;

use super::{
    activations::{Activations, Times, wait},
    create::NewJobs,
    events, explain, history,
    runs::Runs,
    snapshot::{Snapshot, resource},
    status,
};

/// Decides what a schedule needs now.
pub fn plan(snapshot: &Snapshot<'_>, now: Timestamp) -> Plan {
    let (cron, spec) = (snapshot.cron, &snapshot.cron.spec);
    if cron.metadata.deletion_timestamp.is_some() {
        return Plan {
            why: vec![Why::of_set("the schedule is being deleted: its jobs go with it")],
            ..Plan::default()
        };
    }
    let Some((child, template)) = spec.template.child() else {
        return nothing("the template names no job");
    };
    if snapshot.job_api_version.is_none() {
        let resource = resource(child);
        return nothing(&format!("the cluster does not serve {resource}"));
    }
    let runs = Runs::new(snapshot);
    let jobs = NewJobs {
        snapshot,
        owner: Owner::new(snapshot.api_version, "AdvancedCronJob", &cron.metadata),
        child,
        template,
    };
    let status = status::of(snapshot, &runs, child, &BTreeSet::new());
    let mut plan = Plan {
        status: status::patch(snapshot, &status),
        events: status::news(snapshot, &runs),
        writes: history::prune(spec, &runs, &jobs.owner, child),
        ..Plan::default()
    };
    explain::runs(snapshot, &runs, &mut plan);
    if spec.paused {
        plan.why
            .push(Why::of_set("paused: no job is created, and those that run go on"));
        return plan;
    }
    let (times, unknown_zone) = Times::of(spec);
    plan.events.extend(unknown_zone);
    match times {
        Ok(times) => {
            let (last, deadline) = (runs.since(now), spec.starting_deadline_seconds);
            let activations = times.since(last, deadline, snapshot.local, now);
            let round = Round {
                jobs: &jobs,
                runs: &runs,
                activations,
                now,
            };
            round.act(&mut plan);
        }
        Err(problem) => {
            plan.events.push(events::invalid(&problem));
            plan.why
                .push(Why::of_set(format!("no job is created: {problem}")));
        }
    }
    plan
}

/// The plan of a schedule whose jobs are not known.
fn nothing(problem: &str) -> Plan {
    Plan {
        events: vec![events::invalid(problem)],
        why: vec![Why::of_set(format!("nothing is done: {problem}"))],
        ..Plan::default()
    }
}

/// What may start a job.
struct Round<'r> {
    jobs: &'r NewJobs<'r>,
    runs: &'r Runs<'r>,
    activations: Activations,
    now: Timestamp,
}

impl Round<'_> {
    fn act(&self, plan: &mut Plan) {
        let Activations { due, missed, next } = self.activations;
        if let Some(next) = next {
            plan.requeue_after([wait(next, self.now)]);
        }
        explain::next(next, plan);
        if let Some(activation) = self.late() {
            let reason = "the request to create it was not answered, and may still arrive".to_owned();
            self.start(activation, &[], reason, plan);
            return;
        }
        if let Some(activation) = missed {
            plan.events.push(events::missed(activation));
            explain::missed(activation, plan);
        }
        let Some(due) = due else {
            return;
        };
        let activation = due.latest;
        let mut replaced = Vec::new();
        match self.jobs.snapshot.cron.spec.concurrency() {
            Concurrency::Allow => {}
            Concurrency::Forbid => {
                if let Some(active) = self.runs.active().next()
                    && !is_injected("ForbidIgnored")
                {
                    plan.events.push(events::already_active(&active.name));
                    explain::waits(activation, &active.name, plan);
                    return;
                }
            }
            Concurrency::Replace => replaced.extend(self.runs.active().filter(|job| !job.deleting)),
        }
        let reason = format!("it is due since {}", go_time(activation));
        let starts = self.start(activation, &replaced, reason, plan);
        if starts && due.many {
            plan.events.push(events::many_missed(activation));
        }
    }

    /// The activation of a job that does not exist, while the request to create it may still arrive.
    fn late(&self) -> Option<Timestamp> {
        let names = self.runs.names();
        let resource = resource(self.jobs.child);
        let late = self.jobs.snapshot.memory.late.iter();
        let mut late = late.filter(|target| {
            target.resource == resource
                && target.namespace == self.jobs.owner.namespace
                && !names.contains(target.name.as_str())
        });
        late.find_map(|target| self.jobs.activation(&target.name))
    }

    /// Creates the job of an activation, unless the status has to be written before: what is deleted and created
    /// next rests on it. The write of a status leads to the next plan.
    fn start(
        &self,
        activation: Timestamp,
        replaced: &[&ScheduledJobView],
        reason: String,
        plan: &mut Plan,
    ) -> bool {
        if plan.status.is_some() {
            explain::unwritten(activation, plan);
            return false;
        }
        let (jobs, runs) = (self.jobs, self.runs);
        let gone: BTreeSet<&str> = replaced.iter().map(|job| &*job.uid).collect();
        let status = status::of(jobs.snapshot, runs, jobs.child, &gone);
        let start = jobs.start(activation, replaced, status, reason);
        plan.writes.insert(0, start);
        true
    }
}
