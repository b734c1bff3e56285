//! Malformed answers of a runtime, and answers without a request.

use kruise_agent_core::{
    AttemptId, Config, ContainerId, Event, Failure, Filesystem, PullError, RuntimeContainer, RuntimeImage,
    WriteError,
};
use serde_json::json;

use crate::world::{World, seconds};

#[test]
fn a_listing_that_cannot_be_read_fails_the_attempt_and_the_next_one_recovers() {
    let mut world = World::new(Config::new("n1"));
    world.broken_listing = true;
    world.want(json!({"nginx": {"tags": [{"tag": "1", "imagePullPolicy": "IfNotPresent"}]}}));
    world.run(seconds(2));
    world.broken_listing = false;
    world.run(seconds(30));
    assert_eq!(world.phase("nginx", "1"), "Succeeded");
}

#[test]
fn a_runtime_that_only_answers_garbage_fails_the_round_with_an_event() {
    let mut world = World::new(Config::new("n1"));
    world.broken_listing = true;
    world.want(json!({"nginx": {"tags": [{"tag": "1", "imagePullPolicy": "IfNotPresent"}]}}));
    world.run(seconds(30));
    let message = "failed to list images: invalid wire type";
    assert_eq!(world.tag("nginx", "1")["message"], message);
    assert_eq!(
        world.messages(),
        [format!("PullImageFailed Image nginx:1 {message}")]
    );
}

#[test]
fn answers_without_a_request_change_nothing() {
    let mut world = World::new(Config::new("n1"));
    world.want(json!({"nginx": {"tags": [{"tag": "1"}]}}));
    world.run(seconds(30));
    let container = ContainerId {
        runtime: "containerd".into(),
        id: "x".into(),
    };
    let image = RuntimeImage {
        id: String::new().into(),
        tags: vec!["".into(), ":::@@".into()],
        digests: vec!["@".into()],
    };
    let events = [
        Event::ImagesListed(Ok(vec![image])),
        Event::FilesystemRead(Ok(Filesystem { free: 0, size: 0 })),
        Event::SecretsRead {
            attempt: AttemptId(99),
            secrets: Vec::new(),
        },
        Event::PullEnded {
            attempt: AttemptId(0),
            result: Err(PullError::TimedOut),
        },
        Event::ContainersRead {
            pod: "x".into(),
            result: Ok(vec![RuntimeContainer::default()]),
        },
        Event::EnvironmentRead {
            container: container.clone(),
            result: Ok("".into()),
        },
        Event::PreStopEnded {
            container: container.clone(),
            result: Err("late".into()),
        },
        Event::ContainerStopped {
            container,
            result: Err(Failure::Failed("late".into())),
        },
        Event::StatusWritten(Err(WriteError::NotFound)),
        Event::ReportWritten {
            pod: "x".into(),
            result: Ok("".into()),
        },
        Event::PodDeleted { uid: "x".into() },
        Event::RuntimesDetected(Ok(["containerd".into()].into())),
    ];
    let before = (world.node_image.clone(), world.trace.len());
    for event in events {
        world.inject(event);
    }
    world.run(seconds(60));
    assert_eq!((world.node_image.clone(), world.trace.len()), before);
}

#[test]
fn no_runtime_at_all_is_a_problem_that_is_reported() {
    let mut world = World::new(Config::new("n1"));
    world.want(json!({}));
    world.run(seconds(1));
    world.inject(Event::RuntimeLost("socket closed".into()));
    world.inject(Event::RuntimesDetected(Ok(Box::default())));
    world.run(seconds(1));
    let problem = "ContainerRuntimeUnavailable the container runtime is not available: socket closed";
    assert_eq!(world.messages(), [problem]);
}
