//! One act of the tour: a request to the cluster, printed as the command line that makes it.

use std::fmt;

use serde_json::Value;

use crate::subject::{Addition, Subject};

/// A change or a question about a workload.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Create what is in the manifest.
    Apply,
    /// Change the workload.
    Patch {
        /// How the body is meant.
        kind: PatchKind,
        /// The patch.
        body: Value,
    },
    /// Put a label on a pod.
    Label {
        /// Name of the pod.
        pod: String,
        /// The label's key.
        key: &'static str,
        /// The label's value.
        value: &'static str,
    },
    /// Create what is in another manifest, beside the one of the workload.
    Add(&'static Addition),
    /// Evict the workload's pods from a node.
    Drain {
        /// Name of the node.
        node: String,
        /// The label of the pods.
        label: &'static str,
    },
    /// Let pods onto all nodes again.
    Uncordon,
    /// A zone fails: pods leave its nodes at once, and no node of it takes new ones.
    FailZone(&'static str),
    /// Its nodes take pods again.
    RepairZone(&'static str),
    /// Ask why its pods are as they are.
    Explain,
}

/// A label that every node has.
const OF_NODES: &str = "kubernetes.io/hostname";
/// The label of nodes with their zone.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// Key, value and effect of the taint that stands for the failure of a zone.
pub const FAILURE: [&str; 3] = ["zone", "failed", "NoExecute"];

/// How a patch is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// A list of operations (RFC 6902).
    Json,
    /// Members that replace those of their names (RFC 7396).
    Merge,
}

impl PatchKind {
    /// As kubectl names it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Merge => "merge",
        }
    }

    /// Its content type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
        }
    }
}

impl Act {
    /// The command line that does it to a workload; `manifest` is the file to apply.
    pub fn line(&self, of: &Subject, manifest: &str) -> Line {
        match self {
            Self::Apply => Line::kubectl(["apply", "-f", manifest]),
            Self::Patch { kind, body } => {
                let kind = format!("--type={}", kind.name());
                Line::kubectl(["patch", of.short, of.name, &kind, "-p", &body.to_string()])
            }
            Self::Label { pod, key, value } => {
                Line::kubectl(["label", "pod", pod, &format!("{key}={value}")])
            }
            Self::Add(what) => Line::kubectl(["apply", "-f", &beside(manifest, what.file)]),
            Self::Drain { node, label } => Line::kubectl(["drain", node, &format!("--pod-selector={label}")]),
            Self::Uncordon => Line::kubectl(["uncordon", &format!("--selector={OF_NODES}")]),
            Self::FailZone(zone) => taint(zone, ""),
            Self::RepairZone(zone) => taint(zone, "-"),
            Self::Explain => Line::kruise(["explain", of.explained]),
        }
    }
}

/// Taints the nodes of a zone, or with `-` as suffix takes the taint away.
fn taint(zone: &str, suffix: &str) -> Line {
    let [key, value, effect] = FAILURE;
    let nodes = format!("--selector={ZONE}={zone}");
    Line::kubectl([
        "taint",
        "nodes",
        &nodes,
        &format!("{key}={value}:{effect}{suffix}"),
    ])
}

/// A file in the folder of another.
fn beside(manifest: &str, file: &str) -> String {
    let folder = manifest.rsplit_once('/').map(|(folder, _)| format!("{folder}/"));
    format!("{}{file}", folder.unwrap_or_default())
}

/// What a command line runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The stock client.
    Kubectl,
    /// The executable of this project.
    Kruise,
}

/// One command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What is run.
    pub program: Program,
    /// With which arguments.
    pub arguments: Vec<String>,
}

impl Line {
    /// A command line of kubectl.
    pub fn kubectl<const N: usize>(arguments: [&str; N]) -> Self {
        Self {
            program: Program::Kubectl,
            arguments: arguments.map(String::from).to_vec(),
        }
    }

    /// A command line of kruise.
    pub fn kruise<const N: usize>(arguments: [&str; N]) -> Self {
        Self {
            program: Program::Kruise,
            arguments: arguments.map(String::from).to_vec(),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.program {
            Program::Kubectl => "kubectl",
            Program::Kruise => "kruise",
        })?;
        self.arguments
            .iter()
            .try_for_each(|argument| write!(f, " {}", quoted(argument)))
    }
}

/// As a shell reads it back: in single quotes unless every character is plain.
pub fn quoted(argument: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,@%+".contains(&byte);
    if !argument.is_empty() && argument.bytes().all(is_plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::subject::{API, BUDGET, DB, TOKEN, WEB};

    #[test]
    fn a_shell_reads_back_what_is_printed() {
        let arguments = [
            "patch",
            "clone",
            r#"{"a":[1,"b c"]}"#,
            "",
            "it's",
            "$HOME",
            "--type=json",
            "a\\b",
        ];
        let line = Line::kubectl(arguments);
        let printed = line.to_string();
        assert!(
            printed.starts_with(r#"kubectl patch clone '{"a":[1,"b c"]}' "#),
            "{printed}"
        );
        let script = printed.replacen("kubectl", r"printf '%s\n'", 1);
        let output = std::process::Command::new("sh")
            .args(["-c", &script])
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8(output.stdout)
                .unwrap()
                .lines()
                .collect::<Vec<_>>(),
            arguments
        );
    }

    #[test]
    fn every_act_is_a_command_line() {
        let patch = Act::Patch {
            kind: PatchKind::Merge,
            body: json!({"spec": {"replicas": 4}}),
        };
        let label = Act::Label {
            pod: "web-1".into(),
            key: "a/b",
            value: "true",
        };
        let drain = Act::Drain {
            node: "n1".into(),
            label: WEB.label,
        };
        let acts = [
            Act::Apply,
            patch,
            label,
            Act::Add(&BUDGET),
            drain,
            Act::Uncordon,
            Act::FailZone("z"),
            Act::RepairZone("z"),
            Act::Explain,
        ];
        let lines = acts.map(|act| act.line(&WEB, "web.yaml").to_string());
        assert_eq!(
            lines,
            [
                "kubectl apply -f web.yaml",
                r#"kubectl patch clone web --type=merge -p '{"spec":{"replicas":4}}'"#,
                "kubectl label pod web-1 a/b=true",
                "kubectl apply -f web-budget.yaml",
                "kubectl drain n1 --pod-selector=app=web",
                "kubectl uncordon --selector=kubernetes.io/hostname",
                "kubectl taint nodes --selector=topology.kubernetes.io/zone=z zone=failed:NoExecute",
                "kubectl taint nodes --selector=topology.kubernetes.io/zone=z zone=failed:NoExecute-",
                "kruise explain clone/web",
            ]
        );
        let elsewhere = Act::Add(&BUDGET).line(&WEB, "a/b/web.yaml").to_string();
        assert_eq!(elsewhere, "kubectl apply -f a/b/web-budget.yaml");
        let explained = [&DB, &API, &TOKEN].map(|of| Act::Explain.line(of, of.file).to_string());
        assert_eq!(
            explained,
            [
                "kruise explain asts/db",
                "kruise explain ws/api",
                "kruise explain distributor/token"
            ]
        );
    }
}
