//! Scenarios of pull secrets that are not there, or cannot be read.

use std::num::NonZeroU32;

use kruise_agent_core::{Config, CredentialSource, Effect, SecretState};
use serde_json::{Value, json};

use crate::images::{found, one, owner, policy, private, secret};
use crate::world::{Course, World, millis, seconds};

const IMAGE: &str = "reg.example/app";
const REASON: &str = "FailedToRetrieveImagePullSecret";

fn unreadable() -> SecretState {
    SecretState::Unreadable("etcd: leader changed".into())
}

/// A node whose image names the secrets `one`, which is there, and `two`, of which this is known.
fn world(config: Config, two: SecretState) -> World {
    let mut world = World::new(Config {
        min_free_percent: 0,
        ..config
    });
    world.secrets.insert(secret("one"), found("1", None));
    world.secrets.insert(secret("two"), two);
    world
}

fn sources(names: &[&str]) -> Vec<CredentialSource> {
    let secrets = names.iter().map(|name| CredentialSource::Secret(secret(name)));
    secrets.chain([CredentialSource::Keyring]).collect()
}

/// Reads of secrets, in seconds since the start.
fn reads(world: &World) -> Vec<f64> {
    let is_read = |effect: &Effect| matches!(effect, Effect::ReadSecrets { .. });
    world.times(is_read)
}

