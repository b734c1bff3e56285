//! The order in which containers start.
//!
//! A pod asks for it by an annotation (as they are listed) or by a variable with a number on its containers. Each
//! container then gets a variable whose value is a key of the pod's barrier, a ConfigMap that the controller fills: a
//! kubelet does not start a container whose key is not there.
//!
//! # What it promises
//! - All containers of the final list take part, injected ones too; init containers do not.
//! - Asked again it answers the same. A barrier that its author wrote, or that a manifest of a running pod brought
//!   along, is replaced: one with a key that nobody opens would hold its container for ever.
//! - A number that cannot be read is refused, and so is a name that leaves no room for that of the barrier: such a pod
//!   would never start.

use kruise_api::names::{LAUNCH_BARRIER_VARIABLE, LAUNCH_PRIORITY, LAUNCH_PRIORITY_VARIABLE};
use serde_json::{Value, json};

use super::draft::{entry, list};
use super::step::{Context, Done, Stop, failed};
use crate::json::{items, text};

#[cfg(test)]
mod tests;

/// Longest name of an object.
const LONGEST_NAME: usize = 253;
/// Longest prefix of a name that we generate, and how many letters come after it.
const PREFIX: usize = 58;
const SUFFIX: usize = 5;

/// Holds the containers back, if the pod asks for an order.
pub(super) fn apply(pod: &mut Value, context: &Context<'_>) -> Result<Done, Stop> {
    let Some(numbers) = numbers(pod)? else {
        return Ok(Done::NOTHING);
    };
    let Some(name) = named(pod, &context.request.uid) else {
        // Without a name or a prefix of one it is no pod, as the server will say.
        return Ok(Done::NOTHING);
    };
    let barrier = format!("{name}-barrier");
    if barrier.len() > LONGEST_NAME {
        return Err(failed(format!(
            "the containers of pod {name} cannot start in order: the name of its barrier would be longer than \
             {LONGEST_NAME} characters"
        )));
    }
    let containers = pod.pointer_mut("/spec/containers").and_then(Value::as_array_mut);
    for (container, number) in containers.into_iter().flatten().zip(numbers) {
        hold(container, &barrier, number);
    }
    Ok(Done::CHANGED)
}

/// The number of each container; `None` if there is nothing to be ordered.
fn numbers(pod: &Value) -> Result<Option<Vec<i64>>, Stop> {
    let containers = pod.get("spec").map(|spec| items(spec, "containers"));
    let containers = containers.unwrap_or_default();
    if containers.len() < 2 {
        return Ok(None);
    }
    if entry(pod, "annotations", LAUNCH_PRIORITY) == Some("Ordered") {
        return Ok(Some(
            (0..).map(|place: i64| -place).take(containers.len()).collect(),
        ));
    }
    let numbers: Vec<i64> = containers.iter().map(number).collect::<Result<_, _>>()?;
    let is_order = numbers.iter().any(|number| Some(number) != numbers.first());
    Ok(is_order.then_some(numbers))
}

/// The number that a container was given; the last one counts.
fn number(container: &Value) -> Result<i64, Stop> {
    let given = items(container, "env")
        .iter()
        .rev()
        .find(|variable| text(variable, "name") == LAUNCH_PRIORITY_VARIABLE);
    let Some(given) = given else { return Ok(0) };
    let value = text(given, "value");
    value.parse().map_err(|_| {
        failed(format!(
            "variable {LAUNCH_PRIORITY_VARIABLE} of container {:?} must be an integer, not {value:?}",
            text(container, "name")
        ))
    })
}

/// The pod's name, drawn now if the server would draw it later.
fn named(pod: &mut Value, chance: &str) -> Option<String> {
    let metadata = pod.get("metadata")?;
    let name = text(metadata, "name");
    if !name.is_empty() {
        return Some(name.to_owned());
    }
    let prefix: String = text(metadata, "generateName").chars().take(PREFIX).collect();
    if prefix.is_empty() {
        return None;
    }
    let name = prefix + &letters(chance);
    let metadata = pod.get_mut("metadata")?.as_object_mut()?;
    metadata.insert("name".into(), name.as_str().into());
    Some(name)
}

/// Letters of generated names, from the uid of the request: another attempt draws others.
fn letters(chance: &str) -> String {
    let alphabet = go_compat::hash::SAFE_ALPHABET;
    // FNV-1a of 64 bits, whose high bits are the better mixed ones.
    let mut left = chance.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    }) >> 16;
    let mut letters = String::new();
    for _ in 0..SUFFIX {
        let size = alphabet.len() as u64;
        let letter = usize::try_from(left % size).ok().and_then(|at| alphabet.get(at));
        letters.extend(letter.map(|letter| char::from(*letter)));
        left /= size;
    }
    letters
}

/// Makes a container wait for its key.
fn hold(container: &mut Value, barrier: &str, number: i64) {
    let wanted = json!({
        "name": LAUNCH_BARRIER_VARIABLE,
        "valueFrom": {"configMapKeyRef": {"name": barrier, "key": format!("p_{number}")}},
    });
    let is_barrier = |variable: &Value| text(variable, "name") == LAUNCH_BARRIER_VARIABLE;
    let mut present = items(container, "env")
        .iter()
        .filter(|variable| is_barrier(variable));
    if present.next() == Some(&wanted) && present.next().is_none() {
        return;
    }
    if let Some(env) = list(container, "env") {
        env.retain(|variable| !is_barrier(variable));
        env.push(wanted);
    }
}
