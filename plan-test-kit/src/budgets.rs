//! Budgets: one in a line of words, and all of a cluster as planners read them.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kruise_api::podunavailablebudget::PodUnavailableBudget;
use kruise_plan_kit::ledger::{FindBudget, Found};
use serde_json::{Value, json};

use crate::text;

/// Reads one line: `NAME WORD…`. Without further words the budget covers pods of `app: web`, lets one of them be
/// unavailable, and has not counted any.
pub fn budget(line: &str, now: Timestamp) -> Value {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap();
    let mut budget = json!({
        "apiVersion": "policy.kruise.io/v1beta1", "kind": "PodUnavailableBudget",
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "resourceVersion": "7",
                     "generation": 1, "creationTimestamp": text(now - SignedDuration::from_hours(1))},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1},
    });
    for word in words {
        describe(&mut budget, word, now);
    }
    budget
}

fn describe(budget: &mut Value, word: &str, now: Timestamp) {
    let (key, value) = word.split_once('=').unwrap_or((word, ""));
    let limit = || {
        value
            .parse::<i32>()
            .map_or_else(|_| json!(value), |number| json!(number))
    };
    match key {
        // The workload that it is for, as `Kind/name`.
        "target" => {
            let (kind, name) = value.split_once('/').unwrap();
            let target = json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": kind, "name": name});
            budget["spec"]["selector"] = Value::Null;
            budget["spec"]["targetRef"] = target;
        }
        "max" => budget["spec"]["maxUnavailable"] = limit(),
        "min" => {
            budget["spec"]["maxUnavailable"] = Value::Null;
            budget["spec"]["minAvailable"] = limit();
        }
        "operations" => budget["spec"]["protectOperations"] = value.split(',').collect(),
        "ignores" => {
            let (key, value) = value.split_once(':').unwrap();
            budget["spec"]["ignoredPodSelector"] = json!({"matchLabels": {key: value}});
        }
        // Its specification is newer than its numbers.
        "edited" => budget["metadata"]["generation"] = json!(2),
        // What was counted: pods that are available, that must be, and that there should be.
        "counted" => {
            let numbers: Vec<i32> = value.split('/').map(|number| number.parse().unwrap()).collect();
            let [current, desired, total] = numbers.try_into().unwrap();
            budget["status"] = json!({"observedGeneration": 1, "unavailableAllowed": (current - desired).max(0),
                                      "currentAvailable": current, "desiredAvailable": desired, "totalReplicas": total});
        }
        // Pods that were charged since, and before how many seconds; they were counted as available.
        "deleted" | "updated" => {
            let (pod, seconds) = value.split_once(':').unwrap();
            let since = text(now - SignedDuration::from_secs(seconds.parse().unwrap()));
            let entries = if key == "deleted" {
                "disruptedPods"
            } else {
                "unavailablePods"
            };
            budget["status"][entries][pod] = json!(since);
            let allowed = budget["status"]["unavailableAllowed"].as_i64().unwrap();
            budget["status"]["unavailableAllowed"] = json!((allowed - 1).max(0));
        }
        other => panic!("a budget that is {other}?"),
    }
}

/// The budgets of a cluster.
pub struct ReadBudgets(BTreeMap<String, Result<PodUnavailableBudget, String>>);

impl ReadBudgets {
    /// Reads them as production does.
    pub fn of(stored: &BTreeMap<String, Value>) -> Self {
        let read = |(name, budget): (&String, &Value)| {
            (name.clone(), PodUnavailableBudget::from_value(budget.clone()))
        };
        Self(stored.iter().map(read).collect())
    }
}

impl FindBudget for ReadBudgets {
    fn find(&self, namespace: &str, name: &str) -> Found<'_> {
        let found = self.0.get(name).filter(|_| namespace == "shop");
        found.map(|budget| budget.as_ref().map_err(String::as_str))
    }
}
