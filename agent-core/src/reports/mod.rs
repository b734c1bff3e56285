//! Metadata of containers: what those of a pod run with is reported on the pod, and those whose environment is
//! outdated are stopped while their pod is updated in place. The kubelet starts them anew.
//!
//! A pod is looked at a second after it changed. Its containers are read, then the environments of those that have
//! not been reported; then the report is written, if it differs.

mod environment;
mod pod;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kruise_api::container_meta::ContainersMeta;
use kruise_api::names::RUNTIME_CONTAINERS_META;
use kruise_api::names::agent::CONTAINER_META;
use kruise_views::NodePodView;
use kube_cache::Version;
use serde_json::json;

use crate::annotations;
use crate::call::{Call, backoff, earlier};
use crate::runtime::Runtime;
use crate::stop::{Order, Stops};
use crate::{About, ContainerId, Effect, Failure, RuntimeContainer, WriteError};

use pod::{Draft, Pod, Step, is_outdated};

/// From a change to the look at it.
const DEBOUNCE: Duration = Duration::from_secs(1);
/// Pods that are read at a time.
const READS: usize = 5;
/// Containers that are stopped at a time.
const STOPS: usize = 10;
/// When `env` is given up in a container.
const ENV_TIMEOUT: Duration = Duration::from_secs(3);
/// Delays before `env` is run again where it failed. Some containers have no such program.
const FIRST_ENV: Duration = Duration::from_secs(3);
const LAST_ENV: Duration = Duration::from_mins(1);
/// Delays between stops of a container whose environment stays outdated.
const FIRST_STOP: Duration = Duration::from_secs(3);
const LAST_STOP: Duration = Duration::from_mins(10);
/// Longest wait for a report to be seen.
const EXPECTATION: Duration = Duration::from_secs(30);

/// The half of an agent that is about containers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reports {
    /// By UID.
    pods: BTreeMap<Box<str>, Pod>,
    /// Containers that it has stopped.
    stops: Vec<Stop>,
}

/// A container that is being stopped because its environment is outdated.
#[derive(Clone, Debug)]
struct Stop {
    container: ContainerId,
    /// UID of its pod.
    pod: Box<str>,
    /// Its name there.
    name: Box<str>,
}

impl Reports {
    /// A pod was listed or has changed.
    pub(crate) fn pod(&mut self, view: Arc<NodePodView>, initial: bool, call: &mut Call<'_>) {
        if view.deleting || !view.is_reported || view.statuses.is_empty() {
            self.pods.remove(&view.uid);
            return;
        }
        let uid = view.uid.clone();
        let is_ignored = initial && view.report.is_none() && !view.is_updating;
        let is_new = !self.pods.contains_key(&uid);
        let pod = self
            .pods
            .entry(uid)
            .or_insert_with(|| Pod::new(view.clone(), is_ignored));
        if let Some((version, _)) = pod.expected
            && Version::of(&*view).is_none_or(|seen| seen >= version)
        {
            pod.expected = None;
        }
        if !is_new && is_same(&pod.view, &view) {
            return;
        }
        pod.is_ignored &= is_new;
        pod.view = view;
        if !pod.view.is_updating {
            pod.stops.clear();
        }
        if pod.is_ignored || !pod.needs_read(call.config.env_from_metadata) {
            pod.due = None;
        } else {
            pod.due.get_or_insert(call.after(DEBOUNCE));
        }
    }

    pub(crate) fn pod_deleted(&mut self, uid: &str) {
        self.pods.remove(uid);
    }

    pub(crate) fn containers_read(
        &mut self,
        uid: &str,
        result: Result<Vec<RuntimeContainer>, Failure>,
        runtime: &mut Runtime,
        stops: &mut Stops,
        call: &mut Call<'_>,
    ) {
        let problem = runtime.answered(&result, call);
        let Some(pod) = self
            .pods
            .get_mut(uid)
            .filter(|pod| matches!(pod.step, Step::Reading))
        else {
            return;
        };
        pod.step = Step::Idle;
        let Ok(containers) = result else {
            pod.failures = pod.failures.saturating_add(1);
            pod.due = Some(call.retry_of_write(pod.failures));
            let view = &pod.view;
            let problem = problem.unwrap_or_default();
            call.info(format!(
                "containers of pod {}/{} cannot be read: {problem}",
                view.namespace, view.name
            ));
            return;
        };
        // Without one its containers are gone by now, which leads to a report later.
        let Some(name) = pod.runtime().map(str::to_owned) else {
            return;
        };
        let draft = pod.draft(&name, containers, call.config.env_from_metadata);
        for container in &draft.awaited {
            call.emit(Effect::ReadEnvironment {
                container: container.clone(),
                timeout: ENV_TIMEOUT,
            });
        }
        if draft.awaited.is_empty() {
            self.report(uid, draft, stops, call);
        } else {
            pod.step = Step::Environments(draft);
        }
    }

