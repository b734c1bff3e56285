//! Updates: order, partition, limits, and revisions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kruise_e2e::wait;
use serde_json::{Value, json};

use super::{
    SETS, all_in_service, at_every_moment, claims, condition, db, delete_pod, ended, image, in_service,
    is_terminating, most_unavailable, name, names, parallel, patch, pods, revision, rolling, rollout, set,
    state, template, uid, uids, until, until_status, until_updated, watch_pods, with_claims,
};
use crate::claims::storage_class;
use crate::cluster::{Scenario, scenario, text};

fn variable(pod: &Value) -> String {
    text(pod, "/spec/containers/0/env/0/value")
}

/// What an update in place keeps.
fn identities(scenario: &Scenario) -> BTreeMap<String, [String; 3]> {
    let of = |pod: &Value| ["/metadata/uid", "/status/podIP", "/spec/nodeName"].map(|path| text(pod, path));
    let pods = pods(scenario).into_iter();
    pods.map(|(name, pod)| (name, of(&pod))).collect()
}

/// Number and name of every revision, by number.
fn revisions(scenario: &Scenario) -> Vec<(i64, String)> {
    let revisions = scenario.kubectl.list("controllerrevisions", "").unwrap();
    let mut revisions: Vec<_> = revisions
        .iter()
        .map(|revision| (revision["revision"].as_i64().unwrap(), name(revision)))
        .collect();
    revisions.sort();
    revisions
}

/// Waits until the condition `Progressing` is True for this reason.
fn until_progressing(scenario: &Scenario, reason: &str) {
    wait::until_true(&format!("Progressing: {reason}"), crate::cluster::LIMIT, || {
        let set = scenario.kubectl.get(SETS, "db")?;
        let progressing = condition(&set, "Progressing");
        Ok(progressing["status"] == "True" && progressing["reason"] == reason)
    })
    .unwrap();
}

