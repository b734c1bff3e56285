//! StatefulSets as JSON.

use super::start::{CLAIM, CLASS, Growth, HISTORY, Start};
use crate::engine::user::OWN;
use crate::rules::prelude::*;
use crate::subjects::hooks;

/// The StatefulSet.
pub fn set(start: &Start) -> Value {
    let management = ["OrderedReady", "Parallel"][usize::from(start.parallel)];
    let mut set = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": start.replicas,
            "serviceName": "web",
            "podManagementPolicy": management,
            "revisionHistoryLimit": HISTORY,
            "reserveOrdinals": reserved(&start.reserved),
            "selector": {"matchLabels": {"app": "web"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling_update(start)},
            "template": {
                "metadata": {"labels": {"app": "web"}, "annotations": {"team": "0"}},
                "spec": {
                    "terminationGracePeriodSeconds": 3,
                    "readinessGates": [{"conditionType": "InPlaceUpdateReady"}],
                    "containers": [{"name": "main", "image": "web:1", "env": [{"name": "MODE", "value": "0"}]}],
                },
            },
        },
    });
    hooks::put_on(&mut set, start.hooks());
    if let Some(first) = start.first {
        set["spec"]["ordinals"] = json!({"start": first});
    }
    if !start.scale_max_unavailable.is_empty() {
        set["spec"]["scaleStrategy"] = json!({"maxUnavailable": int_or_string(&start.scale_max_unavailable)});
    }
    if let Some(claims) = start.claims {
        set["spec"]["volumeClaimTemplates"] = claim_templates(1, start.resizes());
        set["spec"]["persistentVolumeClaimRetentionPolicy"] =
            retention(claims.when_scaled, claims.when_deleted);
        if start.resizes() {
            set["spec"]["volumeClaimUpdateStrategy"] = json!({"type": "OnPodRollingUpdate"});
        }
    }
    set
}

/// `rollingUpdate` as it is created.
pub fn rolling_update(start: &Start) -> Value {
    let mut rolling = json!({
        "podUpdatePolicy": start.policy,
        "maxUnavailable": int_or_string(&start.max_unavailable),
        "partition": start.partition,
        "minReadySeconds": start.min_ready_seconds,
    });
    if start.grace > 0 {
        rolling["inPlaceUpdateStrategy"] = json!({"gracePeriodSeconds": start.grace});
    }
    if start.priority {
        let marked = json!({"matchLabels": {OWN: "yes"}});
        rolling["unorderedUpdate"] =
            json!({"priorityStrategy": {"weightPriority": [{"weight": 10, "matchSelector": marked}]}});
    }
    rolling
}

/// `reserveOrdinals`.
pub fn reserved(entries: &[String]) -> Value {
    entries.iter().map(|one| int_or_string(one)).collect()
}

/// The class of claims that grow.
pub fn class(growth: Growth) -> Value {
    let mut class = json!({"metadata": {"name": CLASS}, "provisioner": "simulated",
        "allowVolumeExpansion": true, "volumeBindingMode": "WaitForFirstConsumer"});
    if growth == Growth::Offline {
        class["parameters"] = json!({"sim.kruise.io/expansion": "offline"});
    }
    class
}

/// `persistentVolumeClaimRetentionPolicy`.
pub fn retention(when_scaled: bool, when_deleted: bool) -> Value {
    let policy = |deletes: bool| if deletes { "Delete" } else { "Retain" };
    json!({"whenScaled": policy(when_scaled), "whenDeleted": policy(when_deleted)})
}

/// `volumeClaimTemplates` of this size, of the class that allows expansion if they are to grow.
pub fn claim_templates(size: u32, grows: bool) -> Value {
    let mut spec = json!({"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": format!("{size}Gi")}}});
    if grows {
        spec["storageClassName"] = CLASS.into();
    }
    json!([{"metadata": {"name": CLAIM}, "spec": spec}])
}
