//! How calls are begun and answered.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::call::{Answer, Call, CallId, Exec, Output, Version};
use super::containers::{Container, ContainerState, ContainerStatus, labels};
use super::node::Fault;
use super::{Error, Pending, Registries, Work, exec};
use crate::api::Api;
use crate::nodes::{Nodes, identity, time::later};

impl Nodes {
    /// Makes a call.
    pub(crate) fn call_runtime(&mut self, api: &Api, node: &str, call: Call, now: Timestamp) -> CallId {
        self.runtimes.calls += 1;
        self.runtimes.news += 1;
        let id = CallId(self.runtimes.calls);
        let latency = match self.runtimes.nodes.get(node) {
            Some(known) if !known.is_away => known.latency,
            _ => {
                let why = "connection error: dial unix /run/containerd/containerd.sock: connect: connection refused";
                self.runtimes.answer(id, Err(Error::Unavailable(why.into())));
                return id;
            }
        };
        let (work, end) = self.begin(api, node, call, now);
        let due = end.map(|end| later(end, latency));
        let pending = Pending {
            node: node.to_owned(),
            work,
        };
        self.runtimes.pending.insert(id, pending);
        self.runtimes.timers.set(id, due);
        self.answer_due(api, now);
        id
    }

    fn begin(&mut self, api: &Api, node: &str, call: Call, now: Timestamp) -> (Work, Option<Timestamp>) {
        match call {
            Call::PullImage(pull) => self.runtimes.begin_pull(node, pull, now),
            Call::ExecSync(exec) => self.begin_command(api, node, exec, now),
            Call::StopContainer { container, grace } => {
                let stopped = self.stop_container(api, node, &container, grace, now);
                match stopped {
                    Ok(until) => (Work::Answer(Ok(Answer::Stopped)), Some(until)),
                    Err(error) => (Work::Answer(Err(error)), Some(now)),
                }
            }
            Call::Version => (Work::Answer(Ok(Answer::Version(version()))), Some(now)),
            Call::ListImages => (Work::ListImages, Some(now)),
            Call::ImageStatus(image) => (Work::ImageStatus(image), Some(now)),
            Call::ImageFsInfo => (Work::ImageFsInfo, Some(now)),
            Call::ListContainers(wanted) => (Work::ListContainers(wanted), Some(now)),
            Call::ContainerStatus(id) => (Work::ContainerStatus(id), Some(now)),
        }
    }

    fn begin_command(&self, api: &Api, node: &str, exec: Exec, now: Timestamp) -> (Work, Option<Timestamp>) {
        let refused = |error| (Work::Answer(Err(error)), Some(now));
        let Some(found) = self.kubelets.find_container(api, node, &exec.container, now) else {
            return refused(not_found(&exec.container));
        };
        let state = found.status.container.state;
        if state != ContainerState::Running {
            return refused(not_running(&exec.container, state));
        }
        let (output, takes) = exec::run(&exec, found.environment);
        let limit = Some(exec.timeout).filter(|limit| !limit.is_zero());
        let is_late = limit.is_some_and(|limit| takes.is_none_or(|takes| takes > limit));
        let takes = if is_late { limit } else { takes };
        let work = Work::Command {
            container: exec.container,
            output,
            is_late,
        };
        (work, takes.map(|takes| later(now, takes)))
    }

    /// Signals a container; returns when its process has ended.
    fn stop_container(
        &mut self,
        api: &Api,
        node: &str,
        id: &str,
        grace: Duration,
        now: Timestamp,
    ) -> Result<Timestamp, Error> {
        let found = self.kubelets.find_container(api, node, id, now);
        let found = found.ok_or_else(|| not_found(id))?;
        if found.status.container.state != ContainerState::Running {
            return Ok(now);
        }
        let (key, at) = (found.pod.clone(), found.at);
        let until = self.kubelets.signal(&key, at, grace, now).unwrap_or(now);
        self.runtimes.stir([key], now);
        Ok(until)
    }

    pub(crate) fn take_answers(&mut self) -> Vec<(CallId, Result<Answer, Error>)> {
        std::mem::take(&mut self.runtimes.answers)
    }

    /// The answers to some calls only. The others stay.
    #[cfg(feature = "http")]
    pub(crate) fn take_answers_to(
        &mut self,
        is_wanted: impl Fn(CallId) -> bool,
    ) -> Vec<(CallId, Result<Answer, Error>)> {
        let answers = &mut self.runtimes.answers;
        answers.extract_if(.., |(id, _)| is_wanted(*id)).collect()
    }

    /// Counts calls, answers and faults.
    #[cfg(feature = "http")]
    pub(crate) fn runtime_news(&self) -> u64 {
        self.runtimes.news
    }

    /// Ends a call early.
    pub(crate) fn cancel_runtime_call(&mut self, id: CallId) {
        if self.runtimes.pending.contains_key(&id) {
            let why = "context canceled".to_owned();
            self.runtimes.answer(id, Err(Error::Cancelled(why)));
        }
    }

    /// Answers the calls whose time has come.
    pub(in crate::nodes) fn answer_due(&mut self, api: &Api, now: Timestamp) {
        while let Some(id) = self.runtimes.timers.pop(now) {
            if let Some(Pending { node, work }) = self.runtimes.pending.remove(&id) {
                let result = self.end(api, &node, work, now);
                self.runtimes.answer(id, result);
            }
        }
    }

