//! What a node's agent reads of a pod's spec.

use std::time::Duration;

use serde_json::Value;

use super::command::{self, Ending};
use super::config::{self, Need};
use super::environment;
use super::version::Version;
use crate::object::at;

/// How often a probe runs that does not say, in seconds.
const PERIOD: u64 = 10;

/// When and how long a container runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Runs to its end before the next begins.
    Init,
    /// An init container that always restarts: begins in its turn and stays.
    Sidecar,
    Main,
    /// Added to a pod that exists: begins at once, and never again. Nothing waits for it.
    Ephemeral,
}

/// Whether ended containers begin again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RestartPolicy {
    Always,
    OnFailure,
    Never,
}

impl RestartPolicy {
    pub(super) fn of(pod: &Value) -> Self {
        match at(pod, "/spec/restartPolicy").and_then(Value::as_str) {
            Some("Never") => Self::Never,
            Some("OnFailure") => Self::OnFailure,
            _ => Self::Always,
        }
    }
}

/// The specification of a container.
#[derive(Clone, Debug)]
pub(super) struct ContainerSpec<'a> {
    /// All of it.
    pub(super) object: &'a Value,
    pub(super) name: &'a str,
    pub(super) image: &'a str,
    pub(super) role: Role,
    /// From the start to the first probes. Probes pass unless a stage fails them.
    pub(super) startup_delay: Duration,
    pub(super) readiness_delay: Duration,
    /// How long the node reports the probes of the container before it.
    pub(super) inherits: Option<Duration>,
    /// The version of the node that runs it.
    pub(super) version: Version,
    /// How it ends by itself, if it does.
    pub(super) ends: Option<Ending>,
    /// How long a `preStop` hook sleeps.
    pub(super) pre_stop: Duration,
    /// Requests and limits.
    pub(super) resources: &'a Value,
    /// The resources another amount of which takes a restart.
    pub(super) restarts_for: Vec<&'a str>,
    /// What a process that begins now reads of the pod's labels and annotations.
    pub(super) environment: Vec<(String, String)>,
    /// All of the environment of a process that begins now, in order; empty where none begins.
    pub(super) variables: Vec<(String, String)>,
    /// What has to be there before it is created.
    pub(super) needs: Vec<Need<'a>>,
    /// What of it is not there, in words.
    pub(super) missing: Option<String>,
}

/// Init containers (sidecars among them), then the main ones, then the ephemeral ones, in the order of the spec,
/// for a node of this version.
pub(super) fn containers(pod: &Value, version: Version) -> Vec<ContainerSpec<'_>> {
    let list = |name: &str| {
        let items = pod.get("spec").and_then(|spec| spec.get(name)?.as_array());
        items.into_iter().flatten()
    };
    let init = list("initContainers").map(|one| {
        let sidecar = one.get("restartPolicy") == Some(&"Always".into());
        read(
            one,
            if sidecar { Role::Sidecar } else { Role::Init },
            pod,
            version,
        )
    });
    let main = list("containers").map(|one| read(one, Role::Main, pod, version));
    let ephemeral = list("ephemeralContainers").map(|one| read(one, Role::Ephemeral, pod, version));
    init.chain(main).chain(ephemeral).collect()
}

fn restarts_for(container: &Value) -> Vec<&str> {
    let policies = container.get("resizePolicy").and_then(Value::as_array);
    let restarts = |policy: &&Value| policy.get("restartPolicy") == Some(&"RestartContainer".into());
    let policies = policies.into_iter().flatten().filter(restarts);
    policies
        .filter_map(|policy| policy.get("resourceName")?.as_str())
        .collect()
}

fn read<'a>(container: &'a Value, role: Role, pod: &'a Value, version: Version) -> ContainerSpec<'a> {
    let text = |name: &str| container.get(name).and_then(Value::as_str).unwrap_or_default();
    let seconds = |pointer: &str| {
        let seconds = at(container, pointer).and_then(Value::as_u64);
        Duration::from_secs(seconds.unwrap_or_default())
    };
    let period = container.get("startupProbe").map(|probe| {
        let period = probe.get("periodSeconds").and_then(Value::as_u64);
        Duration::from_secs(period.unwrap_or(PERIOD))
    });
    ContainerSpec {
        object: container,
        name: text("name"),
        image: text("image"),
        role,
        startup_delay: seconds("/startupProbe/initialDelaySeconds"),
        readiness_delay: seconds("/readinessProbe/initialDelaySeconds"),
        inherits: period.filter(|_| version.inherits_probes()),
        version,
        ends: match role {
            Role::Init => Some(Ending { after: None, code: 0 }),
            // of a main container, that depends on whose pod it is
            Role::Sidecar | Role::Main => None,
            Role::Ephemeral => command::of(container),
        },
        pre_stop: seconds("/lifecycle/preStop/sleep/seconds"),
        resources: container.get("resources").unwrap_or(&Value::Null),
        restarts_for: restarts_for(container),
        environment: environment::read(container, pod),
        variables: Vec::new(),
        needs: config::needs(container),
        missing: None,
    }
}
