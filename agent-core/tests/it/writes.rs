//! Writes of the status: how many, and what is in them.

use kruise_agent_core::{Config, Effect, Level, WriteError};
use serde_json::{Value, json};

use crate::world::{Course, World, millis, seconds};

fn tags(count: usize) -> Value {
    let tag = |number: usize| json!({"tag": format!("{number:03}"), "imagePullPolicy": "IfNotPresent"});
    json!({"tags": (0..count).map(tag).collect::<Vec<_>>()})
}

#[test]
fn s7_12_6_a_burst_of_a_hundred_changes_gives_five_immediate_writes_and_then_one_in_two_seconds() {
    let mut world = World::new(Config::new("n1"));
    // A change each 250 ms: the end of one of a hundred pulls.
    for number in 0..100_u32 {
        let course = Course::Succeeds(seconds(10) + millis(250) * number);
        world
            .courses
            .insert(format!("nginx:{number:03}"), [course].into());
    }
    world.want(json!({"nginx": tags(100)}));
    world.run(seconds(60));
    assert_eq!(world.status()["succeeded"], 100);
    let writes = world.status_writes();
    let times: Vec<f64> = writes
        .iter()
        .map(|(time, _)| time.duration_since(writes[0].0).as_secs_f64())
        .collect();
    for (index, time) in times.iter().enumerate() {
        let within = times
            .iter()
            .filter(|other| (*time..*time + 2.0).contains(*other))
            .count();
        assert!(within <= 5, "{within} writes within two seconds of {time}");
        let since = times
            .iter()
            .skip(index)
            .filter(|other| **other <= time + 20.0)
            .count();
        assert!(since <= 5 + 10, "{since} writes within twenty seconds of {time}");
    }
    let last = writes.last().unwrap().0;
    assert!(
        last.duration_since(writes[0].0).as_secs() < 40,
        "the last change is not late"
    );
}

#[test]
fn an_image_costs_at_most_two_writes_until_success_and_one_for_its_removal() {
    let mut world = World::new(Config::new("n1"));
    world.listing = seconds(1);
    world.want(json!({"nginx": tags(1)}));
    world.run(seconds(60));
    assert_eq!(
        (&*world.phase("nginx", "000"), world.status_writes().len()),
        ("Succeeded", 2)
    );
    world.want(json!({}));
    world.run(seconds(60));
    assert_eq!(world.status_writes().len(), 3);
    assert_eq!(world.status()["imageStatuses"], json!({}));
    assert_eq!(
        (&world.status()["desired"], &world.status()["succeeded"]),
        (&json!(0), &json!(0))
    );
    world.run(seconds(100_000));
    assert_eq!(
        world.status_writes().len(),
        3,
        "what does not change is not written again"
    );
}

#[test]
fn an_image_that_is_there_costs_one_write() {
    let mut world = World::new(Config::new("n1"));
    world.images = vec!["nginx:000".into()];
    world.want(json!({"nginx": tags(1)}));
    world.run(seconds(60));
    assert_eq!(world.status_writes().len(), 1);
    let (_, patch) = world.status_writes()[0];
    assert_eq!(
        patch["metadata"],
        json!({"uid": world.node_image["metadata"]["uid"]})
    );
    assert_eq!(
        patch["status"],
        json!({"desired": 1, "succeeded": 1, "failed": 0, "pulling": 0, "waiting": 0,
            "firstSyncStatus": {"syncAt": "2026-01-02T03:04:06Z", "status": "Succeeded"},
            "imageStatuses": {"nginx": {"tags": [{"tag": "000", "phase": "Succeeded", "progress": 100,
                "startTime": "2026-01-02T03:04:06Z", "completionTime": "2026-01-02T03:04:06Z",
                "imageID": "nginx@sha256:nginx:000"}]}}})
    );
}

#[test]
fn s1_9_2_a_patch_names_what_has_changed_and_nothing_else() {
    let mut world = World::new(Config::new("n1"));
    world.want(json!({"a": tags(1), "b": tags(1)}));
    world.run(seconds(30));
    world.want(json!({"a": tags(1), "c": tags(1)}));
    world.run(seconds(2));
    let (_, patch) = world.status_writes().pop().unwrap();
    let images = patch["status"]["imageStatuses"].as_object().unwrap();
    assert_eq!(images.keys().collect::<Vec<_>>(), ["b", "c"]);
    assert_eq!(images["b"], Value::Null);
    assert_eq!(patch["status"].get("desired"), None);
    assert_eq!(patch["status"]["pulling"], 1);
}

