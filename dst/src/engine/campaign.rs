//! Many scenarios, on a few threads.

#![allow(clippy::disallowed_methods, reason = "it measures what a run takes")]

use std::{
    collections::BTreeMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    play::{Keep, Played, play, replay},
    report::{EDITS, KINDS, WRITES},
    scenario::Scenario,
    subject::Subjects,
    threads,
    verdict::{Judged, Violation},
};

/// A scenario that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The scenario.
    pub scenario: Scenario,
    /// What happened.
    pub violation: Violation,
}

/// What managers did in each scenario of a subject.
#[derive(Debug, Default)]
pub struct Counts {
    /// Writes that were accepted, leases apart.
    pub writes: Vec<u32>,
    /// Requests that arrived, leases apart.
    pub requests: Vec<u32>,
}

/// The result of a campaign.
#[derive(Debug, Default)]
pub struct Tally {
    /// The subject whose scenarios were played, if not all were.
    pub of: Option<String>,
    /// Scenarios that were played.
    pub scenarios: u64,
    /// Each was played once, not twice.
    pub once: bool,
    /// Of these, the ones that count.
    pub rich: u64,
    /// Scenarios in which a fault had an effect, by fault.
    pub fired: BTreeMap<&'static str, u64>,
    /// How many scenarios had how many kinds of fault.
    pub kinds: BTreeMap<usize, u64>,
    /// What managers did, by the subject that drew the scenario.
    pub counts: BTreeMap<&'static str, Counts>,
    /// Edits accepted, in all.
    pub edits: u64,
    /// Virtual time, in all.
    pub lasted: Duration,
    /// Real time.
    pub took: Duration,
    /// The first failures.
    pub failures: Vec<Failure>,
}

/// All faults.
const FAULTS: [&str; 25] = [
    "410",
    "crash",
    "crash after a write",
    "cut watch",
    "isolated leader",
    "lost reply",
    "lost request",
    "node crowded",
    "node lost",
    "pod annotated",
    "pod crashed",
    "pod deleted",
    "pod evicted",
    "pod failed",
    "pod relabelled",
    "pod unready",
    "refused with 409",
    "refused with 429",
    "refused with 500",
    "refused with 503",
    "restart",
    "slow",
    "stale cache",
    "webhook down",
    "webhook slow",
];

/// So many scenarios show every fault.
const TELLING: u64 = 200;

/// What a campaign plays, and when it ends.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Seeds of other subjects are passed over.
    pub of: Option<String>,
    /// After so long.
    pub time: Duration,
    /// After so many scenarios. Seeds that are passed over do not count.
    pub scenarios: u64,
    /// After so many failures.
    pub failures: usize,
    /// Scenarios are played once: whether two plays are equal is not looked at.
    pub once: bool,
}

/// Plays seeds from `first` on until a limit is met.
pub fn run(subjects: Subjects, first: u64, threads: u64, limits: Limits) -> anyhow::Result<Tally> {
    let begun = Instant::now();
    let next = AtomicU64::new(first);
    let taken = AtomicU64::new(0);
    let tally = Mutex::new(Tally {
        of: limits.of.clone(),
        once: limits.once,
        ..Tally::default()
    });
    let work = || -> anyhow::Result<()> {
        while begun.elapsed() < limits.time {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let (subject, scenario) = subjects.generate(seed)?;
            if limits.of.as_deref().is_some_and(|of| of != subject.name()) {
                continue;
            }
            if taken.fetch_add(1, Ordering::Relaxed) >= limits.scenarios {
                return Ok(());
            }
            let plays = if limits.once { once } else { twice };
            let played = catch_unwind(AssertUnwindSafe(|| plays(subjects, &scenario)));
            let (played, violation) = played.map_err(|_| anyhow::anyhow!("seed {seed} panicked"))??;
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            tally.take(subject.name(), scenario, played, violation);
            if tally.failures.len() >= limits.failures {
                return Ok(());
            }
        }
        Ok(())
    };
    threads::run(threads, work)?;
    let mut tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    tally.took = begun.elapsed();
    for counts in tally.counts.values_mut() {
        counts.writes.sort_unstable();
        counts.requests.sort_unstable();
    }
    Ok(tally)
}

/// Plays a scenario once.
fn once(subjects: Subjects, scenario: &Scenario) -> anyhow::Result<(Played, Option<Violation>)> {
    let mut played = play(subjects, scenario, Keep::Hash)?;
    let violation = played.violation.take();
    Ok((played, violation))
}