/// Every pod that an event is about and that is out of service is the only one, and all above it are updated.
fn assert_one_after_another(events: &[Value], updated: impl Fn(&Value) -> bool) {
    assert_eq!(most_unavailable(events, 3), 1);
    at_every_moment(events, |pods, changed| {
        if updated(changed) || is_terminating(changed) {
            let mut above = pods.values().filter(|pod| name(pod) > name(changed));
            assert!(above.all(|pod| updated(pod) && in_service(pod)), "{pods:?}");
        }
    });
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn an_ordered_rollout_goes_from_the_highest_ordinal_down_to_the_partition_and_deleted_pods_return_old() {
    let scenario = scenario("statefulset-rollout");
    storage_class(&scenario);
    let ordered = with_claims(db(3), "host-path");
    scenario.kubectl.apply(&ordered).unwrap();
    until_updated(&scenario, 3);
    until_progressing(&scenario, "Available");
    let (before, bound) = (identities(&scenario), uids(&claims(&scenario)));
    let first = revisions(&scenario)[0].1.clone();
    assert_eq!(revisions(&scenario), [(1, first.clone())]);

    let watch = watch_pods(&scenario, 3);
    patch(&scenario, &rollout("nginx:2", "b", &json!({"partition": 1})));
    until_status(
        &scenario,
        &json!({"updatedReplicas": 2, "updatedReadyReplicas": 2, "readyReplicas": 3, "currentReplicas": 1}),
    );
    until_progressing(&scenario, "PartitionAvailable");
    let is_new = |pod: &Value| image(pod) == "nginx:2";
    let events = ended(watch, "two updated pods", |pods| {
        all_in_service(pods) && pods.values().filter(|pod| is_new(pod)).count() == 2
    });
    assert_one_after_another(&events, is_new);
    let mut seen = BTreeSet::new();
    at_every_moment(&events, |_, changed| {
        if name(changed) == "db-2" {
            let ready = condition(changed, "InPlaceUpdateReady")["status"] == "True";
            seen.insert((state(changed), ready));
        }
    });
    for step in [("Updating", false), ("Normal", true)] {
        assert!(seen.contains(&(step.0.to_owned(), step.1)), "{step:?}: {seen:?}");
    }
    assert_eq!(identities(&scenario), before, "in place");

    // The pod that the partition holds comes back on its own revision, however often it is deleted.
    let revisions_of =
        |set: &Value| ["currentRevision", "updateRevision"].map(|key| set["status"][key].clone());
    let held = revisions_of(&set(&scenario));
    assert_eq!(held[0], first.as_str());
    assert_ne!(held[0], held[1]);
    let watch = watch_pods(&scenario, 3);
    for _ in 0..2 {
        let old = uid(&pods(&scenario)["db-0"]);
        delete_pod(&scenario, "db-0");
        until(&scenario, "pods", "db-0 is back", |pods| {
            pods.len() == 3 && uid(&pods["db-0"]) != old && all_in_service(pods)
        });
        until_status(&scenario, &json!({"updatedReadyReplicas": 2, "readyReplicas": 3}));
        assert_eq!(revisions_of(&set(&scenario)), held);
    }
    at_every_moment(&watch.stop().unwrap(), |_, changed| {
        if name(changed) == "db-0" {
            assert_eq!(
                (image(changed), revision(changed)),
                ("nginx:1".into(), first.clone())
            );
        }
    });
    patch(&scenario, &rolling(&json!({"partition": 0})));
    until_updated(&scenario, 3);
    let [current, update] = revisions_of(&set(&scenario));
    assert_eq!(current, update);

    // A change that needs new pods: names and claims return.
    let (pods_before, watch) = (uids(&pods(&scenario)), watch_pods(&scenario, 3));
    patch(&scenario, &template("nginx:2", "c"));
    until_updated(&scenario, 3);
    let events = ended(watch, "three new pods", |pods| {
        pods.len() == 3 && pods.values().all(|pod| in_service(pod) && variable(pod) == "c")
    });
    assert_one_after_another(&events, |pod| variable(pod) == "c");
    let pods_after = uids(&pods(&scenario));
    assert!(pods_after.iter().all(|(name, uid)| pods_before[name] != *uid));
    assert_eq!(uids(&claims(&scenario)), bound);

    // Back to the first template: its revision gets a new number.
    patch(&scenario, &template("nginx:1", "b"));
    until_updated(&scenario, 3);
    let numbered = revisions(&scenario);
    assert_eq!(numbered.len(), 3, "{numbered:?}");
    assert_eq!(numbered[2], (4, first.clone()));
    assert_eq!(set(&scenario)["status"]["updateRevision"], first.as_str());
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_parallel_rollout_pauses_keeps_its_limit_and_begins_with_the_pods_of_most_weight() {
    let scenario = scenario("statefulset-parallel");
    let mut set = parallel(8);
    set["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] = json!("25%");
    scenario.kubectl.apply(&set).unwrap();
    until_updated(&scenario, 8);
    patch(&scenario, &rollout("nginx:1", "c", &json!({"paused": true})));
    until_status(&scenario, &json!({"updatedReplicas": 0, "readyReplicas": 8}));
    wait::observe_for(Duration::from_secs(2));
    assert!(pods(&scenario).values().all(|pod| variable(pod) == "b"));
    until_progressing(&scenario, "Paused");
    delete_pod(&scenario, "db-3");
    // No partition holds it, so it comes back on the new revision.
    until_status(&scenario, &json!({"readyReplicas": 8, "updatedReadyReplicas": 1}));

    let watch = watch_pods(&scenario, 8);
    patch(&scenario, &rolling(&json!({"paused": false})));
    until_updated(&scenario, 8);
    let events = ended(watch, "eight new pods", |pods| {
        pods.len() == 8 && pods.values().all(|pod| in_service(pod) && variable(pod) == "c")
    });
    let most = most_unavailable(&events, 8);
    assert!((1..=2).contains(&most), "{most}");

    scenario
        .kubectl
        .run(&["label", "pods", "db-1", "db-4", "tier=gold"])
        .unwrap();
    let gold = json!([{"weight": 10, "matchSelector": {"matchLabels": {"tier": "gold"}}}]);
    let strategy = json!({"partition": 6, "unorderedUpdate": {"priorityStrategy": {"weightPriority": gold}}});
    patch(&scenario, &rollout("nginx:2", "c", &strategy));
    until_status(&scenario, &json!({"updatedReadyReplicas": 2, "readyReplicas": 8}));
    let mut new = pods(&scenario);
    new.retain(|_, pod| image(pod) == "nginx:2");
    assert_eq!(names(&new), ["db-1", "db-4"]);
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_set_that_updates_on_deletion_changes_deleted_pods_only() {
    let scenario = scenario("statefulset-on-delete");
    let mut set = parallel(2);
    set["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
    scenario.kubectl.apply(&set).unwrap();
    until_updated(&scenario, 2);
    patch(&scenario, &template("nginx:2", "b"));
    until_status(&scenario, &json!({"updatedReplicas": 0, "readyReplicas": 2}));
    let kept = uid(&pods(&scenario)["db-1"]);
    delete_pod(&scenario, "db-0");
    until_status(&scenario, &json!({"updatedReadyReplicas": 1, "readyReplicas": 2}));
    let pods = pods(&scenario);
    assert_eq!(image(&pods["db-0"]), "nginx:2");
    assert_eq!(
        (image(&pods["db-1"]), uid(&pods["db-1"])),
        ("nginx:1".into(), kept)
    );
    let rolling = rolling(&json!({"partition": 1})).to_string();
    let change = ["patch", SETS, "db", "--type=merge", "-p", &rolling];
    let refusal = scenario.kubectl.refused(&change, "").unwrap();
    assert!(refusal.contains("rollingUpdate"), "{refusal}");
}
