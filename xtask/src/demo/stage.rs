//! Where the tour takes place: a real cluster, in which commands are run as they are printed.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kruise_e2e::audit::{AuditLog, Class, Counts, Entry, MANAGER};
use kruise_e2e::wait;
use kruise_tour::act::{Line, Program};
use kruise_tour::subject::Scope;
use kruise_tour::{Act, Requests, Stage, Subject, View};
use serde_json::Value;

use crate::{interrupt, workspace};

/// The folder with the manifests, from the workspace's root.
const MANIFESTS: &str = "tour/assets";

/// The API server writes its audit log a little late, and a status or an event may follow what caused it.
const AFTERMATH: Duration = Duration::from_secs(2);
/// User agents of the tour's own programs: their requests are not the cost of a step.
const SPECTATORS: [&str; 2] = ["kubectl", "kruise-explain"];

/// A real cluster.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) kubectl: PathBuf,
    pub(crate) kruise: PathBuf,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) audit: AuditLog,
}

impl Live {
    /// Runs a command line as it is printed.
    pub(crate) fn run_line(&self, line: &Line) -> Result<String> {
        text(line, self.output(line)?.stdout)
    }

    /// The same, with what it prints to standard error first.
    fn run_and_join(&self, line: &Line) -> Result<String> {
        let output = self.output(line)?;
        text(line, [output.stderr, output.stdout].concat())
    }

    /// What a command line prints as JSON.
    fn read(&self, line: &Line) -> Result<Value> {
        serde_json::from_str(&self.run_line(line)?).context("kubectl get did not print JSON")
    }

    fn output(&self, line: &Line) -> Result<Output> {
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
        Ok(output)
    }
}

fn text(line: &Line, printed: Vec<u8>) -> Result<String> {
    String::from_utf8(printed).with_context(|| format!("{line} printed bytes that are not UTF-8"))
}

impl Stage for Live {
    const PAUSE: Duration = Duration::from_millis(150);

    fn manifest(&self, of: &Subject) -> String {
        format!("{MANIFESTS}/{}", of.file)
    }

    fn check(&self) -> Result<()> {
        interrupt::check()
    }

    fn run(&mut self, of: &Subject, act: &Act) -> Result<String> {
        let line = act.line(of, &self.manifest(of));
        match act {
            // What it tries again it prints as an error.
            Act::Drain { .. } => self.run_and_join(&line),
            _ => self.run_line(&line),
        }
    }

    fn view(&mut self, of: &Subject) -> Result<View> {
        let namespaces = match of.scope {
            Scope::Default => "--namespace=default",
            Scope::Cluster => "--all-namespaces",
        };
        let all = Line::kubectl(["get", of.shown, "-l", of.label, namespaces, "-o", "json"]);
        let mut view = View::of(of, &self.read(&all)?)?;
        if of.zoned {
            let nodes = self.read(&Line::kubectl(["get", "nodes", "-o", "json"]))?;
            let nodes = nodes
                .get("items")
                .and_then(Value::as_array)
                .context("not a list")?;
            for node in nodes {
                view.node(node);
            }
        }
        Ok(view)
    }

    fn requests(&mut self) -> Result<Requests> {
        wait::observe_for(AFTERMATH);
        Ok(sorted(&self.audit.read_new("")?))
    }
}

/// Requests by their sender.
fn sorted(entries: &[Entry]) -> Requests {
    let (manager, others): (Vec<_>, Vec<_>) = entries
        .iter()
        .partition(|entry| entry.user_agent.starts_with(MANAGER));
    let is_spectator = |entry: &Entry| SPECTATORS.iter().any(|name| entry.user_agent.starts_with(name));
    let mut others = others;
    others.retain(|entry| entry.namespace == "default" && !is_spectator(entry));
    let manager = Counts::of(manager);
    Requests {
        manager: manager.total(Class::Counted),
        shapes: manager.to_string(),
        others: Some(Counts::of(others).total(Class::Counted)),
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
            received: String::new(),
            answered: String::new(),
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
        assert_eq!(requests.manager, 1);
        assert_eq!(requests.others, Some(2));
    }
}
