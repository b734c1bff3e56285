//! Kinds that other families leave out, by the requests of the first.

use serde_json::{Value, json};

use super::{Dice, Sample, Step, post};
use crate::generate::{self, object};

fn template() -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}})
}

fn labels() -> Value {
    json!({"metadata": {"labels": {"app": "web", "tier": "front"}}})
}

fn faults() -> Vec<Value> {
    vec![
        json!({"metadata": {"labels": {"a b": "c"}}}),
        json!({"metadata": {"name": "UPPER_CASE"}}),
        json!({"metadata": {"annotations": {"a/b/c": "d"}}}),
        json!({"kind": "Other"}),
    ]
}

fn with(mut base: Vec<Value>, more: Value) -> Vec<Value> {
    base.extend(more.as_array().cloned().unwrap_or_default());
    base
}

const SAMPLES: &[Sample] = &[
    Sample {
        path: "/apis/apps/v1/namespaces/$ns/statefulsets",
        api_version: "apps/v1",
        kind: "StatefulSet",
        good: || json!({"spec": {"serviceName": "web", "selector": {"matchLabels": {"app": "web"}}, "template": template()}}),
        patches: || {
            with(
                vec![labels()],
                json!([{"spec": {"replicas": 3}}, {"spec": {"minReadySeconds": 4}},
            {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 2}}}}]),
            )
        },
        bad: || {
            with(
                faults(),
                json!([{"spec": {"replicas": -1}}, {"spec": {"selector": null}},
            {"spec": {"template": {"spec": {"restartPolicy": "Never"}}}}]),
            )
        },
        status: Some(|| json!({"status": {"replicas": 1, "observedGeneration": 1}})),
        scale: true,
    },
    Sample {
        path: "/apis/apps/v1/namespaces/$ns/daemonsets",
        api_version: "apps/v1",
        kind: "DaemonSet",
        good: || json!({"spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template()}}),
        patches: || {
            with(
                vec![labels()],
                json!([{"spec": {"minReadySeconds": 3}}, {"spec": {"revisionHistoryLimit": 2}}]),
            )
        },
        bad: || {
            with(
                faults(),
                json!([{"spec": {"selector": null}}, {"spec": {"minReadySeconds": -1}}]),
            )
        },
        status: Some(|| json!({"status": {"numberReady": 1, "desiredNumberScheduled": 1}})),
        scale: false,
    },
    Sample {
        path: "/api/v1/namespaces/$ns/resourcequotas",
        api_version: "v1",
        kind: "ResourceQuota",
        good: || json!({"spec": {"hard": {"requests.cpu": "100", "configmaps": "50"}}}),
        patches: || with(vec![labels()], json!([{"spec": {"hard": {"requests.cpu": "2"}}}])),
        bad: faults,
        status: Some(|| json!({"status": {"hard": {"requests.cpu": "1"}, "used": {"requests.cpu": "0"}}})),
        scale: false,
    },
    Sample {
        path: "/api/v1/namespaces/$ns/endpoints",
        api_version: "v1",
        kind: "Endpoints",
        good: || json!({"subsets": [{"addresses": [{"ip": "10.9.8.7"}], "ports": [{"port": 80}]}]}),
        patches: || with(vec![labels()], json!([{"subsets": null}])),
        bad: faults,
        status: None,
        scale: false,
    },
    Sample {
        path: "/apis/discovery.k8s.io/v1/namespaces/$ns/endpointslices",
        api_version: "discovery.k8s.io/v1",
        kind: "EndpointSlice",
        good: || json!({"addressType": "IPv4", "endpoints": [{"addresses": ["10.9.8.7"]}], "ports": [{"port": 80, "name": "http", "protocol": "TCP"}]}),
        patches: || with(vec![labels()], json!([{"endpoints": []}])),
        bad: faults,
        status: None,
        scale: false,
    },
    Sample {
        path: "/apis/rbac.authorization.k8s.io/v1/namespaces/$ns/roles",
        api_version: "rbac.authorization.k8s.io/v1",
        kind: "Role",
        good: || json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        patches: || with(vec![labels()], json!([{"rules": []}])),
        bad: || {
            with(
                vec![json!({"kind": "Other"})],
                json!([{"rules": [{"apiGroups": [""], "resources": ["pods"]}]}]),
            )
        },
        status: None,
        scale: false,
    },
];

pub(super) fn steps(dice: &mut Dice) -> Vec<Step> {
    let sample = &SAMPLES[dice.roll(SAMPLES.len())];
    let mut steps = vec![post(sample.path, object(sample, "a", &json!({})))];
    steps.extend(generate::more(dice, sample, 2));
    steps
}
