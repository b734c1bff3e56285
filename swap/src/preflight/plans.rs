//! What the manager would write, if it planned every object now.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kruise_frame::{config::Config, jitter::jitter};
use kruise_manager::{Host, process};
use kruise_plan_kit::{Plan, PodChange, ResourceId, Write, rollout::Course};
use kruise_runtime::{events::ObjectRef, metrics::Metrics, worker::DryRun};
use kube_cache::ObjectKey;
use prometheus_client::registry::Registry;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};

use super::{Check, Finding, cluster::Cluster};

/// Most pods that are named for one object.
const NAMED: usize = 3;

/// The result of the check.
pub(super) struct Plans {
    pub(super) check: Check,
    /// Pods of objects at rest that would change; `None` if not every object was planned.
    pub(super) pods: Option<usize>,
}

/// The plans of all objects, of which it is not yet known which objects move.
pub(super) struct Ended {
    collected: Arc<Collected>,
    /// Why not every object was planned.
    unfinished: Option<String>,
}

impl Ended {
    /// The result. `moving` are objects whose controller has something left to do.
    pub(super) fn result(self, moving: &BTreeSet<String>) -> Plans {
        self.collected.result(moving, self.unfinished)
    }
}

/// Plans every object once.
pub(super) async fn check(cluster: &Cluster, config: Config, limit: Duration) -> Ended {
    let collected = Arc::new(Collected::default());
    let (stop, stopping) = watch::channel(false);
    let host = Host {
        client: cluster.client.clone(),
        served: None,
        metrics: Metrics::register(&mut Registry::default(), &kruise_manager::metrics()),
        identity: "preflight".to_owned(),
        jitter: Arc::new(jitter),
        ready: None,
        dry_run: Some(collected.clone()),
        rehearsal: None,
        stop: stopping,
    };
    // Not called in a dry run.
    let open = |_, _, _| std::future::ready(Ok(JoinSet::new()));
    let ended = {
        let running = process(&config, host, open);
        let mut running = Box::pin(running);
        let planned = tokio::time::timeout(limit, collected.wait());
        let early = tokio::select! {
            biased;
            ended = &mut running => Some(ended),
            planned = planned => planned.err().map(|_| Err(anyhow::anyhow!("not every object was planned in {limit:?}"))),
        };
        stop.send_replace(true);
        if early.is_none() {
            // It has planned everything; how it ends says nothing more.
            let _ = running.await;
        }
        early
    };
    let unfinished = match ended {
        None => None,
        Some(Ok(())) => Some("the controllers ended early".to_owned()),
        Some(Err(error)) => Some(format!("{error:#}")),
    };
    Ended {
        collected,
        unfinished,
    }
}

/// The plan of one object, as far as it counts here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Planned {
    about: String,
    /// What happens to pods, by their names.
    pods: BTreeMap<String, String>,
    /// Pods of which only metadata or conditions are written.
    touched: usize,
    /// Has its rollout something left to do that it is allowed to do?
    is_rolling: bool,
    /// The update revision that OpenKruise reports and the one that this build computes, if they differ.
    revisions: Option<(String, String)>,
}

