//! The manager's namespace, webhook service and secret, and deployment. The deployment passes Pod Security
//! "restricted".

use kruise_frame::profile::{FLAG, Profile};
use serde_json::{Value, json};

/// Name of the deployment, and of the objects beside it.
pub const DEPLOYMENT: &str = "kruise-controller-manager";

/// Time from the signal to the end of a manager that has requests in flight: it serves until clients have moved
/// (`--shutdown-delay-duration`), answers what is in flight, and writes its last events.
const GRACE_SECONDS: u32 = 75;

/// A port: in a text, and as a value of its own.
pub struct Port {
    /// As a flag or variable has it.
    pub text: String,
    /// As a field has it.
    pub value: Value,
}

impl Port {
    /// A number.
    pub fn of(number: u16) -> Self {
        Self {
            text: number.to_string(),
            value: json!(number),
        }
    }
}

/// Parameters of the deployment. In a chart they are actions of its templates.
pub struct Workload<'a> {
    /// Namespace of everything.
    pub namespace: &'a str,
    /// Image of the manager.
    pub image: &'a str,
    /// Number of managers; one leads, all serve webhooks.
    pub replicas: Value,
    /// Flags beside those that every manager has.
    pub more_arguments: Vec<Value>,
    /// Value of `--v`.
    pub log_level: &'a str,
    /// Port of the webhooks.
    pub webhooks: Port,
    /// Port of the metrics.
    pub metrics: Port,
    /// Port of the probes.
    pub probes: Port,
    /// Requests and limits.
    pub resources: Value,
}

impl<'a> Workload<'a> {
    /// With the default of everything else, for a manager of these kinds that may watch one namespace only. Empty
    /// feature gates leave the defaults.
    pub fn new(
        namespace: &'a str,
        image: &'a str,
        replicas: i32,
        feature_gates: &str,
        (profile, watched): (&Profile, Option<&str>),
    ) -> Self {
        let gates = (!feature_gates.is_empty()).then(|| json!(format!("--feature-gates={feature_gates}")));
        Self {
            namespace,
            image,
            replicas: json!(replicas),
            more_arguments: gates
                .into_iter()
                .chain(only(profile))
                .chain(watched.map(|namespace| json!(format!("--namespace={namespace}"))))
                .collect(),
            log_level: "4",
            webhooks: Port::of(9876),
            metrics: Port::of(8080),
            probes: Port::of(8000),
            resources: json!({"limits": {"cpu": "200m", "memory": "512Mi"},
                              "requests": {"cpu": "100m", "memory": "64Mi"}}),
        }
    }
}

/// The flag of a manager that acts on some kinds only.
fn only(profile: &Profile) -> Option<Value> {
    profile.is_partial().then(|| json!(format!("--{FLAG}={profile}")))
}

/// The namespace, which must be applied before the objects in it.
pub fn namespace(name: &str) -> Value {
    // The label excludes the manager's pods from the pod webhook. Without it, no manager could start while none runs.
    json!({"apiVersion": "v1", "kind": "Namespace",
           "metadata": {"name": name, "labels": {"control-plane": "openkruise"}}})
}

/// Service and secret of the webhooks.
pub fn webhook_objects(namespace: &str) -> Vec<Value> {
    vec![
        service(namespace, &json!(9876)),
        json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
               "metadata": {"name": "kruise-webhook-certs", "namespace": namespace}}),
    ]
}

/// The service of the webhooks.
pub fn service(namespace: &str, port: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service",
           "metadata": {"name": "kruise-webhook-service", "namespace": namespace},
           "spec": {"selector": labels(), "ports": [{"port": 443, "targetPort": port}]}})
}

/// The deployment of the manager, its disruption budget, and its priority with the quota that goes with it.
pub fn deployment(workload: &Workload<'_>) -> Vec<Value> {
    let labels = labels();
    let priority = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": DEPLOYMENT},
        // The highest value of a class that is not part of Kubernetes. Those that are cannot be used in every
        // namespace.
        "value": 1_000_000_000,
        "description": "Managers of Kruise: while none runs, workloads stand still and webhooks fail.",
    });
    // Clusters that limit priorities ask for a quota where pods have one. This one allows any number of pods.
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": DEPLOYMENT, "namespace": workload.namespace},
        "spec": {"hard": {"pods": "1G"}, "scopeSelector": {"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": "In", "values": [DEPLOYMENT]},
        ]}},
    });
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": DEPLOYMENT, "namespace": workload.namespace},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels}},
    });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": DEPLOYMENT, "namespace": workload.namespace, "labels": labels},
        "spec": {
            "replicas": workload.replicas,
            "minReadySeconds": 3,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": "100%"}},
            "template": {"metadata": {"labels": labels}, "spec": pod(workload)},
        },
    });
    vec![priority, quota, budget, deployment]
}

/// Labels of the managers' pods, by which they are selected.
pub fn labels() -> Value {
    json!({"control-plane": "controller-manager"})
}

