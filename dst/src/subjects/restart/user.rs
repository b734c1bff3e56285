//! Users who run the command.

use kruise_cli::restart;
use tokio::task::JoinHandle;

use super::runs::Runs;
use super::start::{Edit, Order, Start};
use crate::engine::commands;
use crate::rules::prelude::*;

/// Users of the command.
pub struct RestartUser {
    /// How it is run at the end.
    pub start: Start,
    /// Its runs.
    pub runs: Runs,
}

/// How a run ended; nothing if it was interrupted.
type Ended = Option<anyhow::Result<String>>;

impl Users for RestartUser {
    type Edit = Edit;
    const HAS_TRIAL: bool = true;

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        let open = self.runs.open();
        match edit {
            Edit::Run(_) if !open.is_empty() => false,
            Edit::Run(order) | Edit::Beside(order) => {
                self.run(cluster, order);
                true
            }
            Edit::Again(order) => {
                self.interrupt(cluster);
                self.run(cluster, order);
                true
            }
            Edit::Interrupt => self.interrupt(cluster),
        }
    }

    /// Whatever was interrupted before, the command does what it is for.
    async fn probe(&self, cluster: &Arc<Cluster>) -> Option<Violation> {
        let ended = self.run(cluster, &self.start.last).await;
        let what = match ended {
            Ok(Some(Ok(_))) => return None,
            Ok(Some(Err(error))) => format!("{error:#}"),
            ended => format!("{ended:?}"),
        };
        Violation::of("nothing keeps a restart from its end while nothing fails", what)
    }
}

impl RestartUser {
    /// Interrupts all runs. False if there is none.
    fn interrupt(&self, cluster: &Arc<Cluster>) -> bool {
        let mut any = false;
        for process in self.runs.open() {
            any |= commands::interrupt(cluster, process);
            self.runs.end(process);
        }
        any
    }

    /// Starts a run, which goes on by itself.
    fn run(&self, cluster: &Arc<Cluster>, order: &Order) -> JoinHandle<Ended> {
        let (process, client) = commands::begin(cluster, restart::AGENT);
        cluster.look(|state| self.runs.begin(process, order, &state.mirror));
        let (cluster, runs, options) = (cluster.clone(), self.runs.clone(), order.options());
        tokio::spawn(async move {
            let (noted, counted) = (cluster.clone(), runs.clone());
            let note = move |line: &str| {
                if line.ends_with(": restarting\n") {
                    counted.requests(process);
                }
                noted.look(|state| {
                    let at = state.elapsed();
                    let text = format!("{process} says {}", line.trim_end());
                    state.trace.note(at, &text);
                });
            };
            let said = note.clone();
            let say = move |line: &str| -> anyhow::Result<()> {
                said(line);
                Ok(())
            };
            let workload = Order::workload();
            let command = restart::restart(&workload, &options, &client, &say);
            let ended = commands::ended(&cluster, process, command).await;
            match &ended {
                Some(Ok(line)) => note(line),
                Some(Err(error)) => note(&format!("error: {error:#}")),
                None => note("nothing more"),
            }
            runs.end(process);
            let run = runs.of(process).filter(|_| matches!(ended, Some(Ok(_))));
            cluster.look(|state| {
                if state.is_judged() && state.violation.is_none() {
                    state.violation = run.and_then(|run| run.judge_success(process, &state.mirror));
                }
            });
            ended
        })
    }
}
