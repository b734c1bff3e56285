//! Which sets are injected into a pod, which revision of each, and why the others are not.

use std::{borrow::Cow, fmt};

use kruise_api::meta::LabelSelector;
use kruise_plan_kit::sidecars::{Hashes, Records, hashes_of, names, restore};
use serde::Deserialize;
use serde_json::Value;

use super::set::{Mismatch, Set};
use super::stored::sets;
use crate::Request;
use crate::json::text;
use crate::lookup::{Lookup, Lookups};
use crate::pod::draft::entry;
use crate::pod::step::{Stop, failed};

/// What is injected of a set that matches.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice<'a> {
    /// Name of the set.
    pub(super) name: &'a str,
    /// The specification: today's, or with the parts of a revision.
    pub(super) spec: Cow<'a, Value>,
    /// Hashes that go with it.
    pub(super) hashes: Hashes,
    /// Name of its revision; empty if not known.
    pub(super) revision: String,
    /// It is an older revision that the set asks for.
    pub(super) historical: bool,
}

/// What becomes of a set, and why.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Why<'a> {
    /// It is injected.
    Injected(Box<Choice<'a>>),
    /// It does not match.
    Mismatch(Mismatch),
    /// This canary of it is injected.
    Canary(&'a str),
}

impl<'a> Why<'a> {
    /// What is injected, if it is.
    pub(super) fn injected(&self) -> Option<&Choice<'a>> {
        match self {
            Self::Injected(choice) => Some(choice),
            _ => None,
        }
    }
}

impl fmt::Display for Why<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Injected(choice) if choice.historical => {
                write!(
                    f,
                    "injected in its revision {}, as injectionStrategy asks",
                    choice.revision
                )
            }
            Self::Injected(_) => f.write_str("injected"),
            Self::Mismatch(mismatch) => write!(f, "not injected: {mismatch}"),
            Self::Canary(canary) => write!(f, "not injected: its canary {canary} is"),
        }
    }
}

/// Every set in the order of names, and what becomes of it.
pub(super) fn choose<'a>(
    pod: &Value,
    request: &Request,
    lookups: &'a Lookups,
) -> Result<Vec<(&'a str, Why<'a>)>, Stop> {
    let namespace = namespace(pod, request);
    let mut missing = Vec::new();
    let mut found: Vec<(&Set, Option<Why<'a>>)> = Vec::new();
    for set in sets(lookups)?.iter() {
        let labels = || lookups.labels(Lookup::NamespaceLabels(namespace.to_owned()));
        match set.mismatch(pod, namespace, labels) {
            Ok(why) => found.push((set, why.map(Why::Mismatch))),
            Err(lookup) => missing.push(lookup),
        }
    }
    let bases: Vec<(&'a str, &'a str)> = found
        .iter()
        .filter(|(_, why)| why.is_none())
        .filter_map(|(set, _)| Some((set.base.as_deref()?, &*set.name)))
        .collect();
    let mut all = Vec::new();
    for (set, why) in found {
        let canary = bases.iter().find(|(base, _)| *base == set.name);
        let why = match (why, canary) {
            (Some(why), _) => why,
            (None, Some((_, canary))) => Why::Canary(canary),
            (None, None) => match revision(set, pod, request, lookups) {
                Ok(choice) => Why::Injected(Box::new(choice)),
                Err(Stop::Missing(more)) => {
                    missing.extend(more);
                    continue;
                }
                Err(stop) => return Err(stop),
            },
        };
        all.push((&*set.name, why));
    }
    missing.dedup();
    if missing.is_empty() {
        Ok(all)
    } else {
        Err(Stop::Missing(missing))
    }
}

/// The namespace the pod will be in.
fn namespace<'a>(pod: &'a Value, request: &'a Request) -> &'a str {
    let own = pod
        .get("metadata")
        .map(|metadata| text(metadata, "namespace"))
        .unwrap_or_default();
    let given = [own, &request.namespace]
        .into_iter()
        .find(|name| !name.is_empty());
    given.unwrap_or("default")
}

/// Today's containers or those of a revision.
fn revision<'a>(set: &'a Set, pod: &Value, request: &Request, lookups: &Lookups) -> Result<Choice<'a>, Stop> {
    let today = || Choice {
        name: &set.name,
        spec: Cow::Borrowed(set.spec()),
        hashes: set.hashes.clone(),
        revision: set.latest_revision.clone(),
        historical: false,
    };
    let Some(wanted) = &set.revision else {
        return Ok(today());
    };
    let Some(stored) = lookups.object(wanted.lookup())? else {
        return Err(failed(format!(
            "SidecarSet {} injects {wanted}, which is not found",
            set.name
        )));
    };
    let data = stored.get("data").unwrap_or(&Value::Null);
    let Some(spec) = restore(set.spec(), data) else {
        return Err(failed(format!(
            "SidecarSet {} injects {wanted}, which is none of a SidecarSet",
            set.name
        )));
    };
    let name = stored
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let historical = wants_historical(set, pod, request, name)
        .map_err(|percent| failed(format!("SidecarSet {} has the partition {percent:?}", set.name)))?;
    if !historical {
        return Ok(today());
    }
    let mut hashes_from = stored.clone();
    if let Some(members) = hashes_from.as_object_mut() {
        members.insert("spec".to_owned(), spec.clone());
    }
    Ok(Choice {
        name: &set.name,
        spec: Cow::Owned(spec),
        hashes: hashes_of(&hashes_from),
        revision: name.to_owned(),
        historical: true,
    })
}

/// Of a set that names a revision: is it this pod's? An error is a partition that is no percentage.
///
/// A pod may pass the webhook more than once, each time as another request. What is left to chance is decided the first
/// time, and then read from the pod's record of the set.
fn wants_historical<'a>(
    set: &'a Set,
    pod: &Value,
    request: &Request,
    revision: &str,
) -> Result<bool, &'a str> {
    let update = set.spec().get("updateStrategy").unwrap_or(&Value::Null);
    let policy = set
        .spec()
        .pointer("/injectionStrategy/revision/policy")
        .and_then(Value::as_str);
    if update.get("paused") == Some(&Value::Bool(true)) || policy != Some("Partial") {
        return Ok(true);
    }
    let selector = update.get("selector").filter(|selector| !selector.is_null());
    let selector = selector.and_then(|selector| LabelSelector::deserialize(selector).ok());
    if selector.is_some_and(|selector| !selector.matches_by(|key| entry(pod, "labels", key))) {
        return Ok(true);
    }
    let Some(partition) = update.get("partition").and_then(Value::as_str) else {
        return Ok(false);
    };
    let percent = partition.strip_suffix('%').and_then(|text| text.parse().ok());
    let percent: f64 = percent
        .filter(|percent: &f64| percent.is_finite())
        .ok_or(partition)?;
    let records = Records::read(entry(pod, "annotations", names::HASH).unwrap_or_default());
    if let Some(record) = records.ok().and_then(|mut records| records.0.remove(&set.name)) {
        return Ok(record.controller_revision == revision);
    }
    Ok(f64::from(chance(&request.uid, &set.name)) < percent * 100.0)
}

/// A number below 10,000 that is as good as random, and the same for the same request.
fn chance(uid: &str, set: &str) -> u32 {
    let bytes = uid.bytes().chain([0]).chain(set.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    u32::try_from((mixed ^ (mixed >> 33)) % 10_000).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::chance;

    #[test]
    fn requests_are_spread_evenly() {
        let below = (0..1000)
            .filter(|n| chance(&format!("b2a6-{n}"), "set") < 7000)
            .count();
        assert!((650..750).contains(&below), "{below}");
    }
}
