//! Hooks in ordered sets: one pod at a time is held, and a pod that is released goes on.

use kruise_e2e::wait;
use serde_json::{Value, json};

use super::{
    ByName, all_in_service, at_every_moment, db, ended, image, is_terminating, name, names, patch, pods,
    state, template, uid, uids, until, until_status, until_updated, watch_pods,
};
use crate::cluster::{LIMIT, Scenario, scenario};

/// The label that holds a pod, or lets it become normal.
const HOLD: &str = "shop.example/drain";

fn label(scenario: &Scenario, pod: &str, on: bool) -> anyhow::Result<()> {
    let change = if on {
        format!("{HOLD}=yes")
    } else {
        format!("{HOLD}-")
    };
    let label = ["label", "--overwrite", "pod", pod, &change];
    scenario.kubectl.run(&label).map(drop)
}

/// Waits until this pod is held for its deletion.
fn until_held(scenario: &Scenario, pod: &str) {
    until(scenario, "pods", &format!("{pod} is held"), |pods| {
        pods.get(pod).is_some_and(|pod| state(pod) == "PreparingDelete")
    });
}

fn in_state<'a>(pods: &'a ByName, wanted: &'a [&'a str]) -> impl Iterator<Item = String> + 'a {
    let found = pods.values().filter(|pod| wanted.contains(&state(pod).as_str()));
    found.map(name)
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn in_an_ordered_set_one_pod_at_a_time_is_held_and_goes_on_when_released() {
    let scenario = scenario("statefulset-hooks");
    let mut set = db(3);
    let hook = json!({"labelsHandler": {HOLD: "yes"}});
    set["spec"]["lifecycle"] = json!({"inPlaceUpdate": hook, "preDelete": hook});
    set["spec"]["template"]["metadata"]["labels"][HOLD] = json!("yes");
    scenario.kubectl.apply(&set).unwrap();
    until_updated(&scenario, 3);
    let before = uids(&pods(&scenario));

    let watch = watch_pods(&scenario, 3);
    patch(&scenario, &template("nginx:2", "b"));
    let mut released = Vec::new();
    wait::until_true("all pods are updated", LIMIT, || {
        let pods = super::by_name(scenario.kubectl.list("pods", "app=db")?);
        for (name, pod) in &pods {
            match state(pod).as_str() {
                "PreparingUpdate" if pod["metadata"]["labels"][HOLD] == "yes" => {
                    released.push(name.clone());
                    label(&scenario, name, false)?;
                }
                "Updated" => label(&scenario, name, true)?,
                _ => {}
            }
        }
        let is_done = |pod: &Value| state(pod) == "Normal" && image(pod) == "nginx:2";
        Ok(pods.values().all(is_done))
    })
    .unwrap();
    assert_eq!(released, ["db-2", "db-1", "db-0"]);
    until_updated(&scenario, 3);
    assert_eq!(uids(&pods(&scenario)), before);
    let events = ended(watch, "all pods updated", |pods| {
        pods.values()
            .all(|pod| image(pod) == "nginx:2" && state(pod) == "Normal")
    });
    at_every_moment(&events, |pods, _| {
        let held: Vec<_> = in_state(pods, &["PreparingUpdate", "Updating", "Updated"]).collect();
        assert!(held.len() <= 1, "{held:?}");
    });

    let watch = watch_pods(&scenario, 3);
    patch(&scenario, &json!({"spec": {"replicas": 1}}));
    until_held(&scenario, "db-2");
    label(&scenario, "db-2", false).unwrap();
    until_held(&scenario, "db-1");
    assert_eq!(names(&pods(&scenario)), ["db-0", "db-1"]);
    // A pod that is wanted again before it was released stays.
    patch(&scenario, &json!({"spec": {"replicas": 3}}));
    until(
        &scenario,
        "pods",
        "db-1 is normal again, and db-2 is back",
        |pods| pods.len() == 3 && all_in_service(pods) && in_state(pods, &["Normal"]).count() == 3,
    );
    until_updated(&scenario, 3);
    assert_eq!(uid(&pods(&scenario)["db-1"]), before["db-1"]);
    let events = ended(watch, "three pods", |pods| {
        pods.len() == 3 && in_state(pods, &["Normal"]).count() == 3
    });
    at_every_moment(&events, |pods, changed| {
        let held: Vec<_> = in_state(pods, &["PreparingDelete"]).collect();
        assert!(held.len() <= 1, "{held:?}");
        assert!(!is_terminating(changed) || name(changed) == "db-2", "{changed}");
    });
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn a_pod_that_waits_to_become_normal_keeps_the_next_one_of_an_ordered_set_waiting() {
    let scenario = scenario("statefulset-pre-normal");
    let mut set = db(2);
    set["spec"]["lifecycle"] = json!({"preNormal": {"labelsHandler": {HOLD: "yes"}}});
    scenario.kubectl.apply(&set).unwrap();
    let watch = watch_pods(&scenario, 1);
    until_status(&scenario, &json!({"readyReplicas": 1, "availableReplicas": 0}));
    assert_eq!(state(&pods(&scenario)["db-0"]), "PreparingNormal");
    label(&scenario, "db-0", true).unwrap();
    until(&scenario, "pods", "the next pod waits, too", |pods| {
        pods.len() == 2 && state(&pods["db-0"]) == "Normal" && state(&pods["db-1"]) == "PreparingNormal"
    });
    label(&scenario, "db-1", true).unwrap();
    until_status(&scenario, &json!({"availableReplicas": 2, "replicas": 2}));
    at_every_moment(&watch.stop().unwrap(), |pods, changed| {
        if name(changed) == "db-1" {
            assert_eq!(state(&pods["db-0"]), "Normal", "{pods:?}");
        }
    });
}
