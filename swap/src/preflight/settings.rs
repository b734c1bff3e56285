//! The flags and feature gates of the manager that runs now, and what this build makes of them.

use anyhow::Context;
use go_compat::flags::FlagSet;
use kruise_api::path::segment;
use kruise_frame::{
    config::Config,
    gates::{self, Gates},
    json::text,
    profile::FLAG as ONLY,
};
use kruise_install::manifests::DEPLOYMENT;
use kruise_kinds as controllers;
use kruise_manager::FLAGS;
use serde_json::Value;

use super::{Check, Finding, Options, cluster::Cluster, older};

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
    let mut line = line(&installed.line, options);
    findings.extend(without_being_told(&deployment, &installed, &mut line, options));
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

/// What a manager of an older version does with the same flags and this build does not. The gates are added to the
/// flags, unless the command line has its own.
fn without_being_told(
    deployment: &str,
    installed: &Installed,
    line: &mut Vec<String>,
    options: &Options,
) -> Vec<Finding> {
    if installed.image.is_empty() {
        return Vec::new();
    }
    let Some(version) = older::version(&installed.image) else {
        let text = "its image does not say its version: before 1.8, OpenKruise protected objects from deletion, and before \
                    1.5 it pulled images and distributed resources, without a feature gate";
        return vec![Finding::note(deployment, text)];
    };
    // Flags that are refused are a finding of their own.
    let Ok(values) = FlagSet::new(&FLAGS).parse(line.iter().map(String::as_str)) else {
        return Vec::new();
    };
    let flag = values.get_string("feature-gates");
    let Ok(gates) = Gates::parse(flag, &installed.custom_resources) else {
        return Vec::new();
    };
    let alpha = older::turns_alpha_on(version, flag).then(|| {
        let text = "AllAlpha=true turns on the gates that are alpha in its version; here it turns on those that are alpha in \
                    this build, among them newer ones";
        let action = "name the gates in place of AllAlpha in the feature gates of this build, and tell this command by \
                      --feature-gates";
        Finding::problem(deployment, text).advising(action)
    });
    let implied = older::implied(version, flag, &gates);
    let added: Vec<String> = implied.iter().map(|gate| format!("{gate}=true")).collect();
    let added = added.join(",");
    if options.feature_gates.is_none() && !implied.is_empty() {
        let before = if flag.is_empty() { "" } else { "," };
        line.push(format!("--feature-gates={flag}{before}{added}"));
    }
    let without_gate = (!implied.is_empty()).then(|| {
        let text = format!(
            "its version does without a feature gate what this build needs one for: {}",
            implied.join(", ")
        );
        let action = format!(
            "add {added} to the feature gates of this build, or =false, and tell this command by --feature-gates"
        );
        Finding::problem(deployment, text).advising(action)
    });
    alpha.into_iter().chain(without_gate).collect()
}

