//! `kruise manifests`: everything an installation needs, for `kubectl apply -f -`.

pub mod agent;
mod aggregate;
mod client_config;
pub mod policy;
pub mod rbac;
pub mod reach;
pub mod workload;

use anyhow::{Context, bail};
use clap::Args;
use kruise_admission::manifests as webhooks;
use kruise_admission::table::{self, Subject};
use kruise_api::names::AGENT_NAMESPACE;
use kruise_frame::{gates::NEED_ALL_PODS, profile::Profile};
use serde_json::{Value, json};

use policy::KubeVersion;
use workload::Workload;

pub use aggregate::roles as aggregate_roles;
pub use rbac::rules_of_controllers;
pub use rbac::{Conditions, Gate};
pub use workload::DEPLOYMENT;

/// Default namespace of the manager.
pub const NAMESPACE: &str = "kruise-system";

/// What to print.
#[derive(Args, Debug)]
pub struct Options {
    /// Namespace of the manager.
    #[arg(long, default_value = NAMESPACE)]
    namespace: String,
    /// Image of the manager and the agent, such as `registry.example.com/kruise:dev`. None is published yet.
    #[arg(long, default_value = "")]
    image: String,
    /// Managers to run; one leads, all answer webhooks.
    #[arg(long, default_value_t = 2)]
    replicas: i32,
    /// Feature gates of the manager, as `Name=true,Other=false`.
    #[arg(long, default_value = "")]
    feature_gates: String,
    /// Only these kinds, by their plural names, separated by commas: their definitions, rights and webhooks, for a
    /// manager that acts on nothing else.
    #[arg(long, value_name = "KINDS", default_value = "", value_parser = kruise_kinds::profile)]
    only: Profile,
    /// Watch this namespace only: rights and webhooks for what is in it, and for what is in no namespace.
    #[arg(long, value_name = "NAMESPACE", value_parser = reach::name)]
    watch_namespace: Option<String>,
    /// Leave out the definitions: those of the cluster stay as they are, and its versions are used.
    #[arg(long)]
    without_crds: bool,
    /// Leave out the Deployment: for a manager that runs outside the cluster with `WEBHOOK_HOST` set.
    #[arg(long)]
    without_manager: bool,
    /// Print the node agent, too: its DaemonSet and its rights. It replaces that of OpenKruise.
    #[arg(long, conflicts_with = "watch_namespace")]
    agent: bool,
    /// Serve metrics over TLS, to callers whose token may get the URL /metrics: bind them to the ClusterRole
    /// kruise-metrics-reader.
    #[arg(long)]
    metrics_secure: bool,
    /// Kubernetes version of the cluster, such as 1.30, for one that is older than 1.32: policies that need a newer
    /// one are left out.
    #[arg(long, value_name = "VERSION")]
    kube_version: Option<KubeVersion>,
    /// Register webhooks by this URL instead of the Service: `https://HOST:PORT` as in `WEBHOOK_HOST` and
    /// `WEBHOOK_PORT`.
    #[arg(long, value_name = "URL", value_parser = client_config::base_url)]
    webhook_url: Option<String>,
}

/// What to do without an image: `cargo xtask image` makes one, and no name of one that does not exist is printed.
pub const NO_IMAGE: &str =
    "no image is given, and none is published yet. Build one and push it to a registry of yours:
  cargo xtask image && crane push target/image/oci registry.example.com/kruise:dev";

/// All objects as a multi-document YAML text. An error if something would run without an image.
pub fn render(options: &Options) -> anyhow::Result<String> {
    if options.image.is_empty() && (options.agent || !options.without_manager) {
        bail!("{NO_IMAGE}\nThen add its name: --image registry.example.com/kruise:dev");
    }
    let gates = kruise_frame::gates::Gates::parse(&options.feature_gates, "")?;
    yaml(&objects(options, &gates))
}

/// Objects as a multi-document YAML text.
pub fn yaml(objects: &[Value]) -> anyhow::Result<String> {
    let mut text = String::new();
    for object in objects {
        let document = serde_saphyr::to_string(object).context("cannot print an object as YAML")?;
        text.push_str("---\n");
        text.push_str(document.trim_end());
        text.push('\n');
    }
    Ok(text)
}

/// What a manager outside the cluster needs, with its webhooks at this URL.
pub fn of_a_manager_outside(webhook_url: &str) -> anyhow::Result<Vec<Value>> {
    let options = Options {
        namespace: NAMESPACE.to_owned(),
        image: String::new(),
        replicas: 0,
        feature_gates: String::new(),
        only: Profile::default(),
        watch_namespace: None,
        without_crds: false,
        without_manager: true,
        agent: false,
        metrics_secure: false,
        kube_version: None,
        webhook_url: Some(webhook_url.to_owned()),
    };
    Ok(objects(&options, &kruise_frame::gates::Gates::parse("", "")?))
}