    pub(crate) fn environment_read(
        &mut self,
        container: &ContainerId,
        result: Result<Box<str>, Failure>,
        runtime: &mut Runtime,
        stops: &mut Stops,
        call: &mut Call<'_>,
    ) {
        let problem = runtime.answered(&result, call);
        let awaits =
            |pod: &Pod| matches!(&pod.step, Step::Environments(draft) if draft.awaited.contains(container));
        let Some((uid, pod)) = self.pods.iter_mut().find(|(_, pod)| awaits(pod)) else {
            return;
        };
        if let Some(problem) = problem {
            call.info(format!(
                "the environment of container {container} cannot be read: {problem}"
            ));
        }
        let uid = uid.clone();
        let Step::Environments(draft) = &mut pod.step else {
            return;
        };
        draft.answer(&pod.view, container, result.ok().as_deref());
        if draft.awaited.is_empty()
            && let Step::Environments(draft) = std::mem::replace(&mut pod.step, Step::Idle)
        {
            self.report(&uid, draft, stops, call);
        }
    }

    /// Writes a report if it differs, and stops what is outdated.
    fn report(&mut self, uid: &str, draft: Draft, stops: &mut Stops, call: &mut Call<'_>) {
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        pod.failures = 0;
        pod.env_failures = if draft.has_failed {
            pod.env_failures.saturating_add(1)
        } else {
            0
        };
        if draft.has_failed {
            let retry = call.after(backoff(FIRST_ENV, LAST_ENV, pod.env_failures));
            pod.due = earlier(pod.due, Some(retry));
        }
        write(pod, &draft.meta, call);
        if call.config.env_from_metadata {
            self.stop_outdated(uid, &draft, stops, call);
        }
    }

    fn stop_outdated(&mut self, uid: &str, draft: &Draft, stops: &mut Stops, call: &mut Call<'_>) {
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        let name = pod.runtime().unwrap_or_default().to_owned();
        for (entry, container) in draft.meta.containers.iter().zip(&draft.containers) {
            if !is_outdated(&pod.view, entry) {
                pod.stops.remove(&container.name);
                continue;
            }
            let id = ContainerId {
                runtime: name.as_str().into(),
                id: container.id.clone(),
            };
            if !container.is_running || stops.is_stopping(&id) {
                continue;
            }
            let (count, next) = pod.stops.get(&container.name).copied().unwrap_or((0, call.now));
            if next > call.now {
                pod.due = earlier(pod.due, Some(next));
            } else if self.stops.len() >= STOPS {
                pod.due = earlier(pod.due, Some(call.after(DEBOUNCE)));
            } else {
                let count = count.saturating_add(1);
                let next = call.after(backoff(FIRST_STOP, LAST_STOP, count));
                pod.stops.insert(container.name.clone(), (count, next));
                stops.begin(order(&id, container, &pod.view), call);
                self.stops.push(Stop {
                    container: id,
                    pod: uid.into(),
                    name: container.name.clone(),
                });
            }
        }
    }

    /// A container was stopped, or could not be for this reason.
    pub(crate) fn container_stopped(
        &mut self,
        container: &ContainerId,
        problem: Option<&str>,
        call: &mut Call<'_>,
    ) {
        let Some(at) = self.stops.iter().position(|stop| stop.container == *container) else {
            return;
        };
        let stop = self.stops.remove(at);
        let Some(problem) = problem else {
            return;
        };
        call.warn(format!("container {container} could not be stopped: {problem}"));
        // It is looked at again when it may be stopped again.
        if let Some(pod) = self.pods.get_mut(&stop.pod) {
            pod.due = earlier(pod.due, pod.stops.get(&stop.name).map(|(_, next)| *next));
        }
    }

