//! Scenarios of the metadata of containers.

use go_compat::container::environment_hash;
use kruise_agent_core::{About, Config, Effect, Failure, Handler, RuntimeContainer};
use serde_json::{Value, json};

use crate::world::{World, millis, seconds};

const UPDATING: &str = "False";

/// A pod of a CloneSet whose first container reads an annotation.
fn pod(value: &str, updating: &str) -> Value {
    json!({
        "metadata": {
            "annotations": {"config": value},
            "ownerReferences": [{"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "uid": "o",
                                 "controller": true}]},
        "spec": {"containers": [
            {"name": "main", "env": [
                {"name": "CFG", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['config']"}}}]},
            {"name": "log"}]},
        "status": {
            "podIP": "10.0.0.7",
            "conditions": [{"type": "InPlaceUpdateReady", "status": updating}],
            "containerStatuses": [
                {"name": "log", "containerID": "containerd://log", "state": {"running": {}}},
                {"name": "main", "containerID": "containerd://main", "state": {"running": {}}}]},
    })
}

fn container(name: &str) -> RuntimeContainer {
    RuntimeContainer {
        id: name.into(),
        name: name.into(),
        created: 1,
        started: None,
        is_running: true,
        exit_code: None,
        annotations: [
            ("io.kubernetes.container.hash", "19fd3bfc"),
            ("io.kubernetes.container.restartCount", "2"),
            ("io.kubernetes.pod.terminationGracePeriod", "20"),
        ]
        .into_iter()
        .collect(),
    }
}

/// A node that runs the pod `web`, which the agent has not reported.
fn world(value: &str, updating: &str) -> World {
    let mut world = World::new(Config::new("n1"));
    add(&mut world, value, updating);
    world
}

fn add(world: &mut World, value: &str, updating: &str) {
    let containers = vec![container("main"), container("log")];
    world.containers.insert("uid-web".into(), containers);
    world.put_pod("web", &pod(value, updating));
    world.describe_environment("web", "main", "main");
}

fn report(world: &World) -> &str {
    world.pods["web"]["metadata"]["annotations"]["apps.kruise.io/runtime-containers-meta"]
        .as_str()
        .unwrap_or_default()
}

fn stops(world: &World) -> Vec<(f64, String, u64)> {
    let start = crate::world::time(crate::world::START);
    let stops = world.trace.iter().filter_map(|(time, effect)| match effect {
        Effect::StopContainer { container, grace } => Some((
            time.duration_since(start).as_secs_f64(),
            container.to_string(),
            grace.as_secs(),
        )),
        _ => None,
    });
    stops.collect()
}

fn writes(world: &World) -> usize {
    world.count(|effect| matches!(effect, Effect::PatchPodStatus { .. }))
}

#[test]
fn s7_7_the_annotation_has_upstreams_bytes_in_the_order_of_the_status() {
    let mut world = world("v1", "True");
    world.run(seconds(10));
    let main = environment_hash([("CFG", "v1")]);
    let expected = format!(
        concat!(
            r#"{{"containers":[{{"name":"log","containerID":"containerd://log","restartCount":2,"#,
            r#""hashes":{{"plainHash":436026364,"extractedEnvFromMetadataHash":86995377}}}},"#,
            r#"{{"name":"main","containerID":"containerd://main","restartCount":2,"#,
            r#""hashes":{{"plainHash":436026364,"extractedEnvFromMetadataHash":{main}}}}}]}}"#
        ),
        main = main
    );
    assert_eq!(report(&world), expected);
    assert_eq!(writes(&world), 1);
    assert_eq!(
        world.count(|effect| matches!(effect, Effect::ReadEnvironment { .. })),
        1,
        "log reads nothing"
    );
    world.run(seconds(1000));
    assert_eq!((writes(&world), world.agent.next_timer()), (1, None));
}

#[test]
fn s7_7_a_pod_is_looked_at_a_second_after_it_changed() {
    let mut world = world("v1", "True");
    world.run(millis(900));
    world.put_pod("web", &json!({"metadata": {"labels": {"a": "b"}}}));
    world.run(millis(200));
    assert_eq!(
        world.count(|effect| matches!(effect, Effect::ReadContainers { .. })),
        1
    );
}

#[test]
fn s7_7_without_the_gate_no_environment_is_read_and_no_hash_of_it_written() {
    let mut world = World::new(Config {
        env_from_metadata: false,
        ..Config::new("n1")
    });
    add(&mut world, "v1", UPDATING);
    world.run(seconds(10));
    assert!(!report(&world).is_empty() && !report(&world).contains("extracted"));
    // An agent before this one, with the gate, has reported one of the containers; the other one is new.
    let hash = r#""plainHash":436026364"#;
    let reported = report(&world)
        .replacen(hash, &format!(r#"{hash},"extractedEnvFromMetadataHash":1"#), 2)
        .replace("containerd://log", "containerd://log-");
    let annotations = json!({"config": "v2", "apps.kruise.io/runtime-containers-meta": reported});
    world.put_pod("web", &json!({"metadata": {"annotations": annotations}}));
    world.run(seconds(60));
    assert_eq!((writes(&world), stops(&world).len()), (2, 0));
    assert_eq!(
        world.count(|effect| matches!(effect, Effect::ReadEnvironment { .. })),
        0
    );
}

#[test]
fn s7_12_9_a_changed_annotation_restarts_the_referencing_container_only_and_the_new_hash_is_reported() {
    let mut world = world("v1", "True");
    world.run(seconds(10));
    let condition = json!([{"type": "InPlaceUpdateReady", "status": UPDATING}]);
    world.put_pod("web", &json!({"status": {"conditions": condition}}));
    world.run(seconds(2));
    assert!(stops(&world).is_empty(), "nothing has changed yet");
    world.put_pod("web", &json!({"metadata": {"annotations": {"config": "v2"}}}));
    world.run(seconds(20));
    let stopped: Vec<(String, u64)> = stops(&world)
        .into_iter()
        .map(|(_, id, grace)| (id, grace))
        .collect();
    assert_eq!(stopped, [("containerd://main".to_owned(), 20)]);
    let new = environment_hash([("CFG", "v2")]);
    let entry = format!(
        r#"{{"name":"main","containerID":"containerd://main+","restartCount":2,"hashes":{{"plainHash":436026364,"extractedEnvFromMetadataHash":{new}}}}}"#
    );
    assert!(report(&world).contains(&entry), "{}", report(&world));
    assert_eq!(writes(&world), 2);
    let events = world.events();
    assert_eq!(
        (events.len(), events[0].component),
        (1, "kruise-daemon-containermeta")
    );
    assert_eq!(events[0].reason.name, "Killing");
    assert!(
        matches!(&events[0].about, About::Container { pod, container, .. } if &**pod == "web" && &**container == "main")
    );
}

#[test]
fn s7_12_9_without_an_update_in_place_nothing_restarts() {
    let mut world = world("v1", "True");
    world.run(seconds(10));
    world.put_pod("web", &json!({"metadata": {"annotations": {"config": "v2"}}}));
    world.run(seconds(100));
    assert_eq!((stops(&world).len(), writes(&world)), (0, 1));
}

#[test]
fn s7_7_the_restarter_backs_off_while_the_environment_stays_outdated() {
    let mut world = world("v1", "True");
    world.run(seconds(10));
    let condition = json!([{"type": "InPlaceUpdateReady", "status": UPDATING}]);
    world.stop_error = Some(Failure::Failed("context deadline exceeded".into()));
    world.put_pod(
        "web",
        &json!({"metadata": {"annotations": {"config": "v2"}}, "status": {"conditions": condition}}),
    );
    world.run(seconds(60));
    let times: Vec<f64> = stops(&world).iter().map(|(time, ..)| *time).collect();
    let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).round()).collect();
    assert_eq!(gaps, [3.0, 6.0, 12.0, 24.0]);
}

#[test]
fn a_container_that_does_not_run_is_not_stopped() {
    let mut world = world("v1", "True");
    world.run(seconds(10));
    world.containers.get_mut("uid-web").unwrap()[0].is_running = false;
    let condition = json!([{"type": "InPlaceUpdateReady", "status": UPDATING}]);
    world.put_pod(
        "web",
        &json!({"metadata": {"annotations": {"config": "v2"}}, "status": {"conditions": condition}}),
    );
    world.run(seconds(60));
    assert!(stops(&world).is_empty());
}

#[test]
fn s7_5_1_the_hook_runs_first_and_the_container_gets_the_rest_of_the_grace_period() {
    for (hook, grace, rest) in [
        (r#"{"exec":{"command":["sleep","4"]}}"#, "20", 16),
        (r#"{"exec":{"command":["sleep","4"]}}"#, "5", 2),
        (r#"{"sleep":{"seconds":7}}"#, "20", 13),
        (r#"{"sleep":{"seconds":70}}"#, "20", 2),
        (r#"{"exec":{"command":["sleep","4"]}}"#, "0", 2),
    ] {
        let mut world = World::new(Config::new("n1"));
        let mut main = container("main");
        main.annotations = main
            .annotations
            .iter()
            .filter(|(key, _)| !key.contains("Grace"))
            .chain([
                ("io.kubernetes.container.preStopHandler", hook),
                ("io.kubernetes.pod.terminationGracePeriod", grace),
            ])
            .collect();
        world
            .containers
            .insert("uid-web".into(), vec![main, container("log")]);
        world.put_pod("web", &pod("v1", "True"));
        world.describe_environment("web", "main", "main");
        world.run(seconds(10));
        let condition = json!([{"type": "InPlaceUpdateReady", "status": UPDATING}]);
        world.put_pod(
            "web",
            &json!({"metadata": {"annotations": {"config": "v2"}}, "status": {"conditions": condition}}),
        );
        world.run(seconds(40));
        let graces: Vec<u64> = stops(&world).into_iter().map(|(.., grace)| grace).collect();
        assert_eq!(graces, [rest], "{hook} {grace}");
        let hooks = world.count(|effect| {
            matches!(
                effect,
                Effect::RunPreStop {
                    hook: Handler::Exec(_),
                    ..
                }
            )
        });
        assert_eq!(hooks, usize::from(hook.contains("exec") && grace != "0"));
    }
}

#[test]
fn a_hook_that_cannot_be_run_is_an_event_and_the_container_is_stopped() {
    let mut world = world("v1", "True");
    world.run(seconds(10));
    let annotations = [(
        "io.kubernetes.container.preStopHandler",
        r#"{"httpGet":{"port":"missing"}}"#,
    )];
    world.containers.get_mut("uid-web").unwrap()[0].annotations = annotations.into_iter().collect();
    let condition = json!([{"type": "InPlaceUpdateReady", "status": UPDATING}]);
    world.put_pod(
        "web",
        &json!({"metadata": {"annotations": {"config": "v2"}}, "status": {"conditions": condition}}),
    );
    world.run(seconds(20));
    assert_eq!(stops(&world).len(), 1);
    let message = r#"FailedPreStopHook PreStop hook failed: its port "missing" is not known"#;
    assert_eq!(world.messages()[1], message);
}

#[test]
fn s7_7_where_env_cannot_be_run_the_rest_is_reported_and_env_is_run_again_ever_more_seldom() {
    let mut world = World::new(Config::new("n1"));
    world.is_env_missing = true;
    add(&mut world, "v1", "True");
    world.run(seconds(3600));
    assert!(report(&world).contains("containerd://main") && writes(&world) == 1);
    let runs = world.count(|effect| matches!(effect, Effect::ReadEnvironment { .. }));
    assert!((55..70).contains(&runs), "{runs} runs in an hour");
    world.is_env_missing = false;
    world.run(seconds(61));
    assert!(report(&world).contains(&environment_hash([("CFG", "v1")]).to_string()));
    assert_eq!((writes(&world), world.agent.next_timer()), (2, None));
}

#[test]
fn s7_7_values_of_several_lines_do_not_restart_a_container_for_ever() {
    let mut world = world("a=1\nb=2", "True");
    world.run(seconds(10));
    let condition = json!([{"type": "InPlaceUpdateReady", "status": UPDATING}]);
    let annotations = json!({"config": "a=1\nb=3"});
    world.put_pod(
        "web",
        &json!({"metadata": {"annotations": annotations}, "status": {"conditions": condition}}),
    );
    world.run(seconds(100));
    assert_eq!(stops(&world).len(), 1);
    assert!(report(&world).contains(&environment_hash([("CFG", "a=1\nb=3")]).to_string()));
}

#[test]
fn a_report_that_cannot_be_read_is_replaced() {
    let mut world = World::new(Config::new("n1"));
    let mut broken = pod("v1", "True");
    broken["metadata"]["annotations"]["apps.kruise.io/runtime-containers-meta"] = "{".into();
    world
        .containers
        .insert("uid-web".into(), vec![container("main"), container("log")]);
    world.put_pod("web", &broken);
    world.describe_environment("web", "main", "main");
    world.run(seconds(10));
    assert!(report(&world).starts_with(r#"{"containers":[{"name":"log""#));
}

#[test]
fn pods_of_others_and_pods_that_end_are_left_alone() {
    let mut world = World::new(Config::new("n1"));
    let mut other = pod("v1", UPDATING);
    other["metadata"]["ownerReferences"][0]["apiVersion"] = "apps/v1".into();
    world.put_pod("other", &other);
    let mut ending = pod("v1", UPDATING);
    ending["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z".into();
    world.put_pod("ending", &ending);
    let mut foreign = pod("v1", UPDATING);
    for status in foreign["status"]["containerStatuses"].as_array_mut().unwrap() {
        status["containerID"] = "docker://1".into();
    }
    world.put_pod("foreign", &foreign);
    world.run(seconds(60));
    assert_eq!(
        world.count(|effect| matches!(effect, Effect::ReadContainers { .. })),
        0
    );
    assert_eq!(world.agent.next_timer(), None);
}

#[test]
fn a_pod_that_is_gone_while_it_is_looked_at_is_forgotten() {
    let mut world = world("v1", "True");
    world.run(millis(1015));
    assert_eq!(
        world.count(|effect| matches!(effect, Effect::ReadContainers { .. })),
        1
    );
    world.inject(kruise_agent_core::Event::PodDeleted {
        uid: "uid-web".into(),
    });
    world.run(seconds(60));
    assert_eq!((writes(&world), world.agent.next_timer()), (0, None));
}

#[test]
fn what_fails_to_be_written_is_written_later() {
    let mut world = world("v1", "True");
    world.api_error = Some(kruise_agent_core::WriteError::Failed("time out".into()));
    world.run(seconds(10));
    world.api_error = None;
    world.run(seconds(30));
    assert!(!report(&world).is_empty());
}

#[test]
fn while_the_runtime_is_away_pods_wait_for_it() {
    let mut world = World::new(Config::new("n1"));
    world.is_up = false;
    add(&mut world, "v1", "True");
    world.run(seconds(60));
    assert_eq!((writes(&world), report(&world)), (0, ""));
    let reads = world.count(|effect| matches!(effect, Effect::ReadContainers { .. }));
    assert!(reads <= 1, "{reads} reads of a runtime that is away");
    world.is_up = true;
    world.run(seconds(60));
    assert!(!report(&world).is_empty());
}

#[test]
fn five_pods_are_read_at_a_time() {
    let mut world = World::new(Config::new("n1"));
    for number in 0..20 {
        let name = format!("p{number:02}");
        world
            .containers
            .insert(format!("uid-{name}"), vec![container("main"), container("log")]);
        let mut pod = pod("v1", "True");
        for status in pod["status"]["containerStatuses"].as_array_mut().unwrap() {
            status["containerID"] = format!("containerd://{}", status["name"].as_str().unwrap()).into();
        }
        world.put_pod(&name, &pod);
        world.describe_environment(&name, "main", "main");
    }
    world.run(millis(1012));
    assert_eq!(
        world.count(|effect| matches!(effect, Effect::ReadContainers { .. })),
        5
    );
    world.run(seconds(10));
    assert_eq!(writes(&world), 20);
}

#[test]
fn s7_7_a_report_that_was_written_is_not_written_again_before_it_is_seen() {
    let mut world = world("v1", "True");
    world.watch_delay = seconds(5);
    world.run(seconds(2));
    assert_eq!(writes(&world), 1);
    // A change from before the report arrives after it was written.
    let mut stale = world.pods["web"].clone();
    stale["metadata"]["annotations"] = json!({"config": "v2"});
    stale["metadata"]["resourceVersion"] = "101".into();
    let pod = std::sync::Arc::new(serde_json::from_value(stale).unwrap());
    world.inject(kruise_agent_core::Event::Pod { pod, initial: false });
    world.run(seconds(3));
    let reads = |world: &World| world.count(|effect| matches!(effect, Effect::ReadContainers { .. }));
    assert_eq!((reads(&world), writes(&world)), (1, 1));
    world.run(seconds(60));
    assert_eq!((reads(&world), writes(&world)), (1, 1));
}

#[test]
fn s7_7_after_half_a_minute_a_report_that_is_not_seen_is_made_again() {
    let mut world = world("v1", "True");
    world.watch_delay = seconds(100);
    world.run(millis(1060));
    assert_eq!(writes(&world), 1);
    let mut stale = world.pods["web"].clone();
    stale["metadata"]["annotations"] = json!({"config": "v2"});
    stale["metadata"]["resourceVersion"] = "101".into();
    let pod = std::sync::Arc::new(serde_json::from_value(stale).unwrap());
    world.inject(kruise_agent_core::Event::Pod { pod, initial: false });
    world.run(seconds(29));
    assert_eq!(writes(&world), 1);
    world.run(seconds(3));
    assert_eq!(writes(&world), 2);
}
