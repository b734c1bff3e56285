//! The values of the chart: one table, from which its file of values, its schema, the notes and the reference are made.
//!
//! All values of the published charts 1.8 and 1.9 are in it, so that a file of values goes on working.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::manifests::agent;

/// The value of the feature gates.
pub(super) const FEATURE_GATES: &str = "featureGates";

/// What a value does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// What its description says.
    Used,
    /// Nothing, for this reason. It is accepted because files of values have it.
    None(&'static str),
}

/// A value.
#[derive(Clone, Debug)]
pub struct ChartValue {
    /// Names from the outside to the inside, joined by dots.
    pub path: &'static str,
    /// The value if none is given.
    pub default: Value,
    /// The types that it may have, as in JSON schema.
    types: &'static [&'static str],
    /// What it is for.
    pub about: &'static str,
    /// What it does.
    pub effect: Effect,
}

const BOOL: &[&str] = &["boolean"];
const TEXT: &[&str] = &["string"];
/// A number that may be written as a text.
const NUMBER: &[&str] = &["integer", "string"];
const OPTIONAL_NUMBER: &[&str] = &["integer", "null"];
const OPTIONAL_BOOL: &[&str] = &["boolean", "null"];
const OBJECT: &[&str] = &["object"];
const LIST: &[&str] = &["array"];

const NO_WINDOWS: &str = "there is no node agent for Windows";
const NO_PROFILER: &str = "the manager has no Go profiler";
const NO_AGENT_PROFILER: &str = "the node agent has no Go profiler";
const NO_GO: &str = "it finds mistakes of Go programs, and the manager is none";
const NO_RESYNC: &str = "nothing in the manager depends on a resync";

fn used(
    path: &'static str,
    default: Value,
    types: &'static [&'static str],
    about: &'static str,
) -> ChartValue {
    ChartValue {
        path,
        default,
        types,
        about,
        effect: Effect::Used,
    }
}

fn without_effect(
    path: &'static str,
    default: Value,
    types: &'static [&'static str],
    reason: &'static str,
) -> ChartValue {
    ChartValue {
        path,
        default,
        types,
        about: "accepted and ignored",
        effect: Effect::None(reason),
    }
}

/// All values, in the order in which they are documented.
pub fn all() -> Vec<ChartValue> {
    let mut values = of_installation();
    values.extend(of_manager());
    values.extend(of_managers_pods());
    values.extend(of_webhooks());
    values.extend(of_agent());
    values.extend(of_others());
    values
}

fn of_installation() -> Vec<ChartValue> {
    vec![
        used(
            "crds.managed",
            json!(true),
            BOOL,
            "install the definitions of all kinds, and update them. They stay when the release is uninstalled",
        ),
        used(
            "installation.namespace",
            json!(crate::manifests::NAMESPACE),
            TEXT,
            "namespace of the manager",
        ),
        used(
            "installation.createNamespace",
            json!(true),
            BOOL,
            "create the namespace. One that exists needs the label control-plane=openkruise, which keeps its pods away from \
             the webhook for pods",
        ),
        used(
            super::kinds::ONLY,
            json!(""),
            TEXT,
            "only these kinds, by their plural names, separated by commas: their definitions, rights and webhooks, for managers \
             that act on nothing else",
        ),
        used(
            "installation.watchNamespace",
            json!(""),
            TEXT,
            "the only namespace that managers watch: they have rights in it only, and webhooks are called for it only",
        ),
        used(
            "installation.roleListGroups",
            json!(["*"]),
            LIST,
            "API groups whose objects are counted before a protected definition is deleted; with the feature gate \
             DeletionProtectionForCRDCascadingGate",
        ),
        used(
            FEATURE_GATES,
            json!("ImagePullJobGate=true"),
            TEXT,
            "feature gates of the manager, as Name=true,Other=false",
        ),
        used(
            "externalCerts.annotations",
            json!({}),
            OBJECT,
            "annotations of the webhook configurations and definitions, for a program that injects its certificates; with the \
             feature gate EnableExternalCerts",
        ),
        without_effect("enableKubeCacheMutationDetector", json!(false), BOOL, NO_GO),
        used(
            "imagePullSecrets",
            json!([]),
            LIST,
            "secrets with the credentials of the registry, as {name: …}",
        ),
        used(
            "serviceAccount.annotations",
            json!({}),
            OBJECT,
            "annotations of the service account",
        ),
    ]
}

