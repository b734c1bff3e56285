//! The runtime service.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::grpc::{Beginnings, Each, Whole};
use crate::messages::{self as wire, CONTAINER_STATUS, EXEC_SYNC, LIST_CONTAINERS, STOP_CONTAINER};
use crate::{Client, Error};

/// Labels that the kubelet gives each container.
pub mod labels {
    /// The pod's uid.
    pub const POD_UID: &str = "io.kubernetes.pod.uid";
    /// The pod's namespace.
    pub const POD_NAMESPACE: &str = "io.kubernetes.pod.namespace";
    /// The pod's name.
    pub const POD_NAME: &str = "io.kubernetes.pod.name";
    /// The container's name in its pod.
    pub const CONTAINER_NAME: &str = "io.kubernetes.container.name";
}

/// Where a container is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It did not start yet.
    Created,
    /// It runs.
    Running,
    /// It ended.
    Exited,
    /// The runtime does not know, or says what is not known here.
    Unknown,
}

/// A container in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// The runtime's id, without the runtime's name before it.
    pub id: String,
    /// Its name in the pod. Those of ended containers repeat.
    pub name: String,
    /// The kubelet's count of containers of this name in this pod, from 0.
    pub attempt: u32,
    /// Where it is in its life.
    pub state: State,
    /// When it was made: the newest of a name is the one that counts.
    pub created: Timestamp,
    /// Those of the kubelet; see [`labels`].
    pub labels: BTreeMap<String, String>,
    /// Those of the kubelet: what it wants to know of the container later.
    pub annotations: BTreeMap<String, String>,
}

/// A container, with what its runtime knows beyond a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerStatus {
    /// As in the list.
    pub container: Container,
    /// When it started, if it did.
    pub started: Option<Timestamp>,
    /// When it ended, if it did.
    pub finished: Option<Timestamp>,
    /// Meaningful once it ended.
    pub exit_code: i32,
    /// The reference in the pod.
    pub image: String,
    /// The runtime's reference to what the image was.
    pub image_ref: String,
    /// Why it is in its state, in CamelCase: `OOMKilled`.
    pub reason: String,
    /// The same for people.
    pub message: String,
}

/// A command in a container.
#[derive(Clone, Copy, Debug)]
pub struct Exec<'a> {
    /// The container's id.
    pub container: &'a str,
    /// Program and arguments.
    pub command: &'a [String],
    /// When the runtime ends it. Rounded up to whole seconds, at least one.
    pub timeout: Duration,
    /// How much of its output, and as much of its error output, is kept.
    pub output_bytes: usize,
}

/// What a command left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Its exit code; 0 for success.
    pub exit_code: i32,
    /// The beginning of its output.
    pub stdout: Vec<u8>,
    /// The beginning of its error output.
    pub stderr: Vec<u8>,
}

impl Client {
    /// The containers that have all these labels, ended ones included, in the runtime's order.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn containers(&self, labels: &[(&str, &str)]) -> Result<Vec<Container>, Error> {
        self.containers_with(labels, Some).await
    }

    /// What is kept of each of the containers that have all these labels. Of the others nothing is in memory for
    /// longer than it takes to look at one.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn containers_with<T>(
        &self,
        labels: &[(&str, &str)],
        mut keep: impl FnMut(Container) -> Option<T>,
    ) -> Result<Vec<T>, Error> {
        let pairs = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let request = wire::ListContainersRequest {
            filter: Some(wire::ContainerFilter {
                label_selector: pairs.collect(),
            }),
        };
        let add = |all: &mut Vec<T>, container: wire::Container| all.extend(keep(container.into()));
        let sink = Each::new(Vec::new(), add);
        let limit = self.limits.containers;
        self.channel.call(LIST_CONTAINERS, &request, limit, sink).await
    }

    /// The containers of the pod with this uid, ended ones included.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn containers_of_pod(&self, uid: &str) -> Result<Vec<Container>, Error> {
        self.containers(&[(labels::POD_UID, uid)]).await
    }

    /// The container of this id.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it is gone; see [`Error`].
    pub async fn container(&self, id: &str) -> Result<ContainerStatus, Error> {
        let request = wire::ContainerStatusRequest {
            container_id: id.to_owned(),
        };
        let sink = Whole::<wire::ContainerStatusResponse>::new();
        let limit = self.limits.containers;
        let found = self.channel.call(CONTAINER_STATUS, &request, limit, sink);
        let status = found.await?.status;
        status
            .map(ContainerStatus::from)
            .ok_or_else(|| Error::Malformed("there is no status of the container".into()))
    }

    /// Runs a command in a container and waits for its end. Dropping the future tells the runtime to end it.
    ///
    /// # Errors
    /// [`Error::TimedOut`] if the command took longer than it may; its output is lost. See [`Error`].
    pub async fn exec(&self, exec: &Exec<'_>) -> Result<Output, Error> {
        let seconds = seconds(exec.timeout).max(1);
        let request = wire::ExecSyncRequest {
            container_id: exec.container.to_owned(),
            cmd: exec.command.to_vec(),
            timeout: seconds,
        };
        let limit = beyond(seconds, self.limits.containers);
        let sink = Beginnings::new(exec.output_bytes);
        let (stdout, stderr, exit_code) = self.channel.call(EXEC_SYNC, &request, limit, sink).await?;
        Ok(Output {
            exit_code,
            stdout,
            stderr,
        })
    }

    /// Stops a container: asks it to end, and kills it after `grace`, which is rounded up to whole seconds.
    /// Stopping one that has ended succeeds.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn stop(&self, id: &str, grace: Duration) -> Result<(), Error> {
        let timeout = seconds(grace);
        let request = wire::StopContainerRequest {
            container_id: id.to_owned(),
            timeout,
        };
        let limit = beyond(timeout, self.limits.stop);
        let sink = Whole::<wire::Empty>::new();
        self.channel
            .call(STOP_CONTAINER, &request, limit, sink)
            .await
            .map(drop)
    }
}

