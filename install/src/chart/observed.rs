//! What watches and shields the managers: a service for metrics, a monitor, alerts, a network policy. All are off
//! by default.

use serde_json::{Value, json};

use super::objects::{NAMESPACE, SECURE, Templated, value};
use super::yaml::{action, optional, put};
use crate::manifests::workload::{DEPLOYMENT, labels};

const MONITOR: &str = ".Values.serviceMonitor.enabled";
const METRICS: &str = "kruise-controller-manager-metrics";

/// All of them.
pub(super) fn objects() -> Vec<Templated> {
    vec![
        Templated::with(MONITOR, service()),
        Templated::with(MONITOR, monitor()),
        Templated::with(".Values.prometheusRule.enabled", alerts()),
        Templated::with(".Values.networkPolicy.enabled", policy()),
    ]
}

fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": METRICS, "namespace": NAMESPACE, "labels": {"app.kubernetes.io/name": METRICS}},
        "spec": {"clusterIP": "None", "selector": labels(), "ports": [{
            "name": "metrics", "port": action(".Values.manager.metrics.port"), "targetPort": "metrics",
        }]},
    })
}

/// With secure metrics, Prometheus shows its own token, and trusts the CA of the managers.
fn monitor() -> Value {
    let mut endpoint = json!({"port": "metrics", "interval": "{{ .Values.serviceMonitor.interval }}"});
    let token = "/var/run/secrets/kubernetes.io/serviceaccount/token";
    let trust = json!({
        "ca": {"secret": {"name": "kruise-webhook-certs", "key": "ca.crt"}},
        "serverName": format!("kruise-webhook-service.{NAMESPACE}.svc"),
    });
    for (field, value) in [
        ("scheme", json!("https")),
        ("bearerTokenFile", json!(token)),
        ("tlsConfig", trust),
    ] {
        put(&mut endpoint, "", &optional(SECURE, field), value);
    }
    json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor",
        "metadata": {"name": DEPLOYMENT, "namespace": NAMESPACE, "labels": value("serviceMonitor.labels")},
        "spec": {
            "selector": {"matchLabels": {"app.kubernetes.io/name": METRICS}},
            "endpoints": [endpoint],
        },
    })
}

/// An alert: name, expression, how long it must hold, severity, what it means.
const ALERTS: [(&str, &str, &str, &str, &str); 5] = [
    (
        "KruiseWithoutLeader",
        "max(kruise_manager_is_leader) < 1 or absent(kruise_manager_is_leader)",
        "2m",
        "critical",
        "No manager leads: workloads stand still.",
    ),
    (
        "KruiseReconcilesFail",
        "sum by (controller) (rate(controller_runtime_reconcile_errors_total[5m])) > 0.1",
        "15m",
        "warning",
        "A controller has failed again and again for a quarter of an hour.",
    ),
    (
        "KruiseReconcileStuck",
        "max by (controller) (workqueue_longest_running_processor_seconds) > 120",
        "5m",
        "warning",
        "A reconcile has been under way for minutes.",
    ),
    (
        "KruiseWebhooksFail",
        "sum by (webhook) (rate(controller_runtime_webhook_requests_total{code=~\"5..\"}[5m])) > 0",
        "5m",
        "critical",
        "A webhook answers with errors: requests of users are refused.",
    ),
    (
        "KruiseCertificatesNotKept",
        "time() - max(webhook_controller_last_success_timestamp_seconds) > 900",
        "5m",
        "warning",
        "Certificates and webhook configurations have not been checked for a quarter of an hour.",
    ),
];

fn alerts() -> Value {
    let rules = ALERTS.map(|(name, expression, duration, severity, summary)| {
        json!({"alert": name, "expr": expression, "for": duration, "labels": {"severity": severity},
               "annotations": {"summary": summary}})
    });
    json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
        "metadata": {"name": DEPLOYMENT, "namespace": NAMESPACE, "labels": value("prometheusRule.labels")},
        "spec": {"groups": [{"name": "kruise", "rules": rules}]},
    })
}

/// Each port is open to everybody, unless a value says by whom it may be reached. The API server has no labels by
/// which it could be selected, so that only its addresses can say who calls the webhooks. Probes come from nodes.
fn policy() -> Value {
    let port = |name: &str| json!({"protocol": "TCP", "port": name});
    let mut ingress = vec![json!({"ports": [port("health")]})];
    for (name, from) in [
        ("webhook-server", "networkPolicy.webhooksFrom"),
        ("metrics", "networkPolicy.metricsFrom"),
    ] {
        let mut rule = json!({"ports": [port(name)]});
        put(
            &mut rule,
            "",
            &optional(&format!(".Values.{from}"), "from"),
            value(from),
        );
        ingress.push(rule);
    }
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": DEPLOYMENT, "namespace": NAMESPACE},
        "spec": {
            "podSelector": {"matchLabels": labels()},
            "policyTypes": ["Ingress"],
            "ingress": ingress,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kruise_kinds as controllers;

    /// Metrics that an expression reads: words that are followed by neither a parenthesis nor an equals sign.
    fn metrics(expression: &str) -> Vec<String> {
        let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let words = words.filter(|word| word.contains('_')).map(str::to_owned);
        words.collect()
    }

    #[test]
    fn alerts_read_metrics_that_exist_and_each_has_a_page() {
        let reference = include_str!("../../../docs/reference/manager.md");
        let page = include_str!("../../../docs/alerts.md");
        assert!(!controllers::metrics().is_empty());
        for (name, expression, ..) in ALERTS {
            let read = metrics(expression);
            assert!(!read.is_empty(), "{expression}");
            for metric in read {
                assert!(reference.contains(&format!("| `{metric}` |")), "{name}: {metric}");
            }
            assert!(page.contains(&format!("\n## {name}\n")), "{name} has no page");
        }
    }
}
