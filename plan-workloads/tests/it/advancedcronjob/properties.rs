//! Random histories: clocks that are set, managers that end between two writes, jobs that end and are deleted.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kruise_plan_kit::Explain;
use proptest::prelude::*;
use serde_json::json;

use super::world::World;

#[derive(Clone, Debug)]
enum Step {
    /// The clock goes on, or is set back.
    Pass(i64),
    /// The oldest job that runs ends.
    End(bool),
    /// The manager ends after so many writes of its next plan.
    Crash(usize),
    /// A job that ended, and that the status knows, is deleted by its time to live.
    Expire,
    Edit(&'static str, serde_json::Value),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_i64..400).prop_map(Step::Pass),
        1 => (-4000_i64..0).prop_map(Step::Pass),
        1 => (3600_i64..400_000).prop_map(Step::Pass),
        3 => any::<bool>().prop_map(Step::End),
        2 => (0_usize..4).prop_map(Step::Crash),
        2 => Just(Step::Expire),
        1 => prop_oneof![Just("Allow"), Just("Forbid"), Just("Replace")]
            .prop_map(|policy| Step::Edit("concurrencyPolicy", json!(policy))),
        1 => any::<bool>().prop_map(|paused| Step::Edit("paused", json!(paused))),
        1 => prop_oneof![Just("* * * * *"), Just("*/7 * * * *"), Just("@every 45s"), Just("5 */2 * * *")]
            .prop_map(|schedule| Step::Edit("schedule", json!(schedule))),
    ]
}

/// Plans until nothing is left to do, and checks each plan.
fn settle(world: &mut World, most: Option<usize>) -> Result<(), TestCaseError> {
    let mut most = most;
    for _ in 0..8 {
        let (running, last) = (running(world), last(world));
        let made = world.created.len();
        let plan = world.plan(Explain::No);
        if plan.writes.is_empty() && plan.status.is_none() {
            return Ok(());
        }
        match most.take() {
            Some(writes) => world.execute_some(&plan, writes),
            None => world.execute(&plan),
        }
        for activation in world.created.get(made..).unwrap_or_default() {
            prop_assert!(
                Some(*activation) > last,
                "older than one that had a job: {activation}"
            );
            prop_assert!(*activation <= world.now, "before its time: {activation}");
            let policy = world.cron["spec"]["concurrencyPolicy"].as_str();
            match policy.unwrap() {
                "Forbid" => prop_assert!(running.is_empty(), "{running:?} runs"),
                "Replace" => prop_assert_eq!(self::running(world).len(), 1),
                _ => {}
            }
            prop_assert!(world.cron["spec"]["paused"] != json!(true));
        }
        prop_assert!(self::last(world) >= last, "the last activation moved back");
    }
    prop_assert!(false, "it does not come to rest");
    Ok(())
}

/// Names of jobs that run.
fn running(world: &World) -> BTreeSet<String> {
    let running = world.jobs.iter();
    let running = running.filter(|(_, job)| job["status"]["conditions"].is_null());
    running.map(|(name, _)| name.clone()).collect()
}

/// The newest activation that had a job: as the history of this test says.
fn last(world: &World) -> Option<Timestamp> {
    world.created.iter().max().copied()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_activation_has_two_jobs_and_the_latest_that_is_due_has_one(
        limits in (0_i32..3, 0_i32..2),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut world = World::new("Job");
        world.cron["status"] = json!({});
        world.cron["spec"]["successfulJobsHistoryLimit"] = json!(limits.0);
        world.cron["spec"]["failedJobsHistoryLimit"] = json!(limits.1);
        let mut crash = None;
        for step in steps {
            match step {
                Step::Pass(seconds) => world.now += SignedDuration::from_secs(seconds),
                Step::End(well) => {
                    let oldest = running(&world).into_iter().next();
                    if let Some(name) = oldest {
                        let second = name.rsplit('-').next().unwrap().parse().unwrap();
                        let how = if well { "complete" } else { "failed" };
                        world.end(Timestamp::from_second(second).unwrap(), how);
                    }
                }
                Step::Crash(writes) => {
                    crash = Some(writes);
                    continue;
                }
                Step::Expire => {
                    let stored = world.cron["status"]["lastScheduleTime"].as_str().map(str::to_owned);
                    let known = |name: &str| {
                        let second: i64 = name.rsplit('-').next().unwrap().parse().unwrap();
                        stored.as_ref().is_some_and(|last| {
                            last.parse::<Timestamp>().unwrap().as_second() >= second
                        })
                    };
                    let running = running(&world);
                    world.jobs.retain(|name, _| running.contains(name) || !known(name));
                }
                Step::Edit(member, value) => {
                    world.cron["spec"][member] = value;
                    world.touch();
                }
            }
            settle(&mut world, crash.take())?;
            settle(&mut world, None)?;
            let created: BTreeSet<Timestamp> = world.created.iter().copied().collect();
            prop_assert_eq!(created.len(), world.created.len(), "an activation has two jobs");
            let is_held = world.cron["spec"]["paused"] == json!(true)
                || (world.cron["spec"]["concurrencyPolicy"] == json!("Forbid") && !running(&world).is_empty());
            if !is_held {
                let since = last(&world).unwrap_or(super::world::at("00:00"));
                let lost = world.activations(since, world.now);
                prop_assert!(lost.is_empty(), "lost: {:?}", lost.last());
            }
            for (end, limit) in [("Complete", limits.0), ("Failed", limits.1)] {
                let ended = world.jobs.values();
                let ended = ended.filter(|job| job["status"]["conditions"][0]["type"] == end);
                prop_assert!(ended.count() <= usize::try_from(limit).unwrap());
            }
        }
    }
}
