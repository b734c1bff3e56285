//! Rounds of a case: what a plan must have, and carrying it out.

use kruise_plan_kit::{ObjectWrites, Plan};
use serde_json::{Value, json};

use crate::Cluster;

/// Reads a node: its name, then `label=KEY:VALUE`, `taint=KEY:EFFECT`, `unready`, `cordoned` and
/// `room=RESOURCE:QUANTITY`.
pub fn node(line: &str) -> (String, Value) {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap().to_owned();
    let (mut labels, mut taints, mut room) = (json!({}), json!([]), json!({}));
    let (mut ready, mut cordoned) = ("True", false);
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "label" => {
                let (key, value) = value.split_once(':').unwrap();
                labels[key] = json!(value);
            }
            "taint" => {
                let (key, effect) = value.split_once(':').unwrap();
                let taint = json!({"key": key, "effect": effect});
                taints.as_array_mut().unwrap().push(taint);
            }
            "room" => {
                let (resource, quantity) = value.split_once(':').unwrap();
                room[resource] = json!(quantity);
            }
            "unready" => ready = "Unknown",
            "cordoned" => cordoned = true,
            other => panic!("a node that is {other}?"),
        }
    }
    let node = json!({
        "metadata": {"name": name, "uid": format!("uid-of-{name}"), "resourceVersion": "3", "labels": labels},
        "spec": {"taints": taints, "unschedulable": cordoned},
        "status": {"conditions": [{"type": "Ready", "status": ready}], "allocatable": room},
    });
    (name, node)
}

/// The writes of one object in a line: `verb name`, joined by `then`.
pub fn line(object: &ObjectWrites) -> String {
    let steps = object.steps.iter().map(|step| {
        let write = &step.write;
        format!("{} {}", write.intent().as_str(), write.target().name)
    });
    steps.collect::<Vec<String>>().join(" then ")
}

/// What a plan must have.
pub struct Expected<'r> {
    /// The writes, in any order.
    pub writes: &'r [String],
    /// `Reason: words`: each of the plan's own events, if given, has the words of one of these.
    pub events: Option<&'r [String]>,
    /// Seconds until the plan is wanted again, if given.
    pub again: Option<u64>,
    /// `subject: words`: a line about the pod, the node, or `the set`, has these words.
    pub why: &'r [String],
}

/// What differs from what is expected. `short` gives names the form that files have, and `line` the writes of an
/// object.
pub fn differences(
    plan: &Plan,
    expected: &Expected<'_>,
    short: impl Fn(String) -> String,
    line: impl Fn(&ObjectWrites) -> String,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut writes: Vec<String> = plan.writes.iter().map(|object| short(line(object))).collect();
    let mut wanted = expected.writes.to_vec();
    writes.sort();
    wanted.sort();
    if writes != wanted {
        wrong.push(format!("writes {writes:#?}, not {wanted:#?}"));
    }
    if let Some(wanted) = expected.events {
        let events = plan.events.iter();
        let events: Vec<String> = events
            .map(|event| short(format!("{}: {}", event.reason, event.message)))
            .collect();
        let says = |event: &String, wanted: &String| {
            let (reason, words) = wanted.split_once(": ").unwrap();
            event
                .split_once(": ")
                .is_some_and(|(have, message)| have == reason && message.contains(words))
        };
        let same = wanted
            .iter()
            .all(|one| events.iter().any(|event| says(event, one)))
            && events
                .iter()
                .all(|event| wanted.iter().any(|one| says(event, one)));
        if !same {
            wrong.push(format!("events {events:#?}, not {wanted:#?}"));
        }
    }
    let again = plan.requeue.map(|requeue| requeue.as_secs());
    if expected.again.is_some() && expected.again != again {
        wrong.push(format!("again in {again:?}, not {:?}", expected.again));
    }
    for wanted in expected.why {
        let (about, words) = wanted.split_once(": ").unwrap();
        let about = if about == "the set" { "" } else { about };
        let found = plan.why.iter().any(|why| {
            short(why.node().unwrap_or(&why.about).to_owned()) == about
                && short(why.text.clone()).contains(words)
        });
        if !found {
            wrong.push(format!("no line says {wanted:?}: {:#?}", plan.why));
        }
    }
    wrong
}

impl Cluster {
    /// Carries a plan out, all of it.
    pub fn execute(&mut self, plan: &Plan) {
        let mut writes: Vec<&ObjectWrites> = plan.writes.iter().collect();
        writes.sort_by_key(|object| object.phase);
        for object in writes {
            let mut previous = None;
            for step in &object.steps {
                let done = self.apply(&step.write, &mut previous);
                assert_eq!(done, Ok(()), "{}", step.write);
            }
        }
        self.report(plan);
    }
}
