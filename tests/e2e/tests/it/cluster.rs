//! The cluster under test and the manager that all scenarios share.

use std::path::{Path, PathBuf};
use std::process::Command;

use kruise_e2e::audit::AuditLog;
use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::manager::{self, LONG_LEASE, Launch, Manager, kill_leftover};
use kruise_e2e::process;
use kruise_e2e::wait::{self, Patience};
use serde_json::{Value, json};

use crate::turn::Turn;

pub(crate) use kruise_e2e::wait::LIMIT;

/// Flags of the manager of [`scenario_gated`]: every gate that a test needs, and what shows soon what takes minutes
/// by itself.
pub(crate) const ALL_GATES: &[&str] = &[
    "--feature-gates=CloneSetPartitionRollback=true,CloneSetShortHash=true,DeletionProtectionForCRDCascadingGate=true,\
     EnablePodProbeMarkerOnServerless=true,ImagePullJobGate=true,InPlaceWorkloadVerticalScaling=true,\
     PodUnavailableBudgetUpdateGate=true,PreDownloadImageForInPlaceUpdate=true,\
     RecreatePodWhenChangeVCTInCloneSetGate=true,ResourceDistributionGate=true,ResourcesDeletionProtection=true,\
     SidecarTerminator=true,StatefulSetAutoResizePVCGate=true,StatefulSetStartOrdinal=true",
    "--nodeimage-creation-delay=1s",
    "--logging-format=json",
    "--v=0",
];

/// The flags of the manager that runs on the cluster, in the cluster's folder; empty for none.
const FLAGS: &str = "manager.flags";

/// The lease of the managers.
pub(crate) const LEASE: &str = "kruise-manager";

/// One scenario's namespace on the cluster, with a manager running.
pub(crate) struct Scenario {
    pub(crate) kubectl: Kubectl,
}

/// The cluster with a fresh namespace. Panics without a cluster: tests that need one are ignored unless asked for.
pub(crate) fn scenario(namespace: &str) -> Scenario {
    Scenario::begin(namespace, Turn::Shared)
}

/// As [`scenario`], with all feature gates on.
pub(crate) fn scenario_gated(namespace: &str) -> Scenario {
    Scenario::begin(namespace, Turn::Gated)
}

/// As [`scenario`], while no other scenario runs.
pub(crate) fn scenario_alone(namespace: &str) -> Scenario {
    Scenario::begin(namespace, Turn::Alone)
}

/// Kills the manager with SIGKILL and starts another with these `flags`, which need not lead to be ready:
/// it waits for the lease that the dead one had.
pub(crate) fn restart_manager(kubeconfig: &Path, flags: &[&str]) {
    replace(None, || start(kubeconfig, flags)).unwrap();
}

/// As [`restart_manager`], with the flags that all scenarios share; the dead one's lease is freed.
pub(crate) fn crash_manager(kubeconfig: &Path) {
    flag_manager(kubeconfig, &[]).unwrap();
}

/// The shared manager is stopped, and comes back however the scenario ends.
pub(crate) struct Stopped<'a>(&'a Path);

impl<'a> Stopped<'a> {
    pub(crate) fn shared(kubeconfig: &'a Path) -> Self {
        kill_leftover(&dir()).unwrap();
        Self(kubeconfig)
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        bring_back_manager(self.0);
    }
}

/// The shared manager has further flags, and gets its own back however the scenario ends.
pub(crate) struct Flagged<'a>(&'a Path);

impl<'a> Flagged<'a> {
    pub(crate) fn shared(kubeconfig: &'a Path, flags: &[&str]) -> Self {
        let flagged = Self(kubeconfig);
        flag_manager(kubeconfig, flags).unwrap();
        flagged
    }
}

impl Drop for Flagged<'_> {
    fn drop(&mut self) {
        bring_back_manager(self.0);
    }
}

/// As [`crash_manager`], for the end of a scenario, which may have failed: an error is printed and does not panic. The
/// next scenario tries again.
pub(crate) fn bring_back_manager(kubeconfig: &Path) {
    if let Err(error) = flag_manager(kubeconfig, &[]) {
        eprintln!("the manager does not come back: {error:#}");
    }
}

/// The folder of the cluster.
fn dir() -> PathBuf {
    variable("KRUISE_E2E_DIR").into()
}

/// Kills the manager of the cluster and starts one with these further flags, which leads at once.
fn flag_manager(kubeconfig: &Path, flags: &[&str]) -> anyhow::Result<()> {
    replace(Some(flags), || succeed(kubeconfig, flags))
}

/// Kills the manager of the cluster, if there is one. What `start` starts in its place outlives this process; a
/// scenario that needs these flags, if they are known, takes it as it is.
fn replace(flags: Option<&[&str]>, start: impl FnOnce() -> anyhow::Result<Manager>) -> anyhow::Result<()> {
    let dir = dir();
    kill_leftover(&dir)?;
    let noted = dir.join(FLAGS);
    std::fs::write(&noted, "unknown")?;
    start()?.leave_running();
    if let Some(flags) = flags {
        std::fs::write(&noted, flags.join(" "))?;
    }
    Ok(())
}

