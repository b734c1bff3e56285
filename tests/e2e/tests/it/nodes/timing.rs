//! What an update in place saves, measured.
//!
//! It saves what a pod does once. It is not faster by itself: a kubelet looks at its containers once a second, and an
//! update in place waits for three looks, at the end of the old container, the start of the new one, and the gate.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{OnNodes, TOOL, WEB, containers, on_nodes, web_of};

/// What a pod does once, before it serves.
const ONCE: Duration = Duration::from_secs(30);

/// A server whose variable nothing but a new pod can change.
fn server(image: &str, variable: &str) -> Value {
    json!([{"name": "main", "image": image, "env": [{"name": "A", "value": variable}]}])
}

/// How long it takes from a change until its pod is updated and in service.
fn time_of(on: &OnNodes, image: &str, variable: &str) -> Duration {
    let begun = Instant::now();
    on.scenario.patch(&containers(&server(image, variable)));
    on.until_updated(1);
    begun.elapsed()
}

/// The best of three updates in place, and the best of as many recreations as there are variables.
fn best_times(on: &OnNodes, variables: &[&str]) -> (Duration, Duration) {
    let images = ["lab.test/web:2", "lab.test/web:3", WEB];
    let in_place = images.map(|image| {
        let uids = on.scenario.uids();
        let time = time_of(on, image, "first");
        assert_eq!(on.scenario.uids(), uids);
        time
    });
    let recreated = variables.iter().map(|variable| {
        let uids = on.scenario.uids();
        let time = time_of(on, WEB, variable);
        assert_ne!(on.scenario.uids(), uids);
        time
    });
    (in_place.into_iter().min().unwrap(), recreated.min().unwrap())
}

#[test]
#[ignore = "needs real nodes: cargo xtask e2e --real-nodes"]
fn an_update_in_place_saves_what_a_pod_does_once() {
    let on = on_nodes("nodes-timing");
    let mut set = web_of(1, &server(WEB, "first"));
    on.scenario.kubectl.apply(&set).unwrap();
    on.until_updated(1);
    let (in_place, recreated) = best_times(&on, &["second", "third", "fourth"]);
    println!("a pod with nothing to do once: in place {in_place:.1?}, recreated {recreated:.1?}");

    let once = json!([{"name": "once", "image": TOOL, "command": ["sleep", ONCE.as_secs().to_string()]}]);
    set["spec"]["template"]["spec"]["initContainers"] = once;
    on.scenario.kubectl.apply(&set).unwrap();
    on.until_updated(1);
    let (in_place, recreated) = best_times(&on, &["second"]);
    let saved = 100.0 * (1.0 - in_place.as_secs_f64() / recreated.as_secs_f64());
    println!(
        "a pod with {ONCE:?} of work before it serves: in place {in_place:.1?}, recreated {recreated:.1?}, {saved:.0} % less"
    );
    assert!(recreated >= ONCE);
    assert!(
        in_place + ONCE / 2 < recreated,
        "in place {in_place:.1?}, recreated {recreated:.1?}"
    );
}