#[derive(Default)]
struct State {
    /// Controllers whose first pass has not ended; `None` before they begin.
    left: Option<usize>,
    planned: BTreeMap<(&'static str, ObjectKey), Planned>,
    failed: BTreeMap<(&'static str, ObjectKey), (String, String)>,
    objects: BTreeSet<(&'static str, ObjectKey)>,
}

/// Collects plans.
#[derive(Default)]
struct Collected {
    state: Mutex<State>,
    ended: Notify,
}

impl Collected {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until every controller has planned all its objects.
    async fn wait(&self) {
        loop {
            let notified = self.ended.notified();
            if self.state().left == Some(0) {
                return;
            }
            notified.await;
        }
    }

    fn result(&self, moving: &BTreeSet<String>, unfinished: Option<String>) -> Plans {
        let state = self.state();
        let mut findings: Vec<Finding> = unfinished
            .iter()
            .map(|why| Finding::unknown("plans", format!("are not complete: {why}")))
            .collect();
        let failed = state
            .failed
            .values()
            .map(|(about, error)| Finding::unknown(about, format!("cannot be planned: {error}")));
        findings.extend(failed);
        let is_moving = |planned: &Planned| planned.is_rolling || moving.contains(&planned.about);
        let mut pods = BTreeSet::new();
        for planned in state.planned.values() {
            let is_moving = is_moving(planned) && planned.revisions.is_none();
            findings.extend(finding(planned, is_moving));
            if !is_moving {
                pods.extend(planned.pods.keys());
            }
        }
        let is_complete = unfinished.is_none() && state.failed.is_empty();
        let touched: usize = state.planned.values().map(|planned| planned.touched).sum();
        let summary = format!(
            "{} objects planned; metadata or conditions of {touched} pods would be written",
            state.objects.len()
        );
        Plans {
            pods: is_complete.then_some(pods.len()),
            check: Check::new("plans", summary, findings),
        }
    }
}

/// What is to be said of a plan.
fn finding(planned: &Planned, is_moving: bool) -> Option<Finding> {
    let about = &planned.about;
    if let Some((theirs, ours)) = &planned.revisions {
        let text = format!("OpenKruise is at revision {theirs}, and this build would roll out {ours}");
        return Some(Finding::problem(about, text));
    }
    if planned.pods.is_empty() {
        return None;
    }
    let number = planned.pods.len();
    let named: Vec<String> = planned
        .pods
        .iter()
        .take(NAMED)
        .map(|(pod, what)| format!("{pod}: {what}"))
        .collect();
    let rest = number.saturating_sub(NAMED);
    let more = if rest == 0 {
        String::new()
    } else {
        format!("; and {rest} more")
    };
    let list = format!("{}{more}", named.join("; "));
    Some(if is_moving {
        Finding::note(
            about,
            format!("its work in progress would go on with {number} pods: {list}"),
        )
    } else {
        Finding::problem(
            about,
            format!("is at rest, and {number} of its pods would change: {list}"),
        )
    })
}

/// What a write does to a pod; `None` if it leaves its containers alone.
fn change(write: &Write) -> Option<&'static str> {
    let change = write.intent().pod_change()?;
    Some(match change {
        PodChange::Created => "is created",
        PodChange::Deleted => "is deleted",
        PodChange::Resized => "is resized",
        PodChange::Updated => "is updated in place",
        PodChange::Ended => "is ended",
    })
}

impl Planned {
    fn of(key: &ObjectKey, about: Option<&ObjectRef>, plan: &Plan) -> Self {
        let kind = about.map_or("Pod", |about| &about.kind);
        let name = match &*key.namespace {
            "" => key.name.to_string(),
            namespace => format!("{namespace}/{}", key.name),
        };
        let mut planned = Self {
            about: format!("{kind} {name}"),
            ..Self::default()
        };
        for object in &plan.writes {
            let of_pods = object
                .steps
                .iter()
                .filter(|step| step.write.target().resource == ResourceId::PODS);
            let (mut is_touched, mut is_changed) = (false, false);
            for step in of_pods {
                is_touched = true;
                if let Some(what) = change(&step.write) {
                    is_changed = true;
                    let text = format!("{what} ({})", step.reason);
                    planned
                        .pods
                        .entry(step.write.target().name.clone())
                        .or_insert(text);
                }
            }
            planned.touched += usize::from(is_touched && !is_changed);
        }
        if let Some(stage) = &plan.stage {
            planned.is_rolling = stage.has_old && stage.course == Course::Moving;
            let differs = !stage.reported.is_empty() && stage.reported != stage.revision;
            planned.revisions = differs.then(|| (stage.reported.clone(), stage.revision.clone()));
        }
        planned
    }
}

impl DryRun for Collected {
    fn begins(&self, controllers: usize) {
        self.state().left = Some(controllers);
        if controllers == 0 {
            self.ended.notify_one();
        }
    }

    fn planned(&self, controller: &'static str, key: &ObjectKey, about: Option<&ObjectRef>, plan: &Plan) {
        let planned = Planned::of(key, about, plan);
        let mut state = self.state();
        let key = (controller, key.clone());
        state.failed.remove(&key);
        state.objects.insert(key.clone());
        let is_idle = planned.pods.is_empty() && planned.touched == 0 && planned.revisions.is_none();
        if is_idle {
            state.planned.remove(&key);
        } else {
            state.planned.insert(key, planned);
        }
    }

    fn failed(&self, controller: &'static str, key: &ObjectKey, about: Option<&ObjectRef>, error: &str) {
        let about = about.map_or_else(
            || format!("{controller} {key}"),
            |about| format!("{} {key}", about.kind),
        );
        self.state()
            .failed
            .insert((controller, key.clone()), (about, error.to_owned()));
    }

    fn gone(&self, controller: &'static str, key: &ObjectKey) {
        let mut state = self.state();
        let key = (controller, key.clone());
        state.planned.remove(&key);
        state.failed.remove(&key);
        state.objects.remove(&key);
    }

    fn first_pass_ended(&self, _: &'static str) {
        let mut state = self.state();
        state.left = state.left.map(|left| left.saturating_sub(1));
        if state.left == Some(0) {
            self.ended.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
