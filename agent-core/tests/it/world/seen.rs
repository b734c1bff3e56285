//! What can be seen of a world: what is stored, and what the agent has asked for.

use jiff::Timestamp;
use kruise_agent_core::{Effect, EventNote, Health, Pull};
use serde_json::Value;

use super::{START, World, time};

impl World {
    /// Phases of the tags of an image, as they are stored.
    pub fn tag(&self, image: &str, tag: &str) -> Value {
        let tags = self.node_image["status"]["imageStatuses"][image]["tags"].as_array();
        let mut tags = tags.into_iter().flatten();
        tags.find(|one| one["tag"] == tag).cloned().unwrap_or_default()
    }

    pub fn phase(&self, image: &str, tag: &str) -> String {
        self.tag(image, tag)["phase"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    pub fn status(&self) -> &Value {
        &self.node_image["status"]
    }

    /// Calls that pull an image, with the seconds since the start of the world.
    pub fn pulls(&self) -> Vec<(f64, Pull)> {
        let start = time(START);
        let pulls = self.trace.iter().filter_map(|(time, effect)| match effect {
            Effect::Pull(pull) => Some((time.duration_since(start).as_secs_f64(), pull.clone())),
            _ => None,
        });
        pulls.collect()
    }

    pub fn pulled(&self) -> Vec<String> {
        self.pulls()
            .into_iter()
            .map(|(_, pull)| pull.image.to_string())
            .collect()
    }

    pub fn events(&self) -> Vec<&EventNote> {
        let notes = self.trace.iter().filter_map(|(_, effect)| match effect {
            Effect::Event(note) => Some(note),
            _ => None,
        });
        notes.collect()
    }

    /// Reasons and messages of events.
    pub fn messages(&self) -> Vec<String> {
        let notes = self.events().into_iter();
        notes
            .map(|note| format!("{} {}", note.reason, note.message))
            .collect()
    }

    pub fn status_writes(&self) -> Vec<(Timestamp, &Value)> {
        let writes = self.trace.iter().filter_map(|(time, effect)| match effect {
            Effect::PatchNodeImageStatus { patch, .. } => Some((*time, patch)),
            _ => None,
        });
        writes.collect()
    }

    /// When effects were to be carried out, in seconds since the start of the world.
    pub fn times(&self, is_counted: impl Fn(&Effect) -> bool) -> Vec<f64> {
        let start = time(START);
        let counted = self.trace.iter().filter(|(_, effect)| is_counted(effect));
        counted
            .map(|(at, _)| at.duration_since(start).as_secs_f64())
            .collect()
    }

    pub fn count(&self, is_counted: impl Fn(&Effect) -> bool) -> usize {
        self.trace.iter().filter(|(_, effect)| is_counted(effect)).count()
    }

    pub fn health(&self) -> Health {
        self.agent.health()
    }

    pub fn in_flight(&self) -> usize {
        self.pulling.len()
    }
}
