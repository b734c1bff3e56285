//! Objects that sequences work with: per resource a good one, changes of it, and bad ones.

use serde_json::{Value, json};

/// A resource that sequences work with.
pub struct Sample {
    /// Path below the server's root up to the collection, with `$ns`.
    pub path: &'static str,
    pub api_version: &'static str,
    pub kind: &'static str,
    /// A good object, without name.
    pub good: fn() -> Value,
    /// Good merge patches.
    pub patches: fn() -> Vec<Value>,
    /// Bodies that are refused, as merge patches on the good object.
    pub bad: fn() -> Vec<Value>,
    /// Patches of the status, if there is one.
    pub status: Option<fn() -> Value>,
    pub scale: bool,
}

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": image}]}})
}

fn metadata_patches() -> Vec<Value> {
    vec![
        json!({"metadata": {"labels": {"tier": "front", "app": "web"}}}),
        json!({"metadata": {"annotations": {"example.com/note": "a <b> & c"}}}),
        json!({"metadata": {"labels": null}}),
        json!({"metadata": {"finalizers": ["example.com/hold"]}}),
        json!({"metadata": {"finalizers": null}}),
        json!({}),
    ]
}

fn metadata_faults() -> Vec<Value> {
    vec![
        json!({"metadata": {"labels": {"a b": "c"}}}),
        json!({"metadata": {"labels": {"a": "c d"}}}),
        json!({"metadata": {"name": "UPPER"}}),
        json!({"metadata": {"labels": 5}}),
        json!({"metadata": {"namespace": "elsewhere"}}),
        json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x"}]}}),
        json!({"metadata": {"finalizers": ["a b"]}}),
        json!({"apiVersion": "v9"}),
        json!({"kind": "Other"}),
    ]
}

fn with(mut base: Vec<Value>, more: Vec<Value>) -> Vec<Value> {
    base.extend(more);
    base
}

