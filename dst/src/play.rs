//! Plays a history: builds the cluster, starts the managers, lets everything happen at its time, and waits for the end.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep, sleep_until};

use crate::{
    cluster::Cluster,
    deployment, enough,
    history::{Act, History, Start, Strike, Trouble, Watched, What},
    hooks,
    network::PATIENCE,
    oracle::Violation,
    panics, process,
    report::{Counters, Trace},
    sidecars, user,
};

/// By then after the last act all must be as it should be.
const CONVERGENCE: Duration = Duration::from_mins(12);
/// How often that is looked at.
const LOOK: Duration = Duration::from_secs(2);
/// For so long nobody may write after that, but for their leases.
const QUIET: Duration = Duration::from_mins(6);
/// And in a brief history.
const BRIEF_QUIET: Duration = Duration::from_mins(1);

/// What came of a history.
#[derive(Debug)]
pub struct Played {
    /// Fingerprint of all that happened.
    pub hash: u64,
    /// The first thing that must not happen.
    pub violation: Option<Violation>,
    /// How much happened.
    pub counters: Counters,
    /// How long it took, in virtual time.
    pub lasted: Duration,
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

/// Whether oracles judge what managers do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Judged {
    /// Every write, and the end.
    #[default]
    Yes,
    /// Only the end.
    No,
}

/// Plays a history once, and judges it.
pub fn play(history: &History, keep: Keep) -> anyhow::Result<Played> {
    replay(history, keep, Judged::Yes)
}

