//! The objects of the chart: those of `kruise manifests`, with values and conditions in the place of options.

use kruise_admission::manifests as webhooks;
use kruise_api::definition::Kind;
use kruise_frame::{gates::NEED_ALL_PODS, profile::Profile};
use serde_json::{Value, json};

use super::kinds::{self, ONLY};
use super::yaml::{action, each, optional, put, when};
use crate::manifests::{
    self,
    policy::{self, KubeVersion},
    reach,
    workload::{self, DEPLOYMENT, Port, Workload},
};

/// An object, and the expression that says whether it exists; none if it always does.
#[derive(Clone, Debug)]
pub(super) struct Templated {
    pub(super) condition: Option<String>,
    pub(super) object: Value,
}

impl Templated {
    pub(super) fn always(object: Value) -> Self {
        Self {
            condition: None,
            object,
        }
    }

    pub(super) fn with(condition: &str, object: Value) -> Self {
        Self {
            condition: Some(condition.to_owned()),
            object,
        }
    }
}

/// The manager's namespace, in a text.
pub(super) const NAMESPACE: &str = "{{ .Values.installation.namespace }}";
/// The manager's image, in a text.
pub(super) const IMAGE: &str = "{{ include `kruise.image` . }}";

/// The only namespace that the manager watches, if there is one.
pub(super) const WATCHED: &str = ".Values.installation.watchNamespace";

/// An action that prints a value of the chart.
pub(super) fn value(path: &str) -> Value {
    action(&format!("toJson .Values.{path}"))
}

/// A number, which a value may also have as a text.
pub(super) fn number(path: &str) -> Value {
    action(&format!(".Values.{path}"))
}

/// A port that a value gives.
pub(super) fn port(path: &str) -> Port {
    Port {
        text: format!("{{{{ .Values.{path} }}}}"),
        value: number(path),
    }
}

/// The namespace.
pub(super) fn namespace() -> Vec<Templated> {
    vec![Templated::with(
        ".Values.installation.createNamespace",
        workload::namespace(NAMESPACE),
    )]
}

/// The managers: deployment, disruption budget, priority class, and the service of the webhooks.
pub(super) fn manager() -> Vec<Templated> {
    let replicas = number("manager.replicas");
    let workload = Workload {
        namespace: NAMESPACE,
        image: IMAGE,
        replicas,
        more_arguments: arguments(),
        log_level: "{{ .Values.manager.log.level }}",
        webhooks: port("manager.webhook.port"),
        metrics: port("manager.metrics.port"),
        probes: port("manager.healthProbe.port"),
        resources: value("manager.resources"),
    };
    let mut objects: Vec<Templated> = workload::deployment(&workload)
        .into_iter()
        .map(|mut object| match object.get("kind").and_then(Value::as_str) {
            Some("PriorityClass") => Templated::with(OWN_CLASS, object),
            Some("ResourceQuota") => {
                let term = "/spec/scopeSelector/matchExpressions/0";
                let classes = format!("list ({}) | toJson", class());
                put(&mut object, term, "values", action(&classes));
                Templated::always(object)
            }
            Some("PodDisruptionBudget") => {
                Templated::with(".Values.manager.podDisruptionBudget.enabled", object)
            }
            _ => Templated::always(placed(object)),
        })
        .collect();
    let service = workload::service(NAMESPACE, &number("manager.webhook.port"));
    objects.push(Templated::always(service));
    let is_wanted = wanted_policy("manager.priorityClassPolicy", KubeVersion::WITH_POLICIES);
    let condition = format!("and ({OWN_CLASS}) {is_wanted}");
    let policy = policy::of_priority(NAMESPACE).into_iter();
    objects.extend(policy.map(|object| Templated::with(&condition, object)));
    objects
}

/// Holds if metrics are served over TLS, to callers that may read them.
pub(super) const SECURE: &str = ".Values.manager.metrics.secure";

/// Holds if the chart creates the priority class of the managers.
const OWN_CLASS: &str = "not .Values.manager.priorityClassName";

/// The expression of the priority class of the managers.
fn class() -> String {
    format!("default `{DEPLOYMENT}` .Values.manager.priorityClassName")
}

/// The expression that holds if a policy is wanted: as a value says, or if it is null, from this version of the
/// server on.
pub(super) fn wanted_policy(value: &str, since: KubeVersion) -> String {
    format!(
        "(ternary (semverCompare `>={since}.0-0` .Capabilities.KubeVersion.Version) .Values.{value} (kindIs `invalid` .Values.{value}))"
    )
}

fn arguments() -> Vec<Value> {
    vec![
        when(
            ".Values.featureGates",
            vec![json!("--feature-gates={{ .Values.featureGates }}")],
        ),
        when(
            ".Values.manager.loggingFormat",
            vec![json!("--logging-format={{ .Values.manager.loggingFormat }}")],
        ),
        when(
            &format!(".Values.{ONLY}"),
            vec![json!(format!("--only={{{{ .Values.{ONLY} }}}}"))],
        ),
        when(WATCHED, vec![json!(format!("--namespace={{{{ {WATCHED} }}}}"))]),
        when(SECURE, vec![json!("--metrics-secure")]),
        each(".Values.manager.extraArgs", vec![action("toJson .")]),
    ]
}

