//! The flags and feature gates of the manager that runs now, and what this build makes of them.

use anyhow::Context;
use go_compat::flags::FlagSet;
use kruise_api::path::segment;
use serde_json::Value;

use super::{Check, Finding, Options, cluster::Cluster};
use crate::{
    gates,
    json::text,
    manager::{Config, FLAGS},
    manifests::DEPLOYMENT,
};

/// Flags that a process on another machine does not take over: it reads with its own credentials and holds no lease.
const NOT_HERE: [&str; 2] = ["kubeconfig", "enable-leader-election"];

/// The manager that runs now.
#[derive(Default)]
struct Installed {
    image: String,
    line: Vec<String>,
    custom_resources: String,
}

/// Reads the settings. The configuration is the one that this build would have with them.
pub(super) async fn check(cluster: &Cluster, options: &Options) -> anyhow::Result<(Check, Config)> {
    let path = format!(
        "/apis/apps/v1/namespaces/{}/deployments/{DEPLOYMENT}",
        segment(&options.namespace)
    );
    let deployment = format!("Deployment {}/{DEPLOYMENT}", options.namespace);
    let mut findings = Vec::new();
    let installed = match cluster.object::<Value>(&path).await {
        Ok(Some(object)) => installed(&object),
        Ok(None) => {
            let finding = Finding::note(
                &deployment,
                "is not there; the flags are taken to be the defaults",
            );
            findings.push(
                finding.advising("name its namespace with --namespace, or its gates with --feature-gates"),
            );
            Installed::default()
        }
        Err(error) => {
            findings.push(Finding::unknown(&deployment, format!("cannot be read: {error}")));
            Installed::default()
        }
    };
    let line = line(&installed.line, options.feature_gates.as_deref());
    let config = match configuration(&line, &installed.custom_resources, &options.namespace) {
        Ok(config) => config,
        Err(refused) => {
            let text = format!("this build does not start with its flags: {refused}");
            findings.push(Finding::problem(&deployment, text).advising("start this build without them"));
            let gates = options.feature_gates.iter();
            let gates: Vec<String> = gates.map(|gates| format!("--feature-gates={gates}")).collect();
            configuration(&gates, "", &options.namespace).map_err(anyhow::Error::msg)?
        }
    };
    for gate in gates::without_effect().filter(|gate| config.gates.on(gate)) {
        let text = format!("the feature gate {gate} is on, and this build does not have the feature");
        findings.push(Finding::problem(&deployment, text));
    }
    let changed = config.gates.changed();
    let gates = if changed.is_empty() {
        "feature gates as by default".to_owned()
    } else {
        format!("feature gates {changed}")
    };
    let image = installed.image;
    let summary = if image.is_empty() {
        gates
    } else {
        format!("{image}, {gates}")
    };
    Ok((Check::new("settings", summary, findings), config))
}

fn installed(deployment: &Value) -> Installed {
    let containers = deployment.pointer("/spec/template/spec/containers");
    let containers = containers.and_then(Value::as_array).map(Vec::as_slice);
    let containers = containers.unwrap_or_default();
    let manager = containers.iter().find(|one| text(one, "/name") == "manager");
    let Some(manager) = manager.or(containers.first()) else {
        return Installed::default();
    };
    let list = |name: &str| manager.get(name).and_then(Value::as_array).into_iter().flatten();
    let variable = list("env").find(|one| text(one, "/name") == "CUSTOM_RESOURCE_ENABLE");
    Installed {
        image: text(manager, "/image").to_owned(),
        line: list("args")
            .filter_map(|flag| flag.as_str().map(str::to_owned))
            .collect(),
        custom_resources: variable
            .map(|one| text(one, "/value").to_owned())
            .unwrap_or_default(),
    }
}

/// The flags without those that are for another machine; the gates of the command line are added last, and so decide.
fn line(installed: &[String], gates: Option<&str>) -> Vec<String> {
    let is_here = |flag: &&String| {
        let name = flag.trim_start_matches('-').split('=').next().unwrap_or_default();
        !NOT_HERE.contains(&name)
    };
    let gates = gates.map(|gates| format!("--feature-gates={gates}"));
    let kept = installed.iter().filter(is_here).cloned();
    kept.chain(gates)
        .chain(["--enable-leader-election=false".to_owned()])
        .collect()
}

/// The configuration of a manager in this namespace.
fn configuration(line: &[String], custom_resources: &str, namespace: &str) -> Result<Config, String> {
    let values = FlagSet::new(&FLAGS)
        .parse(line.iter().map(String::as_str))
        .map_err(|error| error.to_string())?;
    let variable = |name: &str| match name {
        "CUSTOM_RESOURCE_ENABLE" => Some(custom_resources.to_owned()),
        "POD_NAMESPACE" => Some(namespace.to_owned()),
        _ => None,
    };
    let config = Config::new(&values, &variable).context("flags");
    config.map_err(|error| format!("{error:#}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_flags_and_gates_of_the_manager_that_runs_are_taken() {
        let deployment = json!({"spec": {"template": {"spec": {"containers": [
            {"name": "proxy", "args": ["--v=9"]},
            {"name": "manager", "image": "kruise-manager:v1.8.3", "env": [
                {"name": "CUSTOM_RESOURCE_ENABLE", "value": "CloneSet"}],
             "args": ["--enable-leader-election", "--v=4", "--feature-gates=ImagePullJobGate=true"]},
        ]}}}});
        let installed = installed(&deployment);
        assert_eq!(installed.image, "kruise-manager:v1.8.3");
        let flags = line(&installed.line, None);
        assert_eq!(
            flags,
            [
                "--v=4",
                "--feature-gates=ImagePullJobGate=true",
                "--enable-leader-election=false"
            ]
        );
        let config = configuration(&flags, &installed.custom_resources, "elsewhere").unwrap();
        assert_eq!(config.webhook.namespace, "elsewhere");
        assert!(config.gates.on("ImagePullJobGate") && !config.gates.on("PodWebhook"));
        assert!(config.lease.is_none());
    }

    #[test]
    fn the_gates_of_the_command_line_decide() {
        let flags = line(
            &["--feature-gates=ImagePullJobGate=true".to_owned()],
            Some("ImagePullJobGate=false"),
        );
        assert!(
            !configuration(&flags, "", "kruise-system")
                .unwrap()
                .gates
                .on("ImagePullJobGate")
        );
    }

    #[test]
    fn a_flag_that_this_build_does_not_know_is_named() {
        let refused = configuration(&["--no-such-flag=1".to_owned()], "", "kruise-system").unwrap_err();
        assert!(refused.contains("no-such-flag"), "{refused}");
    }
}
