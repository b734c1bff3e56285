//! DaemonSets as JSON.

use super::start::{HISTORY, Start, Strategy};
use crate::rules::prelude::*;
use crate::subjects::hooks;
use crate::subjects::nodes::pool;

/// The DaemonSet.
pub fn set(start: &Start) -> Value {
    let mut set = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "DaemonSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "revisionHistoryLimit": HISTORY,
            "minReadySeconds": start.min_ready_seconds,
            "selector": {"matchLabels": {"app": "web"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling_update(start)},
            "template": {
                "metadata": {"labels": {"app": "web"}, "annotations": {"team": "0"}},
                "spec": {
                    "terminationGracePeriodSeconds": 3,
                    "containers": [{"name": "main", "image": "web:1", "env": [{"name": "MODE", "value": "0"}]}],
                },
            },
        },
    });
    if !start.pool.is_empty() {
        set["spec"]["template"]["spec"]["nodeSelector"] = pool(&start.pool);
    }
    if !start.burst.is_empty() {
        set["spec"]["burstReplicas"] = int_or_string(&start.burst);
    }
    if start.partitioned_scaling {
        set["spec"]["scaleStrategy"] = json!({"partitionedScaling": true});
    }
    hooks::put_on(&mut set, start.hooks());
    set
}

/// `rollingUpdate` as it is created.
pub fn rolling_update(start: &Start) -> Value {
    let mut rolling = strategy(&start.strategy);
    if !start.partition.is_empty() {
        rolling["partition"] = int_or_string(&start.partition);
    }
    if !start.selector.is_empty() {
        rolling["selector"] = selector(&start.selector);
    }
    rolling
}

/// What a strategy says in `rollingUpdate`.
pub fn strategy(strategy: &Strategy) -> Value {
    let (kind, unavailable, surge) = match strategy {
        Strategy::InPlace(most) => ("InPlaceIfPossible", int_or_string(most), 0.into()),
        Strategy::Standard(most) => ("Standard", int_or_string(most), 0.into()),
        Strategy::Surge(most) => ("Standard", 0.into(), int_or_string(most)),
    };
    json!({"rollingUpdateType": kind, "maxUnavailable": unavailable, "maxSurge": surge})
}

/// `selector` of the nodes of a pool; null for none.
pub fn selector(name: &str) -> Value {
    if name.is_empty() {
        Value::Null
    } else {
        json!({"matchLabels": pool(name)})
    }
}
