//! What holds under any order of events, failures and restarts. The world itself checks at every call that no tag
//! is pulled twice at a time, and that no more are pulled than the limit says.

use std::num::NonZeroU32;

use kruise_agent_core::{Agent, Config, Effect, Event, Failure, SecretRef, SecretState, WriteError};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{Course, World, millis, seconds};

/// What somebody does to the node.
#[derive(Clone, Debug)]
enum Step {
    Want(u8, u8),
    Raise(u8),
    Drop(u8),
    Delete,
    Runtime(bool),
    Api(bool),
    Disk(u8),
    Listing(bool),
    Secret(u8),
    Restart,
    Shuffle(u8),
    Wait(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..6_u8, 0..4_u8).prop_map(|(image, course)| Step::Want(image, course)),
        2 => (0..6_u8).prop_map(Step::Raise),
        2 => (0..6_u8).prop_map(Step::Drop),
        1 => Just(Step::Delete),
        2 => any::<bool>().prop_map(Step::Runtime),
        2 => any::<bool>().prop_map(Step::Api),
        2 => (0..30_u8).prop_map(Step::Disk),
        1 => any::<bool>().prop_map(Step::Listing),
        2 => (0..4_u8).prop_map(Step::Secret),
        1 => Just(Step::Restart),
        2 => (1..50_u8).prop_map(Step::Shuffle),
        6 => (1..20_000_u16).prop_map(Step::Wait),
    ]
}

/// The images that are wanted, with the versions of their tags.
#[derive(Default)]
struct Wanted(std::collections::BTreeMap<u8, (i64, u8)>);

impl Wanted {
    fn images(&self) -> Value {
        let image = |(number, (version, policy)): (&u8, &(i64, u8))| {
            let policy = if policy % 2 == 0 { "IfNotPresent" } else { "Always" };
            let tag = json!({"tag": "1", "version": version, "imagePullPolicy": policy,
                "createdAt": "2026-01-02T03:04:05Z",
                "pullPolicy": {"timeoutSeconds": 30, "backoffLimit": 1, "activeDeadlineSeconds": 200}});
            let secrets = if number % 2 == 0 {
                json!([])
            } else {
                json!([{"namespace": "n", "name": "s"}])
            };
            (
                format!("app-{number}"),
                json!({"tags": [tag], "pullSecrets": secrets}),
            )
        };
        Value::Object(self.0.iter().map(image).collect())
    }
}

fn course(number: u8) -> Course {
    match number {
        0 => Course::Succeeds(seconds(3)),
        1 => Course::Fails(seconds(1), "denied"),
        2 => Course::Hangs,
        _ => Course::Breaks(millis(300)),
    }
}

fn secret_state(number: u8) -> SecretState {
    match number {
        0 => SecretState::Missing,
        1 => SecretState::Forbidden("no right".into()),
        2 => SecretState::Unreadable("time out".into()),
        _ => SecretState::Found {
            version: "1".into(),
            references: None,
        },
    }
}

