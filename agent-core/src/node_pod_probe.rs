//! The NodePodProbe of this node: which probes its agent runs, and what was reported of them.

use std::time::Duration;

use jiff::Timestamp;
use kruise_api::meta::null_as_default;
use kruise_api::podprobemarker::State;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::Handler;
use crate::hook::{self, Hook};

/// The NodePodProbe of this node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Wire")]
pub struct NodePodProbeView {
    /// Name: that of the node.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Version of the stored object.
    pub resource_version: Box<str>,
    /// Is it being deleted?
    pub deleting: bool,
    /// The pods that are probed.
    pub pods: Box<[ProbedPod]>,
    /// What was reported last; `None` before the first report.
    pub statuses: Option<Vec<PodProbeStatus>>,
}

impl kube_cache::Cached for NodePodProbeView {
    fn namespace(&self) -> &'static str {
        ""
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn resource_version(&self) -> &str {
        &self.resource_version
    }

    fn is_terminating(&self) -> bool {
        self.deleting
    }
}

/// A pod that is probed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbedPod {
    /// Namespace.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// Its probes.
    pub probes: Box<[ContainerProbe]>,
}

/// A probe of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerProbe {
    /// Name, unique in the pod.
    pub name: Box<str>,
    /// Name of the container.
    pub container: Box<str>,
    /// What is done and when, or why it cannot be done.
    pub probe: Result<Probe, Box<str>>,
}

/// What a probe does and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// What it does. The host is empty as long as the pod has no address.
    pub handler: Handler,
    /// From the start of the container to the first run.
    pub initial_delay: Duration,
    /// From one run to the next.
    pub period: Duration,
    /// When a run has failed for taking too long.
    pub timeout: Duration,
    /// Runs that succeed one after the other before that is the result.
    pub success_threshold: u32,
    /// Runs that fail one after the other before that is the result.
    pub failure_threshold: u32,
}

/// What is reported of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodProbeStatus {
    /// Namespace.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// UID.
    pub uid: Box<str>,
    /// One for each probe that has a result.
    #[serde(deserialize_with = "null_as_default")]
    pub probe_states: Vec<ProbeState>,
}

/// The result of a probe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProbeState {
    /// Name of the probe.
    pub name: Box<str>,
    /// The result.
    #[serde(deserialize_with = "null_as_default")]
    pub state: State,
    /// When this was found out, in whole seconds.
    #[serde(deserialize_with = "time", skip_serializing_if = "Option::is_none")]
    pub last_probe_time: Option<Timestamp>,
    /// When the state became another one, in whole seconds.
    #[serde(deserialize_with = "time", skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
    /// What the container answered, or why there is no answer.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "str::is_empty")]
    pub message: Box<str>,
}

