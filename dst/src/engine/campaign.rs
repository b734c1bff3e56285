//! Many scenarios, on a few threads.

#![allow(clippy::disallowed_methods, reason = "it measures what a run takes")]

use std::{
    collections::BTreeMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::{
    cost::Dearest,
    play::{Keep, Played, play, replay},
    report::{EDITS, KINDS, WRITES},
    scenario::Scenario,
    subject::{Seed, Subjects},
    threads,
    verdict::{Judged, Violation},
};

/// A scenario that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Whose scenario it is.
    pub seed: Seed,
    /// The scenario.
    pub scenario: Scenario,
    /// What happened.
    pub violation: Violation,
}

/// What happened in the scenarios of a subject.
#[derive(Debug, Default)]
pub struct Counts {
    /// Scenarios in which enough happened.
    pub rich: u64,
    /// Writes that were accepted, leases apart.
    pub writes: Vec<u32>,
    /// Requests that arrived, leases apart.
    pub requests: Vec<u32>,
    /// The object that cost most while nothing changed.
    pub dearest: Dearest,
}

/// The result of a campaign.
#[derive(Debug, Default)]
pub struct Tally {
    /// Scenarios that were played.
    pub scenarios: u64,
    /// Of these, the ones that were played twice.
    pub twice: u64,
    /// Scenarios in which a fault had an effect, by fault.
    pub fired: BTreeMap<&'static str, u64>,
    /// How many scenarios had how many kinds of fault.
    pub kinds: BTreeMap<usize, u64>,
    /// What happened, by subject.
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
    /// After so long.
    pub time: Duration,
    /// After so many scenarios.
    pub scenarios: u64,
    /// After so many failures.
    pub failures: usize,
    /// Of so many numbers of seeds one is played twice, to see that both plays are equal. None is if this is zero.
    pub twice: u64,
}

/// Plays seeds until they or a limit is met.
pub fn run(
    subjects: Subjects,
    seeds: impl Iterator<Item = Seed> + Send,
    threads: u64,
    limits: &Limits,
) -> anyhow::Result<Tally> {
    let begun = Instant::now();
    let most = usize::try_from(limits.scenarios).unwrap_or(usize::MAX);
    let seeds = Mutex::new(seeds.take(most));
    let next = || seeds.lock().unwrap_or_else(PoisonError::into_inner).next();
    let tally = Mutex::new(Tally::default());
    let work = || -> anyhow::Result<()> {
        while begun.elapsed() < limits.time {
            let Some(seed) = next() else { break };
            let scenario = subjects.scenario(seed)?;
            let is_twice = seed.number.checked_rem(limits.twice) == Some(0);
            let plays = if is_twice { twice } else { once };
            let played = catch_unwind(AssertUnwindSafe(|| plays(subjects, &scenario)));
            let (played, violation) = played.map_err(|_| anyhow::anyhow!("{seed} panicked"))??;
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            tally.twice += u64::from(is_twice);
            tally.take(seed, played);
            tally.failures.extend(violation.map(|violation| Failure {
                seed,
                scenario,
                violation,
            }));
            if tally.failures.len() >= limits.failures {
                break;
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
pub fn once(subjects: Subjects, scenario: &Scenario) -> anyhow::Result<(Played, Option<Violation>)> {
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
        if self.scenarios < TELLING || self.counts.len() < 2 {
            return Vec::new();
        }
        let silent = FAULTS.into_iter().filter(|fault| !self.fired.contains_key(fault));
        silent.collect()
    }

    fn take(&mut self, seed: Seed, played: Played) {
        let counters = played.counters;
        self.scenarios += 1;
        *self.kinds.entry(counters.fired.len()).or_default() += 1;
        for fault in counters.fired.keys() {
            *self.fired.entry(fault).or_default() += 1;
        }
        let counts = self.counts.entry(seed.of).or_default();
        counts.rich += u64::from(played.counts);
        counts.writes.push(counters.writes);
        counts.requests.push(counters.requests);
        if played.dearest.at_once > counts.dearest.at_once {
            counts.dearest = played.dearest;
        }
        self.edits += u64::from(counters.edits);
        self.lasted += played.lasted;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} scenarios, {} of them twice, in {:.1} s",
            self.scenarios,
            self.twice,
            self.took.as_secs_f64()
        )?;
        writeln!(
            f,
            "those count that have at least {EDITS} edits, {KINDS} kinds of fault, {WRITES} writes, and what the subject demands"
        )?;
        for (subject, counts) in &self.counts {
            writeln!(f, "{subject}, each scenario: {counts}")?;
            writeln!(f, "  dearest: {}", counts.dearest.what)?;
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
                "FAILED {seed}: {}: {}; `cargo run --release -p kruise-dst -- replay {seed}` shows it",
                failure.violation.oracle,
                failure.violation.what,
                seed = failure.seed,
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
            "writes: mean {:.1}, median {}; requests: mean {:.1}, median {}; {} of {} scenarios count",
            mean(&self.writes),
            median(&self.writes),
            mean(&self.requests),
            median(&self.requests),
            self.rich,
            self.writes.len()
        )
    }
}