fn take(world: &mut World, wanted: &mut Wanted, step: &Step) {
    match *step {
        Step::Want(image, number) => {
            let courses = world.courses.entry(format!("app-{image}:1")).or_default();
            courses.push_back(course(number));
            wanted.0.entry(image).or_insert((0, number));
            world.want(wanted.images());
        }
        Step::Raise(image) => {
            if let Some((version, _)) = wanted.0.get_mut(&image) {
                *version += 1;
                world.want(wanted.images());
            }
        }
        Step::Drop(image) => {
            if wanted.0.remove(&image).is_some() {
                world.want(wanted.images());
            }
        }
        Step::Delete => {
            wanted.0.clear();
            world.delete_node_image();
        }
        Step::Runtime(is_up) => {
            world.is_up = is_up;
            if !is_up {
                world.inject(Event::RuntimeLost("socket closed".into()));
            }
        }
        Step::Api(works) => {
            world.api_error = (!works).then(|| WriteError::Failed("time out".into()));
        }
        Step::Disk(free) => world.disk.free = free.into(),
        Step::Listing(broken) => world.broken_listing = broken,
        Step::Secret(number) => {
            let secret = SecretRef {
                namespace: "n".into(),
                name: "s".into(),
            };
            world.secrets.insert(secret, secret_state(number));
        }
        Step::Restart => world.restart(),
        Step::Shuffle(by) => world.shuffle(|count| millis((count * u64::from(by)) % 977)),
        Step::Wait(time) => world.run(millis(time.into())),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_round_ends_within_the_limits_and_is_reported(
        steps in prop::collection::vec(step(), 1..40),
        limit in 0..3_u32,
    ) {
        let mut world = World::new(Config { max_pulls: NonZeroU32::new(limit), ..Config::new("n1") });
        let mut wanted = Wanted::default();
        for step in &steps {
            take(&mut world, &mut wanted, step);
        }
        world.api_error = None;
        world.run(seconds(2_000));
        prop_assert_eq!(world.in_flight(), 0);
        let count = |name: &str| world.status()[name].as_i64().unwrap_or_default();
        prop_assert_eq!(count("succeeded") + count("failed"), i64::try_from(wanted.0.len()).unwrap());
        prop_assert_eq!((count("pulling"), count("waiting")), (0, 0));
        for (image, (version, _)) in &wanted.0 {
            let tag = world.tag(&format!("app-{image}"), "1");
            prop_assert!(matches!(tag["phase"].as_str(), Some("Succeeded" | "Failed")), "{}", tag);
            prop_assert_eq!(tag["version"].as_i64().unwrap_or_default(), *version);
            prop_assert!(tag["completionTime"].is_string());
        }
        // The only pending work is the detection of a runtime that is away.
        let effects = world.trace.len();
        world.run(seconds(3_600));
        let rest = world.trace.split_off(effects);
        prop_assert!(rest.iter().all(|(_, effect)| *effect == Effect::DetectRuntimes), "{:?}", rest);
    }

    #[test]
    fn a_round_has_no_more_attempts_than_its_policy_allows(
        courses in prop::collection::vec(0..4_u8, 0..6),
        backoff_limit in 0..4_u32,
        timeout in 1..60_u32,
    ) {
        let mut world = World::new(Config::new("n1"));
        world.usual = course(1);
        let is_good = courses.iter().take(backoff_limit as usize + 1).any(|number| *number == 0) && timeout >= 3;
        world.courses.insert("app:1".into(), courses.iter().map(|number| course(*number)).collect());
        world.want(json!({"app": {"tags": [{"tag": "1", "pullPolicy":
            {"timeoutSeconds": timeout, "backoffLimit": backoff_limit}}]}}));
        world.run(seconds(1_000));
        prop_assert!(world.pulls().len() <= backoff_limit as usize + 1);
        prop_assert_eq!(&*world.phase("app", "1"), if is_good { "Succeeded" } else { "Failed" });
    }

    #[test]
    fn writes_are_few_where_nothing_fails(
        counts in prop::collection::vec(1..8_usize, 1..6),
        limit in 0..4_u32,
        listing in 1..2_000_u64,
    ) {
        let mut world = World::new(Config { max_pulls: NonZeroU32::new(limit), ..Config::new("n1") });
        world.listing = millis(listing);
        let mut images = serde_json::Map::new();
        for (number, count) in counts.iter().enumerate() {
            let tags: Vec<Value> = (0..*count).map(|tag| json!({"tag": format!("{tag}"), "imagePullPolicy": "IfNotPresent"})).collect();
            images.insert(format!("app-{number}"), json!({"tags": tags}));
            world.want(Value::Object(images.clone()));
            world.run(seconds(3));
        }
        let total: usize = counts.iter().sum();
        world.run(seconds(20 * total as u64));
        prop_assert_eq!(&world.status()["succeeded"], total);
        prop_assert!(world.status_writes().len() <= 2 * total, "{} writes", world.status_writes().len());
        world.want(json!({}));
        let before = world.status_writes().len();
        world.run(seconds(60));
        prop_assert!(world.status_writes().len() <= before + 1);
    }

    #[test]
    fn the_same_events_lead_to_the_same_effects_and_the_same_state(steps in prop::collection::vec(step(), 1..30)) {
        let run = || {
            let mut world = World::new(Config::new("n1"));
            let mut wanted = Wanted::default();
            for step in &steps {
                take(&mut world, &mut wanted, step);
            }
            (format!("{:?}", world.agent), world.trace)
        };
        prop_assert_eq!(run(), run());
    }

    /// Answers in no order at all, to questions that may never have been asked.
    #[test]
    fn no_event_makes_the_agent_fail(numbers in prop::collection::vec((0..12_u8, 0..6_u64), 1..80)) {
        let mut agent = Agent::new(Config::new("n1"));
        let mut now = crate::world::time(crate::world::START);
        for (kind, number) in numbers {
            now = now.checked_add(jiff::SignedDuration::from_millis(i64::try_from(number * 400).unwrap())).unwrap();
            let _ = agent.handle(event(kind, number), now);
            prop_assert!(agent.next_timer().is_none_or(|timer| timer <= jiff::Timestamp::MAX));
        }
    }
}

/// An event that may come at the wrong time.
fn event(kind: u8, number: u64) -> Event {
    let failure = || Failure::Unavailable("gone".into());
    let container = kruise_agent_core::ContainerId {
        runtime: "containerd".into(),
        id: format!("{number}").into(),
    };
    match kind {
        0 => Event::Started,
        1 => Event::Timer,
        2 => {
            let object = json!({"metadata": {"name": "n1", "uid": format!("u{}", number % 2), "resourceVersion": "5"},
                "spec": {"images": {"a": {"tags": [{"tag": "1", "version": number}],
                         "pullSecrets": [{"namespace": "n", "name": "s"}]}}}});
            Event::NodeImage(std::sync::Arc::new(serde_json::from_value(object).unwrap()))
        }
        3 => Event::NodeImageDeleted,
        4 => Event::RuntimesDetected(if number == 0 {
            Err("gone".into())
        } else {
            Ok(["containerd".into()].into())
        }),
        5 => Event::ImagesListed(if number == 0 {
            Err(failure())
        } else {
            Ok(Vec::new())
        }),
        6 => Event::FilesystemRead(Ok(kruise_agent_core::Filesystem {
            free: number,
            size: 20,
        })),
        7 => Event::SecretsRead {
            attempt: kruise_agent_core::AttemptId(number),
            secrets: Vec::new(),
        },
        8 => Event::PullEnded {
            attempt: kruise_agent_core::AttemptId(number),
            result: Ok("ref".into()),
        },
        9 => Event::ContainersRead {
            pod: format!("u{number}").into(),
            result: Err(failure()),
        },
        10 => Event::ContainerStopped {
            container,
            result: Err(failure()),
        },
        _ => Event::StatusWritten(if number == 0 {
            Err(WriteError::Conflict)
        } else {
            Ok(number.to_string().into())
        }),
    }
}
