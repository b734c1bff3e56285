//! Work goes on although some requests fail.
//!
//! Each scenario is played without faults, and again with a constant small rate of failed requests. What users do
//! is the same, close together, so that managers have work left at the end. The second play may take four times as
//! long as the first ([`SLOWER`]), and managers may not write nothing for ten seconds more than in the first
//! ([`PAUSE`]), unless they wait for users.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use super::{
    course::Settling,
    play::{Keep, play},
    scenario::{Action, Scenario},
    subject::{Seed, Subjects},
    threads,
    verdict::Violation,
};

/// So many times as long may a scenario take.
const SLOWER: u32 = 4;
/// And no shorter scenario than this is compared: one failed request at the end takes its time, however little
/// there is to do.
const SHORTEST: Duration = Duration::from_secs(10);
/// So much longer may managers write nothing.
const PAUSE: Duration = Duration::from_secs(10);
/// Users act so many times faster than in other scenarios.
const FASTER: u64 = 10;

/// A scenario that was played both ways.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Its seed.
    pub seed: Seed,
    /// Do managers wait for its users?
    pub is_paced_by_users: bool,
    /// Without faults.
    pub calm: Settling,
    /// With failed requests.
    pub unreliable: Settling,
    /// How many of them.
    pub failed: u32,
}

/// The result of many.
#[derive(Debug, Default)]
pub struct Comparison {
    /// By seed.
    pub scenarios: Vec<Compared>,
    /// What must not happen, by seed.
    pub violations: Vec<(Seed, Violation)>,
}

impl Compared {
    /// How many times as long the play with failed requests took.
    pub fn ratio(&self) -> f64 {
        self.unreliable.took.as_secs_f64() / self.calm.took.max(SHORTEST).as_secs_f64()
    }

    /// How much longer managers wrote nothing, of their own accord.
    pub fn longer_pause(&self) -> Duration {
        if self.is_paced_by_users {
            return Duration::ZERO;
        }
        self.unreliable.pause.saturating_sub(self.calm.pause)
    }

    /// Whether it took too long where requests failed.
    pub fn violation(&self) -> Option<Violation> {
        let what = if self.unreliable.took > self.calm.took.max(SHORTEST) * SLOWER {
            "took longer"
        } else if self.longer_pause() > PAUSE {
            "paused longer"
        } else {
            return None;
        };
        Some(Violation {
            oracle: "liveness",
            what: format!(
                "{what}: {:?} with {} failed requests, {:?} without",
                self.unreliable, self.failed, self.calm
            ),
        })
    }
}

/// The scenario of a seed as it is played: what users do, and nothing else.
pub fn scenario(subjects: Subjects, seed: Seed, percent: u8) -> anyhow::Result<Scenario> {
    let mut scenario = subjects.scenario(seed)?;
    scenario.brief = false;
    scenario.managers = 1;
    scenario.failing = Some(percent);
    scenario.steps.retain(|step| matches!(step.what, Action::Edit(_)));
    for step in &mut scenario.steps {
        step.at /= FASTER;
    }
    Ok(scenario)
}

/// Plays seeds, on so many threads, with so many percent of failed requests.
pub fn run(
    subjects: Subjects,
    seeds: impl Iterator<Item = Seed> + Send,
    threads: u64,
    percent: u8,
) -> anyhow::Result<Comparison> {
    let seeds = Mutex::new(seeds);
    let next = || seeds.lock().unwrap_or_else(PoisonError::into_inner).next();
    let all = Mutex::new(Comparison::default());
    let work = || -> anyhow::Result<()> {
        while let Some(seed) = next() {
            let (compared, violation) = compare(subjects, seed, percent)?;
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.scenarios.extend(compared);
            all.violations.extend(violation.map(|what| (seed, what)));
        }
        Ok(())
    };
    threads::run(threads, work)?;
    let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.scenarios.sort_by_key(|one| one.seed);
    all.violations.sort_by_key(|(seed, _)| *seed);
    Ok(all)
}

fn compare(
    subjects: Subjects,
    seed: Seed,
    percent: u8,
) -> anyhow::Result<(Option<Compared>, Option<Violation>)> {
    let calm = scenario(subjects, seed, 0)?;
    let unreliable = scenario(subjects, seed, percent)?;
    let (calm, unreliable) = (
        play(subjects, &calm, Keep::Hash)?,
        play(subjects, &unreliable, Keep::Hash)?,
    );
    let violation = calm.violation.or(unreliable.violation);
    let (Some(calm), Some(settling)) = (calm.settling, unreliable.settling) else {
        return Ok((None, violation));
    };
    let compared = Compared {
        seed,
        is_paced_by_users: subjects.named(seed.of)?.is_paced_by_users,
        calm,
        unreliable: settling,
        failed: unreliable.counters.fired.values().sum(),
    };
    let violation = violation.or_else(|| compared.violation());
    Ok((Some(compared), violation))
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failed: u32 = self.scenarios.iter().map(|one| one.failed).sum();
        writeln!(
            f,
            "{} scenarios, without faults and with {failed} failed requests",
            self.scenarios.len()
        )?;
        let slowest = self
            .scenarios
            .iter()
            .max_by(|a, b| a.ratio().total_cmp(&b.ratio()));
        let longest = self.scenarios.iter().max_by_key(|one| one.longer_pause());
        for (what, one) in [("slowest", slowest), ("longest pause", longest)] {
            if let Some(one) = one {
                writeln!(
                    f,
                    "{what}: {}: {:.1} s instead of {:.1} s, {:.1} times as long; longest pause {:.1} s instead of {:.1} s",
                    one.seed,
                    one.unreliable.took.as_secs_f64(),
                    one.calm.took.as_secs_f64(),
                    one.ratio(),
                    one.unreliable.pause.as_secs_f64(),
                    one.calm.pause.as_secs_f64(),
                )?;
            }
        }
        for (seed, violation) in &self.violations {
            writeln!(f, "FAILED {seed}: {}: {}", violation.oracle, violation.what)?;
        }
        Ok(())
    }
}
