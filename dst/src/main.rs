//! `kruise-dst run|replay|liveness|enumerate|alter|show|fingerprints|injected-bugs`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use anyhow::Context;
use clap::{Parser, Subcommand, builder::PossibleValuesParser};
use kruise_dst::{
    engine::{
        campaign, enumerate,
        forgery::Altering,
        liveness,
        play::{self, Keep, play},
        scenario::Scenario,
        shrink,
        subject::Seed,
    },
    subjects::ALL,
};

/// Plays scenarios with faults against the production manager on an embedded cluster.
#[derive(Parser)]
#[command(name = "kruise-dst")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Play one seed after the other.
    Run {
        /// For this many seconds.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// The first seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// The number of threads.
        #[arg(long, default_value_t = 2)]
        threads: u64,
        /// Stop after this many scenarios.
        #[arg(long, default_value_t = u64::MAX)]
        scenarios: u64,
        /// Of this subject; otherwise of each in turn.
        #[arg(long, value_parser = names())]
        of: Option<String>,
        /// Stop after this many failures.
        #[arg(long, default_value_t = 1)]
        failures: usize,
        /// Play each scenario once: more of them in the same time, and plays are not compared.
        #[arg(long)]
        once: bool,
    },
    /// Play one scenario and print everything that happens.
    Replay {
        /// A case file, or a seed: `cloneset/17`.
        case: String,
        /// Play the seed as `liveness` does, with so many percent of failed requests.
        #[arg(long)]
        failing: Option<u8>,
    },
    /// Print the fingerprint of each seed: a change that is to alter nothing keeps them all.
    Fingerprints {
        /// The first seed of each subject.
        #[arg(long, default_value_t = 1)]
        from: u64,
        /// The number of seeds of all together.
        #[arg(long, default_value_t = 200)]
        count: usize,
    },
    /// Play scenarios without faults and with a constant rate of failed requests, and compare how long they take.
    Liveness {
        /// The first seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// The number of seeds.
        #[arg(long, default_value_t = 100)]
        scenarios: usize,
        /// The number of threads.
        #[arg(long, default_value_t = 2)]
        threads: u64,
        /// Percent of requests that fail.
        #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=50))]
        percent: u8,
    },
    /// Play scenarios without faults, with a crash after each of their writes.
    Enumerate,
    /// Find each of the injected bugs, and print where: the table of `tests/it/injected_bugs.rs`.
    #[cfg(feature = "injected-bugs")]
    InjectedBugs {
        /// Seeds for each, at most: less than a minute's scenarios.
        #[arg(long, default_value_t = 1000)]
        seeds: u64,
    },
    /// Play scenarios whose requests are altered by their seed, and print which oracles fail.
    Alter {
        /// The first seed.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// The number of seeds of each subject.
        #[arg(long, default_value_t = 10)]
        seeds: u64,
        /// Of this subject; otherwise of all.
        #[arg(long, value_parser = names())]
        of: Option<String>,
    },
    /// Print the scenario of a seed.
    Show {
        /// The seed: `cloneset/17`.
        seed: String,
    },
}

/// Names of the subjects.
fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(ALL.played())
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether nothing was found.
fn run(command: Command) -> anyhow::Result<bool> {
    match command {
        Command::Run {
            seconds,
            seed,
            threads,
            scenarios,
            of,
            failures,
            once,
        } => {
            let limits = campaign::Limits {
                time: Duration::from_secs(seconds),
                scenarios,
                failures,
                twice: u64::from(!once),
            };
            let tally = campaign::run(ALL, ALL.seeds(of.as_deref(), seed)?, threads, &limits)?;
            print!("{tally}");
            tally.failures.iter().try_for_each(keep)?;
            Ok(tally.failures.is_empty() && tally.silent().is_empty())
        }
        Command::Replay { case, failing } => replay(&case, failing),
        Command::Fingerprints { from, count } => fingerprints(from, count),
        Command::Liveness {
            seed,
            scenarios,
            threads,
            percent,
        } => {
            let seeds = ALL.seeds(None, seed)?.take(scenarios);
            let compared = liveness::run(ALL, seeds, threads, percent)?;
            print!("{compared}");
            Ok(compared.violations.is_empty())
        }
        Command::Enumerate => enumerated(),
        #[cfg(feature = "injected-bugs")]
        Command::InjectedBugs { seeds } => injected_bugs(seeds),
        Command::Alter { seed, seeds, of } => altered(of.as_deref(), seed, seeds),
        Command::Show { seed } => {
            print!("{}", serde_saphyr::to_string(&ALL.scenario(ALL.seed(&seed)?)?)?);
            Ok(true)
        }
    }
}

