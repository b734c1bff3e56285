//! Widening the match condition of a conditional webhook for an object that is about to be stored.
//!
//! The leader derives the condition from the objects in its cache, which cannot have an object that is not stored
//! yet. So whoever reviews such an object adds what it needs to the registered condition, `(before) || (more)`, and
//! notes it with an expiry in the annotation [`WIDENED_CONDITIONS`]. Until then the leader keeps it, whatever it
//! derives; afterwards the object is in its cache, or was not stored.
//!
//! Nothing is ever taken away here. A widening is written for the version of the configuration that was read.

use std::time::Duration;

use jiff::Timestamp;
use kruise_api::names::WIDENED_CONDITIONS;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{ConditionalWebhook, has_conditions, path_of, tied};

/// How long a widening is kept.
pub const KEPT: Duration = Duration::from_mins(1);

/// How long an API server may take to learn of a changed configuration.
pub const LEARNT: Duration = Duration::from_secs(1);

/// By how much the clocks of two replicas may differ.
const SKEW: Duration = Duration::from_secs(5);

/// A widening that lasts less long does not suffice for an object that is about to be stored: other webhooks may
/// review it for as long as this.
const ENOUGH: Duration = Duration::from_secs(30);

/// With so many widenings the next one is for more requests than it needs, so that objects that are created one
/// after the other do not each wait for the API servers: one number for each wider condition.
const MANY: [usize; 2] = [4, 16];

/// Longest condition, in bytes.
const LENGTH: usize = 64 * 1024;

/// A widening.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Widened {
    /// Name of the webhook.
    pub webhook: String,
    /// What was added to its condition.
    pub expression: String,
    /// When the leader may take it away.
    pub until: Timestamp,
    /// The object that needed it.
    #[serde(flatten)]
    pub object: Stored,
}

/// An object that is about to be stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// Its kind.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Its namespace; empty if it is in none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid; empty if it has none yet.
    #[serde(default)]
    pub uid: String,
    /// Its generation once it is stored; 0 if that is not known.
    #[serde(default)]
    pub generation: i64,
}

/// What a condition is to hold of.
pub struct Wanted<'w> {
    /// Conditions that hold of it, from the narrowest to the widest.
    pub expressions: &'w [String],
    /// Does a condition hold of all of it? Certain if true.
    pub is_within: &'w (dyn Fn(&str) -> bool + Sync),
    /// The object that needs it.
    pub object: &'w Stored,
}

/// What has to be done before the object may be stored.
#[derive(Debug, PartialEq)]
pub enum Widen {
    /// To wait this long: another object has widened the condition. Zero if API servers know.
    Wait(Duration),
    /// To send this merge patch, and to wait this long.
    Write(Value, Duration),
}

/// The widenings in a configuration.
pub fn widened(current: &Value) -> Vec<Widened> {
    let annotations = current.pointer("/metadata/annotations");
    let text = annotations.and_then(|annotations| annotations.get(WIDENED_CONDITIONS)?.as_str());
    text.map(read).unwrap_or_default()
}

/// The widenings in the text of the annotation. One that cannot be read counts as absent.
pub fn read(text: &str) -> Vec<Widened> {
    serde_json::from_str(text).unwrap_or_default()
}

/// What has to be done so that the webhook is called for what is wanted.
pub fn widen(
    current: &Value,
    conditional: &ConditionalWebhook,
    wanted: &Wanted<'_>,
    now: Timestamp,
) -> Widen {
    let known = Widen::Wait(Duration::ZERO);
    let webhooks = current.get("webhooks").and_then(Value::as_array);
    let mut webhooks = webhooks.cloned().unwrap_or_default();
    let Some((index, base)) = base(current, &webhooks, conditional) else {
        // Nobody is called, and that is not for want of a condition, or for every request already.
        return known;
    };
    let existing = webhooks
        .iter()
        .position(|one| one.as_object().is_some_and(|one| conditional.is(one)));
    let registered = existing
        .and_then(|index| webhooks.get(index)?.as_object())
        .map(conditions);
    if registered.is_some_and(<[Value]>::is_empty) {
        return known;
    }
    let registered = registered.and_then(|conditions| conditions.first()?.get("expression")?.as_str());
    let mut all = widened(current);
    let of_webhook = |all: &[Widened]| -> Vec<Widened> {
        all.iter()
            .filter(|one| one.webhook == conditional.name)
            .cloned()
            .collect()
    };
    let before = of_webhook(&all);
    let (derived, before) = parts(registered, &before);
    let covering = before.iter().filter(|one| (wanted.is_within)(&one.expression));
    let covering = covering.max_by_key(|one| one.until).filter(|one| one.until > now);
    if let Some(covering) = covering {
        let left = between(now, covering.until);
        if left >= ENOUGH {
            // It may be another replica's, whose clock differs.
            let is_new = left + SKEW >= KEPT;
            return Widen::Wait(if is_new { LEARNT } else { Duration::ZERO });
        }
    }
    if derived.is_some_and(wanted.is_within) {
        return known;
    }
    // One that is for more than is wanted is not renewed: it would last as long as objects are created.
    let exact = covering.filter(|one| wanted.expressions.first() == Some(&one.expression));
    if let Some(covering) = exact.cloned() {
        for one in all.iter_mut().filter(|one| **one == covering) {
            one.until = after(now, KEPT);
        }
        return Widen::Write(annotated(current, &all, Map::new()), Duration::ZERO);
    }
    let is_covered = covering.is_some_and(|one| between(now, one.until) > LEARNT);
    let lasting = before.iter().filter(|one| one.until > now).count();
    let width = MANY.iter().filter(|many| lasting >= **many).count();
    let expressions = wanted.expressions;
    let mut next = Widened {
        webhook: conditional.name.clone(),
        expression: expressions
            .get(width)
            .or(expressions.last())
            .cloned()
            .unwrap_or_default(),
        until: after(now, KEPT),
        object: wanted.object.clone(),
    };
    let joined = |next: &Widened| joined(derived, before.iter().chain([next]));
    let mut expression = joined(&next);
    if let Some(widest) = expressions.last().filter(|_| expression.len() > LENGTH) {
        next.expression.clone_from(widest);
        expression = joined(&next);
    }
    let mut webhook = base;
    if let Some(existing) = existing.and_then(|index| webhooks.get(index)?.as_object()) {
        webhook.clone_from(existing);
    }
    conditional.set(&mut webhook, &expression);
    match existing.and_then(|index| webhooks.get_mut(index)) {
        Some(existing) => *existing = webhook.into(),
        None => webhooks.insert(index, webhook.into()),
    }
    all.push(next);
    let mut patch = Map::new();
    patch.insert("webhooks".into(), webhooks.into());
    let wait = if is_covered { Duration::ZERO } else { LEARNT };
    Widen::Write(annotated(current, &all, patch), wait)
}