#[test]
fn s1_9_2_the_first_sync_is_recorded_once_the_first_set_has_finished_and_never_again() {
    let mut world = World::new(Config::new("n1"));
    world.courses.insert(
        "b:000".into(),
        vec![Course::Fails(seconds(1), "denied"); 4].into(),
    );
    world.want(json!({"a": tags(1), "b": tags(1)}));
    world.run(seconds(10));
    assert_eq!(world.status().get("firstSyncStatus"), None);
    world.run(seconds(20));
    let first = json!({"syncAt": "2026-01-02T03:04:17Z", "status": "Failed",
                       "message": "1 of 2 images could not be pulled"});
    assert_eq!(world.status()["firstSyncStatus"], first);
    world.want(json!({"a": tags(1), "c": tags(1)}));
    world.run(seconds(20));
    world.restart();
    world.run(seconds(20));
    assert_eq!(world.status()["firstSyncStatus"], first);
}

#[test]
fn a_write_that_fails_is_made_again_later_and_logged() {
    let mut world = World::new(Config::new("n1"));
    world.api_error = Some(WriteError::Failed("etcdserver: request timed out".into()));
    world.want(json!({"nginx": tags(1)}));
    world.run(seconds(100));
    let writes = world.status_writes().len();
    assert!((5..=10).contains(&writes), "{writes} attempts in 100 seconds");
    assert_eq!(
        world.count(|effect| matches!(effect, Effect::Log(Level::Warning, _))),
        writes
    );
    world.api_error = None;
    world.run(seconds(101));
    assert_eq!(world.phase("nginx", "000"), "Succeeded");
}

#[test]
fn a_status_for_a_node_image_of_another_uid_is_not_taken_for_written() {
    let mut world = World::new(Config::new("n1"));
    world.want(json!({"nginx": tags(1)}));
    world.run(millis(215));
    assert_eq!(world.status_writes().len(), 1, "on its way");
    world.node_image = Value::Null;
    world.want(json!({"nginx": tags(1)}));
    world.run(seconds(30));
    assert_eq!(world.phase("nginx", "000"), "Succeeded");
    assert_eq!(world.status()["succeeded"], 1);
}

#[test]
fn s1_8_6_what_a_manager_writes_of_other_images_and_fields_stays() {
    let mut world = World::new(Config::new("n1"));
    world.want(json!({"a": tags(1), "b": tags(1)}));
    world.run(millis(300));
    world.edit(&json!({"status": {"newer": {"field": 1}}, "metadata": {"labels": {"zone": "a"}}}));
    world.run(seconds(30));
    assert_eq!(world.status()["newer"], json!({"field": 1}));
    assert_eq!(world.node_image["metadata"]["labels"], json!({"zone": "a"}));
    assert_eq!(world.status()["succeeded"], 2);
}

#[test]
fn a_status_that_somebody_removed_is_restored() {
    let mut world = World::new(Config::new("n1"));
    world.want(json!({"a": tags(1)}));
    world.run(seconds(30));
    let before = world.status().clone();
    world.edit(&json!({"status": null}));
    world.run(seconds(5));
    assert_eq!(world.status(), &before);
}

#[test]
fn a_round_that_a_manager_has_ended_is_over() {
    let mut world = World::new(Config::new("n1"));
    world.usual = Course::Hangs;
    world.want(json!({"a": tags(1)}));
    world.run(seconds(5));
    let tag = json!({"tag": "000", "phase": "Failed", "message": "pulling exceeds the activeDeadlineSeconds",
                     "completionTime": "2026-01-02T03:04:11Z"});
    world.edit(&json!({"status": {"imageStatuses": {"a": {"tags": [tag]}}}}));
    world.run(seconds(60));
    assert_eq!((world.in_flight(), world.tag("a", "000")), (0, tag));
    assert_eq!(world.status()["failed"], 1);
    assert!(world.messages().is_empty());
}
