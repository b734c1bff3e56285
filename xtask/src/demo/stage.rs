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

impl Live {
    fn json(&mut self, line: &Line) -> Result<Value> {
        let text = self.run(line)?;
        if text.trim().is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(&text).with_context(|| format!("{line} did not print JSON"))
    }
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
        let set = Line::kubectl(["get", "clone", "web", "--ignore-not-found", "-o", "json"]);
        let set = self.json(&set)?;
        let pods = self.json(&Line::kubectl(["get", "pods", "-l", "app=web", "-o", "json"]))?;
        let pods = pods
            .get("items")
            .and_then(Value::as_array)
            .context("no list of pods")?;
        Ok(View {
            set,
            pods: pods.iter().map(Pod::read).collect::<Result<_>>()?,
        })
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
    use super::*;

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
