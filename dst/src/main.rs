//! Plays histories.

use kruise_dst::{history, play};

fn main() -> anyhow::Result<()> {
    let seed = std::env::args().nth(1).and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut history = history::generate(seed);
    if std::env::var("CLEAN").is_ok() {
        history.acts.retain(|act| matches!(act.what, history::What::Edit(_)));
    }
    let begun = std::time::Instant::now();
    let one = play::play(&history, play::Keep::Lines)?;
    let took = begun.elapsed();
    let begun = std::time::Instant::now();
    let two = play::play(&history, play::Keep::Hash)?;
    let took2 = begun.elapsed();
    for line in &one.lines {
        println!("{line}");
    }
    println!("{:?} {:?} {:x} {:x} lasted {:?} took {took:?} {took2:?}", one.violation, one.counters, one.hash, two.hash, one.lasted);
    Ok(())
}
