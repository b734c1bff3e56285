//! The webhooks of the manager: which requests need it today, and which after the swap.

use std::collections::BTreeSet;

use kruise_admission::{manifests, table};
use kruise_api::meta::{LabelSelector, StringMap};
use kruise_frame::{config::Config, json::text};
use kruise_runtime::ApiError;
use serde::Deserialize as _;
use serde_json::Value;

use super::{Check, Finding, cluster::Cluster};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const RESOURCES: [&str; 2] = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

/// Reads the configurations that call the manager.
pub(super) async fn check(cluster: &Cluster, namespace: &str, config: &Config) -> Check {
    let entries = match entries(cluster, namespace).await {
        Ok(entries) => entries,
        Err(error) => {
            let finding = Finding::unknown("webhook configurations", format!("cannot be read: {error}"));
            return Check::new("webhooks", "not compared", vec![finding]);
        }
    };
    let served: BTreeSet<String> = table::webhooks(kruise_kinds::webhooks())
        .flat_map(|webhook| webhook.paths())
        .collect();
    let not_served = entries.iter().filter_map(|entry| not_served(entry, &served));
    let mut findings: Vec<Finding> = not_served.collect();
    let all_pods = config.gates.on("KruisePodReadinessGate") || config.gates.on("EnableExternalCerts");
    match reach(cluster, &entries).await {
        Ok(Some((reached, all))) => {
            let after = if all_pods {
                "and so it is afterwards, because of a feature gate"
            } else {
                "afterwards only that of pods that use a feature"
            };
            let text = format!(
                "their creation fails today without a manager in {reached} of {all} namespaces; {after}"
            );
            findings.push(Finding::note("new pods", text));
        }
        Ok(None) => {}
        Err(error) => findings.push(Finding::unknown("namespaces", format!("cannot be read: {error}"))),
    }
    let summary = format!("{} webhooks call the manager today", entries.len());
    Check::new("webhooks", summary, findings)
}

/// A webhook of a configuration.
struct Entry {
    configuration: String,
    webhook: Value,
}

/// The webhooks that call the manager: its service, or from a configuration with our name any URL, where it runs
/// outside of the cluster.
async fn entries(cluster: &Cluster, namespace: &str) -> Result<Vec<Entry>, ApiError> {
    let mut entries = Vec::new();
    for resource in RESOURCES {
        let mut pages = cluster.pages(format!("{GROUP}/{resource}"));
        while let Some(page) = pages.next().await? {
            for configuration in page {
                let name = text(&configuration, "/metadata/name");
                let webhooks = configuration.get("webhooks").and_then(Value::as_array);
                let webhooks = webhooks.into_iter().flatten();
                let ours = webhooks.filter(|webhook| calls_the_manager(name, webhook, namespace));
                entries.extend(ours.map(|webhook| Entry {
                    configuration: name.to_owned(),
                    webhook: webhook.clone(),
                }));
            }
        }
    }
    Ok(entries)
}

/// Does a webhook of this configuration call the manager of the namespace?
fn calls_the_manager(configuration: &str, webhook: &Value, namespace: &str) -> bool {
    let service = |field: &str| text(webhook, &format!("/clientConfig/service/{field}")).to_owned();
    let has_url = !text(webhook, "/clientConfig/url").is_empty();
    (service("name") == manifests::SERVICE && service("namespace") == namespace)
        || (has_url && has_our_name(configuration))
}

/// Is it a configuration that this build replaces?
fn has_our_name(configuration: &str) -> bool {
    [manifests::MUTATING, manifests::VALIDATING].contains(&configuration)
}

/// A problem if this build does not serve the path, and the configuration is not one that it replaces.
fn not_served(entry: &Entry, served: &BTreeSet<String>) -> Option<Finding> {
    let path = text(&entry.webhook, "/clientConfig/service/path");
    if has_our_name(&entry.configuration) || served.contains(path) {
        return None;
    }
    let text = format!(
        "calls {path} of the manager in webhook {}, which this build does not serve",
        text(&entry.webhook, "/name")
    );
    let finding = Finding::problem(format!("configuration {}", entry.configuration), text);
    Some(finding.advising("remove this webhook"))
}