/// Shortens a scenario that failed and keeps it, to be named and committed.
fn keep(failure: &campaign::Failure) -> anyhow::Result<()> {
    let scenario = shrink::shrink(ALL, &failure.scenario, failure.violation.oracle)?;
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("cases");
    let name = failure.violation.oracle.replace(' ', "-");
    let path = folder.join(format!("{name}-{}.yaml", failure.seed.number));
    std::fs::write(&path, serde_saphyr::to_string(&scenario)?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!(
        "{} steps are left of {}: {}",
        scenario.steps.len(),
        failure.seed,
        path.display()
    );
    Ok(())
}

fn fingerprints(from: u64, count: usize) -> anyhow::Result<bool> {
    for seed in ALL.seeds(None, from)?.take(count) {
        let played = play(ALL, &ALL.scenario(seed)?, Keep::Hash)?;
        println!("{seed} {:x}", played.hash);
    }
    Ok(true)
}

fn enumerated() -> anyhow::Result<bool> {
    let mut clean = true;
    for (name, scenario) in ALL.0.iter().flat_map(|one| (one.clean)()) {
        let enumerated = enumerate::run(ALL, &scenario, 1, 2)?;
        println!(
            "{name}: {} writes, each once the last: {} failures",
            enumerated.writes,
            enumerated.failures.len()
        );
        for (scenario, violation) in &enumerated.failures {
            let first = scenario.steps.first();
            println!("FAILED {first:?}: {}: {}", violation.oracle, violation.what);
        }
        clean &= enumerated.failures.is_empty();
    }
    Ok(clean)
}

#[cfg(feature = "injected-bugs")]
fn injected_bugs(most: u64) -> anyhow::Result<bool> {
    let mut all = true;
    for (of, bug) in ALL.bugs() {
        let name = bug.name;
        if let Some(found) = kruise_dst::engine::injected::hunt(ALL, of, name, 1, most)? {
            let (took, seed) = (found.took.as_secs_f64(), found.seed.number);
            println!("{of} {name}: {seed}, {took:.1} s: {:?}", found.violation);
        } else {
            println!("{of} {name}: NOT FOUND in {most} seeds");
            all = false;
        }
    }
    Ok(all)
}

/// A play costs as much as so many requests before its first.
const BEGINNING: u32 = 100;

/// Prints the table of `tests/it/oracles/altered.rs`: the cheapest plays, and the oracles that fail there, in none
/// before, and by no injected bug.
fn altered(of: Option<&str>, first: u64, count: u64) -> anyhow::Result<bool> {
    let mut plays = Vec::new();
    for seed in ALL
        .seeds(of, first)?
        .take_while(|seed| seed.number < first + count)
    {
        let found = play::altered(ALL, &ALL.scenario(seed)?, Altering::drawn(seed.number), &[])?;
        eprintln!("{seed}: {found:?}");
        plays.push((seed, found));
    }
    let mut seen: BTreeSet<&str> = ALL.bugs().flat_map(|(_, bug)| bug.oracles).copied().collect();
    let mut total = 0;
    while let Some((cost, seed, new)) = cheapest(&plays, &seen) {
        total += cost;
        println!("(\"{seed}\", &{new:?}),");
        seen.extend(new);
    }
    println!("{total} requests");
    Ok(true)
}

/// Of the plays, each up to any of its requests, the one that costs least for each oracle that was not seen.
fn cheapest<'f>(
    plays: &'f [(Seed, BTreeMap<&'static str, u32>)],
    seen: &BTreeSet<&str>,
) -> Option<(u32, &'f Seed, Vec<&'static str>)> {
    let ends = plays.iter().flat_map(|(seed, found)| {
        found.values().map(move |end| {
            let new = found
                .iter()
                .filter(|(oracle, at)| *at <= end && !seen.contains(*oracle));
            let new: Vec<&'static str> = new.map(|(oracle, _)| *oracle).collect();
            (end + BEGINNING, seed, new)
        })
    });
    let shows = ends.filter(|(_, _, new)| !new.is_empty());
    shows.min_by(|(cost, _, new), (other, _, others)| {
        let by_oracle = |cost: &u32, new: &Vec<_>| f64::from(*cost) / new.len() as f64;
        by_oracle(cost, new).total_cmp(&by_oracle(other, others))
    })
}

fn replay(case: &str, failing: Option<u8>) -> anyhow::Result<bool> {
    let scenario: Scenario = if let Ok(seed) = ALL.seed(case) {
        match failing {
            Some(percent) => liveness::scenario(ALL, seed, percent)?,
            None => ALL.scenario(seed)?,
        }
    } else {
        let text = std::fs::read_to_string(case).with_context(|| format!("cannot read {case}"))?;
        serde_saphyr::from_str(&text).with_context(|| format!("{case} is no scenario"))?
    };
    let played = play(ALL, &scenario, Keep::Lines)?;
    for line in &played.lines {
        println!("{line}");
    }
    println!(
        "{:?} in {:?} of virtual time, fingerprint {:x}",
        played.counters, played.lasted, played.hash
    );
    match &played.violation {
        Some(violation) => println!("FAILED: {}: {}", violation.oracle, violation.what),
        None => println!("all is as it should be"),
    }
    Ok(played.violation.is_none())
}
