//! The manager's namespace, webhook service and secret, and deployment. The deployment passes Pod Security "restricted".

use serde_json::{Value, json};

/// Name of the deployment, and of the objects beside it.
const DEPLOYMENT: &str = "kruise-controller-manager";

/// Time from the signal to the end of a manager that has requests in flight: it serves until clients have moved
/// (`--shutdown-delay-duration`), answers what is in flight, and writes its last events.
const GRACE_SECONDS: u32 = 75;

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

/// The deployment of the manager, its disruption budget, and its priority.
pub fn deployment(workload: &Workload<'_>) -> Vec<Value> {
    let labels = labels();
    let priority = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": DEPLOYMENT},
        // The highest value of a class that is not part of Kubernetes. Those that are cannot be used in every namespace.
        "value": 1_000_000_000,
        "description": "Managers of Kruise: while none runs, workloads stand still and webhooks fail.",
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
    vec![priority, budget, deployment]
}

fn labels() -> Value {
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
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [spread("kubernetes.io/hostname"), spread("topology.kubernetes.io/zone")],
        "containers": [container(workload)],
        // Keys are written here, which must not reach a disk.
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
    })
}

fn container(workload: &Workload<'_>) -> Value {
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
    json!({
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
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use go_compat::flags::FlagSet;

    use super::*;
    use crate::manager::{Config, FLAGS, longest_end};

    fn installed() -> Vec<Value> {
        deployment(&Workload {
            namespace: "ns",
            image: "image",
            replicas: 2,
            feature_gates: "",
        })
    }

    #[test]
    fn the_grace_period_covers_the_longest_end_of_a_manager() {
        let config = Config::new(&FlagSet::new(&FLAGS).parse([""; 0]).unwrap(), &|_| None).unwrap();
        let needed = longest_end(&config);
        assert!(Duration::from_secs(GRACE_SECONDS.into()) > needed, "{needed:?}");
    }

    #[test]
    fn the_deployment_has_what_pod_security_restricted_asks_for() {
        let installed = installed();
        let pod = installed[2].pointer("/spec/template/spec").unwrap();
        for host in ["hostNetwork", "hostPID", "hostIPC"] {
            assert_eq!(pod.get(host), None);
        }
        let context = &pod["securityContext"];
        assert_eq!(context["runAsNonRoot"], true);
        assert!(context["runAsUser"].as_u64() > Some(0));
        assert_eq!(context["seccompProfile"], json!({"type": "RuntimeDefault"}));
        for volume in pod["volumes"].as_array().unwrap() {
            assert_eq!(volume["emptyDir"]["medium"], "Memory", "keys do not reach a disk");
        }
        for container in pod["containers"].as_array().unwrap() {
            let context = &container["securityContext"];
            assert_eq!(context["allowPrivilegeEscalation"], false);
            assert_eq!(context["capabilities"], json!({"drop": ["ALL"]}));
        }
    }

    #[test]
    fn managers_are_spread_and_few_are_disrupted_at_a_time() {
        let installed = installed();
        let [priority, budget, deployment] = &installed[..] else {
            panic!("{installed:?}")
        };
        let pod = deployment.pointer("/spec/template").unwrap();
        assert_eq!(pod["spec"]["priorityClassName"], priority["metadata"]["name"]);
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
