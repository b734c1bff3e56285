//! Which pods are probed with what.

use kruise_plan_kit::{Explain, Part, Patch, Precondition, ResourceId, Write};
use serde_json::{Value, json};

use super::world::{World, exec, idle};

const PPM: ResourceId = kruise_api::podprobemarker::RESOURCE;
const NPP: ResourceId = kruise_api::nodepodprobe::RESOURCE;

fn world(probes: &Value) -> World {
    let mut world = World::new(&["n1", "n2"]);
    world.pod("g-0", "n1");
    world.pod("g-1", "n2");
    world.marker("a", probes);
    world
}

#[test]
fn every_pod_that_matches_is_probed_on_its_node_and_the_marker_reports_how_many() {
    let mut world = world(&json!([idle()]));
    world.pod("other", "n1");
    world.edit_pod("other", &json!({"metadata": {"labels": {"app": "web"}}}));
    let written = world.settle();
    assert_eq!(written, ["hold-marker a", "set-probes n1", "set-probes n2"]);
    assert_eq!(world.probes("n1"), ["g-0 a#idle"]);
    let entry = &world.get(NPP, "", "n2")["spec"]["podProbes"][0];
    let pod = &world.the_pod("g-1")["metadata"];
    assert_eq!(
        *entry,
        json!({"name": "g-1", "namespace": "games", "uid": pod["uid"], "IP": "192.0.2.1", "probes": [{
            "name": "a#idle", "containerName": "main",
            "probe": {"exec": {"command": ["/idle.sh"]}, "periodSeconds": 10}}]})
    );
    let status = &world.get(PPM, "games", "a")["status"];
    assert_eq!(*status, json!({"observedGeneration": 1, "matchedPods": 2}));
}

#[test]
fn a_pod_is_probed_from_when_it_has_run_its_init_containers_until_it_ends() {
    let mut world = world(&json!([idle()]));
    world.settle();
    world.pod("g-2", "n1");
    let initialized =
        |status: &str| json!({"status": {"conditions": [{"type": "Initialized", "status": status}]}});
    world.edit_pod("g-2", &initialized("False"));
    assert!(world.settle().is_empty());
    world.edit_pod("g-2", &initialized("True"));
    assert_eq!(world.settle(), ["set-probes n1"]);
    assert_eq!(world.probes("n1"), ["g-0 a#idle", "g-2 a#idle"]);
    world.edit_pod("g-2", &json!({"status": {"phase": "Succeeded"}}));
    world.settle();
    assert_eq!(world.probes("n1"), ["g-0 a#idle"]);
    assert_eq!(world.get(PPM, "games", "a")["status"]["matchedPods"], 2);
}

#[test]
fn a_pod_that_gains_the_label_is_probed_and_one_that_loses_it_is_not() {
    let mut world = world(&json!([idle()]));
    world.edit_pod("g-1", &json!({"metadata": {"labels": {"app": "web"}}}));
    world.settle();
    assert!(world.probes("n2").is_empty());
    world.edit_pod("g-1", &json!({"metadata": {"labels": {"app": "game"}}}));
    world.edit_pod("g-0", &json!({"metadata": {"labels": {"app": "web"}}}));
    assert_eq!(world.settle(), ["set-probes n1", "set-probes n2"]);
    assert_eq!(world.probes("n2"), ["g-1 a#idle"]);
    assert!(world.probes("n1").is_empty());
    assert_eq!(world.get(NPP, "", "n1")["spec"], json!({}));
}

#[test]
fn a_probe_that_changes_or_leaves_the_marker_changes_or_leaves_every_node() {
    let mut world = world(&json!([exec("one", "c/one"), exec("two", "c/two")]));
    world.settle();
    let mut one = exec("one", "c/one");
    one["probe"]["exec"]["command"] = json!(["false"]);
    world.edit_marker(
        "a",
        &json!({"spec": {"probes": [one.clone(), exec("two", "c/two")]}}),
    );
    assert_eq!(world.settle(), ["set-probes n1", "set-probes n2"]);
    assert_eq!(world.probes("n1"), ["g-0 a#one", "g-0 a#two"], "in their places");
    assert_eq!(
        world.probe("n1", "a#one"),
        json!({"exec": {"command": ["false"]}})
    );
    world.edit_marker("a", &json!({"spec": {"probes": [one]}}));
    world.settle();
    assert_eq!(world.probes("n1"), ["g-0 a#one"]);
    assert_eq!(world.get(PPM, "games", "a")["status"]["observedGeneration"], 3);
}

#[test]
fn a_deleted_marker_goes_when_no_node_has_its_probes_and_those_of_others_stay() {
    let mut world = world(&json!([idle()]));
    world.marker("ba", &json!([idle()]));
    world.settle();
    // A node where no pod matches any more, as OpenKruise leaves it behind.
    world.edit_pod("g-1", &json!({"metadata": {"labels": {"app": "web"}}}));
    world.delete(PPM, "games", "a");
    let written = world.settle();
    assert_eq!(
        written,
        [
            "set-probes n1",
            "set-probes n2",
            "set-probes n2",
            "release-marker a"
        ]
    );
    assert_eq!(world.probes("n1"), ["g-0 ba#idle"]);
    assert!(world.probes("n2").is_empty());
    assert!(world.get(PPM, "games", "a").is_null());
}