/// How long to wait for the answer to what may take so many seconds.
fn beyond(seconds: i64, more: Duration) -> Duration {
    Duration::from_secs(seconds.unsigned_abs()).saturating_add(more)
}

/// Whole seconds that are not less.
fn seconds(duration: Duration) -> i64 {
    let more = u64::from(duration.subsec_nanos() > 0);
    i64::try_from(duration.as_secs().saturating_add(more)).unwrap_or(i64::MAX)
}

fn state(number: i32) -> State {
    match number {
        0 => State::Created,
        1 => State::Running,
        2 => State::Exited,
        _ => State::Unknown,
    }
}

/// Nanoseconds since the epoch, of which every number is a time.
fn timestamp(nanoseconds: i64) -> Timestamp {
    Timestamp::from_nanosecond(nanoseconds.into()).unwrap_or_default()
}

/// 0 is no time.
fn past(nanoseconds: i64) -> Option<Timestamp> {
    (nanoseconds != 0).then(|| timestamp(nanoseconds))
}

impl From<wire::Container> for Container {
    fn from(container: wire::Container) -> Self {
        let metadata = container.metadata.unwrap_or_default();
        Self {
            id: container.id,
            name: metadata.name,
            attempt: metadata.attempt,
            state: state(container.state),
            created: timestamp(container.created_at),
            labels: container.labels,
            annotations: container.annotations,
        }
    }
}

impl From<wire::ContainerStatus> for ContainerStatus {
    fn from(status: wire::ContainerStatus) -> Self {
        Self {
            started: past(status.started_at),
            finished: past(status.finished_at),
            exit_code: status.exit_code,
            image: status.image.map(|spec| spec.image).unwrap_or_default(),
            image_ref: status.image_ref,
            reason: status.reason,
            message: status.message,
            container: Container::from(wire::Container {
                id: status.id,
                metadata: status.metadata,
                state: status.state,
                created_at: status.created_at,
                labels: status.labels,
                annotations: status.annotations,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rounded_up_to_seconds() {
        assert_eq!(seconds(Duration::ZERO), 0);
        assert_eq!(seconds(Duration::from_millis(1)), 1);
        assert_eq!(seconds(Duration::from_secs(2)), 2);
        assert_eq!(seconds(Duration::MAX), i64::MAX);
    }

    #[test]
    fn times_and_states_of_any_number_are_read() {
        for number in [i64::MIN, -1, 0, 1, i64::MAX] {
            assert_eq!(timestamp(number).as_nanosecond(), i128::from(number));
        }
        assert_eq!((past(0), past(1)), (None, Some(timestamp(1))));
        assert_eq!(
            [state(0), state(1), state(2)],
            [State::Created, State::Running, State::Exited]
        );
        assert_eq!([state(3), state(-1), state(9)], [State::Unknown; 3]);
    }
}
