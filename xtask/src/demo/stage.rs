//! Where the tour takes place: a cluster in which commands are run and looked at.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use kruise_e2e::audit::{AuditLog, Class, Counts, Entry, MANAGER};
use kruise_e2e::wait;
use serde_json::Value;

use super::line::{Line, Program};
use super::pods::Pod;
use crate::workspace;

/// The API server writes its audit log a little late, and a status or an event may follow what caused it.
const AFTERMATH: std::time::Duration = std::time::Duration::from_secs(2);
/// How the tour's own programs call themselves: what they ask is not the price of a step.
const SPECTATORS: [&str; 2] = ["kubectl", "kruise-explain"];

/// The CloneSet and its pods at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    /// Null before it exists.
    pub(crate) set: Value,
    /// By name.
    pub(crate) pods: Vec<Pod>,
}

impl View {
    /// Reads a list of both kinds.
    fn of(list: &Value) -> Result<Self> {
        let items = list
            .get("items")
            .and_then(Value::as_array)
            .context("not a list")?;
        let mut view = Self::default();
        for item in items {
            match item.get("kind").and_then(Value::as_str) {
                Some("CloneSet") => view.set = item.clone(),
                Some("Pod") => view.pods.push(Pod::read(item)?),
                _ => bail!("neither a CloneSet nor a pod: {item}"),
            }
        }
        Ok(view)
    }
}

/// Requests that a step caused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requests {
    /// Of the manager.
    pub(crate) manager: Counts,
    /// Of the control plane and the kubelets, in the CloneSet's namespace.
    pub(crate) others: u64,
}

/// What the tour needs of a cluster.
pub(crate) trait Stage {
    /// Runs a command and returns what it printed; fails if the command does.
    fn run(&mut self, line: &Line) -> Result<String>;
    /// What is there now.
    fn view(&mut self) -> Result<View>;
    /// Requests since the last call.
    fn requests(&mut self) -> Result<Requests>;
}

/// A real cluster.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) kubectl: PathBuf,
    pub(crate) kruise: PathBuf,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) audit: AuditLog,
}

impl Stage for Live {
    fn run(&mut self, line: &Line) -> Result<String> {
        let program = match line.program {
            Program::Kubectl => &self.kubectl,
            Program::Kruise => &self.kruise,
        };
        let output = Command::new(program)
            .args(&line.arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .current_dir(workspace::root())
            .output()
            .with_context(|| format!("cannot start {}", program.display()))?;
        if !output.status.success() {
            bail!("{line}: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        String::from_utf8(output.stdout).with_context(|| format!("{line} printed bytes that are not UTF-8"))
    }

    fn view(&mut self) -> Result<View> {
        let both = Line::kubectl(["get", "clone,pods", "-l", "app=web", "-o", "json"]);
        let list: Value =
            serde_json::from_str(&self.run(&both)?).context("kubectl get did not print JSON")?;
        View::of(&list)
    }

    fn requests(&mut self) -> Result<Requests> {
        wait::observe_for(AFTERMATH);
        Ok(sorted(&self.audit.read_new("")?))
    }
}

/// Who asked for what.
fn sorted(entries: &[Entry]) -> Requests {
    let (manager, others): (Vec<_>, Vec<_>) = entries
        .iter()
        .partition(|entry| entry.user_agent.starts_with(MANAGER));
    let is_spectator = |entry: &Entry| SPECTATORS.iter().any(|name| entry.user_agent.starts_with(name));
    let mut others = others;
    others.retain(|entry| entry.namespace == "default" && !is_spectator(entry));
    Requests {
        manager: Counts::of(manager),
        others: Counts::of(others).total(Class::Counted),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_holds_the_set_once_it_exists_and_its_pods() {
        let nothing = View::of(&json!({"kind": "List", "items": []})).unwrap();
        assert!(nothing.set.is_null() && nothing.pods.is_empty());
        let set = json!({"kind": "CloneSet", "metadata": {"name": "web"}});
        let pod = json!({"kind": "Pod", "metadata": {"name": "web-1", "uid": "u"}});
        let view = View::of(&json!({"items": [set, pod]})).unwrap();
        assert_eq!((view.set, view.pods.len()), (set, 1));
        assert!(View::of(&json!({"items": [{"kind": "Node"}]})).is_err() && View::of(&json!({})).is_err());
    }

    fn entry(agent: &str, verb: &str, resource: &str, namespace: &str) -> Entry {
        Entry {
            verb: verb.into(),
            resource: resource.into(),
            namespace: namespace.into(),
            name: "web-1".into(),
            code: 200,
            user_agent: agent.into(),
            uri: String::new(),
        }
    }

    #[test]
    fn the_tour_itself_and_other_namespaces_are_not_counted() {
        let requests = sorted(&[
            entry("kruise-manager/cloneset", "patch", "pods", "default"),
            entry("kruise-manager", "update", "leases", "kruise-system"),
            entry("kube-scheduler/v1.34", "create", "pods/binding", "default"),
            entry("kwok/v0.7.0", "patch", "pods/status", "default"),
            entry("kwok/v0.7.0", "watch", "pods", "default"),
            entry("kube-controller-manager", "create", "events", "kube-system"),
            entry("kubectl/v1.34", "get", "clonesets", "default"),
            entry("kruise-explain", "get", "clonesets", "default"),
        ]);
        assert_eq!(requests.manager.total(Class::Counted), 1);
        assert_eq!(requests.others, 2);
    }
}
