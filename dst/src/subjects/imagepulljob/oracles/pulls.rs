//! *"For an image and a node, until success, an agent writes at most twice: that it pulls, and that the image is there. Any further
//! write says what holds it back. What it has reported of the end of a pull stays, and an image that does not exist is never there."*

use std::collections::BTreeMap;

use kruise_api::names::agent::IMAGE_PULLER;
use serde_json::Value;

use super::known::change;
use crate::engine::oracles::{Mirror, Object, ProcessId, Violation, Write};
use crate::subjects::imagepulljob::start::{MISSING, NODE_IMAGES, reference};

/// Writes of a round in which nothing holds an agent back.
const WRITES: u32 = 2;

/// The rounds of all tags, by NodeImage, image and tag.
#[derive(Default)]
pub struct Pulls(BTreeMap<(String, String), Round>);

/// A round of pulling a tag.
#[derive(Default)]
struct Round {
    version: i64,
    /// The agent that wrote last. One that starts anew does not know what the one before it has written.
    agent: Option<ProcessId>,
    writes: u32,
    /// Something held the agent back, and it said so.
    has_message: bool,
}

impl Pulls {
    /// Judges writes of agents.
    pub fn judge(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        if write.component != IMAGE_PULLER || write.resource != NODE_IMAGES.plural {
            return None;
        }
        let [before, after] = change(write, mirror)?;
        let old = statuses(before);
        for (name, status) in statuses(after) {
            let known = old.get(&name).copied();
            if known == Some(status) {
                continue;
            }
            let violation = |oracle, what: String| {
                let what = format!("{} wrote {name} of {}: {what}", write.process, write.name);
                Some(Violation { oracle, what })
            };
            if name == reference(MISSING) && status["phase"] == "Succeeded" {
                return violation("an image that does not exist is never pulled", status.to_string());
            }
            let version = version_of(status);
            let end = |of: &Value| (of["phase"].clone(), of["completionTime"].clone());
            if let Some(old) = known.filter(|old| has_ended(old) && version_of(old) == version)
                && end(old) != end(status)
            {
                return violation(
                    "what became of a pull is final",
                    format!("{status}, and it was {old}"),
                );
            }
            let round = self.0.entry((after.uid.to_string(), name.clone())).or_default();
            if known.is_none() || round.version != version || round.agent != Some(write.process) {
                *round = Round {
                    version,
                    agent: Some(write.process),
                    ..Round::default()
                };
            }
            round.writes += 1;
            let says = |of: &Value| !of["message"].as_str().unwrap_or_default().is_empty();
            round.has_message |= says(status) || known.is_some_and(says);
            if round.writes > WRITES && !round.has_message {
                let what = format!("for the {}. time: {status}", round.writes);
                return violation("an agent writes twice for an image that it pulls", what);
            }
        }
        None
    }
}

/// The round that a status is of.
fn version_of(status: &Value) -> i64 {
    status["version"].as_i64().unwrap_or_default()
}

/// Has the round ended?
fn has_ended(status: &Value) -> bool {
    !status["completionTime"].is_null()
}

/// The statuses of tags, by image and tag.
fn statuses(node: &Object) -> BTreeMap<String, &Value> {
    let images = node.value()["status"]["imageStatuses"].as_object();
    let images = images.into_iter().flatten();
    let tags = images.flat_map(|(image, status)| {
        let tags = status["tags"].as_array().into_iter().flatten();
        tags.map(move |tag| {
            (
                format!("{image}:{}", tag["tag"].as_str().unwrap_or_default()),
                tag,
            )
        })
    });
    tags.collect()
}
