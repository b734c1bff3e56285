//! *"For an image and a node, until success, an agent writes at most twice: that it pulls, and that the image is
//! there. Any further write says what holds it back. What it has reported of the end of a pull stays, and an image
//! that does not exist is never there."*

use kruise_api::names::agent::IMAGE_PULLER;

use super::super::start::{MISSING, NODE_IMAGES, reference};
use super::tags_in;
use crate::rules::prelude::*;

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
        let [before, after] = write.both(mirror, NODE_IMAGES)?;
        let [old, new] = [before, after].map(|node| tags_in(&node.status()["imageStatuses"]));
        let old: BTreeMap<String, &Value> = old.into_iter().collect();
        for (name, status) in new {
            let known = old.get(&name).copied();
            if known == Some(status) {
                continue;
            }
            never!(write, "an image that does not exist is never pulled",
                name == reference(MISSING) && status["phase"] == "Succeeded" => "{}", status);
            let version = number(&status["version"]);
            let end = |of: &Value| (of["phase"].clone(), of["completionTime"].clone());
            let has_ended = |of: &&Value| !of["completionTime"].is_null();
            let same = known.filter(|old| has_ended(old) && number(&old["version"]) == version);
            never!(write, "what became of a pull is final",
                some old in same.filter(|old| end(old) != end(status)) => "{status}, and it was {old}");
            let round = self.0.entry((after.uid.to_string(), name.clone())).or_default();
            if known.is_none() || round.version != version || round.agent != Some(write.process) {
                *round = Round {
                    version,
                    agent: Some(write.process),
                    ..Round::default()
                };
            }
            round.writes += 1;
            let says = |of: &Value| !text(&of["message"]).is_empty();
            round.has_message |= says(status) || known.is_some_and(says);
            never!(write, "an agent writes twice for an image that it pulls",
                round.writes > WRITES && !round.has_message => "for the {}. time: {status}", round.writes);
        }
        None
    }
}