/// In how many namespaces new pods need a manager whatever they are, and how many namespaces there are; `None` if
/// they do not.
async fn reach(cluster: &Cluster, entries: &[Entry]) -> Result<Option<(usize, usize)>, ApiError> {
    let selectors: Vec<LabelSelector> = entries
        .iter()
        .filter(|entry| is_for_all_pods(&entry.webhook))
        .filter_map(|entry| {
            let selector = entry
                .webhook
                .get("namespaceSelector")
                .cloned()
                .unwrap_or_default();
            LabelSelector::deserialize(selector).ok()
        })
        .collect();
    if selectors.is_empty() {
        return Ok(None);
    }
    let (mut reached, mut all) = (0, 0);
    let mut pages = cluster.pages("/api/v1/namespaces");
    while let Some(page) = pages.next().await? {
        for namespace in page {
            let labels = namespace.pointer("/metadata/labels").cloned().unwrap_or_default();
            let labels = StringMap::deserialize(labels).unwrap_or_default();
            all += 1;
            reached += usize::from(selectors.iter().any(|selector| selector.matches(&labels)));
        }
    }
    Ok(Some((reached, all)))
}

/// Does the server refuse new pods of any kind while the webhook cannot be called?
fn is_for_all_pods(webhook: &Value) -> bool {
    let has = |rule: &Value, list: &str, wanted: &[&str]| {
        let texts = rule.get(list).and_then(Value::as_array).into_iter().flatten();
        texts.filter_map(Value::as_str).any(|text| wanted.contains(&text))
    };
    let rules = webhook
        .get("rules")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let conditions = webhook.get("matchConditions").and_then(Value::as_array);
    text(webhook, "/failurePolicy") != "Ignore"
        && conditions.is_none_or(Vec::is_empty)
        && rules
            .into_iter()
            .any(|rule| has(rule, "resources", &["pods", "*"]) && has(rule, "operations", &["CREATE", "*"]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_webhook_without_conditions_that_must_answer_is_for_all_pods() {
        let webhook =
            json!({"failurePolicy": "Fail", "rules": [{"resources": ["pods"], "operations": ["CREATE"]}]});
        assert!(is_for_all_pods(&webhook));
        for (field, value) in [
            ("failurePolicy", json!("Ignore")),
            ("matchConditions", json!([{"name": "x", "expression": "true"}])),
            (
                "rules",
                json!([{"resources": ["pods"], "operations": ["DELETE"]}]),
            ),
            (
                "rules",
                json!([{"resources": ["clonesets"], "operations": ["CREATE"]}]),
            ),
        ] {
            let mut other = webhook.clone();
            other[field] = value;
            assert!(!is_for_all_pods(&other), "{field}");
        }
    }

    #[test]
    fn a_manager_is_called_by_its_service_or_from_our_configurations_by_a_url() {
        let service = |name: &str, namespace: &str| json!({"clientConfig": {"service": {"name": name, "namespace": namespace}}});
        let url = json!({"clientConfig": {"url": "https://10.0.0.1:9876/mutate-pod"}});
        let ours = service(manifests::SERVICE, "kruise-system");
        for (configuration, webhook, expected) in [
            ("mine", &ours, true),
            (manifests::MUTATING, &ours, true),
            (manifests::MUTATING, &url, true),
            (manifests::VALIDATING, &url, true),
            ("mine", &url, false),
            (
                manifests::MUTATING,
                &service(manifests::SERVICE, "elsewhere"),
                false,
            ),
            (manifests::MUTATING, &service("other", "kruise-system"), false),
        ] {
            let found = calls_the_manager(configuration, webhook, "kruise-system");
            assert_eq!(found, expected, "{configuration} {webhook}");
        }
    }

    #[test]
    fn a_foreign_configuration_may_call_what_is_served_only() {
        let entry = |configuration: &str, path: &str| Entry {
            configuration: configuration.into(),
            webhook: json!({"name": "w", "clientConfig": {"service": {"path": path}}}),
        };
        let served = [table::MUTATE_POD.to_owned()].into();
        assert!(not_served(&entry("mine", table::MUTATE_POD), &served).is_none());
        assert!(
            not_served(&entry(manifests::MUTATING, "/no-such-path"), &served).is_none(),
            "it is replaced"
        );
        assert!(not_served(&entry("mine", "/no-such-path"), &served).is_some());
    }
}