/// The definitions of all kinds, with their conversion by the Service.
pub fn definitions(namespace: &str) -> Vec<Value> {
    let mut definitions = kruise_kinds::definitions(namespace);
    for definition in &mut definitions {
        client_config::settle(definition, None);
    }
    definitions
}

/// The webhook configurations with the webhooks of these kinds, of pods, and of what is protected from deletion.
pub fn configurations(namespace: &str, all_pods: bool, profile: &Profile) -> Vec<Value> {
    let others: Vec<&str> = table::webhooks(kruise_kinds::webhooks())
        .filter(|webhook| matches!(webhook.subject, Subject::Kind(of) if !profile.includes(of.kind)))
        .map(|webhook| webhook.name)
        .collect();
    let mut configurations = webhooks::configurations(kruise_kinds::webhooks(), namespace, all_pods);
    for configuration in &mut configurations {
        let entries = configuration.get_mut("webhooks").and_then(Value::as_array_mut);
        if let Some(entries) = entries {
            let is_other = |entry: &Value| entry["name"].as_str().is_some_and(|name| others.contains(&name));
            entries.retain(|entry| !is_other(entry));
        }
    }
    configurations
}

fn objects(options: &Options, gates: &kruise_frame::gates::Gates) -> Vec<Value> {
    let namespace = &options.namespace;
    let mut objects = vec![workload::namespace(namespace)];
    let (profile, watched) = (&options.only, options.watch_namespace.as_deref());
    let has_agent_namespace = options.agent || rbac::makes_copies(gates, profile, watched);
    if has_agent_namespace && namespace != AGENT_NAMESPACE {
        objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": AGENT_NAMESPACE}}));
    }
    if !options.without_crds {
        objects.extend(
            profile
                .of_kinds(kruise_kinds::kinds())
                .map(|kind| kind.manifest(namespace)),
        );
    }
    objects.extend(rbac::objects(namespace, gates, profile, watched));
    objects.extend(aggregate::roles(profile));
    objects.extend(workload::webhook_objects(namespace));
    if !options.without_manager {
        let (image, gates) = (&options.image, &options.feature_gates);
        let mut manager = Workload::new(namespace, image, options.replicas, gates, (profile, watched));
        if options.metrics_secure {
            manager.more_arguments.push(json!("--metrics-secure"));
            objects.extend(rbac::of_secure_metrics(namespace));
        }
        objects.extend(workload::deployment(&manager));
    }
    let is_since = |version| options.kube_version.is_none_or(|own| own >= version);
    if !options.without_manager && is_since(KubeVersion::WITH_POLICIES) {
        objects.extend(policy::of_priority(namespace));
    }
    if options.agent {
        let gates_text = &options.feature_gates;
        objects.extend(agent::objects(namespace, &options.image, gates_text, gates));
        if is_since(KubeVersion::WITH_NODES_IN_TOKENS) {
            objects.extend(policy::of_agents(namespace));
        }
    }
    let all_pods = NEED_ALL_PODS.iter().any(|(gate, _)| gates.on(gate));
    let mut configurations = configurations(namespace, all_pods, profile);
    if let Some(watched) = watched {
        for configuration in &mut configurations {
            reach::limit_webhooks(configuration, watched);
        }
    }
    objects.extend(configurations);
    for object in &mut objects {
        client_config::settle(object, options.webhook_url.as_deref());
    }
    objects
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::FromArgMatches;

    use super::*;

    fn printed(only: &str) -> Vec<Value> {
        let options = Options {
            namespace: NAMESPACE.to_owned(),
            image: String::new(),
            replicas: 2,
            feature_gates: String::new(),
            only: kruise_kinds::profile(only).unwrap(),
            watch_namespace: None,
            without_crds: false,
            without_manager: false,
            agent: false,
            metrics_secure: false,
            kube_version: None,
            webhook_url: None,
        };
        objects(&options, &kruise_frame::gates::Gates::parse("", "").unwrap())
    }

    /// Every verb on every resource, with the role that grants it.
    fn grants(objects: &[Value]) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        let texts = |value: &Value| -> Vec<String> {
            let list = value.as_array().into_iter().flatten();
            list.map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        for object in objects {
            for rule in object["rules"].as_array().into_iter().flatten() {
                for (group, resource) in texts(&rule["apiGroups"]).iter().flat_map(|group| {
                    texts(&rule["resources"])
                        .into_iter()
                        .map(move |one| (group.clone(), one))
                }) {
                    for verb in texts(&rule["verbs"]) {
                        all.insert(format!(
                            "{} {verb} {group}/{resource}",
                            object["metadata"]["name"]
                        ));
                    }
                }
            }
        }
        all
    }

    fn webhooks_of(objects: &[Value]) -> BTreeSet<String> {
        let lists = objects.iter().filter_map(|object| object["webhooks"].as_array());
        lists.flatten().map(Value::to_string).collect()
    }

    #[test]
    fn each_kind_alone_has_its_definition_and_no_right_and_webhook_that_all_together_lack() {
        let all = printed("");
        let (all_grants, all_webhooks) = (grants(&all), webhooks_of(&all));
        let mut together = BTreeSet::new();
        for kind in kruise_kinds::kinds().iter().copied() {
            let one = printed(kind.plural);
            let of_kind = |name: &str| {
                one.iter()
                    .filter(|object| object["kind"] == name)
                    .collect::<Vec<_>>()
            };
            let definitions = of_kind("CustomResourceDefinition");
            assert_eq!(definitions.len(), 1, "{}", kind.plural);
            assert_eq!(definitions[0]["metadata"]["name"], kind.name());
            let (grants, webhooks) = (grants(&one), webhooks_of(&one));
            assert!(
                grants.is_subset(&all_grants),
                "{:?}",
                grants.difference(&all_grants)
            );
            assert!(webhooks.is_subset(&all_webhooks), "{}", kind.plural);
            let others = kruise_kinds::kinds()
                .iter()
                .copied()
                .filter(|other| other.plural != kind.plural);
            for other in others {
                let resource = format!(" {}/{}", other.group, other.plural);
                let foreign = grants.iter().find(|grant| grant.contains(&resource));
                assert_eq!(foreign, None, "{} alone", kind.plural);
            }
            let deployment = of_kind("Deployment")[0].to_string();
            assert!(deployment.contains(&format!("--only={}", kind.plural)));
            together.extend(webhooks);
        }
        assert_eq!(together, all_webhooks);
    }

    #[test]
    fn nothing_is_printed_that_would_run_without_an_image() {
        let options = |text: &str| {
            let words = ["manifests"].into_iter().chain(text.split_whitespace());
            let command = Options::augment_args(clap::Command::new("manifests"));
            Options::from_arg_matches(&command.get_matches_from(words)).unwrap()
        };
        for refused in ["", "--without-manager --agent"] {
            let error = render(&options(refused)).unwrap_err().to_string();
            assert!(
                error.contains("cargo xtask image") && error.contains("--image"),
                "{error}"
            );
        }
        for printed in ["--image=example/kruise:1", "--without-manager"] {
            render(&options(printed)).unwrap();
        }
    }

    #[test]
    fn policies_are_printed_for_servers_that_have_what_they_need() {
        const BOTH: &str = "kruise-controller-manager-priority kruise-daemon-own-node";
        let words = |flags: &str| -> Vec<String> {
            let words = "manifests --image=example/kruise:1".split(' ');
            words.chain(flags.split_whitespace()).map(str::to_owned).collect()
        };
        for (flags, printed) in [
            ("", "kruise-controller-manager-priority"),
            ("--agent", BOTH),
            ("--agent --kube-version=v1.32.1-eks.4", BOTH),
            (
                "--agent --kube-version=1.31",
                "kruise-controller-manager-priority",
            ),
            ("--agent --kube-version=1.29", ""),
            ("--agent --without-manager", "kruise-daemon-own-node"),
        ] {
            let command = Options::augment_args(clap::Command::new("manifests"));
            let options = Options::from_arg_matches(&command.get_matches_from(words(flags))).unwrap();
            let gates = kruise_frame::gates::Gates::parse("", "").unwrap();
            let objects = objects(&options, &gates);
            let policies = objects
                .iter()
                .filter(|one| one["kind"] == "ValidatingAdmissionPolicy");
            let names: Vec<&str> = policies
                .filter_map(|one| one["metadata"]["name"].as_str())
                .collect();
            assert_eq!(names.join(" "), printed, "{flags}");
        }
        assert!("latest".parse::<KubeVersion>().is_err());
    }

    #[test]
    fn what_is_printed_sends_all_pods_if_a_gate_needs_them() {
        for (gates, is_narrow) in [
            ("", true),
            ("KruisePodReadinessGate=true", false),
            ("EnableExternalCerts=true", false),
        ] {
            let options = Options {
                namespace: NAMESPACE.to_owned(),
                image: String::new(),
                replicas: 2,
                feature_gates: gates.to_owned(),
                only: Profile::default(),
                watch_namespace: None,
                without_crds: false,
                without_manager: false,
                agent: false,
                metrics_secure: false,
                kube_version: None,
                webhook_url: None,
            };
            let printed = objects(&options, &kruise_frame::gates::Gates::parse(gates, "").unwrap());
            let webhooks = printed
                .iter()
                .filter_map(|object| object.get("webhooks")?.as_array());
            let mut of_pods = webhooks
                .flatten()
                .filter(|webhook| webhook["name"] == "mpod.kb.io");
            let conditions = of_pods.next().unwrap().get("matchConditions");
            assert_eq!(conditions.is_some(), is_narrow, "{gates}");
        }
    }
}
