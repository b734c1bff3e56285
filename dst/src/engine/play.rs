//! Plays a scenario: builds the cluster, starts the managers, lets everything happen at its time, and waits for the
//! end.

use std::{collections::BTreeMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use anyhow::Context;
use futures::FutureExt;
use tokio::time::{Instant, sleep, sleep_until};

use super::{
    cluster::{Cluster, Setup},
    cost::Dearest,
    course::Settling,
    forgery::Altering,
    managers,
    network::link::PATIENCE,
    oracles::{Judge, Judges},
    panics,
    report::{Counters, Trace, WRITES},
    scenario::{Action, Edit, Scenario, Step, SuddenFault},
    subject::{Subjects, UsersOfPlay},
    user,
    verdict::{Judged, Violation},
};

/// A workload that waits for its users reports that once, after ten minutes: a status and an event.
const REPORT: u32 = 2;
/// Within this time after the last step all must be as it should be.
const CONVERGENCE: Duration = Duration::from_mins(12);
/// How often that is checked.
const INTERVAL: Duration = Duration::from_secs(2);
/// And where it is measured.
const CLOSE_INTERVAL: Duration = Duration::from_millis(200);
/// For so long nobody may write after that, but for their leases.
const QUIET: Duration = Duration::from_mins(6);
/// And in a brief scenario.
const BRIEF_QUIET: Duration = Duration::from_mins(1);
/// Writes, about, until all is as it should be, where no subject can estimate them: the first time.
const SETTLING: u32 = 50;

/// After the last step of a play that is altered.
const ALTERED: Duration = Duration::from_mins(1);
/// How often it is looked whether such a play has shown what it is to show.
const SHOWN: Duration = Duration::from_millis(500);

/// The outcome of a play.
#[derive(Debug)]
pub struct Played {
    /// Fingerprint of all that happened.
    pub hash: u64,
    /// The first thing that must not happen.
    pub violation: Option<Violation>,
    /// How much happened.
    pub counters: Counters,
    /// Whether the scenario counts.
    pub counts: bool,
    /// How long it took, in virtual time.
    pub lasted: Duration,
    /// The object that cost most while nothing changed.
    pub dearest: Dearest,
    /// How its end went.
    pub settling: Option<Settling>,
    /// What happened, if it was to be kept.
    pub lines: Vec<String>,
}

/// Whether to keep the text of what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Only the fingerprint.
    Hash,
    /// Every request.
    Lines,
}

/// One play of a scenario.
struct Play<'a> {
    subjects: Subjects,
    scenario: &'a Scenario,
    cluster: Arc<Cluster>,
    users: UsersOfPlay,
}

/// Plays a scenario once, and judges it.
pub fn play(subjects: Subjects, scenario: &Scenario, keep: Keep) -> anyhow::Result<Played> {
    replay(subjects, scenario, keep, Judged::Yes)
}

/// Plays a scenario once.
pub fn replay(subjects: Subjects, scenario: &Scenario, keep: Keep, judged: Judged) -> anyhow::Result<Played> {
    #[cfg(feature = "injected-bugs")]
    kruise_plan_kit::injected::inject(scenario.bug.as_deref().and_then(|name| subjects.bug(name)));
    let panics = panics::count();
    let runtime = runtime()?;
    let played = runtime.block_on(async {
        let play = Play::new(subjects, scenario, keep, judged, None)?;
        let violation = play.run().await?;
        anyhow::Ok(play.cluster.look(|state| Played {
            hash: state.trace.hash(),
            violation: state.violation.take().or(violation),
            counts: state.counts_with(0),
            counters: state.counters.clone(),
            lasted: play.cluster.start.elapsed(),
            dearest: state.costs.dearest().clone(),
            settling: state.course.settling(),
            lines: state.trace.lines.take().unwrap_or_default(),
        }))
    });
    drop(runtime);
    let mut played = played?;
    if panics::count() > panics {
        played.violation.get_or_insert_with(|| Violation {
            oracle: "nothing panics",
            what: "see standard error".into(),
        });
    }
    Ok(played)
}

