//! Many histories, each twice, on a few threads.

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

use crate::{
    history::{History, generate},
    oracle::Violation,
    play::{Judged, Keep, Played, play, replay},
    report::RICH,
};

/// A history that went wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The history.
    pub history: History,
    /// What happened.
    pub violation: Violation,
}

/// What a campaign came to.
#[derive(Debug, Default)]
pub struct Tally {
    /// What was played.
    pub of: Of,
    /// Histories, each played twice.
    pub histories: u64,
    /// Of these, the ones that are rich enough to count.
    pub rich: u64,
    /// Histories in which a fault had an effect, by fault.
    pub fired: BTreeMap<&'static str, u64>,
    /// How many histories had how many kinds of fault.
    pub kinds: BTreeMap<usize, u64>,
    /// Writes of managers, of each history.
    pub writes: Vec<u32>,
    /// Edits accepted, in all.
    pub edits: u64,
    /// Virtual time, in all.
    pub lasted: Duration,
    /// Real time.
    pub took: Duration,
    /// The first failures.
    pub failures: Vec<Failure>,
}

/// Everything that can go wrong in a history.
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

/// So many histories show every fault.
const TELLING: u64 = 200;

/// Which histories are played.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Of {
    /// Of every kind.
    #[default]
    All,
    /// Of CloneSets alone.
    #[value(name = "clonesets")]
    CloneSets,
    /// With SidecarSets, above CloneSets or Deployments.
    #[value(name = "sidecarsets")]
    SidecarSets,
}

impl Of {
    fn has(self, history: &History) -> bool {
        match self {
            Self::All => true,
            Self::CloneSets => history.sidecars.is_none(),
            Self::SidecarSets => history.sidecars.is_some(),
        }
    }
}

/// What a campaign plays, and when it ends.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Seeds of other histories are passed over.
    pub of: Of,
    /// After so long.
    pub time: Duration,
    /// After so many seeds.
    pub histories: u64,
    /// After so many failures.
    pub failures: usize,
}

/// Plays seeds from `first` on until a limit is met.
pub fn run(first: u64, threads: u64, limits: Limits) -> anyhow::Result<Tally> {
    let begun = Instant::now();
    let next = AtomicU64::new(first);
    let end = first.saturating_add(limits.histories);
    let tally = Mutex::new(Tally {
        of: limits.of,
        ..Tally::default()
    });
    let work = || -> anyhow::Result<()> {
        while begun.elapsed() < limits.time {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return Ok(());
            }
            let history = generate(seed);
            if !limits.of.has(&history) {
                continue;
            }
            let played = catch_unwind(AssertUnwindSafe(|| twice(&history)));
            let (played, violation) =
                played.map_err(|_| anyhow::anyhow!("seed {} panicked", history.seed))??;
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            tally.take(history, played, violation);
            if tally.failures.len() >= limits.failures {
                return Ok(());
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?)
    })?;
    let mut tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    tally.took = begun.elapsed();
    tally.writes.sort_unstable();
    Ok(tally)
}

/// Plays a history twice; a difference is a violation, too.
///
/// The second play is not judged if the first kept every promise: a play that is the same byte for byte keeps them too.
pub fn twice(history: &History) -> anyhow::Result<(Played, Option<Violation>)> {
    let mut one = play(history, Keep::Hash)?;
    let judged = if one.violation.is_none() {
        Judged::No
    } else {
        Judged::Yes
    };
    let two = replay(history, Keep::Hash, judged)?;
    let violation = if one.hash == two.hash && one.counters == two.counters {
        one.violation.take()
    } else {
        let what = format!("{:x} and {:x}; {}", one.hash, two.hash, difference(history)?);
        Some(Violation {
            oracle: "two plays are equal",
            what,
        })
    };
    Ok((one, violation))
}

/// Where two plays part, if two more do.
fn difference(history: &History) -> anyhow::Result<String> {
    let one = play(history, Keep::Lines)?.lines;
    let two = play(history, Keep::Lines)?.lines;
    let first = one.iter().zip(&two).find(|(one, two)| one != two);
    Ok(first.map_or_else(
        || "two more plays did not differ".into(),
        |(one, two)| format!("{one} / {two}"),
    ))
}

impl Tally {
    /// Faults that never had an effect though there were histories enough, of every kind: what they are to find is not
    /// looked for.
    pub fn silent(&self) -> Vec<&'static str> {
        if self.histories < TELLING || self.of != Of::All {
            return Vec::new();
        }
        let silent = FAULTS.into_iter().filter(|fault| !self.fired.contains_key(fault));
        silent.collect()
    }

    fn take(&mut self, history: History, played: Played, violation: Option<Violation>) {
        let counters = played.counters;
        self.histories += 1;
        self.rich += u64::from(counters.count(history.set.replicas));
        *self.kinds.entry(counters.fired.len()).or_default() += 1;
        for fault in counters.fired.keys() {
            *self.fired.entry(fault).or_default() += 1;
        }
        self.writes.push(counters.writes);
        self.edits += u64::from(counters.edits);
        self.lasted += played.lasted;
        if let Some(violation) = violation {
            self.failures.push(Failure { history, violation });
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_minute = |count: u64| count as f64 * 60.0 / self.took.as_secs_f64().max(0.001);
        writeln!(
            f,
            "{} histories, each twice, in {:.1} s: {:.0} a minute",
            self.histories,
            self.took.as_secs_f64(),
            per_minute(self.histories)
        )?;
        writeln!(
            f,
            "{} count ({:.0} a minute): at least {} replicas, {} edits, {} kinds of fault, {} writes",
            self.rich,
            per_minute(self.rich),
            RICH.replicas,
            RICH.edits,
            RICH.kinds,
            RICH.writes
        )?;
        let at = |part: usize| {
            self.writes
                .get(self.writes.len().saturating_sub(1) * part / 100)
                .copied()
                .unwrap_or(0)
        };
        writeln!(
            f,
            "writes of managers: least {}, p10 {}, median {}, p90 {}, most {}",
            at(0),
            at(10),
            at(50),
            at(90),
            at(100)
        )?;
        let histories = self.histories.max(1);
        writeln!(
            f,
            "edits: {:.1} each; virtual time: {:.1} min each",
            self.edits as f64 / histories as f64,
            self.lasted.as_secs_f64() / 60.0 / histories as f64
        )?;
        writeln!(f, "kinds of fault: {:?}", self.kinds)?;
        for (fault, count) in &self.fired {
            writeln!(
                f,
                "  {fault}: in {:.0} % of the histories",
                *count as f64 * 100.0 / histories as f64
            )?;
        }
        for fault in self.silent() {
            writeln!(f, "NEVER HAPPENED: {fault}")?;
        }
        for failure in &self.failures {
            writeln!(
                f,
                "FAILED seed {}: {}: {}",
                failure.history.seed, failure.violation.oracle, failure.violation.what
            )?;
        }
        Ok(())
    }
}
