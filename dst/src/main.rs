//! `kruise-dst run --seconds 60`, `kruise-dst replay CASE.yaml`, `kruise-dst enumerate`, `kruise-dst planted`.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Context;
use clap::{Parser, Subcommand};
use kruise_dst::{
    campaign::{self, Of},
    enumerate,
    history::{self, History, Policy},
    play::{Keep, play},
    shrink,
};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Plays faulty histories of the production manager on an embedded cluster.
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
        /// For so long.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// From this seed on.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// On so many threads.
        #[arg(long, default_value_t = 2)]
        threads: u64,
        /// Stop at so many seeds.
        #[arg(long, default_value_t = u64::MAX)]
        histories: u64,
        /// Pass over seeds of other histories.
        #[arg(long, value_enum, default_value_t)]
        of: Of,
        /// Stop at so many failures.
        #[arg(long, default_value_t = 1)]
        failures: usize,
    },
    /// Play one history and print everything that happens.
    Replay {
        /// A case file, or a seed.
        case: String,
    },
    /// Print the fingerprint of each seed: a change that is to alter nothing keeps them all.
    Fingerprints {
        /// The first seed.
        #[arg(long, default_value_t = 1)]
        from: u64,
        /// The number of seeds.
        #[arg(long, default_value_t = 200)]
        count: u64,
    },
    /// Play a clean run with a crash after each of its writes.
    Enumerate,
    /// Find each of the bugs that are planted.
    #[cfg(feature = "planted")]
    Planted {
        /// Histories for each, at most: less than a minute's.
        #[arg(long, default_value_t = 1000)]
        histories: u64,
    },
    /// Print the history of a seed.
    Show {
        /// The seed.
        seed: u64,
    },
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
            histories,
            of,
            failures,
        } => {
            let limits = campaign::Limits {
                of,
                time: Duration::from_secs(seconds),
                histories,
                failures,
            };
            let tally = campaign::run(seed, threads, limits)?;
            print!("{tally}");
            tally.failures.iter().try_for_each(keep)?;
            Ok(tally.failures.is_empty() && tally.silent().is_empty())
        }
        Command::Replay { case } => replay(&case),
        Command::Fingerprints { from, count } => fingerprints(from, count),
        Command::Enumerate => enumerated(),
        #[cfg(feature = "planted")]
        Command::Planted { histories } => planted(histories),
        Command::Show { seed } => {
            print!("{}", serde_saphyr::to_string(&history::generate(seed))?);
            Ok(true)
        }
    }
}

/// Shortens a history that failed and keeps it, to be named and committed.
fn keep(failure: &campaign::Failure) -> anyhow::Result<()> {
    let history = shrink::shrink(&failure.history, failure.violation.oracle)?;
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("cases");
    let name = failure.violation.oracle.replace(' ', "-");
    let path = folder.join(format!("{name}-{}.yaml", failure.history.seed));
    std::fs::write(&path, serde_saphyr::to_string(&history)?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    println!(
        "{} acts are left of seed {}: {}",
        history.acts.len(),
        failure.history.seed,
        path.display()
    );
    Ok(())
}

fn fingerprints(from: u64, count: u64) -> anyhow::Result<bool> {
    for seed in from..from.saturating_add(count) {
        let played = play(&history::generate(seed), Keep::Hash)?;
        println!("{seed} {:x}", played.hash);
    }
    Ok(true)
}

fn enumerated() -> anyhow::Result<bool> {
    let mut clean = true;
    for policy in [Policy::InPlaceIfPossible, Policy::ReCreate] {
        let enumerated = enumerate::run(policy, 1, 2)?;
        println!(
            "{policy:?}: {} writes, each once the last: {} failures",
            enumerated.writes,
            enumerated.failures.len()
        );
        for failure in &enumerated.failures {
            println!(
                "FAILED {:?}: {}: {}",
                failure.history.acts.first(),
                failure.violation.oracle,
                failure.violation.what
            );
        }
        clean &= enumerated.failures.is_empty();
    }
    Ok(clean)
}

#[cfg(feature = "planted")]
fn planted(most: u64) -> anyhow::Result<bool> {
    let mut all = true;
    for bug in kruise_plan_kit::planted::Bug::ALL {
        if let Some(found) = kruise_dst::planted::hunt(bug, most)? {
            let violation = found.violation;
            println!(
                "{bug:?}: {:.1} s, {} histories, seed {}: {}: {}",
                found.took.as_secs_f64(),
                found.histories,
                found.seed,
                violation.oracle,
                violation.what
            );
        } else {
            println!("{bug:?}: NOT FOUND in {most} histories");
            all = false;
        }
    }
    Ok(all)
}

fn replay(case: &str) -> anyhow::Result<bool> {
    let history: History = if let Ok(seed) = case.parse() {
        history::generate(seed)
    } else {
        let text = std::fs::read_to_string(case).with_context(|| format!("cannot read {case}"))?;
        serde_saphyr::from_str(&text).with_context(|| format!("{case} is no history"))?
    };
    let played = play(&history, Keep::Lines)?;
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