fn of_manager() -> Vec<ChartValue> {
    vec![
        used(
            "manager.replicas",
            json!(2),
            NUMBER,
            "managers; one leads, all answer webhooks",
        ),
        used(
            "manager.image.repository",
            json!(""),
            TEXT,
            "image of this project, which must be given",
        ),
        used(
            "manager.image.tag",
            json!(""),
            TEXT,
            "tag of the image, which must be given",
        ),
        used(
            "manager.image.pullPolicy",
            json!("IfNotPresent"),
            TEXT,
            "when the image is pulled",
        ),
        used("manager.log.level", json!("4"), NUMBER, "verbosity of the log"),
        used(
            "manager.loggingFormat",
            json!(""),
            TEXT,
            "text or json; empty means text",
        ),
        used(
            "manager.webhook.port",
            json!(9876),
            NUMBER,
            "port of the webhooks",
        ),
        used("manager.metrics.port", json!(8080), NUMBER, "port of the metrics"),
        used(
            "manager.metrics.secure",
            json!(false),
            BOOL,
            "serve metrics over TLS, to callers whose token may get the URL /metrics: bind them to the ClusterRole \
             kruise-metrics-reader",
        ),
        used(
            "manager.healthProbe.port",
            json!(8000),
            NUMBER,
            "port of the probes",
        ),
        without_effect("manager.pprofAddr", json!("localhost:8090"), TEXT, NO_PROFILER),
        without_effect("manager.resyncPeriod", json!("0"), NUMBER, NO_RESYNC),
    ]
}

fn of_managers_pods() -> Vec<ChartValue> {
    vec![
        used(
            "manager.resources",
            json!({"limits": {"cpu": "200m", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "64Mi"}}),
            OBJECT,
            "resources of a manager",
        ),
        used(
            "manager.hostNetwork",
            json!(false),
            BOOL,
            "use the network of the node, where the API server cannot reach pods",
        ),
        used(
            "manager.nodeAffinity",
            json!({}),
            OBJECT,
            "node affinity of the pods",
        ),
        used(
            "manager.nodeSelector",
            json!({}),
            OBJECT,
            "labels of the nodes that may run the pods",
        ),
        used("manager.tolerations", json!([]), LIST, "tolerations of the pods"),
        used(
            "manager.extraArgs",
            json!([]),
            LIST,
            "more flags of the manager, such as --shutdown-delay-duration=10s",
        ),
        used(
            "manager.priorityClassName",
            json!(""),
            TEXT,
            "priority class of the pods; empty means one that the chart creates",
        ),
        used(
            "manager.priorityClassPolicy",
            Value::Null,
            OPTIONAL_BOOL,
            "refuse pods of other namespaces with the priority class that the chart creates; null means from Kubernetes 1.30 on",
        ),
        used(
            "manager.podDisruptionBudget.enabled",
            json!(true),
            BOOL,
            "let at most one manager be disrupted at a time",
        ),
    ]
}

fn of_webhooks() -> Vec<ChartValue> {
    vec![
        used(
            "webhookConfiguration.timeoutSeconds",
            Value::Null,
            OPTIONAL_NUMBER,
            "time limit of all webhooks; null means one for each that fits its work",
        ),
        used(
            "webhookConfiguration.failurePolicy.pods",
            json!("Fail"),
            TEXT,
            "what happens to pods of the webhook for pods while no manager runs: Fail or Ignore. With Ignore, pods miss \
             sidecars and readiness gates",
        ),
        used(
            "webhookConfiguration.aksIntegration",
            json!(false),
            BOOL,
            "leave out the namespaces that Azure manages, as its admission enforcer demands",
        ),
    ]
}

fn of_agent() -> Vec<ChartValue> {
    vec![
        used(
            "daemon.log.level",
            json!("4"),
            NUMBER,
            "verbosity of the node agents' logs",
        ),
        used(
            "daemon.port",
            json!(agent::PORT),
            NUMBER,
            "port of metrics and health of node agents, on the network of the node",
        ),
        without_effect("daemon.enablePprof", json!(true), BOOL, NO_AGENT_PROFILER),
        without_effect(
            "daemon.pprofAddr",
            json!("localhost:10222"),
            TEXT,
            NO_AGENT_PROFILER,
        ),
        used(
            "daemon.socketLocation",
            json!(agent::SOCKET_FOLDER),
            TEXT,
            "folder of nodes below which container runtimes have their sockets",
        ),
        used(
            "daemon.socketFile",
            json!(""),
            TEXT,
            "path of the socket below that folder; empty looks for one",
        ),
        used(
            "daemon.nodeSelector",
            json!({}),
            OBJECT,
            "which nodes have an agent; always those of Linux only",
        ),
        used(
            "daemon.ownNodePolicy",
            Value::Null,
            OPTIONAL_BOOL,
            "refuse writes of node agents about other nodes, and of what is not theirs; null means from Kubernetes 1.32 on",
        ),
        used(
            "daemon.affinity",
            agent::affinity(Vec::new()),
            OBJECT,
            "which nodes have an agent",
        ),
        used(
            "daemon.resources",
            agent::resources(),
            OBJECT,
            "requests and limits of node agents",
        ),
        used(
            "daemon.extraEnvs",
            json!([]),
            LIST,
            "more variables of node agents",
        ),
        used(
            "daemon.credentialProvider.enable",
            json!(false),
            BOOL,
            "let node agents ask credential provider plugins for the passwords of registries",
        ),
        used(
            "daemon.credentialProvider.configmap",
            json!("credential-provider-config"),
            TEXT,
            "ConfigMap with CredentialProviderPlugin.yaml, the kubelet's CredentialProviderConfig",
        ),
        used(
            "daemon.credentialProvider.hostPath",
            json!("credential-provider-plugin"),
            TEXT,
            "folder of nodes with the programs of the plugins",
        ),
        used(
            "daemon.credentialProvider.awsCredentialsDir",
            json!(""),
            TEXT,
            "folder of nodes with credentials for the plugin of AWS; empty means none",
        ),
        without_effect("daemon.windowsImage", json!({}), OBJECT, NO_WINDOWS),
    ]
}

