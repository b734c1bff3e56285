//! Runtimes that are away or slow, nodes that do not answer, and what must not have an effect.

use serde_json::json;

use super::*;
use crate::nodes::runtime::ContainerState;

fn unavailable(answer: Option<Result<Answer, Error>>) -> bool {
    matches!(answer, Some(Err(Error::Unavailable(_))))
}

#[test]
fn a_runtime_that_is_away_answers_nothing_and_breaks_what_runs() {
    let mut play = play();
    let id = play.call(pull("web:1"));
    play.pass(Duration::from_secs(1));
    assert!(play.0.inject_runtime_fault("n1", Fault::Away));
    assert!(
        !play.0.inject_runtime_fault("n1", Fault::Away),
        "it is away already"
    );
    assert!(unavailable(play.answer(id)));
    for call in [Call::Version, Call::ListImages, pull("web:1")] {
        let error = play.ask(call).unwrap_err();
        assert_eq!(error.code(), 14, "{error}");
    }
    assert!(play.0.inject_runtime_fault("n1", Fault::Back));
    assert!(
        !play.0.inject_runtime_fault("n1", Fault::Back),
        "it is back already"
    );
    let Ok(Answer::Version(version)) = play.ask(Call::Version) else {
        panic!("it answers")
    };
    assert_eq!((&*version.name, &*version.api_version), ("containerd", "v1"));
    play.rest();
    assert_eq!(play.images(), [], "the pull is not resumed");
}

#[test]
fn a_kubelet_starts_and_stops_nothing_while_its_runtime_is_away() {
    let mut play = play();
    play.post(PODS, &pod("a"));
    play.rest();
    play.0.inject_runtime_fault("n1", Fault::Away);
    play.post(PODS, &pod("b"));
    let change = json!({"spec": {"containers": [{"name": "main", "image": "web:2"}]}});
    play.strategic(&format!("{PODS}/a"), &change);
    play.rest();
    assert_eq!(word(&mut play, "a"), "main+0 running web:1");
    assert_eq!(play.pod("b")["status"].get("containerStatuses"), None);
    // A change of the node is no reason to go on.
    play.merge("/api/v1/nodes/n1", &json!({"metadata": {"labels": {"x": "y"}}}));
    play.rest();
    assert_eq!(word(&mut play, "a"), "main+0 running web:1");
    play.0.inject_runtime_fault("n1", Fault::Back);
    play.rest();
    assert_eq!(word(&mut play, "a"), "main+1 running web:2");
    assert!(is_ready(&play.pod("b")));
}

#[test]
fn a_container_that_is_stopped_when_the_runtime_goes_away_ends_and_is_started_when_it_is_back() {
    let mut play = play();
    play.post(PODS, &pod("a"));
    play.rest();
    let id = play.stop("a", 30);
    play.0.inject_runtime_fault("n1", Fault::Away);
    assert!(unavailable(play.answer(id)));
    play.pass(Duration::from_secs(2));
    assert_eq!(word(&mut play, "a"), "main+0 running web:1");
    play.0.inject_runtime_fault("n1", Fault::Back);
    assert_eq!(
        play.containers()[0].state,
        ContainerState::Exited,
        "unnoticed so far"
    );
    play.rest();
    assert_eq!(word(&mut play, "a"), "main+1 running web:1");
}

#[test]
fn a_slow_runtime_takes_longer_for_every_call() {
    let mut play = play();
    let latency = Duration::from_secs(4);
    assert!(play.0.inject_runtime_fault("n1", Fault::Slow(latency)));
    assert_eq!(play.wait(Call::Version).1, 4000);
    let (listed, took) = play.wait(Call::ListImages);
    assert_eq!((listed, took), (Ok(Answer::Images(vec![])), 4000));
    assert_eq!(play.wait(pull("web:1")).1, 9100);
    let listing = play.call(Call::ListImages);
    play.pass(Duration::from_secs(1));
    assert!(play.0.inject_runtime_fault("n1", Fault::Away));
    assert!(unavailable(play.answer(listing)));
}

#[test]
fn a_node_that_is_gone_has_no_runtime_and_its_successor_no_images() {
    let mut play = play();
    play.wait(pull("web:1")).0.unwrap();
    let id = play.call(pull("web:2"));
    let elsewhere = play.0.call_runtime("n2", Call::Version);
    assert!(unavailable(play.answer(elsewhere)));
    assert!(!play.0.inject_runtime_fault("n2", Fault::Away));
    play.delete("/api/v1/nodes/n1");
    play.rest();
    assert!(unavailable(play.answer(id)));
    let id = play.call(Call::ListImages);
    assert!(unavailable(play.answer(id)));
    play.node("n1");
    play.rest();
    assert_eq!(play.images(), []);
}

#[test]
fn a_container_ends_though_its_kubelet_does_not_answer() {
    let mut play = play();
    play.post(PODS, &pod("a"));
    play.rest();
    let unknown = |status: &str| json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
    play.strategic("/api/v1/nodes/n1/status", &unknown("Unknown"));
    play.pass(Duration::from_secs(1));
    let id = play.stop("a", 30);
    play.pass(Duration::from_secs(2));
    assert_eq!(play.answer(id), Some(Ok(Answer::Stopped)));
    assert_eq!(word(&mut play, "a"), "main+0 running web:1");
    assert_eq!(play.containers()[0].state, ContainerState::Exited);
    play.strategic("/api/v1/nodes/n1/status", &unknown("True"));
    play.pass(Duration::from_secs(2));
    assert_eq!(word(&mut play, "a"), "main+1 running web:1");
}

#[test]
fn calls_that_read_have_no_effect_on_the_world() {
    let history = |calls: bool| {
        let mut play = play();
        lines(&mut play, |play| {
            for step in 0..20 {
                if step == 0 {
                    play.post(PODS, &pod("a"));
                }
                if step == 12 {
                    let change = json!({"spec": {"containers": [{"name": "main", "image": "web:2"}]}});
                    play.strategic(&format!("{PODS}/a"), &change);
                }
                if calls {
                    play.containers();
                    play.images();
                    play.ask(Call::ImageFsInfo).unwrap();
                }
                play.pass(Duration::from_millis(700));
            }
            play.rest();
        })
    };
    assert_eq!(history(true), history(false));
}

#[test]
fn a_copy_of_a_world_answers_what_its_original_does() {
    let mut play = play();
    play.post(PODS, &pod("a"));
    play.rest();
    play.stop("a", 30);
    play.call(pull("web:2"));
    let mut copy = Play(play.0.clone());
    let answers = |play: &mut Play| {
        play.rest();
        (
            play.0.runtime_answers(),
            play.containers(),
            play.images(),
            play.0.api().snapshot(),
        )
    };
    assert_eq!(answers(&mut play), answers(&mut copy));
}
