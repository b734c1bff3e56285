//! Scenarios of images: what is pulled, when, and what is said about it.

use std::num::NonZeroU32;

use kruise_agent_core::{
    About, Config, CredentialSource, Effect, Event, Health, Level, SecretRef, SecretState,
};
use serde_json::{Value, json};

use crate::world::{Course, World, millis, seconds};

/// A node with a disk that is not looked at.
fn world() -> World {
    World::new(Config {
        min_free_percent: 0,
        ..Config::new("n1")
    })
}

fn limited(limit: u32) -> World {
    World::new(Config {
        max_pulls: NonZeroU32::new(limit),
        ..Config::new("n1")
    })
}

/// A tag as a webhook completes it.
pub(crate) fn tag(tag: &str, fields: Value) -> Value {
    let mut made = json!({"tag": tag, "createdAt": "2026-01-02T03:04:00Z", "imagePullPolicy": "IfNotPresent",
        "pullPolicy": {"timeoutSeconds": 600, "backoffLimit": 3, "ttlSecondsAfterFinished": 600}});
    made.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    made
}

pub(crate) fn policy(timeout: u32, limit: u32) -> Value {
    json!({"pullPolicy": {"timeoutSeconds": timeout, "backoffLimit": limit}})
}

pub(crate) fn one(image: &str, fields: Value) -> Value {
    json!({image: {"tags": [tag("1", fields)]}})
}

pub(crate) fn owner(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "namespace": namespace, "name": name,
           "uid": format!("uid-{name}")})
}

#[test]
fn s7_12_2_with_a_limit_of_two_ten_images_are_pulled_two_at_a_time_and_the_rest_waits() {
    let mut world = limited(2);
    let images: Vec<String> = (0..10).map(|number| format!("app-{number}")).collect();
    let wanted = images
        .iter()
        .map(|image| (image.clone(), json!({"tags": [tag("1", json!({}))]})));
    world.want(Value::Object(wanted.collect()));
    world.run(seconds(2));
    assert_eq!(world.in_flight(), 2);
    let counts = |world: &World| {
        ["desired", "pulling", "waiting", "succeeded"]
            .map(|count| world.status()[count].as_i64().unwrap_or_default())
    };
    assert_eq!(counts(&world), [10, 2, 8, 0]);
    assert_eq!(
        (&*world.phase("app-0", "1"), &*world.phase("app-9", "1")),
        ("Pulling", "Waiting")
    );
    world.run(seconds(60));
    assert_eq!(counts(&world), [10, 0, 0, 10]);
    let expected: Vec<String> = images.iter().map(|image| format!("{image}:1")).collect();
    assert_eq!(world.pulled(), expected);
    assert!(world.status_writes().len() <= 2 * images.len());
}

#[test]
fn those_who_asked_first_are_pulled_first() {
    let mut world = limited(1);
    world.want(json!({
        "a": {"tags": [tag("1", json!({"createdAt": "2026-01-02T03:04:03Z"})),
                       tag("2", json!({"createdAt": "2026-01-02T03:04:01Z"}))]},
        "b": {"tags": [tag("1", json!({"createdAt": "2026-01-02T03:04:02Z"}))]}}));
    world.run(seconds(60));
    assert_eq!(world.pulled(), ["a:2", "b:1", "a:1"]);
}

#[test]
fn s7_12_3_an_image_that_is_there_is_not_pulled_if_not_present_is_enough() {
    let mut world = world();
    world.images = vec!["nginx:1".into(), "busybox:1".into()];
    world.want(json!({
        "nginx": {"tags": [tag("1", json!({}))]},
        "busybox": {"tags": [tag("1", json!({"imagePullPolicy": "Always"}))]}}));
    world.run(seconds(30));
    assert_eq!(world.pulled(), ["busybox:1"]);
    let nginx = world.tag("nginx", "1");
    assert_eq!(
        nginx,
        json!({"tag": "1", "phase": "Succeeded", "progress": 100, "imageID": "nginx@sha256:nginx:1",
               "startTime": "2026-01-02T03:04:06Z", "completionTime": "2026-01-02T03:04:06Z"})
    );
    assert_eq!(world.phase("busybox", "1"), "Succeeded");
}

