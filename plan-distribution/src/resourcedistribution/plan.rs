//! The order of decisions.

use std::time::Duration;

use jiff::Timestamp;
use kruise_api::resourcedistribution::{KIND, ResourceDistributionStatus};
use kruise_plan_kit::{Explain, Intent, Known, Need, ObjectWrites, Owner, Plan, Why};
use kruise_views::MetadataView;

use super::{
    events, explain,
    snapshot::Snapshot,
    source::Source,
    status::{Tally, Trouble},
    targets::Targets,
    writes::{Writer, is_still},
};

/// Copies that one reconcile reads: their contents are in memory until it ends.
const READS: usize = 32;

/// Key of the attempts to read copies that cannot be read.
const UNREADABLE: &str = "unreadable copies";
/// Longest pause between two of them.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

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
        unread: Vec::new(),
        plan: Plan::default(),
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
    round.end(now)
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
    unread: Vec<Need>,
    plan: Plan,
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
            let write = self.writer.create(namespace);
            return self.writes(namespace, write, Trouble::Create);
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
        if let Some(error) = memory.unread.get(&need) {
            self.tally.fails(Trouble::Get, namespace, Some(error.clone()));
            return self.why(namespace, "has a copy that cannot be read");
        }
        let Some(read) = memory.read.get(&need) else {
            self.unread.push(need);
            self.tally.pending += 1;
            return self.why(namespace, "has a copy that is to be read first");
        };
        // Whatever else became of the copy is about to be in the cache.
        let Some(object) = read.as_ref().filter(|object| is_still(object, copy, &self.owner)) else {
            self.tally.pending += 1;
            return self.why(namespace, "has a copy that is changing");
        };
        if let Some(write) = self.writer.update(namespace, object) {
            return self.writes(namespace, write, Trouble::Update);
        }
        let version = object.pointer("/metadata/resourceVersion");
        let version = version
            .and_then(|version| version.as_str())
            .unwrap_or_default()
            .to_owned();
        self.is_current(namespace, &version);
    }

    /// A write without which the namespace has no copy as it is to be.
    fn writes(&mut self, namespace: &str, write: ObjectWrites, trouble: Trouble) {
        let intent = match trouble {
            Trouble::Create => Intent::CreateCopy,
            _ => Intent::UpdateCopy,
        };
        match self.error_of(intent, namespace) {
            Some(error) => self.tally.fails(trouble, namespace, Some(error)),
            None => self.tally.pending += 1,
        }
        self.plan.writes.push(write);
    }

    /// Why the last write of this kind failed there.
    fn error_of(&self, intent: Intent, namespace: &str) -> Option<String> {
        let failed = &self.snapshot.memory.failed_copies;
        let failed = failed.get(&self.source.target(namespace))?;
        (failed.intent == intent).then(|| failed.message.clone())
    }

    /// A namespace that is to have none.
    fn clear(&mut self, namespace: &str) {
        let copies = self.snapshot.copies;
        let copy = copies.get(self.source.resource, namespace, self.source.name);
        let is_to_go = |copy: &MetadataView| !copy.deleting && self.is_ours(copy);
        let Some(copy) = copy.filter(|copy| is_to_go(copy)) else {
            return;
        };
        if let Some(error) = self.error_of(Intent::DeleteCopy, namespace) {
            self.tally.fails(Trouble::Delete, namespace, Some(error));
        }
        self.plan.writes.push(self.writer.delete(namespace, &copy));
    }

    fn end(mut self, now: Timestamp) -> Plan {
        let memory = self.snapshot.memory;
        if !self.unread.is_empty() {
            let explains = self.snapshot.explain == Explain::Yes;
            if explains || (memory.read.is_empty() && memory.unread.is_empty()) {
                let limit = if explains { usize::MAX } else { READS };
                self.unread.truncate(limit);
                self.plan.needs = self.unread;
                self.plan.writes.clear();
                return self.plan;
            }
            self.plan.requeue_after([Duration::ZERO]);
        }
        if !self.tally.namespaces(Trouble::Get).is_empty() {
            let tried = memory
                .attempts
                .get(UNREADABLE)
                .map_or(0, |attempts| attempts.count);
            let pause = Duration::from_secs(1 << tried.min(16)).min(LONGEST_PAUSE);
            self.plan.attempts.push(UNREADABLE.to_owned());
            self.plan.requeue_after([pause]);
        }
        let distribution = self.snapshot.distribution;
        let status = self.tally.status(distribution, now);
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
