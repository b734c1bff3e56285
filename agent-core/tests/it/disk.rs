//! Scenarios of full disks.

use kruise_agent_core::{Config, Effect, Filesystem, Level};
use serde_json::json;

use crate::images::{one, policy, tag};
use crate::world::{World, seconds};

#[test]
fn a_node_short_of_disk_says_so_once_pulls_nothing_and_goes_on_when_there_is_room() {
    let mut world = World::new(Config::new("n1"));
    world.disk = Filesystem { free: 9, size: 100 };
    world.images = vec!["busybox:1".into()];
    world.want(json!({
        "nginx": {"tags": [tag("1", json!({})), tag("2", json!({}))]},
        "busybox": {"tags": [tag("1", json!({}))]}}));
    world.run(seconds(100));
    assert!(world.pulls().is_empty());
    let shortage = "the node is short of disk space: 9.0% are free, 10% are needed";
    let waiting = world.tag("nginx", "2");
    assert_eq!(
        (&waiting["phase"], &waiting["message"]),
        (&json!("Waiting"), &json!(shortage))
    );
    assert_eq!(
        world.phase("busybox", "1"),
        "Succeeded",
        "what is there needs no room"
    );
    let messages = world.messages();
    let short: Vec<_> = messages
        .iter()
        .filter(|message| message.starts_with("InsufficientDiskSpace"))
        .collect();
    assert_eq!(
        short,
        [&format!("InsufficientDiskSpace No image is pulled: {shortage}")]
    );
    let measured = world.count(|effect| *effect == Effect::ReadFilesystem);
    assert_eq!(measured, 4, "one for both tags, and one in 30 seconds");
    world.disk.free = 10;
    world.run(seconds(40));
    assert_eq!(
        (&*world.phase("nginx", "1"), &*world.phase("nginx", "2")),
        ("Succeeded", "Succeeded")
    );
    assert_eq!(world.tag("nginx", "2").get("message"), None);
    assert_eq!(world.agent.next_timer(), None);
}

#[test]
fn without_room_for_as_long_as_an_attempt_may_take_the_round_fails_with_the_reason() {
    let mut world = World::new(Config::new("n1"));
    world.disk.free = 1;
    world.want(one("nginx", policy(120, 3)));
    world.run(seconds(130));
    let tag = world.tag("nginx", "1");
    assert_eq!(tag["phase"], "Failed");
    assert!(tag["message"].as_str().unwrap().contains("short of disk space"));
    assert_eq!(world.agent.next_timer(), None);
}

#[test]
fn a_disk_that_cannot_be_measured_is_taken_for_large_enough_and_logged_once() {
    let mut world = World::new(Config::new("n1"));
    world.is_disk_unreadable = true;
    world.want(json!({"nginx": {"tags": [tag("1", json!({})), tag("2", json!({}))]}}));
    world.run(seconds(5));
    world.want(json!({"nginx": {"tags": [tag("3", json!({}))]}}));
    world.run(seconds(30));
    assert_eq!(world.pulled(), ["nginx:1", "nginx:2", "nginx:3"]);
    assert_eq!(
        world.count(|effect| matches!(effect, Effect::Log(Level::Warning, _))),
        1
    );
}
