//! The guided tour in a playground.

use std::time::Duration;

use anyhow::Result;
use kruise_tour::{Screen, costs, run, story};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::stage::{Embedded, Place};

const OPENING: &str = "
A tour of CloneSet and StatefulSet, OpenKruise's workloads that update pods in place, and of a budget for their pods.
Then a zone fails, a workload runs in three zones, and a Secret is copied to namespaces.

Each step shows the command line that makes its request; here the request is sent without it, so kubectl is not needed.
Seconds are wall time from the request to the status that says it is done, simulated pulls, starts and stops included;
--fast shrinks those, not what API and manager take.
NEW IMAGES counts the images that ran on a node for the first time. Requests are writes, as the manager's own metrics
count them. A claim that does not hold ends the tour with an error.
";

/// Starts the tour; `halted` ends it early.
pub(super) fn start(place: Place, halted: watch::Receiver<bool>) -> JoinHandle<Result<()>> {
    tokio::spawn(async move {
        let stage = Embedded::new(place, halted).await?;
        tokio::task::spawn_blocking(move || tour(stage)).await?
    })
}

fn tour(mut stage: Embedded) -> Result<()> {
    let mut screen = Screen::of_the_reader(None);
    screen.text(OPENING)?;
    let records = run(&mut stage, &mut screen, &story::steps())?;
    screen.heading("What it took")?;
    screen.text(&costs(&records).to_string())?;
    let seconds =
        |time: Option<Duration>| time.map_or("?".to_owned(), |time| format!("{:.2} s", time.as_secs_f64()));
    screen.text(&format!(
        "\nThe first pod was ready {} after this process started, {} after the CloneSet was created.",
        seconds(stage.first_ready()),
        seconds(stage.first_ready_after_creation()),
    ))
}