fn of_others() -> Vec<ChartValue> {
    vec![
        used(
            "helmHooks.image.repository",
            json!(""),
            TEXT,
            "image of the check before the release is uninstalled; empty and openkruise/kruise-helm-hook mean that of the \
             manager",
        ),
        used(
            "helmHooks.image.tag",
            json!(""),
            TEXT,
            "tag of that image, if it is another",
        ),
        used(
            "networkPolicy.enabled",
            json!(false),
            BOOL,
            "let only webhooks and metrics of the managers be reached",
        ),
        used(
            "networkPolicy.metricsFrom",
            json!([]),
            LIST,
            "who may read metrics, as in the field `from` of a NetworkPolicy; empty means everybody",
        ),
        used(
            "networkPolicy.webhooksFrom",
            json!([]),
            LIST,
            "who may call webhooks, as in the field `from` of a NetworkPolicy: the addresses of all API servers; empty means everybody",
        ),
        used(
            "serviceMonitor.enabled",
            json!(false),
            BOOL,
            "create a ServiceMonitor, for the Prometheus operator",
        ),
        used(
            "serviceMonitor.interval",
            json!("30s"),
            TEXT,
            "time between two scrapes",
        ),
        used(
            "serviceMonitor.labels",
            json!({}),
            OBJECT,
            "labels of the ServiceMonitor",
        ),
        used(
            "prometheusRule.enabled",
            json!(false),
            BOOL,
            "create a PrometheusRule with alerts, for the Prometheus operator",
        ),
        used(
            "prometheusRule.labels",
            json!({}),
            OBJECT,
            "labels of the PrometheusRule",
        ),
        used(
            "dashboards.enabled",
            json!(false),
            BOOL,
            "create ConfigMaps with dashboards, for the sidecar of Grafana",
        ),
        used(
            "dashboards.labels",
            json!({"grafana_dashboard": "1"}),
            OBJECT,
            "labels of these ConfigMaps",
        ),
    ]
}

/// The file `values.yaml`, with a comment for each value.
pub(super) fn file() -> String {
    let mut text = "# Values of the chart kruise. A value that has no effect says why.\n".to_owned();
    let mut open: Vec<&str> = Vec::new();
    for value in grouped() {
        let names: Vec<&str> = value.path.split('.').collect();
        let Some((last, parents)) = names.split_last() else {
            continue;
        };
        let shared = open
            .iter()
            .zip(parents)
            .take_while(|(one, other)| one == other)
            .count();
        for (depth, name) in parents.iter().enumerate().skip(shared) {
            let _ = writeln!(text, "{}{name}:", "  ".repeat(depth));
        }
        let blanks = "  ".repeat(parents.len());
        let about = match value.effect {
            Effect::Used => value.about.to_owned(),
            Effect::None(reason) => format!("No effect: {reason}"),
        };
        let _ = writeln!(text, "{blanks}# {about}.\n{blanks}{last}: {}", value.default);
        open = parents.to_vec();
    }
    text
}

/// The values with those of one parent side by side, at every depth.
fn grouped() -> Vec<ChartValue> {
    let values = all();
    let mut order: Vec<String> = Vec::new();
    for value in &values {
        let mut path = String::new();
        for name in value.path.split('.') {
            path = format!("{path}/{name}");
            if !order.contains(&path) {
                order.push(path.clone());
            }
        }
    }
    let place = |value: &ChartValue| -> Vec<usize> {
        let mut path = String::new();
        let names = value.path.split('.').map(|name| {
            path = format!("{path}/{name}");
            order.iter().position(|known| *known == path).unwrap_or_default()
        });
        names.collect()
    };
    let mut values = values;
    values.sort_by_key(place);
    values
}

