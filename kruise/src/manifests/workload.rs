//! The manager's namespace, webhook service and secret, and deployment.

use serde_json::{Value, json};

/// Parameters of the deployment.
pub struct Workload<'a> {
    /// Namespace of everything.
    pub namespace: &'a str,
    /// Image of the manager.
    pub image: &'a str,
    /// Number of managers; one leads, all serve webhooks.
    pub replicas: i32,
    /// Value of `--feature-gates`; empty leaves the defaults.
    pub feature_gates: &'a str,
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
        json!({"apiVersion": "v1", "kind": "Service",
               "metadata": {"name": "kruise-webhook-service", "namespace": namespace},
               "spec": {"selector": {"control-plane": "controller-manager"},
                        "ports": [{"port": 443, "targetPort": 9876}]}}),
        json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
               "metadata": {"name": "kruise-webhook-certs", "namespace": namespace}}),
    ]
}

/// The deployment of the manager.
pub fn deployment(workload: &Workload<'_>) -> Value {
    let mut arguments = vec![
        "--enable-leader-election".to_owned(),
        "--metrics-addr=:8080".into(),
        "--health-probe-addr=:8000".into(),
        "--logtostderr=true".into(),
        format!("--leader-election-namespace={}", workload.namespace),
        "--v=4".into(),
    ];
    if !workload.feature_gates.is_empty() {
        arguments.push(format!("--feature-gates={}", workload.feature_gates));
    }
    let labels = json!({"control-plane": "controller-manager"});
    let container = json!({
        "name": "manager",
        "image": workload.image,
        "command": ["/manager"],
        "args": arguments,
        "env": [
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "WEBHOOK_PORT", "value": "9876"},
        ],
        "ports": [
            {"containerPort": 9876, "name": "webhook-server", "protocol": "TCP"},
            {"containerPort": 8080, "name": "metrics", "protocol": "TCP"},
            {"containerPort": 8000, "name": "health", "protocol": "TCP"},
        ],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8000}},
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": 8000}, "initialDelaySeconds": 60, "periodSeconds": 20},
        "resources": {"limits": {"cpu": "200m", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "64Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "kruise-controller-manager", "namespace": workload.namespace, "labels": labels},
        "spec": {
            "replicas": workload.replicas,
            "minReadySeconds": 3,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": "100%"}},
            "template": {"metadata": {"labels": labels}, "spec": {
                "serviceAccountName": "kruise-manager",
                "terminationGracePeriodSeconds": 10,
                "securityContext": {"runAsNonRoot": true, "runAsUser": 65534},
                "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 100, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname",
                     "labelSelector": {"matchLabels": labels}}}]}},
                "containers": [container],
                "volumes": [{"name": "tmp", "emptyDir": {}}],
            }},
        },
    })
}