pub const SAMPLES: &[Sample] = &[
    Sample {
        path: "/api/v1/namespaces/$ns/configmaps",
        api_version: "v1",
        kind: "ConfigMap",
        good: || json!({"data": {"k": "v", "other": ""}}),
        patches: || {
            with(
                metadata_patches(),
                vec![
                    json!({"data": {"k": "w"}}),
                    json!({"data": null}),
                    json!({"immutable": true}),
                ],
            )
        },
        bad: || {
            with(
                metadata_faults(),
                vec![
                    json!({"data": {"a/b": "c"}}),
                    json!({"data": [1]}),
                    json!({"data": {"k": 1}}),
                ],
            )
        },
        status: None,
        scale: false,
    },
    Sample {
        path: "/api/v1/namespaces/$ns/secrets",
        api_version: "v1",
        kind: "Secret",
        good: || json!({"stringData": {"k": "v"}}),
        patches: || {
            with(
                metadata_patches(),
                vec![json!({"stringData": {"l": "w"}}), json!({"data": {"k": "eA=="}})],
            )
        },
        bad: || {
            with(
                metadata_faults(),
                vec![json!({"stringData": {"a/b": "c"}}), json!({"data": {"k": 1}})],
            )
        },
        status: None,
        scale: false,
    },
    Sample {
        path: "/api/v1/namespaces/$ns/pods",
        api_version: "v1",
        kind: "Pod",
        good: || json!({"spec": template("nginx:1")["spec"]}),
        patches: || {
            with(
                metadata_patches(),
                vec![
                    json!({"spec": {"containers": [{"name": "main", "image": "nginx:2"}]}}),
                    json!({"spec": {"activeDeadlineSeconds": 100}}),
                ],
            )
        },
        bad: || {
            with(
                metadata_faults(),
                vec![
                    json!({"spec": {"containers": []}}),
                    json!({"spec": {"containers": [{"name": "Main", "image": "x"}]}}),
                    json!({"spec": {"containers": "x"}}),
                    json!({"spec": {"restartPolicy": "Sometimes"}}),
                    json!({"spec": {"containers": [{"name": "a", "image": "x"}, {"name": "a", "image": "y"}]}}),
                ],
            )
        },
        status: Some(
            || json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
        ),
        scale: false,
    },
    Sample {
        path: "/api/v1/namespaces/$ns/services",
        api_version: "v1",
        kind: "Service",
        good: || json!({"spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}),
        patches: || {
            with(
                metadata_patches(),
                vec![
                    json!({"spec": {"selector": {"app": "x"}}}),
                    json!({"spec": {"ports": [{"port": 81, "targetPort": "http"}]}}),
                ],
            )
        },
        bad: || {
            with(
                metadata_faults(),
                vec![
                    json!({"spec": {"ports": []}}),
                    json!({"spec": {"ports": [{"port": 80}, {"port": 81}]}}),
                    json!({"spec": {"ports": [{"port": 0}]}}),
                ],
            )
        },
        status: None,
        scale: false,
    },
    Sample {
        path: "/apis/coordination.k8s.io/v1/namespaces/$ns/leases",
        api_version: "coordination.k8s.io/v1",
        kind: "Lease",
        good: || json!({"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.123456Z"}}),
        patches: || {
            with(
                metadata_patches(),
                vec![json!({"spec": {"holderIdentity": "you", "leaseTransitions": 1}})],
            )
        },
        bad: || {
            with(
                metadata_faults(),
                vec![
                    json!({"spec": {"leaseDurationSeconds": 0}}),
                    json!({"spec": {"leaseDurationSeconds": "x"}}),
                ],
            )
        },
        status: None,
        scale: false,
    },
    Sample {
        path: "/apis/apps/v1/namespaces/$ns/controllerrevisions",
        api_version: "apps/v1",
        kind: "ControllerRevision",
        good: || json!({"revision": 1, "data": {"spec": {"z": 1, "a": [1, 2]}}}),
        patches: || with(metadata_patches(), vec![json!({"revision": 2})]),
        bad: || {
            with(
                metadata_faults(),
                vec![json!({"revision": -1}), json!({"revision": "x"})],
            )
        },
        status: None,
        scale: false,
    },
    Sample {
        path: "/apis/apps/v1/namespaces/$ns/deployments",
        api_version: "apps/v1",
        kind: "Deployment",
        good: || json!({"spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template("nginx")}}),
        patches: || {
            with(
                metadata_patches(),
                vec![
                    json!({"spec": {"replicas": 3}}),
                    json!({"spec": {"paused": true, "minReadySeconds": 5}}),
                ],
            )
        },
        bad: || {
            with(
                metadata_faults(),
                vec![
                    json!({"spec": {"replicas": -1}}),
                    json!({"spec": {"replicas": "x"}}),
                    json!({"spec": {"selector": {"matchLabels": {"app": "other"}}}}),
                    json!({"spec": {"selector": null}}),
                ],
            )
        },
        status: Some(|| json!({"status": {"replicas": 1, "observedGeneration": 1}})),
        scale: true,
    },
    Sample {
        path: "/apis/apps/v1/namespaces/$ns/replicasets",
        api_version: "apps/v1",
        kind: "ReplicaSet",
        good: || json!({"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": template("nginx:1")}}),
        patches: || {
            with(
                metadata_patches(),
                vec![
                    json!({"spec": {"replicas": 3}}),
                    json!({"spec": {"minReadySeconds": 5}}),
                ],
            )
        },
        bad: || {
            with(
                metadata_faults(),
                vec![
                    json!({"spec": {"replicas": "x"}}),
                    json!({"spec": {"replicas": -1}}),
                ],
            )
        },
        status: Some(|| json!({"status": {"replicas": 1, "readyReplicas": 1}})),
        scale: true,
    },
    Sample {
        path: "/api/v1/namespaces/$ns/persistentvolumeclaims",
        api_version: "v1",
        kind: "PersistentVolumeClaim",
        good: || json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}}),
        patches: || with(metadata_patches(), vec![]),
        bad: || {
            with(
                metadata_faults(),
                vec![
                    json!({"spec": {"accessModes": []}}),
                    json!({"spec": {"resources": null}}),
                ],
            )
        },
        status: Some(|| json!({"status": {"phase": "Bound"}})),
        scale: false,
    },
    Sample {
        path: "/api/v1/namespaces/$ns/serviceaccounts",
        api_version: "v1",
        kind: "ServiceAccount",
        good: || json!({}),
        patches: || {
            with(
                metadata_patches(),
                vec![json!({"automountServiceAccountToken": false})],
            )
        },
        bad: metadata_faults,
        status: None,
        scale: false,
    },
    Sample {
        path: "/apis/policy/v1/namespaces/$ns/poddisruptionbudgets",
        api_version: "policy/v1",
        kind: "PodDisruptionBudget",
        good: || json!({"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}),
        patches: || with(metadata_patches(), vec![json!({"spec": {"minAvailable": "50%"}})]),
        bad: || with(metadata_faults(), vec![json!({"spec": {"minAvailable": {}}})]),
        status: None,
        scale: false,
    },
    Sample {
        path: "/apis/example.com/v1/namespaces/$ns/things",
        api_version: "example.com/v1",
        kind: "Thing",
        good: || json!({"spec": {"image": "nginx", "ports": [{"port": 80}], "extra": {"any": {"thing": [1, null]}}}}),
        patches: || {
            with(
                metadata_patches(),
                vec![
                    json!({"spec": {"replicas": 3, "max": "30%"}}),
                    json!({"spec": {"ports": [{"port": 81, "unknown": 1}], "policy": null}}),
                    json!({"status": {"phase": "Ignored"}}),
                ],
            )
        },
        bad: || {
            with(
                metadata_faults(),
                vec![
                    json!({"spec": {"replicas": -1}}),
                    json!({"spec": {"replicas": "x"}}),
                    json!({"spec": {"image": ""}}),
                    json!({"spec": {"image": null}}),
                    json!({"spec": {"policy": "Sometimes"}}),
                    json!({"spec": {"ports": [{"port": 1}, {"port": 2}, {"port": 3}]}}),
                    json!({"spec": {"ports": [{}], "max": true}}),
                    json!({"spec": {"labels": {"a": 1}}}),
                    json!({"spec": null}),
                ],
            )
        },
        status: Some(|| json!({"status": {"replicas": 1, "phase": "Ready", "unknown": 1}})),
        scale: true,
    },
];
