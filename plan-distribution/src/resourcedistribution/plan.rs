//! The order of decisions.

use std::time::Duration;

use jiff::Timestamp;
use kruise_api::resourcedistribution::{KIND, ResourceDistributionStatus};
use kruise_plan_kit::{
    Attempts, Explain, FailedCopy, Intent, Known, Need, Owner, Plan, Why,
    injected::is_injected,
    reads::{Read, Reads},
};
use kruise_views::MetadataView;
use serde_json::Value;

use super::{
    events, explain,
    snapshot::Snapshot,
    source::Source,
    status::{Tally, Trouble},
    targets::Targets,
    writes::{self, Writer, is_still},
};

/// Time until more copies are read if nothing has come of those that were read.
const REST: Duration = Duration::from_secs(1);

/// Decides what the copies of a ResourceDistribution need now.
pub fn plan(snapshot: &Snapshot<'_>, now: Timestamp) -> Plan {
    let distribution = snapshot.distribution;
    let mut plan = Plan::default();
    if distribution.metadata.deletion_timestamp.is_some() {
        plan.why.push(Why::of_set(
            "is being deleted: the garbage collector deletes its copies",
        ));
    } else {
        match Source::of(&distribution.spec.resource) {
            Ok(source) => plan = distribute(snapshot, source, now),
            Err(problem) => {
                plan.events.push(events::invalid(&problem));
                plan.why
                    .push(Why::of_set(format!("distributes nothing: {problem}")));
            }
        }
    }
    if snapshot.explain == Explain::No {
        plan.why.clear();
    }
    plan
}

fn distribute(snapshot: &Snapshot<'_>, source: Source<'_>, now: Timestamp) -> Plan {
    let distribution = snapshot.distribution;
    let owner = Owner::new(snapshot.api_version, KIND.kind, &distribution.metadata);
    let targets = Targets::of(snapshot);
    let mut round = Round {
        snapshot,
        source,
        owner,
        writer: Writer::new(snapshot, source, owner),
        tally: Tally::of(targets.matched.len()),
        known: Known {
            digest: distribution.resource_hash.clone(),
            ..Known::default()
        },
        reads: Reads::default(),
        progressed: false,
        plan: Plan::default(),
        now,
    };
    for (namespace, is_there) in &targets.matched {
        if *is_there {
            round.keep(namespace);
        } else {
            round.tally.fails(Trouble::Missing, namespace, None);
            round.why(namespace, "does not exist or is being deleted");
        }
    }
    for namespace in &targets.others {
        round.clear(namespace);
    }
    round.end()
}

/// One plan in the making.
struct Round<'a> {
    snapshot: &'a Snapshot<'a>,
    source: Source<'a>,
    owner: Owner<'a>,
    writer: Writer<'a>,
    tally: Tally,
    /// Copies whose contents are as they are to be.
    known: Known,
    /// Copies to read.
    reads: Reads,
    /// Has anything come of what was read: a copy that is known now, or a write?
    progressed: bool,
    plan: Plan,
    now: Timestamp,
}

