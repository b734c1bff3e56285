//! Images that change in place: what happens to processes, sandboxes and addresses.

use std::time::Duration;

use kruise_e2e::{process, wait};
use serde_json::json;

use super::runtime::version;
use super::{WEB, containers, identity, on_nodes, server_and_neighbour, status_of, web_of};
use crate::cluster::LIMIT;

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn a_new_image_keeps_sandbox_address_and_neighbour_and_replaces_one_process() {
    let on = on_nodes("nodes-new-image");
    let set = web_of(1, &server_and_neighbour(WEB));
    on.scenario.kubectl.apply(&set).unwrap();
    on.until_updated(1);
    let (before, running) = (on.pod(), on.runtime.processes(&on.pod()));
    assert_eq!(running.sandboxes.len(), 1, "{running:?}");
    assert_eq!(version(&before).as_deref(), Some("1"));

    on.scenario
        .patch(&containers(&server_and_neighbour("lab.test/web:2")));
    on.until_updated(1);
    let (after, now) = (on.pod(), on.runtime.processes(&on.pod()));
    assert_eq!(identity(&after), identity(&before));
    assert_eq!(now.sandboxes, running.sandboxes);
    assert_eq!(now.containers["neighbour"], running.containers["neighbour"]);
    assert_ne!(now.containers["main"].id, running.containers["main"].id);
    assert!(!process::is_running(running.containers["main"].pid));
    assert!(process::is_running(now.containers["main"].pid));
    assert_eq!(version(&after).as_deref(), Some("2"));
    let restarts = ["main", "neighbour"].map(|name| status_of(&after, name)["restartCount"].clone());
    assert_eq!(restarts, [json!(1), json!(0)]);
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn an_image_that_cannot_be_pulled_holds_the_rollout_and_going_back_heals_the_pod_in_place() {
    let on = on_nodes("nodes-no-image");
    let set = web_of(3, &server_and_neighbour(WEB));
    on.scenario.kubectl.apply(&set).unwrap();
    on.until_updated(3);
    let mut before: Vec<_> = on.scenario.pods().iter().map(identity).collect();
    before.sort();

    on.scenario
        .patch(&containers(&server_and_neighbour("lab.test/web:none")));
    let stuck = wait::until("a kubelet tries to pull", LIMIT, || {
        let waits = |pod: &serde_json::Value| {
            let reason = &status_of(pod, "main")["state"]["waiting"]["reason"];
            reason == "ErrImagePull" || reason == "ImagePullBackOff"
        };
        Ok(on.scenario.pods().into_iter().find(waits))
    })
    .unwrap();
    // As long as it would take others to follow.
    wait::observe_for(Duration::from_secs(5));
    on.scenario.until_status(
        &json!({"replicas": 3, "updatedReplicas": 1, "updatedReadyReplicas": 0, "readyReplicas": 2}),
    );
    let served = on.scenario.pods().iter().filter_map(version).collect::<Vec<_>>();
    assert_eq!(served, ["1", "1"]);
    let neighbour = on.runtime.processes(&stuck).containers["neighbour"].clone();

    on.scenario.patch(&containers(&server_and_neighbour(WEB)));
    on.until_updated(3);
    let pods = on.scenario.pods();
    let mut after: Vec<_> = pods.iter().map(identity).collect();
    after.sort();
    assert_eq!(after, before);
    assert!(pods.iter().all(|pod| version(pod).as_deref() == Some("1")));
    assert_eq!(on.runtime.processes(&stuck).containers["neighbour"], neighbour);
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn another_name_of_the_same_image_completes_in_place() {
    let on = on_nodes("nodes-other-name");
    let set = web_of(1, &server_and_neighbour("lab.test/web:2"));
    on.scenario.kubectl.apply(&set).unwrap();
    on.until_updated(1);
    let (before, running) = (on.pod(), on.runtime.processes(&on.pod()));
    on.scenario
        .patch(&containers(&server_and_neighbour("lab.test/web:two")));
    on.until_updated(1);
    let (after, now) = (on.pod(), on.runtime.processes(&on.pod()));
    assert_eq!(identity(&after), identity(&before));
    assert_ne!(now.containers["main"].id, running.containers["main"].id);
    let images = [&before, &after].map(|pod| status_of(pod, "main")["imageID"].clone());
    assert_eq!(images[0], images[1], "it is the same image");
    assert_eq!(version(&after).as_deref(), Some("2"));
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn going_back_to_the_first_image_completes_in_place() {
    let on = on_nodes("nodes-back");
    let set = web_of(1, &server_and_neighbour(WEB));
    on.scenario.kubectl.apply(&set).unwrap();
    on.until_updated(1);
    let (before, first) = (on.pod(), on.runtime.processes(&on.pod()));
    let mut earlier = vec![first.containers["main"].clone()];
    for (image, served) in [("lab.test/web:2", "2"), (WEB, "1")] {
        on.scenario.patch(&containers(&server_and_neighbour(image)));
        on.until_updated(1);
        let now = on.runtime.processes(&on.pod());
        assert_eq!(identity(&on.pod()), identity(&before));
        assert_eq!(now.sandboxes, first.sandboxes);
        assert_eq!(version(&on.pod()).as_deref(), Some(served));
        let main = now.containers["main"].clone();
        assert!(
            earlier.iter().all(|one| one.id != main.id),
            "{main:?} {earlier:?}"
        );
        earlier.push(main);
    }
}
