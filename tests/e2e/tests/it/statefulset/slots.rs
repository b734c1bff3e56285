//! Which ordinals have pods.

use kruise_e2e::wait;
use serde_json::{Value, json};

use super::{SETS, names, parallel, patch, pods, uids, until, until_status};
use crate::cluster::{LIMIT, scenario};

/// A patch of the reserved ordinals and the replicas.
fn reserve(ordinals: &Value, replicas: u32) -> Value {
    json!({"spec": {"reserveOrdinals": ordinals, "replicas": replicas}})
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn reserved_ordinals_have_no_pod_and_others_take_their_place() {
    let scenario = scenario("statefulset-reserved");
    let mut set = parallel(4);
    set["spec"]["reserveOrdinals"] = json!([1, "5-7"]);
    scenario.kubectl.apply(&set).unwrap();
    let until_names = |wanted: [&str; 4]| {
        until(&scenario, "pods", &format!("pods are {wanted:?}"), |pods| {
            names(pods) == wanted
        });
        until_status(&scenario, &json!({"replicas": 4, "readyReplicas": 4}));
    };
    until_names(["db-0", "db-2", "db-3", "db-4"]);
    let before = uids(&pods(&scenario));
    patch(&scenario, &reserve(&json!([1, 3, "5-7"]), 4));
    until_names(["db-0", "db-2", "db-4", "db-8"]);
    patch(&scenario, &reserve(&json!([1, 3, "5-7"]), 3));
    until(&scenario, "pods", "the last pod is deleted", |pods| {
        names(pods) == ["db-0", "db-2", "db-4"]
    });
    let kept = uids(&pods(&scenario));
    assert!(kept.iter().all(|(name, uid)| before[name] == *uid), "{kept:?}");

    // A client of the older version does not know the field, and writes back what it has read.
    let older = "statefulsets.v1alpha1.apps.kruise.io";
    wait::until_true("the older client writes what it has read", LIMIT, || {
        let mut read = scenario.kubectl.get(older, "db")?;
        assert_eq!(read["spec"]["reserveOrdinals"], Value::Null);
        read["spec"]["replicas"] = json!(4);
        // Refused if the status was written in between.
        let replace = ["replace", "-f", "-"];
        let (printed, _) = scenario.kubectl.attempt(&replace, &read.to_string())?;
        Ok(printed.contains("replaced"))
    })
    .unwrap();
    until_names(["db-0", "db-2", "db-4", "db-8"]);
    let stored = scenario.kubectl.get(SETS, "db").unwrap();
    assert_eq!(stored["spec"]["reserveOrdinals"], json!([1, 3, "5-7"]));

    for wrong in [json!(["5-2"]), json!(["a-b"]), json!(["5"]), json!([-1])] {
        let change = json!({"spec": {"reserveOrdinals": wrong}}).to_string();
        let change = ["patch", SETS, "db", "--type=merge", "-p", &change];
        let refusal = scenario.kubectl.refused(&change, "").unwrap();
        assert!(refusal.contains("reserveOrdinals"), "{wrong}: {refusal}");
    }
}
