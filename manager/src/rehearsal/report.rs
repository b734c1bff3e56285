//! The result of a rehearsal, for people.

use std::{collections::BTreeMap, fmt, time::Duration};

use super::acts::{Fate, Verdict};

/// What a rehearsal found.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) lasted: Duration,
    /// By kind.
    pub(super) kinds: BTreeMap<String, Tally>,
    pub(super) differences: Vec<Difference>,
    /// How many differences there are beyond these.
    pub(super) more: usize,
}

/// The figures of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Objects that were planned.
    pub(super) objects: usize,
    /// What was done to pods as planned.
    pub(super) created: usize,
    pub(super) updated: usize,
    pub(super) deleted: usize,
    /// Deletions by others than a manager: evictions, and those that follow the deletion of the owner.
    pub(super) others: usize,
    /// What was done to pods while it was not known what the manager saw.
    pub(super) not_compared: usize,
}

/// Something that was done otherwise than planned.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Difference {
    /// The object.
    pub(super) about: String,
    /// What was done, and what would have been.
    pub(super) text: String,
}

impl Tally {
    /// Counts something that was done; differences are listed, not counted.
    pub(super) fn count(&mut self, verdict: Verdict, fate: Fate) {
        match (verdict, fate) {
            (Verdict::Agrees, Fate::Created) => self.created += 1,
            (Verdict::Agrees, Fate::Updated) => self.updated += 1,
            (Verdict::Agrees, Fate::Deleted) => self.deleted += 1,
            (Verdict::ByOthers, _) => self.others += 1,
            (Verdict::NotCompared, _) => self.not_compared += 1,
            (Verdict::Differs, _) => {}
        }
    }

    fn agreements(&self) -> usize {
        self.created + self.updated + self.deleted
    }

    fn is_of_pods(&self) -> bool {
        self.agreements() + self.others + self.not_compared > 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_all = |figure: fn(&Tally) -> usize| self.kinds.values().map(figure).sum::<usize>();
        writeln!(
            f,
            "rehearsal of {} s: {} objects planned; what became of pods: {} agree, {} differ, {} not compared",
            self.lasted.as_secs(),
            of_all(|tally| tally.objects),
            of_all(Tally::agreements),
            self.differences.len() + self.more,
            of_all(|tally| tally.not_compared),
        )?;
        for (kind, tally) in self.kinds.iter().filter(|(_, tally)| tally.is_of_pods()) {
            write!(
                f,
                "{kind}: {} objects; as planned: {} pods created, {} updated in place, {} deleted",
                tally.objects, tally.created, tally.updated, tally.deleted
            )?;
            if tally.others > 0 {
                write!(f, "; {} deleted by others", tally.others)?;
            }
            if tally.not_compared > 0 {
                write!(f, "; {} not compared", tally.not_compared)?;
            }
            writeln!(f)?;
        }
        for difference in &self.differences {
            writeln!(f, "difference {}: {}", difference.about, difference.text)?;
        }
        if self.more > 0 {
            writeln!(f, "and {} more differences", self.more)?;
        }
        Ok(())
    }
}
