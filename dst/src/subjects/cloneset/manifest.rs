//! CloneSets as JSON.

use super::start::{Claims, Start};
use crate::engine::user::OWN;
use crate::rules::prelude::*;
use crate::subjects::hooks;

/// The CloneSet.
pub fn set(start: &Start) -> Value {
    let mut set = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": start.replicas,
            "minReadySeconds": start.min_ready_seconds,
            "selector": {"matchLabels": {"app": "web"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling_update(start)},
            "template": {
                "metadata": {"labels": {"app": "web"}, "annotations": {"team": "0"}},
                "spec": {"terminationGracePeriodSeconds": 3, "containers": [
                    {"name": "main", "image": "web:1", "env": [{"name": "MODE", "value": "0"}]}]},
            },
        },
    });
    hooks::put_on(&mut set, start.hooks());
    if start.pre_delete.is_some_and(|hook| hook.excluded) {
        set["spec"]["scaleStrategy"]["excludePreparingDelete"] = true.into();
    }
    let labels = &mut set["spec"]["template"]["metadata"]["labels"];
    for (key, value) in &start.labels {
        labels[key] = value.as_str().into();
    }
    if start.batches {
        barriers(&mut set["spec"]["template"]["spec"]["containers"]);
    }
    if start.deadline > 0 {
        set["spec"]["progressDeadlineSeconds"] = start.deadline.into();
    }
    if start.config {
        set["spec"]["template"]["metadata"]["annotations"]["config"] = "0".into();
        let variables = set["spec"]["template"]["spec"]["containers"][0]["env"].as_array_mut();
        if let Some(list) = variables {
            // Only the pod has this label, the template has not.
            let id = "metadata.labels['apps.kruise.io/cloneset-instance-id']";
            list.push(reading("CONFIG", "metadata.annotations['config']"));
            list.push(reading("ID", id));
        }
    }
    if start.startup {
        // Beyond its period: it fails once, or is not run yet.
        let probe = json!({"exec": {"command": ["started"]}, "initialDelaySeconds": 7, "periodSeconds": 3});
        set["spec"]["template"]["spec"]["containers"][0]["startupProbe"] = probe;
    }
    if start.resources {
        let first = &mut set["spec"]["template"]["spec"]["containers"][0];
        first["resources"] = amounts("10m");
        if start.restarts {
            first["resizePolicy"] = json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]);
        }
    }
    if !start.scale_max_unavailable.is_empty() {
        set["spec"]["scaleStrategy"]["maxUnavailable"] = int_or_string(&start.scale_max_unavailable);
    }
    if let Some(claims) = start.claims {
        set["spec"]["volumeClaimTemplates"] = claim_templates(1);
        set["spec"]["scaleStrategy"]["enablePVCReuse"] = (claims == Claims::Reused).into();
    }
    set
}

/// `rollingUpdate` as it is created.
pub fn rolling_update(start: &Start) -> Value {
    let mut rolling = json!({
        "podUpdatePolicy": start.policy,
        "maxUnavailable": int_or_string(&start.max_unavailable),
        "maxSurge": int_or_string(&start.max_surge),
        "partition": int_or_string(&start.partition),
    });
    if start.grace > 0 {
        rolling["inPlaceUpdateStrategy"] = json!({"gracePeriodSeconds": start.grace});
    }
    if start.priority {
        let marked = json!({"matchLabels": {OWN: "yes"}});
        rolling["priorityStrategy"] = json!({"weightPriority": [{"weight": 10, "matchSelector": marked}]});
    }
    if start.order {
        rolling["priorityStrategy"] = json!({"orderPriority": [{"orderedKey": OWN}]});
    }
    if start.scatter {
        rolling["scatterStrategy"] = json!([{"key": OWN, "value": "yes"}]);
    }
    rolling
}

/// A second container; the first one goes before it.
fn barriers(containers: &mut Value) {
    let Some(list) = containers.as_array_mut() else {
        return;
    };
    list.push(json!({"name": "side", "image": "side:0"}));
    for (container, priority) in list.iter_mut().zip(["p_10", "p_5"]) {
        // Nobody creates it: containers do not wait for it.
        let key = json!({"configMapKeyRef": {"name": "barrier", "key": priority, "optional": true}});
        let barrier = json!({"name": "KRUISE_CONTAINER_BARRIER", "valueFrom": key});
        match container["env"].as_array_mut() {
            Some(variables) => variables.push(barrier),
            None => container["env"] = json!([barrier]),
        }
    }
}

/// A variable that reads a label or an annotation of its pod.
fn reading(name: &str, path: &str) -> Value {
    json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})
}

/// This much of a processor as request and as limit.
pub fn amounts(cpu: &str) -> Value {
    let amount = json!({"cpu": cpu});
    json!({"requests": amount, "limits": amount})
}

/// `volumeClaimTemplates` of this size.
pub fn claim_templates(size: u32) -> Value {
    json!([{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": format!("{size}Gi")}}}}])
}