impl Round<'_> {
    fn why(&mut self, namespace: &str, text: &str) {
        if self.snapshot.explain == Explain::Yes {
            self.plan.why.push(Why::of_namespace(namespace, text));
        }
    }

    fn is_ours(&self, copy: &MetadataView) -> bool {
        let controller = copy.controller.as_ref();
        controller.is_some_and(|controller| *controller.uid == *self.owner.uid)
    }

    /// A namespace that is to have a copy.
    fn keep(&mut self, namespace: &str) {
        let copies = self.snapshot.copies;
        let Some(copy) = copies.get(self.source.resource, namespace, self.source.name) else {
            let failed = self.failed(writes::CREATE_COPY, namespace, None);
            self.report(Trouble::Create, namespace, failed.as_ref());
            if self.may_write(namespace, failed.as_ref()) {
                let write = self.writer.create(namespace);
                self.plan.writes.push(write);
            }
            return;
        };
        if !self.is_ours(&copy) {
            self.tally.fails(Trouble::Conflict, namespace, None);
            return self.why(
                namespace,
                "has an object of that name that is not ours, which stays",
            );
        }
        if copy.deleting {
            // It is there until its finalizers are gone, and is created again after that.
            self.tally.succeeded += 1;
            return self.why(namespace, "has a copy that is being deleted");
        }
        let target = self.source.target(namespace);
        let digest = &self.snapshot.distribution.resource_hash;
        let known = &self.snapshot.memory.known;
        if known.holds(digest, &target, &copy.resource_version) {
            return self.is_current(namespace, &copy.resource_version);
        }
        self.compare(namespace, &copy);
    }

    fn is_current(&mut self, namespace: &str, version: &str) {
        let target = self.source.target(namespace);
        self.known.versions.insert(target, version.to_owned());
        self.tally.succeeded += 1;
        self.why(namespace, "has its copy");
    }

    /// A copy whose contents are not known.
    fn compare(&mut self, namespace: &str, copy: &MetadataView) {
        let name = self.source.name.to_owned();
        let need = Need::Content(self.source.resource, namespace.to_owned(), name);
        let memory = self.snapshot.memory;
        let failed = self.failed(writes::UPDATE_COPY, namespace, Some(&copy.resource_version));
        // The cache is behind what was read.
        let behind = format!("behind {namespace} {}", copy.resource_version);
        let tried = failed.as_ref().map(|failed| failed.attempts);
        let tried = tried.into_iter().chain(memory.attempts.get(&behind).copied());
        let read = match self.reads.get(memory, need, tried, self.now) {
            Read::Object(read) => read,
            Read::Failed(error) => {
                self.tally.fails(Trouble::Get, namespace, Some(error.to_owned()));
                return self.why(namespace, "has a copy that cannot be read");
            }
            Read::NotYet => {
                self.report(Trouble::Update, namespace, failed.as_ref());
                return match failed {
                    Some(failed) => self.why_failed(namespace, &failed),
                    None => self.why(namespace, "has a copy that is to be read first"),
                };
            }
        };
        // Whatever else became of the copy is about to be in the cache.
        let Some(object) = read.filter(|object| is_still(object, copy, &self.owner)) else {
            self.tally.pending += 1;
            self.plan.attempts.push(behind);
            return self.why(namespace, "has a copy that is changing");
        };
        if let Some(write) = self.writer.update(namespace, object) {
            self.report(Trouble::Update, namespace, failed.as_ref());
            self.progressed = true;
            return self.plan.writes.push(write);
        }
        let version = object
            .pointer("/metadata/resourceVersion")
            .and_then(Value::as_str);
        let version = version.unwrap_or_default();
        if *version == *copy.resource_version {
            self.progressed = true;
        } else {
            self.plan.attempts.push(behind);
        }
        self.is_current(namespace, version);
    }

    /// Reports a copy that has yet to be written.
    fn report(&mut self, trouble: Trouble, namespace: &str, failed: Option<&FailedCopy>) {
        match failed {
            Some(failed) => self.tally.fails(trouble, namespace, Some(failed.message.clone())),
            None => self.tally.pending += 1,
        }
    }

    /// The write of this kind that has failed there. Other contents and another version of the copy are another
    /// attempt, which still comes after those of copies that never failed.
    fn failed(&self, intent: Intent, namespace: &str, version: Option<&str>) -> Option<FailedCopy> {
        let failed = &self.snapshot.memory.failed_copies;
        let failed = failed.get(&self.source.target(namespace))?;
        let is_same = failed.digest == self.snapshot.distribution.resource_hash
            && failed.version.as_deref() == version
            && !is_injected("RefusedCopiesFirst");
        let count = if is_same { failed.attempts.count } else { 0 };
        let attempts = Attempts {
            count,
            ..failed.attempts
        };
        (failed.intent == intent).then(|| FailedCopy {
            attempts,
            ..failed.clone()
        })
    }

    /// Is it time for a write that needs no read?
    fn may_write(&mut self, namespace: &str, failed: Option<&FailedCopy>) -> bool {
        let left = failed.and_then(|failed| failed.attempts.left(Attempts::LONGEST_PAUSE, self.now));
        if let (Some(failed), Some(left)) = (failed, left) {
            self.reads.wait(left);
            self.why_failed(namespace, failed);
        }
        left.is_none()
    }

    fn why_failed(&mut self, namespace: &str, failed: &FailedCopy) {
        let left = failed.attempts.left(Attempts::LONGEST_PAUSE, self.now);
        let seconds = left.unwrap_or_default().as_secs_f32().ceil();
        let text = format!("is written again in {seconds} s: {}", failed.message);
        self.why(namespace, &text);
    }

    /// A namespace that is to have none.
    fn clear(&mut self, namespace: &str) {
        let copies = self.snapshot.copies;
        let copy = copies.get(self.source.resource, namespace, self.source.name);
        let is_to_go = |copy: &MetadataView| !copy.deleting && self.is_ours(copy);
        let Some(copy) = copy.filter(|copy| is_to_go(copy)) else {
            return;
        };
        let failed = self.failed(writes::DELETE_COPY, namespace, Some(&copy.resource_version));
        if let Some(failed) = &failed {
            let error = failed.message.clone();
            self.tally.fails(Trouble::Delete, namespace, Some(error));
        }
        if self.may_write(namespace, failed.as_ref()) {
            self.plan.writes.push(self.writer.delete(namespace, &copy));
        }
    }

    fn end(mut self) -> Plan {
        let needs = self.reads.needs(self.snapshot.memory, self.snapshot.explain);
        if !needs.is_empty() {
            self.plan.needs = needs;
            self.plan.writes.clear();
            return self.plan;
        }
        let is_hurried = self.progressed || is_injected("RefusedCopiesFirst");
        let rest = if is_hurried { Duration::ZERO } else { REST };
        self.plan.requeue_after(self.reads.again(rest));
        let distribution = self.snapshot.distribution;
        let status = self.tally.status(distribution, self.now);
        self.plan.status = self.tally.patch(distribution, &self.owner, &status);
        self.events(&status);
        if self.snapshot.explain == Explain::Yes {
            let line = explain::summary(&self.source, &status, self.tally.pending);
            self.plan.why.insert(0, Why::of_set(line));
        }
        self.plan.known = Some(self.known);
        self.plan
    }

    fn events(&mut self, status: &ResourceDistributionStatus) {
        let conflicts = self.tally.namespaces(Trouble::Conflict);
        if !conflicts.is_empty() {
            self.plan.events.push(events::conflict(&self.source, &conflicts));
        }
        let before = &self.snapshot.distribution.status;
        let is_complete = |status: &ResourceDistributionStatus| status.succeeded == status.desired;
        let is_news = !is_complete(before)
            || before.desired != status.desired
            || before.observed_generation != status.observed_generation;
        if self.plan.status.is_some() && is_complete(status) && status.desired > 0 && is_news {
            let note = events::distributed(&self.source, status.desired);
            self.plan.events.push(note);
        }
    }
}