#[test]
fn no_policy_pulls_as_always_does() {
    let mut world = world();
    world.images = vec!["nginx:1".into()];
    world.want(one("nginx", json!({"imagePullPolicy": null})));
    world.run(seconds(30));
    assert_eq!(world.pulled(), ["nginx:1"]);
}

#[test]
fn s7_12_3_a_backoff_limit_of_two_means_three_attempts_with_pauses_of_1_and_2_seconds() {
    let mut world = world();
    world.usual = Course::Fails(seconds(1), "manifest unknown");
    let mut fields = policy(600, 2);
    fields["ownerReferences"] = json!([owner("shop", "warm")]);
    world.want(one("nginx", fields));
    world.run(seconds(60));
    let times: Vec<f64> = world.pulls().iter().map(|(time, _)| *time).collect();
    let pauses: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0] - 1.0).collect();
    assert_eq!(times.len(), 3);
    assert!(
        (1.0..1.2).contains(&pauses[0]) && (2.0..2.2).contains(&pauses[1]),
        "{pauses:?}"
    );
    let tag = world.tag("nginx", "1");
    assert_eq!(
        (&tag["phase"], &tag["message"]),
        (&json!("Failed"), &json!("manifest unknown"))
    );
    let end = tag["completionTime"].as_str().unwrap();
    assert_eq!(end, "2026-01-02T03:04:12Z", "no pause follows the last failure");
    let notes = world.events();
    assert_eq!(
        world.messages(),
        ["PullImageFailed Image nginx:1 manifest unknown"; 2]
    );
    assert!(
        matches!(&notes[0].about, About::Object(job) if &*job.name == "warm" && &*job.namespace == "shop")
    );
    assert!(matches!(&notes[1].about, About::NodeImage { name, .. } if &**name == "n1"));
    assert_eq!(notes[0].component, "kruise-daemon-imagepuller");
}

#[test]
fn success_is_an_event_on_the_node_image_with_upstreams_spelling() {
    let mut world = world();
    let mut fields = json!({"ownerReferences": [owner("shop", "warm")]});
    fields["version"] = 3.into();
    world.want(one("nginx", fields));
    world.run(seconds(30));
    assert_eq!(
        world.messages(),
        ["PullImageSucceed Image nginx:1, ecalpsedTime 5.04s"]
    );
    assert_eq!(world.tag("nginx", "1")["version"], 3);
}

#[test]
fn s7_12_4_a_pull_that_hangs_is_canceled_after_its_timeout() {
    let mut world = world();
    world.usual = Course::Hangs;
    world.want(one("nginx", policy(20, 0)));
    world.run(seconds(19));
    assert_eq!(world.phase("nginx", "1"), "Pulling");
    world.run(seconds(3));
    let tag = world.tag("nginx", "1");
    assert_eq!(
        (&tag["phase"], &tag["message"]),
        (&json!("Failed"), &json!("pulling image nginx:1 is canceled"))
    );
    assert_eq!(world.pulls()[0].1.timeout, seconds(20));
}

#[test]
fn s7_12_4_a_shorter_active_deadline_fails_with_the_deadline_message() {
    let mut world = world();
    world.usual = Course::Hangs;
    let mut fields = policy(20, 3);
    fields["pullPolicy"]["activeDeadlineSeconds"] = 25.into();
    world.want(one("nginx", fields));
    world.run(seconds(60));
    let timeouts: Vec<u64> = world
        .pulls()
        .iter()
        .map(|(_, pull)| pull.timeout.as_secs())
        .collect();
    assert_eq!(timeouts, [20, 3], "the second attempt has what is left");
    let tag = world.tag("nginx", "1");
    assert_eq!(tag["message"], "pulling exceeds the activeDeadlineSeconds");
    assert_eq!(tag["completionTime"], "2026-01-02T03:04:31Z");
}

#[test]
fn a_deadline_in_a_pause_ends_the_round_at_the_deadline() {
    let mut world = world();
    world.usual = Course::Fails(seconds(1), "no route to host");
    let mut fields = policy(20, 9);
    fields["pullPolicy"]["activeDeadlineSeconds"] = 14.into();
    world.want(one("nginx", fields));
    world.run(seconds(60));
    // Attempts at 0, 2, 5, 10 seconds; the pause after the last would end after 19 seconds.
    assert_eq!(world.pulls().len(), 4);
    assert_eq!(world.tag("nginx", "1")["completionTime"], "2026-01-02T03:04:20Z");
    assert_eq!(
        world.tag("nginx", "1")["message"],
        "pulling exceeds the activeDeadlineSeconds"
    );
}