/// The condition that is derived, and the widenings that are part of the registered one.
fn parts<'r>(registered: Option<&'r str>, widened: &[Widened]) -> (Option<&'r str>, Vec<Widened>) {
    let Some(registered) = registered else {
        return (None, Vec::new());
    };
    let more = joined(None, widened);
    if registered == more {
        return (None, widened.to_vec());
    }
    let derived = registered
        .strip_suffix(&*more)
        .filter(|_| !widened.is_empty())
        .and_then(|rest| rest.strip_suffix(") || ")?.strip_prefix('('));
    match derived {
        Some(derived) => (Some(derived), widened.to_vec()),
        // It was written by somebody else since.
        None => (Some(registered), Vec::new()),
    }
}

/// One condition of what is derived and of widenings. What is derived alone stays as it is.
pub(super) fn joined<'w>(derived: Option<&str>, widened: impl IntoIterator<Item = &'w Widened>) -> String {
    let widened: Vec<String> = widened
        .into_iter()
        .map(|one| format!("({})", one.expression))
        .collect();
    match derived {
        Some(derived) if widened.is_empty() => derived.to_owned(),
        Some(derived) => format!("({derived}) || {}", widened.join(" || ")),
        None => widened.join(" || "),
    }
}

/// The widenings that the leader keeps: of other webhooks, and those that last.
pub(super) fn kept(all: &[Widened], conditional: &ConditionalWebhook, now: Timestamp) -> Vec<Widened> {
    let is_kept = |one: &&Widened| one.webhook != conditional.name || one.until > now;
    all.iter().filter(is_kept).cloned().collect()
}

/// The value of the annotation; null if there is none to be.
pub(super) fn annotation(all: &[Widened]) -> Value {
    match serde_json::to_string(all) {
        Ok(text) if !all.is_empty() => text.into(),
        _ => Value::Null,
    }
}

fn annotated(current: &Value, all: &[Widened], mut patch: Map<String, Value>) -> Value {
    patch.insert(
        "metadata".into(),
        json!({"annotations": {WIDENED_CONDITIONS: annotation(all)}}),
    );
    tied(current, patch).unwrap_or_default()
}

/// The webhook that the conditional one is made of, and its place among the registered ones. `None` if there is
/// none, or if it has no match conditions.
fn base(
    current: &Value,
    webhooks: &[Value],
    conditional: &ConditionalWebhook,
) -> Option<(usize, Map<String, Value>)> {
    let all = || webhooks.iter().map(Value::as_object).enumerate();
    let mut of_path = all().filter_map(|(index, webhook)| {
        let webhook = webhook.filter(|webhook| !conditional.is(webhook))?;
        let path = path_of(webhook.get("clientConfig")?.as_object()?)?;
        (path == conditional.path).then_some((index, webhook))
    });
    let found = if conditional.in_place {
        let registered = all().find_map(|(index, webhook)| {
            let webhook = webhook.filter(|webhook| conditional.is(webhook))?;
            Some((index, webhook.clone()))
        });
        match registered {
            Some(registered) => registered,
            None => (
                webhooks.len(),
                from_template(current, of_path.next()?.1, conditional)?,
            ),
        }
    } else {
        let (index, first) = of_path.next()?;
        if of_path.any(|(_, other)| !has_conditions(other)) {
            return None;
        }
        (index, first.clone())
    };
    has_conditions(&found.1).then_some(found)
}

/// A webhook that is in the template and not registered. API servers call it as they call another one of its path.
fn from_template(
    current: &Value,
    of_path: &Map<String, Value>,
    conditional: &ConditionalWebhook,
) -> Option<Map<String, Value>> {
    let text = current.pointer("/metadata/annotations/template")?.as_str()?;
    let template: Vec<Map<String, Value>> = serde_json::from_str(text).ok()?;
    let mut webhook = template.into_iter().find(|webhook| conditional.is(webhook))?;
    webhook.insert("clientConfig".into(), of_path.get("clientConfig")?.clone());
    Some(webhook)
}

fn conditions(webhook: &Map<String, Value>) -> &[Value] {
    let conditions = webhook.get("matchConditions").and_then(Value::as_array);
    conditions.map(Vec::as_slice).unwrap_or_default()
}

fn after(now: Timestamp, pause: Duration) -> Timestamp {
    now.checked_add(pause).unwrap_or(Timestamp::MAX)
}

/// Time from one to the other; none if the other is not later.
fn between(one: Timestamp, other: Timestamp) -> Duration {
    Duration::try_from(other.duration_since(one)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