/// Plays a scenario that is altered; the oracles that fail, each with the requests that were sent until then. The
/// play ends once all `wanted` have failed, if there are any.
pub fn altered(
    subjects: Subjects,
    scenario: &Scenario,
    altering: Altering,
    wanted: &[&str],
) -> anyhow::Result<BTreeMap<&'static str, u32>> {
    #[cfg(feature = "injected-bugs")]
    kruise_plan_kit::injected::inject(None);
    Violation::collect();
    let found = runtime()?.block_on(async {
        let is_forged = matches!(altering, Altering::Forged(_));
        let play = Play::new(subjects, scenario, Keep::Hash, Judged::Yes, Some(altering))?;
        let mut found = BTreeMap::new();
        let mut take = || {
            let requests = play.cluster.look(|state| state.counters.requests);
            for oracle in Violation::collected() {
                found.entry(oracle).or_insert(requests);
            }
            !wanted.is_empty() && wanted.iter().all(|oracle| found.contains_key(oracle))
        };
        let show = async {
            while !take() {
                sleep(SHOWN).await;
            }
            Ok(())
        };
        tokio::select! {
            biased;
            ended = play.run_altered(is_forged) => ended,
            shown = show => shown,
        }?;
        take();
        anyhow::Ok(found)
    });
    Violation::collect_no_more();
    found
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build()
}

impl<'a> Play<'a> {
    fn new(
        subjects: Subjects,
        scenario: &'a Scenario,
        keep: Keep,
        judged: Judged,
        altering: Option<Altering>,
    ) -> anyhow::Result<Self> {
        let mut definitions = Vec::new();
        let mut users = BTreeMap::new();
        let mut oracles = Vec::new();
        for name in scenario.subjects.keys() {
            let subject = subjects.named(name)?;
            let (user, judge) = (subject.begin)(scenario)?;
            let manifests = subject
                .definitions
                .iter()
                .map(|kind| kind.manifest("kruise-system"));
            definitions.extend(manifests);
            users.insert(subject.name, user);
            oracles.push(Judge {
                component: subject.component,
                owns: subject.owns,
                remembers_pods: subject.remembers_pods,
                reads: subject.reads,
                least: subject.least,
                is_large: subject.is_large(scenario),
                oracles: judge,
            });
        }
        let cluster = Cluster::new(Setup {
            seed: scenario.seed,
            definitions,
            resources: subjects.resources(scenario),
            selectors: subjects.selectors(),
            all_webhooks: subjects.use_all_webhooks(scenario),
            judges: Judges::new(subjects.controllers(), oracles),
            judged,
            altering,
            failing: scenario.failing.unwrap_or(0),
            trace: if keep == Keep::Lines {
                Trace::kept()
            } else {
                Trace::default()
            },
        })?;
        Ok(Self {
            subjects,
            scenario,
            cluster,
            users: Arc::new(users),
        })
    }

    /// Starts managers, and creates what users create first.
    async fn begin(&self) -> anyhow::Result<()> {
        let gates: Vec<_> = self.users.values().flat_map(|user| user.gates()).collect();
        let config = managers::config(&gates, self.scenario.failing.is_some())?;
        tokio::spawn(self.cluster.clone().pump());
        for _ in 0..self.scenario.managers.max(1) {
            let (cluster, users) = (self.cluster.clone(), self.users.clone());
            tokio::spawn(managers::supervise(cluster, users, config.clone()));
        }
        for user in self.users.values() {
            user.attend(&self.cluster);
        }
        for user in self.users.values() {
            user.prepare(&self.cluster).await;
        }
        for user in self.users.values() {
            user.create(&self.cluster).await;
        }
        Ok(())
    }