fn pod(workload: &Workload<'_>) -> Value {
    // Soft, because a cluster may have one node, and during a rollout there are twice as many managers.
    let spread = |topology: &str| {
        json!({"topologyKey": topology, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway",
               "labelSelector": {"matchLabels": labels()}, "matchLabelKeys": ["pod-template-hash"]})
    };
    json!({
        "serviceAccountName": "kruise-manager",
        "priorityClassName": DEPLOYMENT,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "securityContext": without_rights(),
        "topologySpreadConstraints": [spread("kubernetes.io/hostname"), spread("topology.kubernetes.io/zone")],
        "containers": [container(workload)],
        "volumes": [
            // Keys are written here, which must not reach a disk.
            {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
            {"name": "log", "emptyDir": {"sizeLimit": "192Mi"}},
        ],
    })
}

fn container(workload: &Workload<'_>) -> Value {
    let (webhooks, metrics, probes) = (&workload.webhooks, &workload.metrics, &workload.probes);
    let arguments = [
        "--enable-leader-election".to_owned(),
        format!("--metrics-addr=:{}", metrics.text),
        format!("--health-probe-addr=:{}", probes.text),
        "--logtostderr=true".into(),
        format!("--leader-election-namespace={}", workload.namespace),
        format!("--v={}", workload.log_level),
    ];
    let arguments = arguments.into_iter().map(Value::String);
    let arguments: Vec<Value> = arguments.chain(workload.more_arguments.iter().cloned()).collect();
    json!({
        "name": "manager",
        "image": workload.image,
        "command": ["/manager"],
        "args": arguments,
        "env": [
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "WEBHOOK_PORT", "value": webhooks.text},
        ],
        "ports": [
            {"containerPort": webhooks.value, "name": "webhook-server", "protocol": "TCP"},
            {"containerPort": metrics.value, "name": "metrics", "protocol": "TCP"},
            {"containerPort": probes.value, "name": "health", "protocol": "TCP"},
        ],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": probes.value}},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": probes.value}, "initialDelaySeconds": 60,
                          "periodSeconds": 20},
        "resources": workload.resources,
        "securityContext": restricted(),
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, {"name": "log", "mountPath": "/log"}],
    })
}

/// What Pod Security "restricted" asks of a container.
pub fn restricted() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": true,
    })
}

/// What Pod Security "restricted" asks of a pod.
pub fn without_rights() -> Value {
    json!({
        "runAsNonRoot": true,
        "runAsUser": 65534,
        "seccompProfile": {"type": "RuntimeDefault"},
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use go_compat::flags::FlagSet;

    use super::*;
    use kruise_frame::config::Config;
    use kruise_manager::{FLAGS, longest_end};

    fn installed() -> Vec<Value> {
        deployment(&Workload::new("ns", "image", 2, "", (&Profile::default(), None)))
    }

    #[test]
    fn the_grace_period_covers_the_longest_end_of_a_manager() {
        let config = Config::new(
            &FlagSet::new(&FLAGS).parse([""; 0]).unwrap(),
            kruise_kinds::limits(),
            kruise_kinds::kinds(),
            &|_| None,
        )
        .unwrap();
        let needed = longest_end(&config);
        assert!(Duration::from_secs(GRACE_SECONDS.into()) > needed, "{needed:?}");
    }

    #[test]
    fn the_deployment_has_what_pod_security_restricted_asks_for() {
        let installed = installed();
        let pod = installed[3].pointer("/spec/template/spec").unwrap();
        for host in ["hostNetwork", "hostPID", "hostIPC"] {
            assert_eq!(pod.get(host), None);
        }
        let context = &pod["securityContext"];
        assert_eq!(context["runAsNonRoot"], true);
        assert!(context["runAsUser"].as_u64() > Some(0));
        assert_eq!(context["seccompProfile"], json!({"type": "RuntimeDefault"}));
        let volumes = pod["volumes"].as_array().unwrap();
        let keys = volumes.iter().find(|volume| volume["name"] == "tmp").unwrap();
        assert_eq!(keys["emptyDir"]["medium"], "Memory", "keys do not reach a disk");
        assert!(volumes.iter().all(|volume| volume.get("emptyDir").is_some()));
        for container in pod["containers"].as_array().unwrap() {
            let context = &container["securityContext"];
            assert_eq!(context["allowPrivilegeEscalation"], false);
            assert_eq!(context["capabilities"], json!({"drop": ["ALL"]}));
        }
    }

    #[test]
    fn managers_are_spread_and_few_are_disrupted_at_a_time() {
        let installed = installed();
        let [priority, quota, budget, deployment] = &installed[..] else {
            panic!("{installed:?}")
        };
        let pod = deployment.pointer("/spec/template").unwrap();
        let class = &pod["spec"]["priorityClassName"];
        assert_eq!(*class, priority["metadata"]["name"]);
        let scope = quota.pointer("/spec/scopeSelector/matchExpressions/0/values/0");
        assert_eq!(scope, Some(class));
        let selector = |object: &Value, at: &str| object.pointer(at).unwrap()["matchLabels"].clone();
        assert_eq!(selector(budget, "/spec/selector"), pod["metadata"]["labels"]);
        assert_eq!(budget["spec"]["maxUnavailable"], 1);
        let spread = pod["spec"]["topologySpreadConstraints"].as_array().unwrap();
        assert!(
            spread
                .iter()
                .all(|one| selector(one, "/labelSelector") == pod["metadata"]["labels"])
        );
        assert_eq!(spread[0]["topologyKey"], "kubernetes.io/hostname");
    }
}