/// The file `values.schema.json`. A value that does not exist is refused by its name.
pub(super) fn schema() -> Value {
    let mut tree = Map::new();
    for value in all() {
        let mut own = json!({"type": value.types, "description": value.about});
        if let (Some(own), Some(choice)) = (own.as_object_mut(), choice(value.path)) {
            own.insert("enum".into(), choice);
        }
        insert(&mut tree, value.path, own);
    }
    // Helm gives it to all charts of a release.
    tree.insert("global".into(), json!({"type": "object"}));
    let mut schema = object(tree);
    if let Some(schema) = schema.as_object_mut() {
        let draft = "https://json-schema.org/draft-07/schema#";
        schema.insert("$schema".into(), json!(draft));
    }
    schema
}

/// Inserts a schema at a path. Objects on the way accept no other properties.
fn insert(tree: &mut Map<String, Value>, path: &str, schema: Value) {
    let Some((name, rest)) = path.split_once('.') else {
        tree.insert(path.to_owned(), schema);
        return;
    };
    let inner = tree.entry(name).or_insert_with(|| object(Map::new()));
    if let Some(properties) = inner.get_mut("properties").and_then(Value::as_object_mut) {
        insert(properties, rest, schema);
    }
}

fn object(properties: Map<String, Value>) -> Value {
    json!({"type": "object", "additionalProperties": false, "properties": properties})
}

fn choice(path: &str) -> Option<Value> {
    match path {
        "webhookConfiguration.failurePolicy.pods" => Some(json!(["Fail", "Ignore"])),
        "manager.loggingFormat" => Some(json!(["", "text", "json"])),
        "manager.image.pullPolicy" => Some(json!(["Always", "IfNotPresent", "Never"])),
        _ => None,
    }
}

/// Lines of the notes: values that are set and have no effect.
pub(super) fn notes() -> String {
    let mut text = String::new();
    for value in all() {
        if let Effect::None(reason) = value.effect {
            let (path, default) = (value.path, &value.default);
            let _ = writeln!(
                text,
                "{{{{- if ne (toJson .Values.{path}) `{default}` }}}}\n- {path} has no effect: {reason}.\n{{{{- end }}}}"
            );
        }
    }
    text
}

/// Rows of the reference.
pub(super) fn table() -> String {
    let mut text = "| Value | Default | What |\n|---|---|---|\n".to_owned();
    for value in grouped() {
        let about = match value.effect {
            Effect::Used => value.about.to_owned(),
            Effect::None(reason) => format!("no effect: {reason}"),
        };
        let _ = writeln!(text, "| `{}` | `{}` | {about} |", value.path, value.default);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_file_of_values_has_every_default_at_its_path_once() {
        let read: Value = serde_saphyr::from_str(&file()).unwrap();
        for value in all() {
            let pointer = format!("/{}", value.path.replace('.', "/"));
            assert_eq!(read.pointer(&pointer), Some(&value.default), "{pointer}");
        }
        let paths: BTreeSet<&str> = all().iter().map(|value| value.path).collect();
        assert_eq!(paths.len(), all().len());
    }

    /// Names from the values of the published charts 1.8 and 1.9, and from what their pages document.
    #[test]
    fn every_value_of_the_published_charts_is_accepted() {
        let paths: BTreeSet<&str> = all().iter().map(|value| value.path).collect();
        for path in include_str!("../../../kruise/tests/data/chart/upstream-values.txt").lines() {
            assert!(paths.contains(path), "{path}");
        }
    }

    #[test]
    fn the_schema_refuses_what_no_value_is_called() {
        let schema = schema();
        assert_eq!(schema["additionalProperties"], false);
        let manager = &schema["properties"]["manager"];
        assert_eq!(manager["additionalProperties"], false);
        assert_eq!(
            manager["properties"]["replicas"]["type"],
            json!(["integer", "string"])
        );
        let pods = &schema["properties"]["webhookConfiguration"]["properties"]["failurePolicy"]["properties"]
            ["pods"];
        assert_eq!(pods["enum"], json!(["Fail", "Ignore"]));
        assert_eq!(schema["properties"]["global"]["type"], "object");
    }

    #[test]
    fn a_value_without_effect_is_noted_if_it_is_set() {
        let line = "{{- if ne (toJson .Values.daemon.enablePprof) `true` }}\n- daemon.enablePprof has no effect: the node agent has";
        assert!(notes().contains(line), "{}", notes());
    }
}