    /// Plays it altered: to its last step, or to the trials at its end. Nobody waits until all is as it should be.
    async fn run_altered(&self, has_trials: bool) -> anyhow::Result<()> {
        self.begin().await?;
        let begun = Instant::now();
        for step in &self.scenario.steps {
            sleep_until(begun + Duration::from_millis(step.at)).await;
            // A user may not understand what became of an object.
            let performed = AssertUnwindSafe(self.perform(step)).catch_unwind().await;
            if !matches!(performed, Ok(Ok(()))) {
                return Ok(());
            }
        }
        sleep(ALTERED).await;
        if has_trials {
            for probe in self.users.values().filter_map(|user| user.probe(&self.cluster)) {
                let verdict = probe.await;
                self.cluster.look(|state| state.found(verdict));
            }
        }
        Ok(())
    }

    async fn run(&self) -> anyhow::Result<Option<Violation>> {
        self.begin().await?;
        let mut violation = self.perform_steps().await?;
        for probe in self.users.values().filter_map(|user| user.probe(&self.cluster)) {
            if violation.is_none() && !self.is_violated() {
                violation = probe.await.or(self.settle(Instant::now()).await);
            }
        }
        if self.is_violated() {
            return Ok(None);
        }
        if self.scenario.failing.is_some() {
            return Ok(violation);
        }
        let lasts = if self.scenario.brief { BRIEF_QUIET } else { QUIET };
        Ok(match violation {
            Some(violation) => Some(violation),
            None => self.stay_quiet(lasts).await,
        })
    }

    fn is_violated(&self) -> bool {
        self.cluster.look(|state| state.violation.is_some())
    }

    /// Whether what is left of the scenario need not happen, because it counts once so many more writes are made.
    fn is_enough(&self, more: u32) -> bool {
        self.scenario.brief && self.cluster.look(|state| state.counts_with(more))
    }

    /// Performs the steps, and waits until all is as it should be.
    ///
    /// What is under way when users and faults stop makes many writes. So a brief scenario stops as soon as these are
    /// likely to make it count, and goes on where they did not.
    async fn perform_steps(&self) -> anyhow::Result<Option<Violation>> {
        let cluster = &self.cluster;
        let mut steps = self.scenario.steps.iter().peekable();
        let mut begun = Instant::now();
        let mut settling = SETTLING;
        loop {
            let mut end = 0;
            for step in steps.by_ref() {
                sleep_until(begun + Duration::from_millis(step.at)).await;
                if self.is_violated() {
                    return Ok(None);
                }
                self.perform(step).await?;
                end = end.max(step.ends_at());
                let is_enough = cluster.with(|state| {
                    // What else it needs is known sooner.
                    let is_near = self.scenario.brief && state.counts_with(WRITES);
                    is_near && state.counts_with(state.writes_to_come(settling))
                });
                if is_enough {
                    break;
                }
            }
            let writes = || cluster.look(|state| state.counters.writes);
            let before = writes();
            for release in steps.clone().filter(|step| self.subjects.is_release(step)) {
                self.perform(release).await?;
            }
            sleep_until(begun + Duration::from_millis(end)).await;
            cluster.look(|state| {
                state.faults.crash_after = None;
                state.costs.set_calm(self.scenario.failing.is_none());
            });
            let calm = Instant::now();
            let violation = self.settle(calm).await;
            cluster.look(|state| {
                let (from, to) = (calm - cluster.start, cluster.start.elapsed());
                state.course.settled(from, to);
            });
            let is_over = steps.peek().is_none() || self.is_enough(0);
            if violation.is_some() || is_over {
                return Ok(violation);
            }
            cluster.look(|state| state.costs.set_calm(false));
            begun += calm.elapsed();
            settling = writes() - before;
        }
    }

