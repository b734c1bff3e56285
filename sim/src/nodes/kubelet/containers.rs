//! What the runtime of a node has of its pods' containers: the run of each, and those that it remembers of the runs
//! before.
//!
//! A process whose end has come has ended here, whether or not its node's agent has noticed yet.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::container::{Container, State, reason};
use super::pod::Pod;
use super::run::{Exit, Run};
use super::spec::{ContainerSpec, containers};
use super::{Kubelets, command};
use crate::api::Api;
use crate::nodes::identity::plain_container_id;
use crate::nodes::runtime::{self, ContainerState, ContainerStatus, annotations_of, labels_of};
use crate::nodes::time::later;
use crate::object::metadata_text;
use crate::store::{Key, ResourceId};

/// A container of the runtime.
#[derive(Clone, Debug)]
pub(in crate::nodes) struct Found<'a> {
    pub(in crate::nodes) pod: &'a Key,
    /// Its place among the containers of the pod.
    pub(in crate::nodes) at: usize,
    pub(in crate::nodes) status: ContainerStatus,
    /// What its process has read of the environment, if it has begun.
    pub(in crate::nodes) environment: &'a [(String, String)],
}

/// How a command ends: after which time, and with which code; `None` if it does not.
pub(in crate::nodes) fn command_end(words: &[String]) -> Option<(Duration, i64)> {
    let ending = command::of(&json!({"command": words}))?;
    Some((ending.after.unwrap_or_default(), ending.code))
}

/// One run of a container.
struct Shown<'a> {
    attempt: u32,
    created: Timestamp,
    started: Option<Timestamp>,
    /// When it ended, and with which code.
    end: Option<(Timestamp, i64)>,
    reason: &'a str,
    image: String,
    hash: u64,
    environment: &'a [(String, String)],
}