fn message(world: &World) -> String {
    let tag = world.tag(IMAGE, "1");
    tag["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn an_api_server_that_is_away_for_some_seconds_costs_neither_an_attempt_nor_a_credential() {
    let mut world = world(Config::new("n1"), unreadable());
    world.want(private(policy(600, 0)));
    world.run(seconds(2));
    assert!(world.pulls().is_empty());
    let tag = world.tag(IMAGE, "1");
    assert_eq!(tag["phase"], "Waiting");
    assert_eq!(
        tag["message"],
        "pull secret kruise-daemon-config/two cannot be read: etcd: leader changed"
    );
    world.secrets.insert(secret("two"), found("1", None));
    world.run(seconds(10));
    let (_, pull) = world.pulls().remove(0);
    assert_eq!(pull.credentials, sources(&["one", "two"]));
    assert_eq!((world.pulls().len(), &*world.phase(IMAGE, "1")), (1, "Succeeded"));
    assert_eq!(world.tag(IMAGE, "1").get("message"), None);
    assert!(
        world
            .messages()
            .iter()
            .all(|message| !message.starts_with(REASON))
    );
}

#[test]
fn reads_that_fail_are_made_again_at_intervals_that_double() {
    let mut world = world(Config::new("n1"), unreadable());
    world.want(private(policy(600, 0)));
    world.run(seconds(70));
    let reads = reads(&world);
    let pauses: Vec<f64> = reads.windows(2).map(|pair| (pair[1] - pair[0]).round()).collect();
    assert_eq!(pauses, [1.0, 2.0, 4.0, 8.0, 16.0, 30.0]);
}

#[test]
fn a_secret_that_stays_unreadable_for_as_long_as_an_attempt_may_take_is_done_without_and_that_is_said() {
    let mut world = world(Config::new("n1"), unreadable());
    world.usual = Course::Fails(seconds(1), "401 Unauthorized");
    let mut fields = policy(60, 0);
    fields["ownerReferences"] = json!([owner("shop", "warm")]);
    world.want(private(fields));
    world.run(seconds(59));
    assert!(world.pulls().is_empty());
    world.run(seconds(5));
    let (at, pull) = world.pulls().remove(0);
    assert!((60.0..63.0).contains(&at), "{at}");
    assert_eq!(pull.credentials, sources(&["one"]));
    let problem = "pull secret kruise-daemon-config/two cannot be read: etcd: leader changed";
    assert_eq!(message(&world), format!("401 Unauthorized; {problem}"));
    let reported = format!("{REASON} {problem}");
    let messages = world.messages();
    let count = messages.iter().filter(|message| **message == reported).count();
    assert_eq!(count, 2, "the job and the NodeImage: {messages:?}");
    assert!(
        messages.contains(&"PullImageFailed Image reg.example/app:1 401 Unauthorized".to_owned()),
        "as OpenKruise writes it: {messages:?}"
    );
}

#[test]
fn without_a_secret_that_is_missing_or_forbidden_the_pull_begins_at_once_with_the_others_and_that_is_said() {
    for (state, problem) in [
        (
            SecretState::Missing,
            "pull secret kruise-daemon-config/two does not exist",
        ),
        (
            SecretState::Forbidden("no right".into()),
            "pull secret kruise-daemon-config/two may not be read by the agent: no right",
        ),
    ] {
        let mut world = world(Config::new("n1"), state);
        let failure = Course::Fails(seconds(1), "401 Unauthorized");
        let course = [failure, Course::Succeeds(seconds(5))];
        world.courses.insert(format!("{IMAGE}:1"), course.into());
        world.want(private(policy(600, 1)));
        world.run(millis(600));
        let (at, pull) = world.pulls().remove(0);
        assert!(at < 1.5, "{at}");
        assert_eq!(pull.credentials, sources(&["one"]));
        assert_eq!(message(&world), problem, "while it pulls");
        world.run(seconds(20));
        assert_eq!((world.pulls().len(), &*world.phase(IMAGE, "1")), (2, "Succeeded"));
        assert_eq!(message(&world), "");
        let messages = world.messages();
        let said: Vec<_> = messages
            .iter()
            .filter(|message| message.starts_with(REASON))
            .collect();
        assert_eq!(said, [&format!("{REASON} {problem}")], "once for two attempts");
    }
}

#[test]
fn a_secret_that_goes_again_is_reported_again() {
    let mut world = world(Config::new("n1"), SecretState::Missing);
    let reported = |world: &World| {
        let messages = world.messages();
        messages
            .iter()
            .filter(|message| message.starts_with(REASON))
            .count()
    };
    for (version, state, count) in [
        (0, SecretState::Missing, 1),
        (1, SecretState::Missing, 1),
        (2, found("1", None), 1),
        (3, SecretState::Missing, 2),
    ] {
        world.secrets.insert(secret("two"), state);
        let images = private(json!({"version": version, "imagePullPolicy": "Always"}));
        world.edit(&json!({"spec": {"images": images}}));
        world.run(seconds(20));
        assert_eq!(reported(&world), count, "round {version}");
    }
}

#[test]
fn a_tag_that_waits_for_a_secret_keeps_no_other_one_from_being_pulled() {
    let config = Config {
        max_pulls: NonZeroU32::new(1),
        ..Config::new("n1")
    };
    let mut world = world(config, unreadable());
    let mut images = private(policy(600, 0));
    images["nginx"] = one("nginx", json!({"createdAt": "2026-01-02T09:00:00Z"}))["nginx"].clone();
    world.want(images);
    world.run(seconds(20));
    assert_eq!(world.phase("nginx", "1"), "Succeeded");
    assert_eq!(world.phase(IMAGE, "1"), "Waiting");
    world.secrets.insert(secret("two"), found("1", None));
    world.run(seconds(40));
    assert_eq!(world.phase(IMAGE, "1"), "Succeeded");
}

#[test]
fn a_deadline_while_a_secret_cannot_be_read_ends_the_round() {
    let mut world = world(Config::new("n1"), unreadable());
    let mut fields = policy(600, 3);
    fields["pullPolicy"]["activeDeadlineSeconds"] = 10.into();
    world.want(private(fields));
    world.run(seconds(30));
    assert_eq!(message(&world), "pulling exceeds the activeDeadlineSeconds");
    assert!(world.pulls().is_empty());
    assert_eq!(world.agent.next_timer(), None);
}

#[test]
fn a_tag_that_waits_for_a_secret_and_is_removed_is_read_no_more() {
    let mut world = world(Config::new("n1"), unreadable());
    world.want(private(json!({})));
    world.run(seconds(2));
    let before = reads(&world).len();
    world.want(Value::Object(serde_json::Map::new()));
    world.run(seconds(60));
    assert_eq!((reads(&world).len(), world.agent.next_timer()), (before, None));
}

#[test]
fn a_change_of_a_secret_that_one_tag_finds_ends_the_pause_of_another_one() {
    let mut world = world(Config::new("n1"), found("1", None));
    let denied = Course::Fails(millis(10), "unauthorized");
    world.courses.insert(format!("{IMAGE}:1"), vec![denied; 5].into());
    world.want(private(policy(600, 9)));
    world.run(seconds(20));
    assert_eq!(world.pulls().len(), 5, "the next one would be after 31 seconds");
    world.secrets.insert(secret("two"), found("2", None));
    let mut images = private(policy(600, 9));
    let mut more = images[IMAGE]["tags"][0].clone();
    more["tag"] = "2".into();
    images[IMAGE]["tags"].as_array_mut().unwrap().push(more);
    world.edit(&json!({"spec": {"images": images}}));
    world.run(seconds(7));
    assert_eq!(world.phase(IMAGE, "1"), "Succeeded");
}

#[test]
fn secrets_of_attempts_that_begin_again_are_dropped() {
    let mut world = world(Config::new("n1"), unreadable());
    world.want(private(policy(600, 0)));
    world.run(seconds(5));
    let dropped = world.count(|effect| matches!(effect, Effect::CancelPull(_)));
    assert_eq!(dropped, reads(&world).len());
}
