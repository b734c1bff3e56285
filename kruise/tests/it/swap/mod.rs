//! Clusters with more than 300 objects of OpenKruise 1.8.4, 1.9.0 and main, at rest and in the middle of rollouts:
//! their preflight, the swap, and the way back.

mod client;
mod cluster;
mod embedded;
mod openkruise;
mod planted;
mod real;
mod replicas;
mod report;
mod restored;
mod settled;

use jiff::Timestamp;
use kruise_plan_test_kit::Fleet;
use serde_json::{Value, json};

use self::client::{Client, Done, Stage};
use self::cluster::{Cluster, Stored};
use self::openkruise::{GATES, MANAGER, SYSTEM};
use self::replicas::Managers;
use crate::beside::printed;
use crate::older::problems;

const NAMESPACES: usize = 16;
/// Faster than any server.
const RATE: &str = "--rate=1000000";

fn fleet(version: &'static str) -> Fleet {
    let fleet = Fleet::new(version, NAMESPACES, Timestamp::now());
    assert!(fleet.counted().0 >= 300);
    fleet
}

/// Starts an API server with what is installed, and with these objects.
type Start = fn(&[Value], &[Value]) -> Cluster;

/// Problems of each sort are found, and nothing else.
fn planted_problems_are_found(version: &'static str, start: Start) {
    let fleet = fleet(version);
    let (installed, objects, expected) = planted::cluster(&fleet, openkruise::installed(&fleet));
    let api = start(&installed, &objects);
    let before = api.stored();
    let (report, code) = report::preflight(&api);
    let mut found = problems(&report);
    found.sort();
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, (about, text)) in found.iter().zip(&expected) {
        assert!(
            found.starts_with(&format!("{about}: ")) && found.contains(text),
            "{found} is not {about}: {text}"
        );
    }
    assert_eq!((code, &report["podsThatWouldChange"]), (Some(1), &json!(1)));
    for (check, (about, text)) in [("plans", planted::MOVING), ("objects", planted::REFUSED)] {
        let notes = report::notes(&report, check);
        assert_eq!(notes.len(), 1, "{notes:#?}");
        assert!(notes[0].0 == about && notes[0].1.starts_with(text), "{notes:#?}");
    }
    let after = api.stored();
    for key in objects.iter().map(cluster::key) {
        let [mut before, mut after] = [&before[&key], &after[&key]].map(Value::clone);
        if is_reported_by_kubernetes(&key) {
            for object in [&mut before, &mut after] {
                object["status"].take();
                object["metadata"]["resourceVersion"].take();
            }
        }
        assert_eq!(after, before, "preflight changes nothing");
    }
}

/// In the status of these objects controllers of Kubernetes report.
fn is_reported_by_kubernetes(key: &str) -> bool {
    let resources = ["nodes. ", "replicasets.apps ", "statefulsets.apps "];
    resources.iter().any(|resource| key.starts_with(resource))
}

/// Preflight, the swap to so many managers behind one address, and the way back, while a client creates pods.
fn there_and_back(version: &'static str, replicas: usize, start: Start) {
    let fleet = fleet(version);
    let mut api = start(&openkruise::installed(&fleet), &fleet.objects);
    report::assert_advised(&api, &fleet);
    let before = api.stored();

    api.merge(MANAGER, &json!({"spec": {"replicas": 0}}));
    api.delete(MANAGER);
    for object in printed(&["--without-manager", GATES]) {
        api.apply(&object);
    }
    let inject = json!({"inject": "yes-0"});
    let client = Client::start(api.address, "shop-0", &inject);
    let mut managers = Managers::start(&api, replicas);
    settled::wait(&managers, &fleet);
    settled::wait_registered(&api);
    client.enters(Stage::Managed);
    client.goes_on();
    assert_untouched(&before, &api.stored());

    api.kruise(&["migrate", "storage", RATE]).assert(0, &[]);
    client.goes_on();
    settled::wait(&managers, &fleet);
    assert_untouched(&before, &api.stored());
    restored::edit(&api);

    let older = fleet.only_older();
    let older: Vec<&str> = older.iter().map(String::as_str).collect();
    let back = |what| [&["migrate", what, "--to=v1alpha1", RATE], older.as_slice()].concat();
    if !older.is_empty() {
        api.kruise(&back("storage")).assert(0, &[]);
    }
    client.goes_on();
    settled::wait(&managers, &fleet);
    client.enters(Stage::Stopped);
    managers.end();
    if !older.is_empty() {
        api.kruise(&back("owners")).assert(0, &[]);
    }
    for definition in fleet.definitions(SYSTEM) {
        api.apply(&definition);
    }
    client.goes_on();
    let done = client.finish();
    assert_served(&done);
    api.collect_garbage();
    let after = api.stored();
    assert_untouched(&before, &after);
    restored::assert_as_before(&fleet, &before, &after);
}

/// Pods and what belongs to them are the very same, to the version of their last write.
fn assert_untouched(before: &Stored, now: &Stored) {
    let owned = ["pods. ", "controllerrevisions.apps ", "persistentvolumeclaims. "];
    let is_of_shops = |key: &str| {
        let shops = owned.iter().any(|resource| {
            key.strip_prefix(resource)
                .is_some_and(|rest| rest.starts_with("shop-"))
        });
        shops || key.starts_with("controllerrevisions.apps kruise-system/")
    };
    let mut counted = 0;
    for (key, object) in before.iter().filter(|(key, _)| is_of_shops(key)) {
        counted += 1;
        assert_eq!(now.get(key), Some(object), "{key}");
    }
    assert!(counted > 500, "{counted}");
    let mut added = now
        .keys()
        .filter(|key| is_of_shops(key) && !before.contains_key(*key));
    assert_eq!(added.find(|key| !client::is_of_client(key)), None);
}

/// No pod that uses no feature was ever refused, and no other one while a manager was called for it, which gave it
/// its sidecar.
fn assert_served(done: &[Done]) {
    for one in done {
        let may_fail = one.is_injected && !one.is_within(Stage::Managed);
        assert!(!one.is_refused() || may_fail, "{one:?}");
    }
    for stage in [Stage::Installed, Stage::Managed, Stage::Stopped] {
        let plain = done.iter().filter(|one| one.is_within(stage) && !one.is_injected);
        assert!(plain.count() > 0, "{stage:?}");
    }
    let created = done.iter().filter(|one| one.is_injected && one.is_created());
    let injected: Vec<&Done> = created.filter(|one| one.is_within(Stage::Managed)).collect();
    assert!(!injected.is_empty());
    for one in injected {
        assert!(one.has_container("log-agent"), "{one:?}");
    }
}

#[test]
fn a_cluster_of_1_8_4_is_swapped_and_back_without_a_loss() {
    there_and_back("1.8.4", 1, embedded::start);
}

#[test]
fn a_cluster_of_1_9_0_is_swapped_and_back_without_a_loss() {
    there_and_back("1.9.0", 1, embedded::start);
}

#[test]
fn a_cluster_of_main_is_swapped_to_three_managers_and_back_without_a_loss() {
    there_and_back("main", 3, embedded::start);
}

#[test]
fn problems_in_a_cluster_of_1_8_4_are_found_and_nothing_else() {
    planted_problems_are_found("1.8.4", embedded::start);
}

#[test]
fn problems_in_a_cluster_of_1_9_0_are_found_and_nothing_else() {
    planted_problems_are_found("1.9.0", embedded::start);
}

#[test]
fn problems_in_a_cluster_of_main_are_found_and_nothing_else() {
    planted_problems_are_found("main", embedded::start);
}