/// Makes sure that the manager of the cluster runs with these further flags.
fn ensure_manager(kubeconfig: &Path, flags: &[&str]) -> anyhow::Result<()> {
    let dir = dir();
    let lock = std::fs::File::create(dir.join("manager.lock"))?;
    // Scenarios of one turn begin side by side. The lock ends with the file's handle.
    lock.lock()?;
    let noted = std::fs::read_to_string(dir.join(FLAGS)).unwrap_or_default();
    let has_flags = noted == flags.join(" ") && manager::is_left_running(&dir)?;
    if has_flags {
        return Ok(());
    }
    flag_manager(kubeconfig, flags)
}

/// Starts a manager with the lease that all scenarios share and further `flags`. It leads at once: those before it
/// are dead, and when it is ready, and so has seen that somebody led, the lease of the last one is freed.
fn succeed(kubeconfig: &Path, flags: &[&str]) -> anyhow::Result<Manager> {
    let system = Kubectl::new(kubectl(), kubeconfig).in_namespace("kruise-system");
    let dead = holder(&system)?;
    let manager = start(kubeconfig, &[LONG_LEASE, flags].concat())?;
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")?;
    if dead.starts_with(&format!("{}_", host.trim())) {
        let path = "/spec/holderIdentity";
        let patch = json!([
            {"op": "test", "path": path, "value": dead},
            {"op": "replace", "path": path, "value": ""},
        ]);
        wait::until_true(
            "the lease of the dead manager is free or another's",
            LIMIT,
            || {
                if holder(&system)? != dead {
                    return Ok(true);
                }
                // Refused where another one has taken it since, which the next attempt sees.
                system.run(&["patch", "lease", LEASE, "--type=json", "-p", &patch.to_string()])?;
                Ok(false)
            },
        )?;
    }
    Ok(manager)
}

/// The current or last leader; empty if there is none.
fn holder(system: &Kubectl) -> anyhow::Result<String> {
    let lease = system.run(&["get", "lease", LEASE, "--ignore-not-found", "-o", "json"])?;
    let lease: Value = serde_json::from_str(&lease).unwrap_or_default();
    Ok(text(&lease, "/spec/holderIdentity"))
}

fn start(kubeconfig: &Path, flags: &[&str]) -> anyhow::Result<Manager> {
    let launch = Launch {
        command: vec![variable("KRUISE_E2E_BIN"), "manager".into()],
        kubeconfig: kubeconfig.into(),
        dir: dir(),
        flags: flags.iter().map(ToString::to_string).collect(),
        webhook_port: None,
    };
    let mut manager = launch.start_detached()?;
    manager.wait_ready(LIMIT)?;
    until_webhooks_answer(kubeconfig)?;
    Ok(manager)
}

/// What the shared manager has used of the processor since it was started.
pub(crate) fn manager_cpu_seconds() -> f64 {
    let file = manager::pid_file(&dir());
    let pid = process::read_pid_file(&file).unwrap().unwrap();
    process::cpu_seconds(pid).unwrap()
}

/// Waits until no match condition is wider than SidecarSets need: for a minute after one was created it may be.
pub(crate) fn until_narrow(kubectl: &Kubectl) {
    wait::until_true("match conditions are narrow again", wait::QUIET, || {
        let name = "kruise-mutating-webhook-configuration";
        let stored = kubectl.get("mutatingwebhookconfigurations", name)?;
        let widened = &stored["metadata"]["annotations"]["kruise.io/widened-match-conditions"];
        Ok(widened.is_null())
    })
    .unwrap();
}

/// Waits until the API server reaches the webhooks of the current manager: it uses another address a moment after
/// that is written.
pub(crate) fn until_webhooks_answer(kubeconfig: &Path) -> anyhow::Result<()> {
    let kubectl = Kubectl::new(kubectl(), kubeconfig).in_namespace("default");
    let set = web(1).to_string();
    wait::until_true("the webhooks answer", LIMIT, || {
        let (_, refusal) = kubectl.attempt(&["create", "--dry-run=server", "-f", "-"], &set)?;
        Ok(!refusal.contains("failed calling webhook") && !refusal.contains("conversion webhook"))
    })
}

/// The program.
pub(crate) fn kubectl() -> PathBuf {
    std::env::var_os("KRUISE_E2E_KUBECTL").map_or_else(|| "kubectl".into(), PathBuf::from)
}

/// A variable that `cargo xtask e2e` sets.
pub(crate) fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set; run `cargo xtask e2e`"))
}

/// Writes a kubeconfig with a token of a service account in the namespace of `kubectl` to a folder. `more` are flags of
/// `kubectl create token`.
pub(crate) fn kubeconfig_of_account(kubectl: &Kubectl, account: &str, more: &[&str], dir: &Path) -> PathBuf {
    let create = [&["create", "token", account, "--duration=1h"], more].concat();
    let token = kubectl.run(&create).unwrap();
    let config = kubectl.run(&["config", "view", "--raw", "-o", "json"]).unwrap();
    let mut config: Value = serde_json::from_str(&config).unwrap();
    for user in config["users"].as_array_mut().unwrap() {
        user["user"] = json!({"token": token.trim()});
    }
    std::fs::create_dir_all(dir).unwrap();
    let path = dir.join("kubeconfig.json");
    std::fs::write(&path, config.to_string()).unwrap();
    path
}