    fn end(&mut self, api: &Api, name: &str, work: Work, now: Timestamp) -> Result<Answer, Error> {
        let node = self.runtimes.nodes.get(name);
        let node = node.ok_or_else(|| Error::Unavailable("the node is gone".into()))?;
        match work {
            Work::ListImages => Ok(Answer::Images(node.images.list(now))),
            Work::ImageStatus(image) => Ok(Answer::Image(node.images.image(&image, now))),
            Work::ImageFsInfo => {
                let images = node.images.bytes(now);
                Ok(Answer::ImageFsInfo(node.disk.filesystem(images)))
            }
            Work::ListContainers(wanted) => Ok(Answer::Containers(self.list(api, name, &wanted, now))),
            Work::ContainerStatus(id) => {
                let found = self.kubelets.find_container(api, name, &id, now);
                let found = found.ok_or_else(|| not_found(&id))?;
                let status = self.with_image(name, found.status, now);
                Ok(Answer::Container(Box::new(status)))
            }
            Work::Pull(transfer) => self.runtimes.end_pull(name, transfer, now),
            Work::Command {
                container,
                output,
                is_late,
            } => {
                let found = self.kubelets.find_container(api, name, &container, now);
                if found.is_none_or(|one| one.status.container.state != ContainerState::Running) {
                    return Ok(Answer::Output(Output {
                        exit_code: KILLED,
                        ..Output::default()
                    }));
                }
                if is_late {
                    return Err(timed_out(&container));
                }
                Ok(Answer::Output(output))
            }
            Work::Answer(result) => result,
        }
    }

    fn list(
        &self,
        api: &Api,
        node: &str,
        wanted: &BTreeMap<String, String>,
        now: Timestamp,
    ) -> Vec<Container> {
        let uid = wanted.get(labels::POD_UID).map(String::as_str);
        let all = self.kubelets.list_containers(api, node, uid, now).into_iter();
        let all = all.map(|found| self.with_image(node, found.status, now).container);
        let is_wanted = |one: &Container| {
            let mut wanted = wanted.iter();
            wanted.all(|(key, value)| one.labels.get(key) == Some(value))
        };
        all.filter(is_wanted).collect()
    }

    /// Writes the id of its image into a container.
    fn with_image(&self, node: &str, mut status: ContainerStatus, now: Timestamp) -> ContainerStatus {
        let images = self.runtimes.nodes.get(node).map(|node| &node.images);
        let digest = images.and_then(|images| images.find(&status.container.image, now));
        status.container.image_ref = digest.map(identity::config_digest).unwrap_or_default();
        status
    }

    /// Changes what registries have.
    pub(crate) fn change_registries(&mut self, change: impl FnOnce(&mut Registries), now: Timestamp) {
        change(&mut self.runtimes.options.registries);
        self.runtimes.review_transfers(now);
        self.runtimes.news += 1;
        let waiting = self.kubelets.unpulled();
        self.runtimes.stir(waiting, now);
    }

    /// Injects a fault; returns whether there was something to do.
    pub(crate) fn inject_fault(&mut self, name: &str, fault: Fault, now: Timestamp) -> bool {
        self.runtimes.news += 1;
        let Some(node) = self.runtimes.nodes.get_mut(name) else {
            return false;
        };
        match fault {
            Fault::Away if node.is_away => return false,
            Fault::Away => {
                node.is_away = true;
                self.runtimes.break_calls(name);
                if self.up.remove(name) {
                    self.kubelets.silence(name);
                }
            }
            Fault::Back if !node.is_away => return false,
            Fault::Back => {
                node.is_away = false;
                self.runtimes.returned.insert(name.to_owned());
                self.runtimes.stir([], now);
            }
            Fault::Slow(latency) => node.latency = latency,
            Fault::DiskTaken(bytes) => node.disk.others = bytes,
            Fault::ImageCollected(image) => {
                let digest = node.images.find(&image, now);
                let mut used = self.kubelets.images_in_use(name);
                if used.any(|used| node.images.find(used, now) == digest) {
                    return false;
                }
                return node.images.remove(&image, now);
            }
        }
        true
    }
}

/// The exit code of a process that was killed.
const KILLED: i32 = 137;

fn not_found(container: &str) -> Error {
    Error::NotFound(format!(
        "an error occurred when try to find container {container:?}: not found"
    ))
}

fn timed_out(container: &str) -> Error {
    Error::TimedOut(format!(
        "failed to exec in container {container:?}: timeout exceeded: context deadline exceeded"
    ))
}

fn version() -> Version {
    Version {
        name: identity::RUNTIME.into(),
        version: "v2.1.5".into(),
        api_version: "v1".into(),
    }
}

fn not_running(container: &str, state: ContainerState) -> Error {
    let state = match state {
        ContainerState::Created => "CONTAINER_CREATED",
        ContainerState::Running => "CONTAINER_RUNNING",
        ContainerState::Exited => "CONTAINER_EXITED",
    };
    Error::Refused(format!(
        "failed to exec in container {container:?}: container is in {state} state"
    ))
}
