//! Containers: what a runtime knows of them, stops, commands.

use std::collections::BTreeMap;

use go_compat::container::image_hash;
use serde_json::json;

use super::*;
use crate::nodes::runtime::{ContainerState, ContainerStatus, Exec, Output, labels};

fn exec(play: &mut Play, name: &str, command: &[&str], timeout: u64) -> (Result<Output, Error>, i128) {
    let exec = Exec {
        container: play.running(name),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        timeout: Duration::from_secs(timeout),
    };
    match play.wait(Call::ExecSync(exec)) {
        (Ok(Answer::Output(output)), took) => (Ok(output), took),
        (Err(error), took) => (Err(error), took),
        other => panic!("{other:?}"),
    }
}

/// What `env` prints in a pod's container: the value of a variable.
fn variable(play: &mut Play, pod: &str, name: &str) -> Option<String> {
    let printed = exec(play, pod, &["env"], 3).0.unwrap().stdout;
    let start = format!("{name}=");
    let mut lines = printed.lines();
    lines.find_map(|line| line.strip_prefix(&start).map(str::to_owned))
}

fn inspect(play: &mut Play, id: &str) -> ContainerStatus {
    match play.ask(Call::ContainerStatus(id.to_owned())) {
        Ok(Answer::Container(status)) => *status,
        other => panic!("{other:?}"),
    }
}

fn of_pod(play: &mut Play, uid: &str) -> Vec<Container> {
    let wanted = BTreeMap::from([(labels::POD_UID.to_owned(), uid.to_owned())]);
    match play.ask(Call::ListContainers(wanted)) {
        Ok(Answer::Containers(containers)) => containers,
        other => panic!("{other:?}"),
    }
}