    /// Waits until all is as it should be.
    async fn settle(&self, calm: Instant) -> Option<Violation> {
        loop {
            let unfinished = self
                .cluster
                .with(|state| (state.violation.is_some(), state.unfinished()));
            match unfinished {
                (true, _) | (false, Ok(())) => return None,
                (false, Err(what)) if calm.elapsed() > CONVERGENCE => {
                    return Some(Violation {
                        oracle: "convergence",
                        what,
                    });
                }
                (false, Err(_)) if self.scenario.failing.is_some() => sleep(CLOSE_INTERVAL).await,
                (false, Err(_)) => sleep(INTERVAL).await,
            }
        }
    }

    /// Waits, and nothing may happen.
    async fn stay_quiet(&self, lasts: Duration) -> Option<Violation> {
        // Events are written one after the other: a lost reply delays those behind it until its timeout.
        sleep(PATIENCE * 2).await;
        let written = || self.cluster.look(|state| state.counters.writes);
        let mut before = written();
        if self.is_violated() {
            return None;
        }
        sleep(lasts).await;
        if (1..=REPORT).contains(&(written() - before)) {
            before = written();
            sleep(lasts).await;
        }
        let (writes, left) = self
            .cluster
            .with(|state| (state.counters.writes, state.unfinished()));
        if writes != before {
            let what = format!("{} writes while all is as it should be", writes - before);
            return Some(Violation {
                oracle: "quiet",
                what,
            });
        }
        left.err().map(|what| Violation {
            oracle: "convergence",
            what: format!("left again: {what}"),
        })
    }

    async fn perform(&self, step: &Step) -> anyhow::Result<()> {
        let cluster = &self.cluster;
        let at = cluster.start.elapsed();
        cluster.look(|state| state.trace.step(at, &format!("step {:?}", step.what)));
        let fired = match &step.what {
            Action::Edit(Edit { subject, change }) => {
                let user = self.users.get(subject.as_str());
                let user = user.with_context(|| format!("{subject} is edited and was never created"))?;
                if user.edit(cluster, change).await? {
                    cluster.look(|state| state.counters.edits += 1);
                }
                None
            }
            Action::Pod(action) => user::pod(cluster, action).await.then(|| action.name()),
            Action::NodeLost(lasts) => {
                user::lose_node(cluster, Duration::from_millis(*lasts));
                Some("node lost")
            }
            Action::NodeCrowded(lasts) => {
                user::crowd(cluster, Duration::from_millis(*lasts)).then_some("node crowded")
            }
            Action::During(lasts, fault) => {
                cluster.look(|state| {
                    let leader = state.leader();
                    state.faults.begin(fault, Duration::from_millis(*lasts), leader);
                });
                None
            }
            Action::Once(fault) => self.inject(fault),
        };
        if let Some(name) = fired {
            cluster.look(|state| state.counters.fired(name));
        }
        Ok(())
    }

    /// Injects a sudden fault; its name, if it has an effect at once.
    fn inject(&self, fault: &SuddenFault) -> Option<&'static str> {
        let cluster = &self.cluster;
        match fault {
            SuddenFault::Crash => cluster.look(|state| {
                let leader = state.leader()?;
                state.kill(leader);
                Some("crash")
            }),
            SuddenFault::CrashAfterWrites(writes) => {
                cluster.look(|state| state.faults.crash_after = Some(*writes));
                None
            }
            SuddenFault::Restart => cluster.look(|state| {
                let stop = state.leader().and_then(|leader| state.stops.get(&leader))?;
                stop.send_replace(true);
                Some("restart")
            }),
            SuddenFault::CutWatches(plural) => {
                let resources = self.subjects.resources(self.scenario);
                if let Some(of) = resources.into_iter().find(|one| one.plural == plural) {
                    cluster.cut(of);
                }
                None
            }
            SuddenFault::Compact => {
                cluster.with(|state| state.world.api().compact());
                for of in self.subjects.resources(self.scenario) {
                    cluster.cut(of);
                }
                None
            }
        }
    }
}