/// The flags without those that are for another machine; what the command line says of the new manager is added
/// last, and so decides.
fn line(installed: &[String], options: &Options) -> Vec<String> {
    let is_here = |flag: &&String| {
        let name = flag.trim_start_matches('-').split('=').next().unwrap_or_default();
        !NOT_HERE.contains(&name)
    };
    let gates = options.feature_gates.iter();
    let watched = options.watch_namespace.iter();
    let only = options
        .only
        .is_partial()
        .then(|| format!("--{ONLY}={}", options.only));
    let kept = installed.iter().filter(is_here).cloned();
    kept.chain(gates.map(|gates| format!("--feature-gates={gates}")))
        .chain(watched.map(|namespace| format!("--namespace={namespace}")))
        .chain(only)
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
    let config =
        Config::new(&values, controllers::limits(), controllers::kinds(), &variable).context("flags");
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
        let flags = line(&installed.line, &Options::of("kruise-system"));
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
        let options = Options {
            feature_gates: Some("ImagePullJobGate=false".to_owned()),
            watch_namespace: Some("shop".to_owned()),
            only: kruise_kinds::profile("clonesets").unwrap(),
            ..Options::of("kruise-system")
        };
        let flags = line(&["--feature-gates=ImagePullJobGate=true".to_owned()], &options);
        let config = configuration(&flags, "", "kruise-system").unwrap();
        assert_eq!(config.namespace.as_deref(), Some("shop"));
        assert_eq!(config.profile.to_string(), "clonesets");
        assert!(
            !configuration(&flags, "", "kruise-system")
                .unwrap()
                .gates
                .on("ImagePullJobGate")
        );
    }

    /// What is found of a manager of this image with these flags, and the gates that the plans are made with.
    fn found(image: &str, flags: &[&str], feature_gates: Option<&str>) -> (Vec<Finding>, Gates) {
        let installed = Installed {
            image: image.into(),
            line: flags.iter().map(|&flag| flag.to_owned()).collect(),
            custom_resources: String::new(),
        };
        let options = Options {
            feature_gates: feature_gates.map(str::to_owned),
            ..Options::of("kruise-system")
        };
        let mut flags = line(&installed.line, &options);
        let findings = without_being_told("Deployment", &installed, &mut flags, &options);
        (
            findings,
            configuration(&flags, "", "kruise-system").unwrap().gates,
        )
    }

    /// The flags of the manager in the charts 1.4 and 1.7, with default values.
    fn of_chart(gates: &'static str) -> [&'static str; 8] {
        [
            "--enable-leader-election",
            "--metrics-addr=:8080",
            "--health-probe-addr=:8000",
            "--logtostderr=true",
            "--leader-election-namespace=kruise-system",
            "--v=4",
            gates,
            "--sync-period=0",
        ]
    }

    #[test]
    fn what_1_4_does_without_gates_is_planned_and_is_a_problem_until_somebody_decides() {
        let flags = of_chart("--feature-gates=");
        let (findings, gates) = found("openkruise/kruise-manager:v1.4.0", &flags, None);
        let [finding] = &*findings else {
            panic!("{findings:?}");
        };
        assert_eq!(
            finding.text,
            "its version does without a feature gate what this build needs one for: ImagePullJobGate, \
             ResourceDistributionGate, ResourcesDeletionProtection"
        );
        for gate in [
            "ImagePullJobGate",
            "ResourceDistributionGate",
            "ResourcesDeletionProtection",
        ] {
            assert!(gates.on(gate), "{gate}");
            assert!(finding.action.as_ref().unwrap().contains(&format!("{gate}=true")));
        }
        let decided = "ImagePullJobGate=true,ResourceDistributionGate=false,ResourcesDeletionProtection=true";
        let (findings, gates) = found("openkruise/kruise-manager:v1.4.0", &flags, Some(decided));
        assert_eq!(findings, []);
        assert!(gates.on("ImagePullJobGate") && !gates.on("ResourceDistributionGate"));
    }

    #[test]
    fn what_1_7_does_without_gates_is_the_protection_from_deletion() {
        let flags = of_chart("--feature-gates=ImagePullJobGate=true");
        let (findings, gates) = found("openkruise/kruise-manager:v1.7.3", &flags, None);
        assert!(findings[0].text.ends_with(": ResourcesDeletionProtection"));
        assert!(gates.on("ResourcesDeletionProtection") && gates.on("ImagePullJobGate"));
        assert!(!gates.on("ResourceDistributionGate"));
        for image in [
            "openkruise/kruise-manager:v1.8.4",
            "kruise/kruise-manager:v0.1.0",
            "",
        ] {
            assert_eq!(found(image, &flags, None).0, [], "{image}");
        }
    }

    #[test]
    fn all_alpha_of_another_version_is_a_problem_until_the_gates_are_named() {
        let image = "openkruise/kruise-manager:v1.7.3";
        let flags = of_chart("--feature-gates=AllAlpha=true");
        let (findings, gates) = found(image, &flags, None);
        let texts: Vec<&str> = findings.iter().map(|finding| &*finding.text).collect();
        assert_eq!(
            texts,
            [
                "AllAlpha=true turns on the gates that are alpha in its version; here it turns on those that are alpha \
                 in this build, among them newer ones",
                "its version does without a feature gate what this build needs one for: ResourceDistributionGate, \
                 ResourcesDeletionProtection"
            ]
        );
        assert!(gates.on("ResourceDistributionGate") && gates.on("CloneSetShortHash"));
        let named = "CloneSetShortHash=true,ResourceDistributionGate=true,ResourcesDeletionProtection=true";
        let (findings, gates) = found(image, &flags, Some(named));
        assert_eq!(findings, []);
        assert!(gates.on("CloneSetShortHash") && !gates.on("TemplateNoDefaults"));
        assert_eq!(found("openkruise/kruise-manager:v1.8.4", &flags, None).0, []);
    }

    #[test]
    fn an_image_that_does_not_say_its_version_is_noted() {
        let (findings, gates) = found("kruise-manager:stable", &of_chart("--feature-gates="), None);
        assert_eq!(findings[0].severity, super::super::report::Severity::Note);
        assert!(!gates.on("ResourcesDeletionProtection"));
    }

    #[test]
    fn the_lock_that_1_4_may_have_been_given_is_named() {
        let lock = "--leader-election-resource-lock=configmapsleases".to_owned();
        let flags = line(&[lock], &Options::of("kruise-system"));
        let flags = [flags, vec!["--enable-leader-election=true".to_owned()]].concat();
        let refused = configuration(&flags, "", "kruise-system").unwrap_err();
        assert!(refused.contains("--leader-election-resource-lock"), "{refused}");
    }

    #[test]
    fn a_flag_that_this_build_does_not_know_is_named() {
        let refused = configuration(&["--no-such-flag=1".to_owned()], "", "kruise-system").unwrap_err();
        assert!(refused.contains("no-such-flag"), "{refused}");
    }
}
