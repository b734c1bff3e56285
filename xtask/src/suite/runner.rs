//! Runs tests on clusters, each as a process of its own, and judges them.

use std::process::Command;
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::group::{self, Ended, Output};
use super::schedule::{Next, Schedule};
use super::turns::Turn;
use crate::interrupt;

/// Longest time of one test. Waits inside of a test end sooner.
const LIMIT: Duration = Duration::from_mins(15);
/// More failed tests than these are no longer repeated, so nothing further begins either.
pub(super) const MOST_REPEATS: usize = 5;

/// A test that ended.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) test: String,
    pub(super) passed: bool,
    pub(super) took: Duration,
}

/// What became of all tests.
#[derive(Debug, Default)]
pub(super) struct Outcomes {
    pub(super) ended: Vec<Outcome>,
    pub(super) not_begun: Vec<String>,
}

impl Outcomes {
    /// The tests that failed.
    pub(super) fn failed(&self) -> impl Iterator<Item = &str> {
        self.ended
            .iter()
            .filter(|one| !one.passed)
            .map(|one| one.test.as_str())
    }
}

/// A test's process is made of a cluster, its name and its turn.
pub(super) struct Runner<'a, C> {
    pub(super) command: &'a (dyn Fn(&C, &str, Turn) -> Command + Sync),
    /// No test begins later.
    pub(super) begin_until: Instant,
}

/// Work and results, shared by the clusters.
struct Shared {
    schedule: Schedule,
    outcomes: Outcomes,
}

impl<C: Sync> Runner<'_, C> {
    /// Runs what the schedule has for these clusters. Errors are those of starting processes, and interrupts.
    pub(super) fn run(&self, schedule: Schedule, clusters: &[C]) -> Result<Outcomes> {
        let shared = Mutex::new(Shared {
            schedule,
            outcomes: Outcomes::default(),
        });
        std::thread::scope(|scope| {
            let shared = &shared;
            let threads: Vec<_> = clusters
                .iter()
                .enumerate()
                .map(|(number, cluster)| scope.spawn(move || self.serve(number, cluster, shared)))
                .collect();
            threads.into_iter().try_for_each(|thread| {
                let ended = thread.join();
                ended.map_err(|_panic| anyhow::anyhow!("a thread of the suite panicked"))?
            })
        })?;
        let shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(shared.outcomes)
    }

    /// Begins tests on one cluster until none is left for it.
    fn serve(&self, number: usize, cluster: &C, shared: &Mutex<Shared>) -> Result<()> {
        let (sender, ended) = mpsc::channel();
        std::thread::scope(|scope| {
            loop {
                let next = {
                    let mut shared = lock(shared);
                    if Instant::now() >= self.begin_until || interrupt::check().is_err() {
                        shared.give_up();
                    }
                    shared.schedule.next(number)
                };
                match next {
                    Next::Begin(test, turn) => {
                        let sender = sender.clone();
                        scope.spawn(move || self.test(cluster, test, turn, &sender));
                    }
                    Next::Wait => {
                        let outcome = ended.recv()??;
                        let mut shared = lock(shared);
                        shared.schedule.ended(number);
                        shared.outcomes.ended.push(outcome);
                        if shared.outcomes.failed().count() > MOST_REPEATS {
                            shared.give_up();
                        }
                    }
                    Next::Done => return interrupt::check(),
                }
            }
        })
    }

    fn test(&self, cluster: &C, test: String, turn: Turn, results: &Sender<Result<Outcome>>) {
        let begun = Instant::now();
        let mut command = (self.command)(cluster, &test, turn);
        let outcome = group::run(&mut command, begun + LIMIT, Output::Kept).map(|ended| {
            let outcome = Outcome {
                passed: has_passed(&ended),
                took: begun.elapsed(),
                test,
            };
            print(&outcome, &ended);
            outcome
        });
        // Nobody receives it only after another result was an error, which ends the suite.
        let _suite_ended = results.send(outcome);
    }
}

impl Shared {
    fn give_up(&mut self) {
        let not_begun = self.schedule.take_back();
        self.outcomes.not_begun.extend(not_begun);
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Did the one test of a process pass? libtest passes, too, if it finds no test of the name.
fn has_passed(ended: &Ended) -> bool {
    ended.status.success() && ended.output.lines().any(|line| line == "running 1 test")
}

fn print(outcome: &Outcome, ended: &Ended) {
    let Outcome { test, took, .. } = outcome;
    let seconds = took.as_secs_f64();
    if outcome.passed {
        println!("test {test} ... ok, {seconds:.1} s");
    } else {
        println!(
            "test {test} ... FAILED with {}, {seconds:.1} s\n{}",
            ended.status, ended.output
        );
    }
}

/// Prints which tests took longest.
pub(super) fn print_slowest(outcomes: &Outcomes, most: usize) {
    let mut ended: Vec<&Outcome> = outcomes.ended.iter().collect();
    ended.sort_by(|a, b| b.took.cmp(&a.took).then_with(|| a.test.cmp(&b.test)));
    println!("\nThe slowest tests:");
    for one in ended.iter().take(most) {
        println!("{:>6.1} s  {}", one.took.as_secs_f64(), one.test);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(tests: &[&str], begin_until: Instant) -> Outcomes {
        let command = |(): &(), test: &str, turn: Turn| {
            let mut command = Command::new("sh");
            let script = format!(
                "echo running 1 test; test {} != fails",
                test.trim_end_matches(char::is_numeric)
            );
            command.args(["-c", &script]).env("TURN", turn.name());
            command
        };
        let runner = Runner {
            command: &command,
            begin_until,
        };
        let tests = tests.iter().map(|test| ((*test).to_owned(), Turn::Shared));
        runner.run(Schedule::new(tests, 2, 1), &[(), ()]).unwrap()
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_mins(5)
    }

    #[test]
    fn every_test_ends_once_and_failed_ones_are_known() {
        let outcomes = outcomes(&["a", "fails", "b"], soon());
        assert_eq!(outcomes.ended.len(), 3);
        assert!(outcomes.not_begun.is_empty());
        assert_eq!(outcomes.failed().collect::<Vec<_>>(), ["fails"]);
    }

    #[test]
    fn no_test_begins_after_the_time_is_over_or_too_many_have_failed() {
        assert_eq!(outcomes(&["a", "b"], Instant::now()).not_begun, ["a", "b"]);
        let names: Vec<String> = (0..20).map(|number| format!("fails{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let outcomes = outcomes(&names, soon());
        // Each of two clusters may have begun one more.
        assert!(outcomes.failed().count() <= MOST_REPEATS + 2);
        assert_eq!(outcomes.failed().count() + outcomes.not_begun.len(), 20);
    }

    #[test]
    fn a_process_in_which_no_test_ran_has_not_passed() {
        let ended =
            |script: &str| group::run(Command::new("sh").args(["-c", script]), soon(), Output::Kept).unwrap();
        assert!(has_passed(&ended("echo running 1 test")));
        assert!(!has_passed(&ended("echo running 0 tests")));
        assert!(!has_passed(&ended("echo running 1 test; exit 101")));
    }
}