#[test]
fn containers_have_the_labels_and_annotations_of_a_kubelet() {
    let mut play = play();
    let spec = json!({"terminationGracePeriodSeconds": 7, "containers": [{"name": "main", "image": "web:1",
        "terminationMessagePath": "/tmp/end", "ports": [{"name": "web", "containerPort": 80}],
        "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "sleep 1"]}}}}]});
    play.post(PODS, &with_spec("a", &spec));
    play.rest();
    let uid = play.pod("a")["metadata"]["uid"].as_str().unwrap().to_owned();
    let [one] = &play.containers()[..] else {
        panic!("one container")
    };
    assert_eq!(one.id, play.running("a"));
    assert_eq!((&*one.name, one.attempt, &*one.image), ("main", 0, "web:1"));
    let pairs = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(key, value)| (format!("io.kubernetes.{key}"), (*value).to_owned()))
            .collect()
    };
    let expected = pairs(&[
        ("pod.name", "a"),
        ("pod.namespace", "default"),
        ("pod.uid", &uid),
        ("container.name", "main"),
    ]);
    assert_eq!(one.labels, expected);
    let hash = format!("{:x}", image_hash("main", "web:1"));
    let mut annotations = one.annotations.clone();
    let mut json = |name: &str| -> Value {
        let text = annotations.remove(&format!("io.kubernetes.container.{name}"));
        serde_json::from_str(&text.unwrap()).unwrap()
    };
    let hook = json!({"exec": {"command": ["sh", "-c", "sleep 1"]}});
    assert_eq!(json("preStopHandler"), hook);
    let ports = json!([{"name": "web", "containerPort": 80, "protocol": "TCP"}]);
    assert_eq!(json("ports"), ports);
    let expected = pairs(&[
        ("container.hash", &hash),
        ("container.restartCount", "0"),
        ("container.terminationMessagePath", "/tmp/end"),
        ("container.terminationMessagePolicy", "File"),
        ("pod.terminationGracePeriod", "7"),
    ]);
    assert_eq!(annotations, expected);
}

#[test]
fn containers_are_found_by_pod_and_by_id_from_their_creation_on() {
    let mut play = play();
    for name in ["a", "b"] {
        play.post(PODS, &pod(name));
    }
    play.pass(Duration::from_millis(5799));
    assert_eq!(play.containers(), []);
    play.pass(Duration::from_millis(1));
    let created = play.containers();
    let states: Vec<_> = created.iter().map(|one| one.state).collect();
    assert_eq!(states, [ContainerState::Created; 2]);
    assert_eq!(created[0].created, play.0.now());
    play.rest();
    let [a, b] = &play.containers()[..] else {
        panic!("two containers")
    };
    assert_eq!((&a.id, a.created), (&created[0].id, created[0].created));
    assert_eq!(
        of_pod(&mut play, &b.labels[labels::POD_UID]),
        std::slice::from_ref(b)
    );
    assert_eq!(of_pod(&mut play, "none"), []);
    let status = inspect(&mut play, &a.id);
    assert_eq!((&status.container, status.finished), (a, None));
    assert_eq!(status.started.unwrap(), a.created + Duration::from_millis(400));
    for id in ["", "none", &format!("containerd://{}", a.id)] {
        let error = play.ask(Call::ContainerStatus(id.to_owned())).unwrap_err();
        assert_eq!(error.code(), 5, "{id}");
    }
    play.delete(&format!("{PODS}/a"));
    play.rest();
    assert_eq!(play.containers(), std::slice::from_ref(b));
}

#[test]
fn a_stopped_container_is_started_anew_by_its_kubelet() {
    let mut play = play();
    play.post(PODS, &pod("a"));
    play.rest();
    let old = play.running("a");
    let mut call = None;
    let seen = lines(&mut play, |play| {
        call = Some(play.stop("a", 30));
        assert_eq!(play.answer(call.unwrap()), None, "its process has not ended");
        play.rest();
    });
    let expected = [
        "MODIFIED Running [SBI] ContainersNotReady (main-0 ended 0)",
        "MODIFIED Running [SBICR]  (main+1 running web:1)",
    ];
    assert_eq!(seen, expected);
    assert_eq!(play.answer(call.unwrap()), Some(Ok(Answer::Stopped)));
    let [new, ended] = &play.containers()[..] else {
        panic!("two containers")
    };
    assert_eq!((&new.id, &ended.id), (&play.running("a"), &old));
    assert_eq!((new.attempt, ended.attempt), (1, 0));
    assert_eq!(new.annotations["io.kubernetes.container.restartCount"], "1");
    assert!(new.created > ended.created);
    let ended = inspect(&mut play, &old);
    assert_eq!(
        (ended.container.state, ended.exit_code),
        (ContainerState::Exited, 0)
    );
    assert_eq!(ended.reason, "Completed");
    let took = ended.finished.unwrap().duration_since(ended.started.unwrap());
    assert!(took.as_secs() >= 1);
    let last = &status(&mut play, "a")["lastState"]["terminated"]["containerID"];
    assert_eq!(*last, format!("containerd://{old}"));
    // To stop what has ended is no error, and has no effect.
    let call = Call::StopContainer {
        container: old,
        grace: Duration::ZERO,
    };
    assert_eq!(play.ask(call), Ok(Answer::Stopped));
    assert_eq!(lines(&mut play, Play::rest), [] as [&str; 0]);
    let call = Call::StopContainer {
        container: "none".into(),
        grace: Duration::ZERO,
    };
    assert!(matches!(play.ask(call), Err(Error::NotFound(_))));
}

#[test]
fn a_stop_is_answered_when_the_process_has_ended() {
    let mut play = play();
    play.post(PODS, &pod("a"));
    play.rest();
    let container = play.running("a");
    let grace = Duration::from_secs(30);
    let (stopped, took) = play.wait(Call::StopContainer {
        container: container.clone(),
        grace,
    });
    assert_eq!((stopped, took), (Ok(Answer::Stopped), 1000));
    assert_eq!(
        inspect(&mut play, &container).container.state,
        ContainerState::Exited
    );
}

#[test]
fn a_container_that_is_stopped_again_and_again_backs_off() {
    let mut play = play();
    play.post(PODS, &pod("a"));
    play.rest();
    for _ in 0..2 {
        play.stop("a", 30);
        play.pass(Duration::from_secs(2));
    }
    assert_eq!(word(&mut play, "a"), "main-1 CrashLoopBackOff");
    play.rest();
    assert_eq!(word(&mut play, "a"), "main+2 running web:1");
}

#[test]
fn a_short_grace_period_kills_and_a_second_stop_shortens_it() {
    let mut play = play();
    for name in ["a", "b"] {
        play.post(PODS, &with_spec(name, &json!({"restartPolicy": "Never"})));
    }
    play.rest();
    play.stop("a", 0);
    play.pass(Duration::ZERO);
    assert_eq!(word(&mut play, "a"), "main-0 ended 137");
    assert_eq!(play.pod("a")["status"]["phase"], "Failed");
    let first = play.stop("b", 30);
    play.pass(Duration::from_millis(500));
    play.0.runtime_answers();
    play.stop("b", 0);
    play.pass(Duration::ZERO);
    assert_eq!(word(&mut play, "b"), "main-0 ended 137");
    play.rest();
    let answers = play.0.runtime_answers();
    assert_eq!(answers.len(), 2);
    assert!(answers.contains(&(first, Ok(Answer::Stopped))));
}

#[test]
fn the_restart_policy_decides_what_follows_a_stop() {
    let mut play = play();
    play.post(PODS, &with_spec("serves", &json!({"restartPolicy": "Never"})));
    for (name, policy) in [("works", "Never"), ("retried", "OnFailure")] {
        let container = json!({"name": "main", "image": "web:1", "command": ["sleep", "900"]});
        let spec = json!({"restartPolicy": policy, "containers": [container]});
        play.post(
            "/apis/batch/v1/namespaces/default/jobs",
            &json!({"metadata": {"name": name}, "spec": {"template": {"spec": spec}}}),
        );
    }
    play.pass(Duration::from_secs(10));
    for (name, end) in [
        ("serves", "main-0 ended 0"),
        ("works", "main-0 ended 143"),
        ("retried", "main+1 running web:1"),
    ] {
        let all = play.get(PODS).unwrap();
        let mut names = all["items"].as_array().unwrap().iter();
        let names = names.find_map(|pod| {
            pod["metadata"]["name"]
                .as_str()
                .filter(|one| one.starts_with(name))
        });
        let pod = names.unwrap().to_owned();
        play.stop(&pod, 30);
        play.pass(Duration::from_secs(2));
        assert_eq!(word(&mut play, &pod), end, "{name}");
    }
}

#[test]
fn another_container_of_the_pod_is_not_touched() {
    let mut play = play();
    let two =
        json!({"containers": [{"name": "main", "image": "web:1"}, {"name": "side", "image": "side:1"}]});
    play.post(PODS, &with_spec("a", &two));
    play.rest();
    let before = play.pod("a")["status"]["containerStatuses"][1].clone();
    play.stop("a", 30);
    play.rest();
    assert_eq!(word(&mut play, "a"), "main+1 running web:1");
    assert_eq!(play.pod("a")["status"]["containerStatuses"][1], before);
}

#[test]
fn a_changed_annotation_is_read_only_after_a_restart() {
    let mut play = play();
    let mut reading = pod("a");
    reading["metadata"]["annotations"] = json!({"config": "foo"});
    let field = json!({"fieldPath": "metadata.annotations['config']"});
    reading["spec"]["containers"][0]["env"] = json!([{"name": "CONFIG", "valueFrom": {"fieldRef": field}}]);
    play.post(PODS, &reading);
    play.rest();
    assert_eq!(variable(&mut play, "a", "CONFIG").as_deref(), Some("foo"));
    let change = json!({"metadata": {"annotations": {"config": "v2\nx"}}});
    play.merge(&format!("{PODS}/a"), &change);
    play.rest();
    assert_eq!(variable(&mut play, "a", "CONFIG").as_deref(), Some("foo"));
    let call = play.stop("a", 30);
    play.rest();
    assert_eq!(play.answer(call), Some(Ok(Answer::Stopped)));
    let printed = exec(&mut play, "a", &["env"], 3).0.unwrap().stdout;
    assert!(printed.contains("\nCONFIG=v2\nx\n"), "{printed}");
}

#[test]
fn the_environment_is_that_of_the_specification() {
    let mut play = play();
    let data = |kind: &str, data: Value| json!({"metadata": {"name": kind}, "data": data});
    play.post(
        "/api/v1/namespaces/default/configmaps",
        &data("map", json!({"k": "m", "l": "n"})),
    );
    play.post(
        "/api/v1/namespaces/default/secrets",
        &data("secret", json!({"k": "cw=="})),
    );
    let from = |source: Value| json!({"valueFrom": source});
    let named = |name: &str, mut variable: Value| {
        variable["name"] = name.into();
        variable
    };
    let env = json!([
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)$(P_k)"},
        {"name": "A", "value": "2"},
        named("NAME", from(json!({"fieldRef": {"fieldPath": "metadata.name"}}))),
        named("IP", from(json!({"fieldRef": {"fieldPath": "status.podIP"}}))),
        named("NODE", from(json!({"fieldRef": {"fieldPath": "spec.nodeName"}}))),
        named("APP", from(json!({"fieldRef": {"fieldPath": "metadata.labels['app']"}}))),
        named("NONE", from(json!({"fieldRef": {"fieldPath": "metadata.labels['none']"}}))),
        named("MAP", from(json!({"configMapKeyRef": {"name": "map", "key": "l"}}))),
        named("SECRET", from(json!({"secretKeyRef": {"name": "secret", "key": "k"}}))),
        named("GONE", from(json!({"configMapKeyRef": {"name": "none", "key": "k", "optional": true}}))),
    ]);
    let sources =
        json!([{"prefix": "P_", "configMapRef": {"name": "map"}}, {"secretRef": {"name": "secret"}}]);
    let spec = json!({"containers": [{"name": "main", "image": "web:1", "env": env, "envFrom": sources}]});
    play.post(PODS, &with_spec("a", &spec));
    play.rest();
    let address = play.pod("a")["status"]["podIP"].as_str().unwrap().to_owned();
    let printed = exec(&mut play, "a", &["/usr/bin/env"], 0).0.unwrap().stdout;
    let mut printed = printed.lines();
    assert!(printed.next().unwrap().starts_with("PATH=/usr"));
    let expected = [
        "HOSTNAME=a",
        "P_k=m",
        "P_l=n",
        "k=s",
        "A=2",
        "B=1m",
        "NAME=a",
        &format!("IP={address}"),
        "NODE=n1",
        "APP=web",
        "NONE=",
        "MAP=n",
        "SECRET=s",
    ];
    assert_eq!(printed.collect::<Vec<_>>(), expected);
}

#[test]
fn commands_end_with_their_code_or_are_given_up() {
    let mut play = play();
    play.post(PODS, &pod("a"));
    play.rest();
    let ends = |code| {
        Ok(Output {
            exit_code: code,
            ..Output::default()
        })
    };
    assert_eq!(exec(&mut play, "a", &["true"], 1), (ends(0), 0));
    assert_eq!(
        exec(&mut play, "a", &["sh", "-c", "sleep 2; exit 3"], 3),
        (ends(3), 2000)
    );
    let (late, took) = exec(&mut play, "a", &["sleep", "infinity"], 3);
    assert_eq!((late.unwrap_err().code(), took), (4, 3000));
    // Its container ends first.
    let slow = Exec {
        container: play.running("a"),
        command: vec!["sleep".into(), "60".into()],
        timeout: Duration::ZERO,
    };
    let call = play.call(Call::ExecSync(slow.clone()));
    play.stop("a", 30);
    play.pass(Duration::from_mins(1));
    let answers = play.0.runtime_answers();
    assert_eq!(answers[1], (call, Ok(Answer::Output(ends(137).unwrap()))));
    let ended = play.ask(Call::ExecSync(slow.clone())).unwrap_err();
    assert!(
        ended.to_string().ends_with("is in CONTAINER_EXITED state"),
        "{ended}"
    );
    let container = "none".to_owned();
    let absent = play.ask(Call::ExecSync(Exec { container, ..slow })).unwrap_err();
    assert!(matches!(absent, Error::NotFound(_)), "{absent:?}");
}
