//! Random histories against a naive model: the result of a probe is the last run of equal ends that is as long as its
//! threshold, of the container that the agent saw last. The world checks that one write is made at a time, and that
//! each changes something.

use std::collections::BTreeMap;

use kruise_agent_core::{Failure, Handler, Life, ProbeResult, WriteError};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{World, exec, fails, pod, succeeds};
use crate::world::millis;

#[derive(Clone, Debug)]
enum Step {
    /// Pod, and how often its command has changed; none removes it.
    Ask(u8, Option<u8>),
    Begin(u8),
    End(u8),
    Answer(u8, u8),
    Takes(u16),
    Runtime(bool),
    Api(bool),
    Restart,
    Wait(u16),
}

const PODS: u8 = 3;
const SUCCESS: u32 = 2;
const FAILURE: u32 = 3;

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..PODS, prop::option::of(0..3_u8)).prop_map(|(pod, command)| Step::Ask(pod, command)),
        4 => (0..PODS).prop_map(Step::Begin),
        2 => (0..PODS).prop_map(Step::End),
        6 => (0..PODS, 0..4_u8).prop_map(|(pod, answer)| Step::Answer(pod, answer)),
        2 => (1..3000_u16).prop_map(Step::Takes),
        1 => any::<bool>().prop_map(Step::Runtime),
        1 => any::<bool>().prop_map(Step::Api),
        1 => Just(Step::Restart),
        12 => (1..12_000_u16).prop_map(Step::Wait),
    ]
}

fn name(pod: u8) -> String {
    format!("p{pod}")
}

/// Sets what the node probes.
fn ask(world: &mut World, asked: &BTreeMap<u8, u8>) {
    let thresholds = json!({"periodSeconds": 2, "timeoutSeconds": 2, "successThreshold": SUCCESS,
        "failureThreshold": FAILURE});
    let pods: Vec<Value> = asked
        .iter()
        .map(|(number, command)| {
            let name = name(*number);
            pod(&name, &[exec("m#p", &format!("{name} {command}"), &thresholds)])
        })
        .collect();
    world.ask(&pods);
}

/// The result that a probe must have by what the agent was told, if that is known.
fn model(world: &World, number: u8, command: u8) -> Option<String> {
    let key = (format!("uid-{}", name(number)), "app".to_owned());
    let seen = world.listed.get(&key)?;
    if seen.life == Life::Ended {
        return Some("Failed Container(app) is Non-running".to_owned());
    }
    let words = format!("{} {command}", name(number));
    let results = world.results.iter().filter(|(run, _)| {
        let is_it = matches!(&run.handler, Handler::Exec(command) if command.join(" ") == words);
        is_it && run.container == seen.container
    });
    let (mut streak, mut errors, mut says) = ((false, 0), 0, None);
    for (_, result) in results {
        let (is_success, answer, threshold) = match result {
            ProbeResult::Succeeded(answer) => (true, answer, SUCCESS),
            ProbeResult::Failed(answer) => (false, answer, FAILURE),
            ProbeResult::NotRun(Failure::Failed(problem)) => {
                streak = (false, 0);
                errors += 1;
                if errors >= FAILURE {
                    says = Some(format!("Unknown the probe cannot be run: {problem}"));
                }
                continue;
            }
            ProbeResult::NotRun(Failure::Unavailable(_)) => continue,
        };
        errors = 0;
        streak = if streak.0 == is_success {
            (is_success, streak.1 + 1)
        } else {
            (is_success, 1)
        };
        if streak.1 >= threshold {
            let state = if is_success { "Succeeded" } else { "Failed" };
            says = Some(format!("{state} {answer}"));
        }
    }
    says
}

fn take(world: &mut World, step: &Step, asked: &mut BTreeMap<u8, u8>) {
    match *step {
        Step::Ask(pod, command) => {
            // A command that comes back would be one whose results the model remembers.
            let before = asked.get(&pod).copied();
            match command {
                Some(more) => asked.insert(pod, before.unwrap_or(0).saturating_add(more)),
                None => None,
            };
            ask(world, asked);
        }
        Step::Begin(pod) => {
            world.begin(&name(pod), "app");
        }
        Step::End(pod) => world.end(&name(pod), "app"),
        Step::Answer(pod, answer) => {
            for command in 0..=u8::MAX {
                let answer = match answer {
                    0 => fails("no"),
                    1 => ProbeResult::NotRun(Failure::Failed("what".into())),
                    other => succeeds(&format!("{pod} {other}")),
                };
                world.answers.insert(format!("{} {command}", name(pod)), answer);
            }
        }
        Step::Takes(takes) => world.takes = millis(takes.into()),
        Step::Runtime(is_up) => world.is_up = is_up,
        Step::Api(is_up) => world.api_error = (!is_up).then(|| WriteError::Failed("away".into())),
        Step::Restart => world.restart(),
        Step::Wait(time) => world.run(millis(time.into())),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn results_are_those_of_the_newest_container_and_respect_thresholds_whatever_happens(
        steps in prop::collection::vec(step(), 1..60)
    ) {
        let mut world = World::new();
        let mut asked = BTreeMap::new();
        for step in &steps {
            take(&mut world, step, &mut asked);
        }
        world.is_up = true;
        world.api_error = None;
        world.takes = millis(50);
        world.run(millis(200_000));
        for (number, command) in &asked {
            let says = world.says(&name(*number), "m#p");
            match model(&world, *number, *command) {
                Some(expected) => prop_assert_eq!(says, expected.trim()),
                // It has not answered often enough, or there is no container.
                None => prop_assert!(says.is_empty() || says.starts_with("Unknown"), "{}", says),
            }
        }
        for number in (0..PODS).filter(|number| !asked.contains_key(number)) {
            prop_assert_eq!(world.says(&name(number), "m#p"), "");
        }
        let writes = world.patches.len();
        world.run(millis(600_000));
        prop_assert_eq!(world.patches.len(), writes, "a write at rest");
    }
}
