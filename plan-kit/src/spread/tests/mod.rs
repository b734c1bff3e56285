//! Counts of WorkloadSpreads.

mod assigned;
mod deleted;
mod races;
mod settings;

use jiff::Timestamp;
use kruise_api::workloadspread::{Matched, WorkloadSpread, WorkloadSpreadStatus};
use serde_json::{Value, json};

use super::NewPod;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// A CloneSet's WorkloadSpread with subsets of these names and limits; `null` is no limit.
fn spread(subsets: &[(&str, Value)]) -> WorkloadSpread {
    let subsets: Vec<Value> = subsets
        .iter()
        .map(|(name, limit)| json!({"name": name, "maxReplicas": limit}))
        .collect();
    of_target("apps.kruise.io/v1beta1", "CloneSet", &json!({"subsets": subsets}))
}

fn of_target(api_version: &str, kind: &str, spec: &Value) -> WorkloadSpread {
    let mut object = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread",
        "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "1"}, "spec": spec,
    });
    object["spec"]["targetRef"] = json!({"apiVersion": api_version, "kind": kind, "name": "web"});
    WorkloadSpread::from_value(object).unwrap_or_default()
}

fn named(name: &str) -> NewPod<'_> {
    NewPod {
        name,
        uid: "request",
        version: super::IGNORED,
    }
}

fn matched(subset: &str, uid: &str) -> Matched {
    Matched {
        name: "web".into(),
        subset: subset.into(),
        uid: uid.into(),
    }
}

/// For each subset of the version of most workloads: its name, the number of missing pods, creating and deleting pods.
fn counts(status: &WorkloadSpreadStatus) -> Vec<String> {
    let subsets = status.versioned_subset_statuses.get(super::IGNORED);
    let texts = subsets.into_iter().flatten().map(|one| {
        let keys = |entries: &kruise_api::podunavailablebudget::Entries| {
            entries.0.keys().cloned().collect::<Vec<_>>().join(",")
        };
        let (creating, deleting) = (keys(&one.creating_pods), keys(&one.deleting_pods));
        format!("{} {} +{creating} -{deleting}", one.name, one.missing_replicas)
    });
    texts.collect()
}