/// A time; none if it cannot be read.
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let text = Option::<Box<str>>::deserialize(deserializer)?;
    Ok(text.and_then(|text| text.parse().ok()))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Wire {
    metadata: Metadata,
    spec: Option<Spec>,
    status: Option<Status>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: Box<str>,
    uid: Box<str>,
    resource_version: Box<str>,
    deletion_timestamp: Option<Value>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    #[serde(deserialize_with = "null_as_default")]
    pod_probes: Vec<Pod>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    pod_probe_statuses: Option<Vec<PodProbeStatus>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Pod {
    namespace: Box<str>,
    name: Box<str>,
    uid: Box<str>,
    #[serde(rename = "IP", deserialize_with = "null_as_default")]
    ip: Box<str>,
    #[serde(deserialize_with = "null_as_default")]
    probes: Vec<One>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct One {
    name: Box<str>,
    #[serde(deserialize_with = "null_as_default")]
    container_name: Box<str>,
    probe: Value,
}

/// The numbers of a probe; zero means 1.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Numbers {
    initial_delay_seconds: Option<i64>,
    period_seconds: Option<i64>,
    timeout_seconds: Option<i64>,
    success_threshold: Option<i64>,
    failure_threshold: Option<i64>,
}

impl From<Wire> for NodePodProbeView {
    fn from(wire: Wire) -> Self {
        let pods = wire.spec.unwrap_or_default().pod_probes.into_iter();
        Self {
            name: wire.metadata.name,
            uid: wire.metadata.uid,
            resource_version: wire.metadata.resource_version,
            deleting: wire.metadata.deletion_timestamp.is_some(),
            pods: pods.map(ProbedPod::from).collect(),
            statuses: wire.status.and_then(|status| status.pod_probe_statuses),
        }
    }
}

impl From<Pod> for ProbedPod {
    fn from(pod: Pod) -> Self {
        let ip = pod.ip;
        let probe = |one: One| ContainerProbe {
            probe: probe(&one.probe, &ip).map_err(Into::into),
            name: one.name,
            container: one.container_name,
        };
        Self {
            probes: pod.probes.into_iter().map(probe).collect(),
            namespace: pod.namespace,
            name: pod.name,
            uid: pod.uid,
        }
    }
}

/// # Errors
/// Why it cannot be run, in plain words.
fn probe(probe: &Value, ip: &str) -> Result<Probe, String> {
    let numbers = Numbers::deserialize(probe).map_err(|error| format!("it cannot be read: {error}"))?;
    let mut handler = match hook::hook(probe, &Value::Null, Some(ip))? {
        Some(Hook::Run(handler)) => handler,
        Some(Hook::Sleep(_)) | None => return Err("it has no command, httpGet or tcpSocket".to_owned()),
    };
    // Unlike hooks, probes reach nothing but their pod.
    if let Handler::Http { host, .. } | Handler::Tcp { host, .. } = &mut handler {
        *host = ip.into();
    }
    let number = |number: Option<i64>| {
        u32::try_from(number.unwrap_or_default())
            .unwrap_or_default()
            .max(1)
    };
    let seconds = |seconds| Duration::from_secs(number(seconds).into());
    Ok(Probe {
        handler,
        initial_delay: seconds(numbers.initial_delay_seconds),
        period: seconds(numbers.period_seconds),
        timeout: seconds(numbers.timeout_seconds),
        success_threshold: number(numbers.success_threshold),
        failure_threshold: number(numbers.failure_threshold),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(probe: &Value, ip: &str) -> Result<Probe, Box<str>> {
        let view: NodePodProbeView = serde_json::from_value(json!({
            "metadata": {"name": "n1", "uid": "u", "resourceVersion": "7"},
            "spec": {"podProbes": [{"name": "a", "namespace": "shop", "uid": "p", "IP": ip, "probes": [
                {"name": "m#p", "containerName": "c", "probe": probe}]}]},
        }))
        .unwrap();
        view.pods[0].probes[0].probe.clone()
    }

    #[test]
    fn numbers_that_are_missing_zero_or_negative_stand_for_one() {
        let exec = json!({"exec": {"command": ["true"]}, "periodSeconds": 0, "timeoutSeconds": -3});
        let probe = read(&exec, "").unwrap();
        let second = Duration::from_secs(1);
        assert_eq!(
            (probe.initial_delay, probe.period, probe.timeout),
            (second, second, second)
        );
        assert_eq!((probe.success_threshold, probe.failure_threshold), (1, 1));
        let all = json!({"exec": {"command": ["true"]}, "initialDelaySeconds": 4, "periodSeconds": 5,
            "timeoutSeconds": 6, "successThreshold": 7, "failureThreshold": 8});
        let probe = read(&all, "").unwrap();
        assert_eq!(
            [probe.initial_delay, probe.period, probe.timeout].map(|time| time.as_secs()),
            [4, 5, 6]
        );
        assert_eq!((probe.success_threshold, probe.failure_threshold), (7, 8));
    }

    #[test]
    fn requests_and_connections_go_to_the_pod() {
        let get = read(&json!({"httpGet": {"path": "/", "port": 80}}), "10.0.0.9").unwrap();
        assert!(
            matches!(get.handler, Handler::Http { host, scheme, .. } if &*host == "10.0.0.9" && &*scheme == "http")
        );
        let connect = read(&json!({"tcpSocket": {"port": 80}}), "").unwrap();
        assert!(matches!(connect.handler, Handler::Tcp { host, .. } if host.is_empty()));
        let elsewhere = json!({"httpGet": {"path": "/", "port": 80, "host": "192.0.2.1"}});
        let get = read(&elsewhere, "10.0.0.9").unwrap();
        assert!(matches!(get.handler, Handler::Http { host, .. } if &*host == "10.0.0.9"));
        let elsewhere = json!({"tcpSocket": {"port": 80, "host": "192.0.2.1"}});
        let connect = read(&elsewhere, "10.0.0.9").unwrap();
        assert!(matches!(connect.handler, Handler::Tcp { host, .. } if &*host == "10.0.0.9"));
    }

    #[test]
    fn a_probe_that_cannot_be_run_says_why() {
        for (broken, why) in [
            (json!(null), "it cannot be read"),
            (json!("x"), "it cannot be read"),
            (json!({}), "it has no command, httpGet or tcpSocket"),
            (json!({"exec": {}}), "it has no command, httpGet or tcpSocket"),
            (
                json!({"grpc": {"port": 1}}),
                "it has no command, httpGet or tcpSocket",
            ),
            (
                json!({"sleep": {"seconds": 1}}),
                "it has no command, httpGet or tcpSocket",
            ),
            (
                json!({"tcpSocket": {"port": "web"}}),
                "its port \"web\" is not known",
            ),
            (json!({"httpGet": {"port": 70000}}), "its port 70000 is not known"),
            (
                json!({"exec": {"command": ["a"]}, "periodSeconds": "5"}),
                "it cannot be read",
            ),
        ] {
            let problem = read(&broken, "10.0.0.9").unwrap_err();
            assert!(problem.starts_with(why), "{broken}: {problem}");
        }
    }

    #[test]
    fn statuses_are_read_and_written_as_they_are_stored() {
        let stored = json!([{"namespace": "shop", "name": "a", "uid": "p", "probeStates": [
            {"name": "m#p", "state": "Failed", "lastProbeTime": "2026-01-02T03:04:05Z",
             "lastTransitionTime": "2026-01-02T03:04:05Z", "message": "no"},
            {"name": "m#q", "state": "Unknown"}]}]);
        let view: NodePodProbeView = serde_json::from_value(json!({
            "metadata": {"name": "n1"}, "status": {"podProbeStatuses": stored}}))
        .unwrap();
        assert_eq!(serde_json::to_value(view.statuses.unwrap()).unwrap(), stored);
        let odd = json!({"metadata": {"name": "n1"}, "spec": null, "status": {"podProbeStatuses": [
            {"probeStates": null}, {"probeStates": [{"name": "a", "state": null, "lastProbeTime": "soon", "message": null}]}]}});
        let view: NodePodProbeView = serde_json::from_value(odd).unwrap();
        assert_eq!(view.statuses.unwrap()[1].probe_states[0].last_probe_time, None);
    }
}