/// A deployment with the values that say where its pods run.
fn placed(mut deployment: Value) -> Value {
    let pod = "/spec/template/spec";
    put(&mut deployment, pod, "priorityClassName", action(&class()));
    put(
        &mut deployment,
        "/spec/template/spec/containers/0",
        "imagePullPolicy",
        number("manager.image.pullPolicy"),
    );
    for (path, field) in PLACEMENT {
        let key = optional(&format!(".Values.{path}"), field);
        put(&mut deployment, pod, &key, value(path));
    }
    put(
        &mut deployment,
        pod,
        &optional(".Values.manager.nodeAffinity", "affinity"),
        json!({"nodeAffinity": value("manager.nodeAffinity")}),
    );
    deployment
}

/// Values that are fields of a pod, if they are set.
pub(super) const PLACEMENT: [(&str, &str); 4] = [
    ("imagePullSecrets", "imagePullSecrets"),
    ("manager.hostNetwork", "hostNetwork"),
    ("manager.nodeSelector", "nodeSelector"),
    ("manager.tolerations", "tolerations"),
];

/// The definition of a kind, which stays when the release is uninstalled.
pub(super) fn definition(kind: &Kind) -> Templated {
    let mut definition = kind.manifest(NAMESPACE);
    let annotations =
        "merge (dict `helm.sh/resource-policy` `keep`) .Values.externalCerts.annotations | toJson";
    put(&mut definition, "/metadata", "annotations", action(annotations));
    let condition = format!("and .Values.crds.managed {}", kinds::is_wanted(kind.plural));
    Templated::with(&condition, definition)
}

/// The webhook configurations.
pub(super) fn configurations() -> Vec<Templated> {
    let all = Profile::default();
    let narrow = manifests::configurations(NAMESPACE, false, &all).into_iter();
    let wide = manifests::configurations(NAMESPACE, true, &all);
    let both = narrow.zip(wide).map(|(mut narrow, wide)| {
        let annotations = "merge (dict `template` ``) .Values.externalCerts.annotations | toJson";
        put(&mut narrow, "/metadata", "annotations", action(annotations));
        let listed = |of: &Value| of.get("webhooks").and_then(Value::as_array).cloned();
        let wide = listed(&wide).unwrap_or_default();
        let entries = listed(&narrow).unwrap_or_default().into_iter();
        let entries = entries.map(|entry| {
            let name = entry.get("name");
            let same = wide.iter().filter(|other| other.get("name") == name);
            let is_narrowed = entry.get("matchConditions").is_some()
                && same
                    .into_iter()
                    .any(|other| other.get("matchConditions").is_none());
            webhook(entry, is_narrowed)
        });
        let entries: Vec<Value> = entries.collect();
        put(&mut narrow, "", "webhooks", Value::Array(entries));
        Templated::always(narrow)
    });
    both.collect()
}

/// A webhook. If it `is_narrowed`, it has its conditions only without the gates that need all pods.
fn webhook(mut entry: Value, is_narrowed: bool) -> Value {
    if let Some(seconds) = entry.get("timeoutSeconds").cloned() {
        let limit = format!("default {seconds} .Values.webhookConfiguration.timeoutSeconds");
        put(&mut entry, "", "timeoutSeconds", action(&limit));
    }
    if is_narrowed
        && let Some(conditions) = entry
            .as_object_mut()
            .and_then(|entry| entry.remove("matchConditions"))
    {
        let gates: Vec<String> = NEED_ALL_PODS
            .iter()
            .map(|(gate, _)| format!("(index $gates `{gate}`)"))
            .collect();
        let key = optional(&format!("not (or {})", gates.join(" ")), "matchConditions");
        put(&mut entry, "", &key, conditions);
    }
    limit_namespaces(&mut entry);
    let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
    if let Some(kind) = kinds::of_webhook(name) {
        return when(&kinds::is_wanted(kind.plural), vec![entry]);
    }
    let path = entry
        .pointer("/clientConfig/service/path")
        .and_then(Value::as_str);
    if path.is_some_and(|path| OF_PODS.contains(&path)) {
        put(
            &mut entry,
            "",
            "failurePolicy",
            number("webhookConfiguration.failurePolicy.pods"),
        );
        return when("(index $gates `PodWebhook`)", vec![entry]);
    }
    entry
}

/// Paths of the webhooks for pods.
const OF_PODS: [&str; 2] = [webhooks::MUTATE_POD, "/validate-pod"];

/// With the values for it, a webhook is not called for the namespaces of a provider, or only for the watched one.
fn limit_namespaces(entry: &mut Value) {
    const AZURE: &str = ".Values.webhookConfiguration.aksIntegration";
    let managed = json!({"key": "kubernetes.azure.com/managedby", "operator": "NotIn", "values": ["aks"]});
    let control_plane =
        |values: Value| json!({"key": webhooks::CONTROL_PLANE, "operator": "NotIn", "values": values});
    let watched = when(WATCHED, vec![reach::selected(&format!("{{{{ {WATCHED} }}}}"))]);
    let terms = "/namespaceSelector/matchExpressions";
    let Some(terms) = entry.pointer_mut(terms).and_then(Value::as_array_mut) else {
        let azure = when(AZURE, vec![control_plane(json!(["true"])), managed]);
        let key = optional(&format!("or {AZURE} {WATCHED}"), "namespaceSelector");
        put(entry, "", &key, json!({"matchExpressions": [azure, watched]}));
        return;
    };
    let own = terms
        .iter_mut()
        .find(|term| term["key"] == webhooks::CONTROL_PLANE);
    let mut more = vec![managed];
    match own.and_then(|term| term["values"].as_array_mut()) {
        Some(values) => values.push(when(AZURE, vec![json!("true")])),
        None => more.push(control_plane(json!(["true"]))),
    }
    terms.push(when(AZURE, more));
    terms.push(watched);
}