impl Kubelets {
    /// The containers of a node, or of one of its pods. Those whose pod was removed from the API are gone.
    pub(in crate::nodes) fn list_containers(
        &self,
        api: &Api,
        node: &str,
        uid: Option<&str>,
        now: Timestamp,
    ) -> Vec<Found<'_>> {
        let pods = self.pods_of(node);
        let pods = pods.filter(|(_, pod)| uid.is_none_or(|uid| pod.uid == uid));
        pods.flat_map(|(key, pod)| self.of_pod(api, key, pod, now))
            .collect()
    }

    /// The container of an id.
    pub(in crate::nodes) fn find_container(
        &self,
        api: &Api,
        node: &str,
        id: &str,
        now: Timestamp,
    ) -> Option<Found<'_>> {
        let has = |pod: &Pod| {
            let mut all = pod.containers.iter();
            all.any(|one| attempts(one).any(|attempt| plain_container_id(&pod.uid, &one.name, attempt) == id))
        };
        let (key, pod) = self.pods_of(node).find(|(_, pod)| has(pod))?;
        let mut all = self.of_pod(api, key, pod, now).into_iter();
        all.find(|found| found.status.container.id == id)
    }

    /// Tells the process of a container to end; returns when it does, if there is one.
    pub(in crate::nodes) fn signal(
        &mut self,
        key: &Key,
        at: usize,
        grace: Duration,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let container = self.pods.get_mut(key)?.containers.get_mut(at)?;
        container.signal(self.timings.container_stop, later(now, grace), now)
    }

    /// The images of a node's containers, those that ended and those that are about to begin included.
    pub(in crate::nodes) fn images_in_use(&self, node: &str) -> impl Iterator<Item = &str> {
        let all = self.pods_of(node).flat_map(|(_, pod)| &pod.containers);
        all.flat_map(|one| {
            let coming = one.is_coming().then_some(&one.image);
            let running = one.run.as_ref().map(|run| &run.image);
            let ended = [&one.exit, &one.last];
            let ended = ended.into_iter().flatten().map(|exit| &exit.image);
            coming.into_iter().chain(running).chain(ended).map(String::as_str)
        })
    }

    /// Pods with an image that could not be pulled.
    pub(in crate::nodes) fn unpulled(&self) -> Vec<Key> {
        let lacks = |one: &Container| matches!(one.state, State::Unpulled { .. });
        let waiting = self
            .pods
            .iter()
            .filter(|(_, pod)| pod.containers.iter().any(lacks));
        waiting.map(|(key, _)| key.clone()).collect()
    }

    fn pods_of(&self, node: &str) -> impl Iterator<Item = (&Key, &Pod)> {
        self.pods.iter().filter(move |(_, pod)| pod.node == node)
    }

    fn of_pod<'a>(&'a self, api: &Api, key: &'a Key, pod: &'a Pod, now: Timestamp) -> Vec<Found<'a>> {
        let id = ResourceId {
            group: "".into(),
            plural: "pods".into(),
        };
        let stored = api.store.get(&id, key).map(|stored| stored.value());
        let Some(object) = stored.filter(|object| metadata_text(object, "uid") == pod.uid) else {
            return Vec::new();
        };
        let specs = containers(&object, self.version(&object));
        let pairs = pod.containers.iter().zip(&specs).enumerate();
        let all = pairs.flat_map(|(at, (container, spec))| {
            let runs = self.runs(container, spec, now).into_iter();
            let object = &object;
            runs.map(move |run| Found {
                pod: key,
                at,
                environment: run.environment,
                status: status(run, object, spec),
            })
        });
        all.collect()
    }

    /// The runs of a container, the newest first.
    fn runs<'a>(&self, one: &'a Container, spec: &ContainerSpec<'_>, now: Timestamp) -> Vec<Shown<'a>> {
        let made = |since: Timestamp| {
            let before = since.checked_sub(self.timings.container_start);
            before.unwrap_or(since)
        };
        let coming = match one.state {
            State::Starting { until } => Some(Shown {
                attempt: next_attempt(one),
                created: made(until),
                started: None,
                end: None,
                reason: "",
                image: spec.image.to_owned(),
                hash: spec.version.plain_hash(spec),
                environment: &[],
            }),
            _ => None,
        };
        let running = one.run.as_ref().map(|run: &Run| {
            let end = match one.state {
                State::Stopping { until, code } => Some((until, code)),
                _ => run.end(&self.timings),
            };
            let end = end.filter(|(at, _)| *at <= now);
            Shown {
                attempt: one.restarts,
                created: made(run.since),
                started: Some(run.since),
                end,
                reason: end.map_or("", |(_, code)| reason(code)),
                image: run.image.clone(),
                hash: run.plain_hash,
                environment: &run.variables,
            }
        });
        let ended = [&one.exit, &one.last].into_iter().flatten();
        let ended = ended.map(|exit: &Exit| Shown {
            attempt: exit.run,
            created: made(exit.started),
            started: Some(exit.started),
            end: Some((exit.finished, exit.code)),
            reason: &exit.reason,
            image: exit.image.clone(),
            hash: exit.plain_hash,
            environment: &[],
        });
        coming.into_iter().chain(running).chain(ended).collect()
    }
}

/// The number of the run that follows.
fn next_attempt(one: &Container) -> u32 {
    one.restarts + u32::from(one.exit.is_some())
}

/// The numbers of the runs that are known.
fn attempts(one: &Container) -> impl Iterator<Item = u32> {
    let coming = matches!(one.state, State::Starting { .. }).then(|| next_attempt(one));
    let running = one.run.as_ref().map(|_| one.restarts);
    let ended = [&one.exit, &one.last];
    let ended = ended.into_iter().flatten().map(|exit| exit.run);
    coming.into_iter().chain(running).chain(ended)
}

fn status(run: Shown<'_>, pod: &Value, spec: &ContainerSpec<'_>) -> ContainerStatus {
    let uid = metadata_text(pod, "uid");
    ContainerStatus {
        container: runtime::Container {
            id: plain_container_id(uid, spec.name, run.attempt),
            name: spec.name.to_owned(),
            attempt: run.attempt,
            state: match (run.started, run.end) {
                (None, _) => ContainerState::Created,
                (Some(_), None) => ContainerState::Running,
                (Some(_), Some(_)) => ContainerState::Exited,
            },
            created: run.created,
            image: run.image,
            image_ref: String::new(),
            labels: labels_of(pod, spec.name),
            annotations: annotations_of(pod, spec.object, run.hash, run.attempt),
        },
        started: run.started,
        finished: run.end.map(|(at, _)| at),
        exit_code: run
            .end
            .map_or(0, |(_, code)| i32::try_from(code).unwrap_or(i32::MAX)),
        reason: run.reason.to_owned(),
    }
}