#[test]
fn s7_12_5_an_agent_killed_during_a_pull_resumes_and_repeats_nothing_that_is_finished() {
    let mut world = world();
    world
        .courses
        .insert("bad:1".into(), [Course::Fails(millis(10), "denied")].into());
    world.courses.insert("slow:1".into(), [Course::Hangs].into());
    world.want(json!({
        "nginx": {"tags": [tag("1", json!({"imagePullPolicy": "Always"}))]},
        "bad": {"tags": [tag("1", policy(600, 0))]},
        "slow": {"tags": [tag("1", json!({}))]}}));
    world.run(seconds(20));
    let before = (world.tag("nginx", "1"), world.tag("bad", "1"));
    world.restart();
    world.run(seconds(60));
    assert_eq!((world.tag("nginx", "1"), world.tag("bad", "1")), before);
    assert_eq!(world.phase("slow", "1"), "Succeeded");
    let mut pulled = world.pulled();
    pulled.sort();
    assert_eq!(pulled, ["bad:1", "nginx:1", "slow:1", "slow:1"]);
}

#[test]
fn s7_12_5_a_tag_that_is_removed_cancels_its_call_without_an_event() {
    let mut world = world();
    world.usual = Course::Hangs;
    world.want(json!({"nginx": {"tags": [tag("1", json!({})), tag("2", json!({}))]}}));
    world.run(seconds(5));
    assert_eq!(world.in_flight(), 2);
    world.want(json!({"nginx": {"tags": [tag("2", json!({}))]}}));
    world.run(seconds(5));
    assert_eq!(world.in_flight(), 1);
    assert!(world.messages().is_empty(), "{:?}", world.messages());
    assert_eq!(
        world.status()["imageStatuses"]["nginx"]["tags"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn s7_12_5_deleting_the_node_image_stops_all_workers() {
    let mut world = world();
    world.usual = Course::Hangs;
    world.want(json!({"a": {"tags": [tag("1", json!({}))]}, "b": {"tags": [tag("1", json!({}))]}}));
    world.run(seconds(5));
    world.delete_node_image();
    world.run(seconds(1));
    assert_eq!(world.in_flight(), 0);
    assert!(world.messages().is_empty());
    let writes = world.status_writes().len();
    world.run(seconds(700));
    assert_eq!(
        (world.status_writes().len(), world.agent.next_timer()),
        (writes, None)
    );
}

#[test]
fn what_was_done_for_a_node_image_is_not_taken_for_done_for_its_successor() {
    let mut world = world();
    world.want(one("nginx", json!({"imagePullPolicy": "Always"})));
    world.run(seconds(10));
    let first = world.node_image["metadata"]["uid"].clone();
    world.node_image = Value::Null;
    world.want(one("nginx", json!({"imagePullPolicy": "Always"})));
    world.run(seconds(10));
    assert_ne!(world.node_image["metadata"]["uid"], first);
    assert_eq!(
        (world.pulled().len(), &*world.phase("nginx", "1")),
        (2, "Succeeded")
    );
}

#[test]
fn s2_8_6_a_second_job_raises_the_version_and_completes_quickly() {
    let mut world = world();
    world.want(one("nginx", json!({"ownerReferences": [owner("shop", "one")]})));
    world.run(seconds(10));
    let owners = json!([owner("shop", "one"), owner("shop", "two")]);
    world.want(one("nginx", json!({"version": 1, "ownerReferences": owners})));
    world.run(seconds(2));
    let tag = world.tag("nginx", "1");
    assert_eq!((&tag["version"], &tag["phase"]), (&json!(1), &json!("Succeeded")));
    assert_eq!(world.pulled().len(), 1);
}

#[test]
fn a_new_version_waits_until_the_runtime_has_let_go_of_the_old_one() {
    let mut world = world();
    world.courses.insert("nginx:1".into(), [Course::Hangs].into());
    world.want(one("nginx", json!({})));
    world.run(seconds(5));
    world.want(one("nginx", json!({"version": 1})));
    world.run(seconds(10));
    let times: Vec<f64> = world.pulls().iter().map(|(time, _)| *time).collect();
    assert!(times[1] - times[0] > 5.0 && times.len() == 2, "{times:?}");
    assert_eq!(
        (
            world.tag("nginx", "1")["version"].clone(),
            world.phase("nginx", "1")
        ),
        (json!(1), "Succeeded".into())
    );
}

#[test]
fn s2_8_10_a_digest_is_pulled_with_an_at_sign_and_matched_by_repository_digest() {
    let digest = format!("sha256:{}", "0a".repeat(32));
    let mut world = world();
    world.want(json!({"reg.example/app": {"tags": [tag(&digest, json!({}))]}}));
    world.run(seconds(30));
    let reference = format!("reg.example/app@{digest}");
    assert_eq!(world.pulled(), [reference.as_str()]);
    assert_eq!(
        world.tag("reg.example/app", &digest)["imageID"],
        format!("reg.example/app@sha256:{reference}")
    );
    world.want(json!({"reg.example/app": {"tags": [tag(&digest, json!({"version": 1}))]}}));
    world.run(seconds(30));
    assert_eq!(world.pulled().len(), 1, "it is there");
    assert_eq!(world.phase("reg.example/app", &digest), "Succeeded");
}

#[test]
fn the_sandbox_configuration_is_passed_on_with_who_pulls() {
    let mut world = world();
    let mut images = one("nginx", json!({}));
    images["nginx"]["sandboxConfig"] = json!({"labels": {"app": "web"}, "annotations": {"a": "b"}});
    world.want(images);
    world.run(seconds(10));
    let (_, pull) = world.pulls().remove(0);
    assert_eq!(pull.sandbox.labels.get("app"), Some("web"));
    let annotations: Vec<_> = pull.sandbox.annotations.iter().collect();
    assert_eq!(
        annotations,
        [("a", "b"), ("apps.kruise.io/pulling-image-by", "kruise-daemon")]
    );
}

pub(crate) fn secret(name: &str) -> SecretRef {
    SecretRef {
        namespace: "kruise-daemon-config".into(),
        name: name.into(),
    }
}

pub(crate) fn found(version: &str, references: Option<&str>) -> SecretState {
    SecretState::Found {
        version: version.into(),
        references: references.map(Into::into),
    }
}

pub(crate) fn private(fields: Value) -> Value {
    let mut images = one("reg.example/app", fields);
    let named = |name: &str| json!({"namespace": "kruise-daemon-config", "name": name, "mode": "batch"});
    images["reg.example/app"]["pullSecrets"] = json!([named("one"), named("two")]);
    images
}

#[test]
fn s1_9_4_only_secrets_of_the_owners_are_used_and_then_the_keyring() {
    let mut world = world();
    world.secrets.insert(secret("one"), found("1", Some("bank/warm")));
    world
        .secrets
        .insert(secret("two"), found("1", Some("bank/warm,shop/warm")));
    world.want(private(json!({"ownerReferences": [owner("shop", "warm")]})));
    world.run(seconds(10));
    let (_, pull) = world.pulls().remove(0);
    assert_eq!(
        pull.credentials,
        [CredentialSource::Secret(secret("two")), CredentialSource::Keyring]
    );
}

#[test]
fn s7_12_7_secrets_are_offered_in_their_order_and_without_any_the_keyring_alone() {
    let mut world = world();
    world.secrets.insert(secret("one"), found("1", None));
    world.secrets.insert(secret("two"), found("1", None));
    world.want(private(json!({})));
    world.run(seconds(10));
    world.want(one("nginx", json!({})));
    world.run(seconds(10));
    let pulls = world.pulls();
    let sources: Vec<&[CredentialSource]> = pulls.iter().map(|(_, pull)| &*pull.credentials).collect();
    let of = |name: &str| CredentialSource::Secret(secret(name));
    assert_eq!(
        sources,
        [
            &[of("one"), of("two"), CredentialSource::Keyring][..],
            &[CredentialSource::Keyring]
        ]
    );
}

#[test]
fn secrets_are_read_anew_before_each_attempt() {
    let mut world = world();
    world.secrets.insert(secret("one"), found("1", None));
    let failure = Course::Fails(seconds(1), "unauthorized");
    world
        .courses
        .insert("reg.example/app:1".into(), [failure.clone(), failure].into());
    world.want(private(json!({})));
    world.run(seconds(2));
    world.secrets.insert(secret("two"), found("1", None));
    world.run(seconds(30));
    let offered: Vec<usize> = world
        .pulls()
        .iter()
        .map(|(_, pull)| pull.credentials.len())
        .collect();
    assert_eq!(offered, [2, 3, 3]);
    assert_eq!(world.phase("reg.example/app", "1"), "Succeeded");
}

#[test]
fn s1_9_5_a_missing_secret_is_logged_once_for_each_change() {
    let mut world = world();
    world.secrets.insert(secret("one"), found("1", None));
    world.usual = Course::Fails(seconds(1), "unauthorized");
    world.want(private(json!({})));
    world.run(seconds(60));
    let warnings = |world: &World| {
        world.count(
            |effect| matches!(effect, Effect::Log(Level::Warning, text) if text.contains("pull secret")),
        )
    };
    assert_eq!((world.pulls().len(), warnings(&world)), (4, 1));
    world
        .secrets
        .insert(secret("two"), SecretState::Forbidden("no right".into()));
    world.want(private(json!({"version": 1})));
    world.run(seconds(60));
    assert_eq!(warnings(&world), 2);
}

#[test]
fn another_secret_in_the_list_ends_the_pause() {
    let mut world = world();
    let denied = Course::Fails(millis(10), "unauthorized");
    world
        .courses
        .insert("reg.example/app:1".into(), vec![denied; 5].into());
    world.want(one("reg.example/app", policy(600, 9)));
    world.run(seconds(20));
    assert_eq!(world.pulls().len(), 5);
    world.secrets.insert(secret("one"), found("1", None));
    world.want(private(policy(600, 9)));
    world.run(seconds(6));
    assert_eq!(world.phase("reg.example/app", "1"), "Succeeded");
}

#[test]
fn s7_12_while_the_runtime_is_away_nothing_is_tried_and_then_all_goes_on() {
    let mut world = World::unstarted(Config::new("n1"));
    world.is_up = false;
    world.start();
    assert_eq!(world.health(), Health::Starting);
    world.want(one("nginx", json!({})));
    world.run(seconds(100));
    assert_eq!(world.health(), Health::Degraded("connection refused".into()));
    let problem = "the container runtime is not available: connection refused";
    let tag = world.tag("nginx", "1");
    assert_eq!(
        (&tag["phase"], &tag["message"]),
        (&json!("Waiting"), &json!(problem))
    );
    assert_eq!(
        world.messages(),
        [format!("ContainerRuntimeUnavailable {problem}")]
    );
    let detections = world.count(|effect| *effect == Effect::DetectRuntimes);
    assert!(
        (6..=9).contains(&detections),
        "after 0, 1, 3, 7, 15, 31, 61, 91 seconds: {detections}"
    );
    assert_eq!(
        world.count(|effect| matches!(effect, Effect::ListImages | Effect::Pull(_))),
        0
    );
    world.is_up = true;
    world.run(seconds(40));
    assert_eq!(
        (world.health(), &*world.phase("nginx", "1")),
        (Health::Ready, "Succeeded")
    );
}

#[test]
fn a_runtime_that_breaks_during_a_pull_costs_one_attempt() {
    let mut world = world();
    world
        .courses
        .insert("nginx:1".into(), [Course::Breaks(seconds(2))].into());
    world.want(one("nginx", policy(600, 1)));
    world.run(seconds(2));
    world.is_up = false;
    world.run(seconds(60));
    assert_eq!((world.pulls().len(), &*world.phase("nginx", "1")), (1, "Waiting"));
    world.is_up = true;
    world.run(seconds(60));
    assert_eq!(
        (world.pulls().len(), &*world.phase("nginx", "1")),
        (2, "Succeeded")
    );
    assert_eq!(
        world
            .messages()
            .iter()
            .filter(|message| message.starts_with("ContainerRuntime"))
            .count(),
        1
    );
}

#[test]
fn a_runtime_that_is_away_for_as_long_as_an_attempt_may_take_fails_the_round() {
    let mut world = world();
    world.is_up = false;
    world.inject(Event::RuntimeLost("socket closed".into()));
    world.want(one("nginx", policy(30, 3)));
    world.run(seconds(40));
    let tag = world.tag("nginx", "1");
    assert_eq!(tag["phase"], "Failed");
    assert_eq!(
        tag["message"],
        "the container runtime is not available: connection refused"
    );
}

#[test]
fn a_wait_for_a_slot_between_two_outages_is_no_wait_for_the_runtime() {
    let mut world = World::new(Config {
        min_free_percent: 0,
        max_pulls: NonZeroU32::new(1),
        ..Config::new("n1")
    });
    let slow = [Course::Succeeds(seconds(1500))];
    world.courses.insert("nginx:1".into(), slow.into());
    let tags = [tag("1", policy(2000, 0)), tag("2", policy(600, 0))];
    world.want(json!({"nginx": {"tags": tags}}));
    world.run(seconds(1));
    for _ in 0..2 {
        world.is_up = false;
        world.inject(Event::RuntimeLost("socket closed".into()));
        world.run(seconds(5));
        world.is_up = true;
        world.run(seconds(700));
    }
    assert_eq!(world.phase("nginx", "2"), "Waiting");
    world.run(seconds(1000));
    assert_eq!(world.phase("nginx", "2"), "Succeeded");
}

#[test]
fn a_message_of_many_kilobytes_is_cut_where_a_character_ends() {
    let mut world = world();
    let long: &'static str = String::leak("ü".repeat(5000) + "!");
    world
        .courses
        .insert("nginx:1".into(), [Course::Fails(seconds(1), long)].into());
    world.want(one("nginx", policy(600, 0)));
    world.run(seconds(10));
    assert_eq!(world.tag("nginx", "1")["message"], "ü".repeat(512));
}

#[test]
fn one_listing_serves_all_tags_that_ask_for_one() {
    let mut world = world();
    let wanted = (0..50).map(|number| (format!("app-{number}"), json!({"tags": [tag("1", json!({}))]})));
    world.want(Value::Object(wanted.collect()));
    world.run(seconds(10));
    assert_eq!(world.pulls().len(), 50);
    let listings = world.count(|effect| *effect == Effect::ListImages);
    assert!(
        listings <= 3,
        "{listings} listings: one before the pulls, and one or two after them"
    );
}

#[test]
fn what_was_pulled_has_succeeded_even_if_it_cannot_be_listed() {
    let mut world = world();
    world.broken_listing = true;
    world.want(one("nginx", json!({"imagePullPolicy": "Always"})));
    world.run(seconds(30));
    let tag = world.tag("nginx", "1");
    assert_eq!(
        (&tag["phase"], &tag["imageID"]),
        (&json!("Succeeded"), &json!("nginx@id-of-nginx:1"))
    );
}

#[test]
fn a_deadline_while_secrets_are_read_ends_the_attempt_and_its_late_answer_is_ignored() {
    let mut world = world();
    world.reading_secrets = seconds(20);
    let mut fields = policy(600, 3);
    fields["pullPolicy"]["activeDeadlineSeconds"] = 10.into();
    world.want(private(fields));
    world.run(seconds(60));
    let tag = world.tag("reg.example/app", "1");
    assert_eq!(tag["message"], "pulling exceeds the activeDeadlineSeconds");
    assert_eq!(tag["completionTime"], "2026-01-02T03:04:16Z");
    assert_eq!(world.count(|effect| matches!(effect, Effect::CancelPull(_))), 1);
    assert!(world.pulls().is_empty());
}

#[test]
fn a_tag_that_is_removed_while_its_secrets_are_read_is_not_pulled() {
    let mut world = world();
    world.reading_secrets = seconds(2);
    world.want(private(json!({})));
    world.run(seconds(1));
    world.want(json!({}));
    world.run(seconds(60));
    assert_eq!(
        (
            world.pulls().len(),
            world.count(|effect| matches!(effect, Effect::CancelPull(_)))
        ),
        (0, 1)
    );
}
