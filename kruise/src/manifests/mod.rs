//! `kruise manifests`: everything an installation needs, for `kubectl apply -f -`.

mod aggregate;
mod client_config;
pub(crate) mod rbac;
pub(crate) mod workload;

use anyhow::Context;
use clap::Args;
use kruise_admission::manifests as webhooks;
use serde_json::Value;

use workload::Workload;

pub(crate) use aggregate::roles as aggregate_roles;
#[cfg(test)]
pub(crate) use rbac::rules_of_controllers;
pub(crate) use rbac::{Conditions, Gate};

/// Feature gates with which every pod must reach the pod webhook, and what pods miss that do not.
pub(crate) const NEED_ALL_PODS: [(&str, &str); 2] = [
    (
        "KruisePodReadinessGate",
        "pods that no workload of Kruise creates get no readiness gate",
    ),
    (
        "EnableExternalCerts",
        "nobody changes these conditions with the SidecarSets and budgets, so pods are created without their sidecars and \
         without the link to their budget",
    ),
];

/// Default namespace of the manager.
pub(crate) const NAMESPACE: &str = "kruise-system";

/// What to print.
#[derive(Args, Debug)]
pub struct Options {
    /// Namespace of the manager.
    #[arg(long, default_value = NAMESPACE)]
    namespace: String,
    /// Image of the manager.
    #[arg(long, default_value = concat!("kruise/kruise-manager:v", env!("CARGO_PKG_VERSION")))]
    image: String,
    /// Managers to run; one leads, all answer webhooks.
    #[arg(long, default_value_t = 2)]
    replicas: i32,
    /// Feature gates of the manager, as `Name=true,Other=false`.
    #[arg(long, default_value = "")]
    feature_gates: String,
    /// Leave out the Deployment: for a manager that runs outside the cluster with `WEBHOOK_HOST` set.
    #[arg(long)]
    without_manager: bool,
    /// Register webhooks by this URL instead of the Service: `https://HOST:PORT` as in `WEBHOOK_HOST` and `WEBHOOK_PORT`.
    #[arg(long, value_name = "URL", value_parser = client_config::base_url)]
    webhook_url: Option<String>,
}

/// All objects as a multi-document YAML text.
pub fn render(options: &Options) -> anyhow::Result<String> {
    let gates = crate::gates::Gates::parse(&options.feature_gates, "")?;
    yaml(&objects(options, &gates))
}

/// Objects as a multi-document YAML text.
pub(crate) fn yaml(objects: &[Value]) -> anyhow::Result<String> {
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
#[cfg(feature = "playground")]
pub(crate) fn of_a_manager_outside(webhook_url: &str) -> anyhow::Result<Vec<Value>> {
    let options = Options {
        namespace: NAMESPACE.to_owned(),
        image: String::new(),
        replicas: 0,
        feature_gates: String::new(),
        without_manager: true,
        webhook_url: Some(webhook_url.to_owned()),
    };
    Ok(objects(&options, &crate::gates::Gates::parse("", "")?))
}

/// The definitions of all kinds, with their conversion by the Service.
pub(crate) fn definitions(namespace: &str) -> Vec<Value> {
    let mut definitions = kruise_api::kinds::definitions(namespace);
    for definition in &mut definitions {
        client_config::settle(definition, None);
    }
    definitions
}

fn objects(options: &Options, gates: &crate::gates::Gates) -> Vec<Value> {
    let namespace = &options.namespace;
    let mut objects = vec![workload::namespace(namespace)];
    objects.extend(kruise_api::kinds::definitions(namespace));
    objects.extend(rbac::objects(namespace, gates));
    objects.extend(aggregate::roles());
    objects.extend(workload::webhook_objects(namespace));
    if !options.without_manager {
        objects.extend(workload::deployment(&Workload::new(
            namespace,
            &options.image,
            options.replicas,
            &options.feature_gates,
        )));
    }
    objects.extend(webhooks::configurations(
        namespace,
        NEED_ALL_PODS.iter().any(|(gate, _)| gates.on(gate)),
    ));
    for object in &mut objects {
        client_config::settle(object, options.webhook_url.as_deref());
    }
    objects
}

#[cfg(test)]
mod tests {
    use super::*;

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
                without_manager: false,
                webhook_url: None,
            };
            let printed = objects(&options, &crate::gates::Gates::parse(gates, "").unwrap());
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