#[test]
fn a_marker_of_the_same_name_in_another_namespace_is_another_one() {
    let mut world = world(&json!([idle()]));
    world.settle();
    let stored = world.get(NPP, "", "n1").clone();
    let mut entry = stored["spec"]["podProbes"][0].clone();
    entry["namespace"] = json!("shop");
    let list = json!([stored["spec"]["podProbes"][0], entry]);
    world.edit(NPP, "", "n1", &json!({"spec": {"podProbes": list}}));
    world.watched = Some("games".into());
    world.delete(PPM, "games", "a");
    world.settle();
    assert_eq!(world.get(NPP, "", "n1")["spec"]["podProbes"], json!([entry]));
}

#[test]
fn ports_are_those_of_the_container_and_a_scheme_is_there() {
    let http = |port: Value| {
        json!({"name": "http", "containerName": "main", "podConditionType": "c/http",
            "probe": {"httpGet": {"path": "/", "port": port, "host": ""}, "timeoutSeconds": 0}})
    };
    let mut world = world(&json!([http(json!("web"))]));
    world.settle();
    assert_eq!(
        world.probe("n1", "a#http"),
        json!({"httpGet": {"path": "/", "port": 8080, "scheme": "HTTP"}})
    );
    let mut tcp = exec("tcp", "c/tcp");
    tcp["probe"] = json!({"tcpSocket": {"port": "web"}});
    world.edit_marker("a", &json!({"spec": {"probes": [http(json!(9090)), tcp]}}));
    world.settle();
    assert_eq!(world.probe("n1", "a#http")["httpGet"]["port"], 9090);
    assert_eq!(world.probe("n1", "a#tcp"), json!({"tcpSocket": {"port": 8080}}));
}

#[test]
fn a_port_that_the_container_does_not_have_is_reported_and_its_probe_left_out() {
    let mut tcp = exec("tcp", "c/tcp");
    tcp["probe"] = json!({"tcpSocket": {"port": "admin"}});
    let mut world = world(&json!([tcp, exec("one", "c/one")]));
    world.settle();
    assert_eq!(world.probes("n1"), ["g-0 a#one"]);
    assert_eq!(
        world.events,
        ["ProbePortUnknown: probe tcp: container main has no port named \"admin\""]
    );
    assert_eq!(world.get(PPM, "games", "a")["status"]["matchedPods"], 2);
}

#[test]
fn an_address_is_filled_in_later_and_kept_while_the_pod_has_none() {
    let mut world = world(&json!([idle()]));
    world.edit_pod("g-0", &json!({"status": {"podIP": null}}));
    world.settle();
    let ip = |world: &World| world.get(NPP, "", "n1")["spec"]["podProbes"][0]["IP"].clone();
    assert_eq!(ip(&world), "");
    world.edit_pod("g-0", &json!({"status": {"podIP": "192.0.2.7"}}));
    assert_eq!(world.settle(), ["set-probes n1"]);
    assert_eq!(ip(&world), "192.0.2.7");
    world.edit_pod("g-0", &json!({"status": {"podIP": ""}}));
    assert!(world.settle().is_empty());
}

#[test]
fn a_node_that_gets_its_node_pod_probe_later_probes_from_then_on() {
    let mut world = world(&json!([idle()]));
    world.edit(
        ResourceId::NODES,
        "",
        "n1",
        &json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}),
    );
    world.delete(NPP, "", "n1");
    world.settle();
    let why = world.plan_marker("games", "a", Explain::Yes).why;
    let line = why.iter().find(|why| why.about == "g-0").unwrap();
    assert!(line.text.contains("node n1 has no NodePodProbe"), "{why:?}");
    world.node("n1", &json!({}));
    assert_eq!(world.settle(), ["create-node-pod-probe n1", "set-probes n1"]);
    assert_eq!(world.probes("n1"), ["g-0 a#idle"]);
}

#[test]
fn a_list_is_written_to_the_version_that_it_was_made_from_and_keeps_what_is_not_known() {
    let mut world = world(&json!([idle()]));
    world.marker("b", &json!([exec("x", "c/x")]));
    world.settle();
    let mut list = world.get(NPP, "", "n1")["spec"]["podProbes"].clone();
    list[0]["newer"] = json!(1);
    list[0]["probes"][0]["newer"] = json!(2);
    world.edit(NPP, "", "n1", &json!({"spec": {"podProbes": list}}));
    let mut changed = idle();
    changed["probe"]["periodSeconds"] = json!(3);
    world.edit_marker("a", &json!({"spec": {"probes": [changed]}}));
    let plan = world.plan_marker("games", "a", Explain::No);
    let write = plan.writes[0].steps[0].write.clone();
    let version = world.get(NPP, "", "n1")["metadata"]["resourceVersion"].clone();
    assert!(
        matches!(&write, Write::Patch { precondition: Precondition::UidAndVersion(_, read), .. } if *read == version)
    );
    // What another controller adds meanwhile refuses the write, and the next plan has both.
    world.edit(NPP, "", "n1", &json!({"status": {"other": 1}}));
    assert!(world.apply(&write, &mut None).is_err());
    world.settle();
    list[0]["probes"][0]["probe"]["periodSeconds"] = json!(3);
    assert_eq!(world.get(NPP, "", "n1")["spec"]["podProbes"], list);
}