/// The audit log from now on, of all namespaces: for those that are alone, or look at requests for objects in none.
pub(crate) fn audit_log() -> AuditLog {
    AuditLog::from_now(variable("KRUISE_E2E_AUDIT_LOG")).unwrap()
}

impl Scenario {
    fn begin(namespace: &str, turn: Turn) -> Self {
        turn.check();
        let kubeconfig = PathBuf::from(variable("KRUISE_E2E_KUBECONFIG"));
        let flags = match turn {
            Turn::Gated => ALL_GATES,
            Turn::Shared | Turn::Alone => &[],
        };
        ensure_manager(&kubeconfig, flags).unwrap();
        let kubectl = Kubectl::new(kubectl(), kubeconfig).in_namespace(namespace);
        kubectl.run(&["create", "namespace", namespace]).unwrap();
        Self { kubectl }
    }

    /// Another namespace of this scenario, for what happens side by side in it.
    pub(crate) fn beside(&self, namespace: &str) -> Self {
        let kubectl = self.kubectl.in_namespace(namespace);
        kubectl.run(&["create", "namespace", namespace]).unwrap();
        Self { kubectl }
    }

    /// The audit log from now on, of requests for objects of this namespace: others share the cluster.
    pub(crate) fn audit_log(&self) -> AuditLog {
        audit_log().in_namespace(self.kubectl.namespace().unwrap())
    }

    /// Pods of `app=web` that are not going away.
    pub(crate) fn pods(&self) -> Vec<Value> {
        self.pods_of("web")
    }

    /// As [`Scenario::pods`], of any `app`.
    pub(crate) fn pods_of(&self, app: &str) -> Vec<Value> {
        let mut pods = self.kubectl.list("pods", &format!("app={app}")).unwrap();
        pods.retain(|pod| pod.pointer("/metadata/deletionTimestamp").is_none());
        pods
    }

    /// UIDs of [`Scenario::pods`], sorted.
    pub(crate) fn uids(&self) -> Vec<String> {
        self.uids_of("web")
    }

    /// As [`Scenario::uids`], of any `app`.
    pub(crate) fn uids_of(&self, app: &str) -> Vec<String> {
        let pods = self.pods_of(app);
        let mut uids: Vec<String> = pods.iter().map(|pod| text(pod, "/metadata/uid")).collect();
        uids.sort();
        uids
    }

    /// Waits until the status of `web` is up to date and its `fields` have these values.
    pub(crate) fn until_status(&self, fields: &Value) {
        self.until_status_of("web", fields);
    }

    /// As [`Scenario::until_status`], of any CloneSet.
    pub(crate) fn until_status_of(&self, name: &str, fields: &Value) {
        self.until_status_within(LIMIT, name, fields);
    }

    /// As [`Scenario::until_status_of`], for what takes longer than most.
    pub(crate) fn until_status_within(&self, limit: Patience, name: &str, fields: &Value) {
        wait::until_true(&format!("status of {name} has {fields}"), limit, || {
            let set = self.kubectl.get("clonesets", name)?;
            let wanted = fields.as_object().unwrap();
            let current = set.pointer("/status/observedGeneration") == set.pointer("/metadata/generation");
            Ok(current && wanted.iter().all(|(key, value)| set["status"][key] == *value))
        })
        .unwrap();
    }

    /// Patches the CloneSet `web` in its older version.
    pub(crate) fn patch(&self, patch: &Value) {
        self.kubectl
            .patch("clonesets.v1alpha1.apps.kruise.io", "web", patch)
            .unwrap();
    }
}

/// Does the pod have the condition Ready?
pub(crate) fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// What `kruise explain` prints.
pub(crate) fn explained(scenario: &Scenario, arguments: &[&str]) -> String {
    let output = Command::new(variable("KRUISE_E2E_BIN"))
        .arg("explain")
        .args(arguments)
        .arg("--kubeconfig")
        .arg(scenario.kubectl.kubeconfig())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A `v1alpha1` CloneSet `web` that updates in place.
pub(crate) fn web(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "CloneSet",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "updateStrategy": {"type": "InPlaceIfPossible", "maxUnavailable": "20%"},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "nginx:1", "env": [{"name": "A", "value": "b"}]}]},
            },
        },
    })
}

/// A patch of the container's image and variable.
pub(crate) fn container(image: &str, variable: &str) -> Value {
    let container = json!({"name": "main", "image": image, "env": [{"name": "A", "value": variable}]});
    json!({"spec": {"template": {"spec": {"containers": [container]}}}})
}

/// Text at a JSON pointer, empty if there is none.
pub(crate) fn text(object: &Value, pointer: &str) -> String {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}
