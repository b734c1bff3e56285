//! *"Not more pods than `burstReplicas` says are being created, deleted or updated in place at a time, of each."* A
//! write is over once its sender was shown what became of it.

use super::known::Known;
use crate::rules::prelude::*;

/// What a write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It creates a pod.
    Creates,
    /// It deletes a pod, or has a hook hold it.
    Removes,
    /// It updates a pod in place.
    Updates,
}

/// A write that its sender may not have seen yet.
#[derive(Debug)]
struct Unseen {
    sender: ProcessId,
    kind: Kind,
    pod: Arc<str>,
    version: u64,
}

/// Writes that their senders may not have seen yet.
#[derive(Debug, Default)]
pub struct Bursts(Vec<Unseen>);

impl Bursts {
    /// Judges a write to a pod, which made this version of it.
    pub fn judge(
        &mut self,
        write: &Write<'_>,
        kind: Kind,
        pod: &Object,
        known: &Known<'_>,
    ) -> Option<Violation> {
        let shown = write.sent.shown.of(PODS);
        let is_unseen = |one: &Unseen| one.sender != write.process || one.version > shown;
        self.0
            .retain(|one| is_unseen(one) && (one.kind, &one.pod) != (kind, &pod.name));
        self.0.push(Unseen {
            sender: write.process,
            kind,
            pod: pod.name.clone(),
            version: pod.version,
        });
        let own = self.0.iter().filter(|one| one.sender == write.process);
        let count = own.filter(|one| one.kind == kind).count() as i64;
        let specs = known.specs.iter();
        let most = specs.map(|spec| spec.burst(known.most_desired(spec))).max()?;
        never!(write, "burst",
            count > most => "{kind:?} {count} pods at a time, and {most} are allowed: {:?}", self.0);
        None
    }
}