/// Plays a history once.
pub fn replay(history: &History, keep: Keep, judged: Judged) -> anyhow::Result<Played> {
    #[cfg(feature = "planted")]
    kruise_plan_kit::planted::plant(history.bug.as_deref().and_then(crate::planted::named));
    let panics = panics::count();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    let played = runtime.block_on(async {
        let trace = if keep == Keep::Lines {
            Trace::kept()
        } else {
            Trace::default()
        };
        let cluster = Cluster::new(history.seed, history.sidecars.clone(), trace, judged)?;
        let violation = live(&cluster, history).await?;
        anyhow::Ok(cluster.look(|state| Played {
            hash: state.trace.hash(),
            violation: state.violation.take().or(violation),
            counters: state.counters.clone(),
            lasted: cluster.start.elapsed(),
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

async fn live(cluster: &Arc<Cluster>, history: &History) -> anyhow::Result<Option<Violation>> {
    let config = process::config(history.set.goes_back)?;
    cluster.look(|state| state.oracles.goes_back = history.set.goes_back);
    tokio::spawn(cluster.clone().pump());
    for slot in 0..history.managers.max(1) {
        tokio::spawn(process::supervise(cluster.clone(), slot, config.clone()));
    }
    if history.set.hook {
        tokio::spawn(hooks::answer(cluster.clone(), history.seed));
    }
    if history.set.pre_delete.is_some() || history.set.pre_normal.is_some() {
        tokio::spawn(hooks::attend(cluster.clone(), history.seed, history.set.clone()));
    }
    user::create(cluster, history).await;
    let mut violation = happen(cluster, history).await;
    if cluster.look(|state| state.violation.is_some()) {
        return Ok(None);
    }
    if violation.is_none() && history.sidecars.is_some() {
        violation = sidecars::probe(cluster, CONVERGENCE).await;
        violation = violation.or(settle(cluster, Instant::now()).await);
    }
    let lasts = if history.brief { BRIEF_QUIET } else { QUIET };
    Ok(violation.or(quiet(cluster, lasts).await))
}

/// Lets everything happen, and waits until all is as it should be.
///
/// What is under way when users and faults stop makes many writes. So a brief history stops as soon as these are likely
/// to make it count, and goes on where they did not.
async fn happen(cluster: &Arc<Cluster>, history: &History) -> Option<Violation> {
    let mut acts = history.acts.iter().peekable();
    let mut begun = Instant::now();
    let mut settling = enough::SETTLING;
    loop {
        let mut end = 0;
        for act in acts.by_ref() {
            sleep_until(begun + Duration::from_millis(act.at)).await;
            if cluster.look(|state| state.violation.is_some()) {
                return None;
            }
            perform(cluster, &history.set, act).await;
            end = end.max(act.ends_at());
            if cluster.with(|state| state.will_be_enough(history, settling)) {
                break;
            }
        }
        let writes = || cluster.look(|state| state.counters.writes);
        let before = writes();
        for release in acts.clone().filter(|act| act.is_release()) {
            perform(cluster, &history.set, release).await;
        }
        sleep_until(begun + Duration::from_millis(end)).await;
        cluster.look(|state| state.crash_after = None);
        let calm = Instant::now();
        let violation = settle(cluster, calm).await;
        let is_over = acts.peek().is_none() || cluster.look(|state| state.is_enough(history, 0));
        if violation.is_some() || is_over {
            return violation;
        }
        begun += calm.elapsed();
        settling = writes() - before;
    }
}

/// Waits until all is as it should be.
async fn settle(cluster: &Arc<Cluster>, calm: Instant) -> Option<Violation> {
    loop {
        let unfinished = cluster.with(|state| (state.violation.is_some(), state.unfinished()));
        match unfinished {
            (true, _) | (false, Ok(())) => return None,
            (false, Err(what)) if calm.elapsed() > CONVERGENCE => {
                return Some(Violation {
                    oracle: "convergence",
                    what,
                });
            }
            (false, Err(_)) => sleep(LOOK).await,
        }
    }
}

/// Waits, and nothing may happen.
async fn quiet(cluster: &Arc<Cluster>, lasts: Duration) -> Option<Violation> {
    // Events are written one after the other: a lost reply holds those behind it up for as long as one waits for it.
    sleep(PATIENCE * 2).await;
    let before = cluster.look(|state| (state.violation.is_some(), state.counters.writes));
    if before.0 {
        return None;
    }
    sleep(lasts).await;
    let (writes, left) = cluster.with(|state| (state.counters.writes, state.unfinished()));
    if writes != before.1 {
        let what = format!("{} writes while all is as it should be", writes - before.1);
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

async fn perform(cluster: &Arc<Cluster>, set: &Start, act: &Act) {
    let at = cluster.start.elapsed();
    cluster.look(|state| state.trace.step(at, &format!("act {:?}", act.what)));
    match &act.what {
        What::Edit(edit) => {
            let accepted = if cluster.look(|state| state.has_deployment()) {
                deployment::edit(cluster, edit).await
            } else {
                user::edit(cluster, set, edit).await
            };
            if accepted {
                cluster.look(|state| state.counters.edits += 1);
            }
        }
        What::Sidecars(edit) => {
            let sidecars = cluster.look(|state| state.sidecars.clone());
            if let Some(sidecars) = sidecars
                && sidecars::edit(cluster, &sidecars, edit).await
            {
                cluster.look(|state| state.counters.edits += 1);
            }
        }
        What::Pod(what) => {
            if user::pod(cluster, what).await {
                cluster.look(|state| state.counters.fired(what.name()));
            }
        }
        What::NodeLost(lasts) => {
            user::lose_node(cluster, Duration::from_millis(*lasts));
            cluster.look(|state| state.counters.fired("node lost"));
        }
        What::Crowded(lasts) => {
            if user::crowd(cluster, Duration::from_millis(*lasts)) {
                cluster.look(|state| state.counters.fired("node crowded"));
            }
        }
        What::During(lasts, trouble) => {
            let until = Instant::now() + Duration::from_millis(*lasts);
            cluster.look(|state| {
                if *trouble == Trouble::Isolated {
                    state.isolated = state.leader();
                }
                state.troubles.push((until, trouble.clone()));
            });
        }
        What::Strike(strike) => strikes(cluster, strike),
    }
}

fn strikes(cluster: &Arc<Cluster>, strike: &Strike) {
    match strike {
        Strike::Crash => cluster.look(|state| {
            if let Some(leader) = state.leader() {
                state.counters.fired("crash");
                state.kill(leader);
            }
        }),
        Strike::CrashAfterWrites(writes) => cluster.look(|state| state.crash_after = Some(*writes)),
        Strike::Restart => cluster.look(|state| {
            if let Some(stop) = state.leader().and_then(|leader| state.stops.get(&leader)) {
                stop.send_replace(true);
                state.counters.fired("restart");
            }
        }),
        Strike::CutWatches(of) => cluster.cut(*of),
        Strike::Compact => {
            cluster.with(|state| state.world.api().compact());
            for of in Watched::ALL {
                cluster.cut(of);
            }
        }
    }
}