#[test]
fn pods_of_virtual_nodes_are_counted_and_marked_by_their_conditions_with_the_gate_only() {
    let mut world = World::new(&["n1"]);
    world.node("v1", &json!({"type": "virtual-kubelet"}));
    world.pod("g-0", "n1");
    world.pod("s-0", "v1");
    world.marker("a", &json!([idle()]));
    let condition = |status: &str| {
        json!({"status": {"conditions": [{"type": "Initialized", "status": "True"},
            {"type": "game.example/idle", "status": status}]}})
    };
    world.edit_pod("s-0", &condition("True"));
    world.settle();
    assert!(world.get(NPP, "", "v1").is_null());
    assert!(world.marks("s-0").0.is_empty());
    assert_eq!(world.get(PPM, "games", "a")["status"]["matchedPods"], 2);
    world.serverless = true;
    assert_eq!(world.settle(), ["mark-pod s-0"]);
    let marks = |world: &World| -> Vec<(String, String)> { world.marks("s-0").0.into_iter().collect() };
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let idle = [pair("cost", "-10"), pair("game", "idle"), pair("spare", "yes")];
    assert_eq!(marks(&world), idle);
    world.edit_pod("s-0", &condition("Unknown"));
    assert!(world.settle().is_empty());
    world.edit_pod("s-0", &condition("False"));
    world.settle();
    let busy = [
        pair("cost", "10"),
        pair("game", "busy"),
        pair("spare", "yes"),
        pair("why", "players"),
    ];
    assert_eq!(marks(&world), busy, "nothing is removed");
}

#[test]
fn an_explanation_says_for_each_pod_what_its_probes_report_or_why_it_has_none() {
    let mut world = world(&json!([idle()]));
    world.pod("g-2", "n1");
    world.edit_pod("g-2", &json!({"spec": {"nodeName": ""}}));
    world.settle();
    world.report("n1", "g-0", "a#idle", "Failed", "3 players\n");
    world.settle();
    world.report("n2", "g-1", "a#idle", "Succeeded", "");
    let plan = world.plan_marker("games", "a", Explain::Yes);
    let lines: Vec<String> = plan
        .why
        .iter()
        .map(|why| format!("{}: {}", why.about, why.text))
        .collect();
    assert_eq!(
        lines,
        [
            ": of 3 pods that match, agents probe 2; 0 are on virtual nodes",
            "g-0: idle: Failed (3 players)",
            "g-1: idle: Succeeded",
            "g-2: is not probed: it is on no node yet",
        ]
    );
    assert!(plan.writes.is_empty() && plan.status.is_none());
    assert!(world.plan_marker("games", "a", Explain::No).why.is_empty());
}

#[test]
fn the_finalizers_of_others_stay() {
    let mut world = world(&json!([idle()]));
    world.edit(PPM, "games", "a", &json!({"metadata": {"finalizers": ["x/y"]}}));
    world.settle();
    let stored = &world.get(PPM, "games", "a")["metadata"]["finalizers"];
    assert_eq!(*stored, json!(["x/y", "kruise.io/node-pod-probe-cleanup"]));
    world.delete(PPM, "games", "a");
    world.settle();
    let stored = &world.get(PPM, "games", "a")["metadata"]["finalizers"];
    assert_eq!(*stored, json!(["x/y"]));
    let plan = world.plan_marker("games", "a", Explain::No);
    assert!(plan.writes.is_empty());
}

#[test]
fn a_pod_that_is_replaced_by_one_of_its_name_is_probed_as_the_new_one() {
    let mut world = world(&json!([idle()]));
    world.settle();
    world.pod("g-0", "n1");
    world.settle();
    let entries = world.get(NPP, "", "n1")["spec"]["podProbes"].as_array().unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0]["uid"], world.the_pod("g-0")["metadata"]["uid"]);
}

#[test]
fn writes_of_lists_are_merge_patches_of_the_main_object() {
    let mut world = world(&json!([idle()]));
    let hold = world.plan_marker("games", "a", Explain::No);
    assert_eq!(hold.writes.len(), 1, "the marker is held first");
    world.execute(&hold);
    let plan = world.plan_marker("games", "a", Explain::No);
    let is_merge = |write: &Write| {
        matches!(
            write,
            Write::Patch {
                part: Part::Main,
                patch: Patch::Merge(_),
                ..
            }
        )
    };
    assert!(plan.writes.iter().all(|object| is_merge(&object.steps[0].write)));
    assert_eq!(plan.writes.len(), 2);
}
