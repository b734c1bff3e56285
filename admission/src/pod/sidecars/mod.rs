//! Injection of SidecarSets into a new pod.
//!
//! 1. [`select`]: the sets that match, in the order of their names, each with the revision it injects;
//! 2. [`metadata`]: their annotation patches;
//! 3. [`build`]: the containers, volumes and secrets they add to this pod;
//! 4. [`apply`]: all of it put into the pod, with the record of what was injected.
//!
//! [`condition`] keeps pods away that no set is for.
//!
//! Injecting again changes nothing but timestamps. The pod's own containers keep their order and their bytes, unless a
//! sidecar has the name of one of them and takes its place.

mod apply;
mod build;
mod metadata;
mod resources;
mod scope;
mod select;
mod set;
mod share;
mod stored;
#[cfg(test)]
mod tests;

use serde_json::Value;

use self::select::{Choice, choose};
use super::step::{Context, Done, Stop, failed};
use crate::lookup::Lookups;
use crate::{Outcome, Request};

pub use resources::expression;
pub(crate) use scope::expressions;
pub use scope::{LENGTH, Reach, condition};
pub use set::{Revision, Set, Sets};
pub(crate) use share::is_injected;
pub(crate) use stored::noted_sets;

/// Injects every set that matches.
pub(super) fn apply(pod: &mut Value, context: &Context<'_>) -> Result<Done, Stop> {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str);
    let is_ended = matches!(phase, Some("Succeeded" | "Failed"));
    if is_ended
        || pod
            .pointer("/metadata/deletionTimestamp")
            .is_some_and(|time| !time.is_null())
    {
        return Ok(Done::NOTHING);
    }
    let choice = choose(pod, context.request, context.lookups)?;
    let chosen: Vec<_> = choice.iter().filter_map(|(_, why)| why.injected()).collect();
    if chosen.is_empty() {
        return Ok(Done::NOTHING);
    }
    for one in &chosen {
        metadata::patch(pod, &one.spec).map_err(|why| {
            failed(format!(
                "SidecarSet {} cannot patch the pod's annotations: {why}",
                one.name
            ))
        })?;
    }
    let additions = build::additions(pod, &chosen).map_err(failed)?;
    if additions.is_empty() {
        return Ok(Done::CHANGED);
    }
    let warnings = apply::replaced(pod, &additions);
    apply::additions(pod, additions, context.options);
    apply::records(pod, &chosen, context.request.now).map_err(failed)?;
    Ok(Done {
        warnings,
        ..Done::CHANGED
    })
}

/// What becomes of one set when a pod is reviewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetDecision {
    /// Name of the set.
    pub set: String,
    /// It is injected.
    pub injected: bool,
    /// In words.
    pub why: String,
}

/// What becomes of every set, in the order of names, for the pod of this request.
pub fn decisions(request: &Request, lookups: &Lookups) -> Result<Vec<SetDecision>, Outcome> {
    let choice = choose(&request.object, request, lookups).map_err(|stop| match stop {
        Stop::Deny(response) => Outcome::Response(response),
        Stop::Missing(missing) => Outcome::Missing(missing),
    })?;
    let decision = |(set, why): (&str, select::Why<'_>)| SetDecision {
        set: set.to_owned(),
        injected: why.injected().is_some(),
        why: why.to_string(),
    };
    Ok(choice.into_iter().map(decision).collect())
}