/// Plays a scenario twice; a difference is a violation, too.
///
/// The second play is not judged if the first kept every promise: a play that is the same byte for byte keeps them too.
pub fn twice(subjects: Subjects, scenario: &Scenario) -> anyhow::Result<(Played, Option<Violation>)> {
    let mut one = play(subjects, scenario, Keep::Hash)?;
    let judged = if one.violation.is_none() {
        Judged::No
    } else {
        Judged::Yes
    };
    let two = replay(subjects, scenario, Keep::Hash, judged)?;
    let violation = if one.hash == two.hash && one.counters == two.counters {
        one.violation.take()
    } else {
        let what = format!(
            "{:x} and {:x}; {}",
            one.hash,
            two.hash,
            difference(subjects, scenario)?
        );
        Some(Violation {
            oracle: "two plays are equal",
            what,
        })
    };
    Ok((one, violation))
}

/// Where two plays differ, if two more do.
fn difference(subjects: Subjects, scenario: &Scenario) -> anyhow::Result<String> {
    let one = play(subjects, scenario, Keep::Lines)?.lines;
    let two = play(subjects, scenario, Keep::Lines)?.lines;
    let first = one.iter().zip(&two).find(|(one, two)| one != two);
    Ok(first.map_or_else(
        || "two more plays did not differ".into(),
        |(one, two)| format!("{one} / {two}"),
    ))
}

impl Tally {
    /// Faults that never had an effect in enough scenarios of all subjects: what they are to find is not found.
    pub fn silent(&self) -> Vec<&'static str> {
        if self.scenarios < TELLING || self.of.is_some() {
            return Vec::new();
        }
        let silent = FAULTS.into_iter().filter(|fault| !self.fired.contains_key(fault));
        silent.collect()
    }

    fn take(
        &mut self,
        subject: &'static str,
        scenario: Scenario,
        played: Played,
        violation: Option<Violation>,
    ) {
        let counters = played.counters;
        self.scenarios += 1;
        self.rich += u64::from(played.counts);
        *self.kinds.entry(counters.fired.len()).or_default() += 1;
        for fault in counters.fired.keys() {
            *self.fired.entry(fault).or_default() += 1;
        }
        let counts = self.counts.entry(subject).or_default();
        counts.writes.push(counters.writes);
        counts.requests.push(counters.requests);
        self.edits += u64::from(counters.edits);
        self.lasted += played.lasted;
        if let Some(violation) = violation {
            self.failures.push(Failure { scenario, violation });
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} scenarios, each {}, in {:.1} s",
            self.scenarios,
            if self.once { "once" } else { "twice" },
            self.took.as_secs_f64()
        )?;
        writeln!(
            f,
            "{} count: at least {} edits, {} kinds of fault, {} writes, and what the subject demands",
            self.rich, EDITS, KINDS, WRITES
        )?;
        for (subject, counts) in &self.counts {
            writeln!(f, "{subject}, each scenario: {counts}")?;
        }
        let scenarios = self.scenarios.max(1);
        writeln!(
            f,
            "edits: {:.1} each; virtual time: {:.1} min each",
            self.edits as f64 / scenarios as f64,
            self.lasted.as_secs_f64() / 60.0 / scenarios as f64
        )?;
        writeln!(f, "kinds of fault: {:?}", self.kinds)?;
        for (fault, count) in &self.fired {
            writeln!(
                f,
                "  {fault}: in {:.0} % of the scenarios",
                *count as f64 * 100.0 / scenarios as f64
            )?;
        }
        for fault in self.silent() {
            writeln!(f, "NEVER HAPPENED: {fault}")?;
        }
        for failure in &self.failures {
            writeln!(
                f,
                "FAILED seed {}: {}: {}",
                failure.scenario.seed, failure.violation.oracle, failure.violation.what
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mean = |of: &[u32]| of.iter().map(|one| f64::from(*one)).sum::<f64>() / of.len().max(1) as f64;
        let median = |of: &[u32]| of.get(of.len() / 2).copied().unwrap_or(0);
        write!(
            f,
            "writes: mean {:.1}, median {}; requests: mean {:.1}, median {}; {} scenarios",
            mean(&self.writes),
            median(&self.writes),
            mean(&self.requests),
            median(&self.requests),
            self.writes.len()
        )
    }
}