    pub(crate) fn written(&mut self, uid: &str, result: Result<Box<str>, WriteError>, call: &mut Call<'_>) {
        let Some(pod) = self
            .pods
            .get_mut(uid)
            .filter(|pod| matches!(pod.step, Step::Writing))
        else {
            return;
        };
        pod.step = Step::Idle;
        match result {
            Ok(version) => {
                let version: Option<Version> = version.parse().ok();
                let is_seen =
                    Version::of(&*pod.view).is_none_or(|seen| version.is_none_or(|version| seen >= version));
                pod.expected = version
                    .filter(|_| !is_seen)
                    .map(|version| (version, call.after(EXPECTATION)));
                pod.failures = 0;
            }
            // Another pod, or none, has the name by now: the watch will say so.
            Err(WriteError::Conflict | WriteError::NotFound) => {}
            Err(WriteError::Failed(problem)) => {
                pod.failures = pod.failures.saturating_add(1);
                let view = &pod.view;
                call.warn(format!(
                    "the report on pod {}/{} could not be written: {problem}",
                    view.namespace, view.name
                ));
                pod.due = earlier(pod.due, Some(call.retry_of_write(pod.failures)));
            }
        }
    }

    /// Begins reads that are due, some at a time.
    pub(crate) fn advance(&mut self, runtime: &Runtime, call: &mut Call<'_>) {
        let is_busy = |pod: &&Pod| matches!(pod.step, Step::Reading | Step::Environments(_));
        let mut busy = self.pods.values().filter(is_busy).count();
        for (uid, pod) in &mut self.pods {
            if busy >= READS || pod.next_read().is_none_or(|next| next > call.now) {
                continue;
            }
            let Some(name) = pod.runtime().map(str::to_owned).filter(|name| runtime.has(name)) else {
                continue;
            };
            busy += 1;
            pod.due = None;
            pod.expected = None;
            pod.step = Step::Reading;
            call.emit(Effect::ReadContainers {
                pod: uid.clone(),
                runtime: name.into(),
            });
        }
    }

    pub(crate) fn next_timer(&self, runtime: &Runtime) -> Option<Timestamp> {
        let is_busy = |pod: &&Pod| matches!(pod.step, Step::Reading | Step::Environments(_));
        let has_room = self.pods.values().filter(is_busy).count() < READS;
        let can_read = |pod: &&Pod| has_room && pod.runtime().is_some_and(|name| runtime.has(name));
        self.pods
            .values()
            .filter(can_read)
            .filter_map(Pod::next_read)
            .min()
    }
}

/// How a container with an outdated environment is stopped.
fn order(id: &ContainerId, container: &RuntimeContainer, pod: &NodePodView) -> Order {
    Order {
        container: id.clone(),
        about: About::Container {
            namespace: pod.namespace.clone(),
            pod: pod.name.clone(),
            uid: pod.uid.clone(),
            container: container.name.clone(),
        },
        component: CONTAINER_META,
        message: format!(
            "Stopping container {}: its environment differs from the labels and annotations of its pod",
            container.name
        ),
        grace: Duration::from_secs(annotations::grace(container)),
        hook: annotations::hook(container, pod.ip.as_deref()),
    }
}

/// Writes a report if it differs from what is stored.
fn write(pod: &mut Pod, meta: &ContainersMeta, call: &mut Call<'_>) {
    let Ok(text) = serde_json::to_string(meta) else {
        return;
    };
    if meta.containers.is_empty() || pod.view.report.as_deref() == Some(&text) {
        return;
    }
    pod.step = Step::Writing;
    let view = &pod.view;
    call.emit(Effect::PatchPodStatus {
        namespace: view.namespace.clone(),
        name: view.name.clone(),
        uid: view.uid.clone(),
        patch: json!({"metadata": {"uid": view.uid, "annotations": {RUNTIME_CONTAINERS_META: text}}}),
    });
}

/// Returns whether two views of a pod differ in nothing or in their resource versions only.
fn is_same(one: &NodePodView, other: &NodePodView) -> bool {
    let with_the_version_of_one = NodePodView {
        resource_version: one.resource_version.clone(),
        ..other.clone()
    };
    *one == with_the_version_of_one
}
