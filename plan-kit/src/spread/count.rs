//! The numbers of missing pods, and what changes them.

use go_compat::IntOrString;
use jiff::Timestamp;
use kruise_api::{
    names::conditions::SCHEDULABLE,
    podunavailablebudget::Entries,
    workloadspread::{
        Matched, Subset, SubsetStatus, WorkloadSpread, WorkloadSpreadSpec, WorkloadSpreadStatus,
    },
};
use serde_json::{Map, Value, json};

use super::{CREATING, DELETING, UNLIMITED, index, limit, limits};
use crate::injected::is_injected;

/// A pod that is about to be created.
#[derive(Clone, Copy, Debug)]
pub struct NewPod<'a> {
    /// Its name; empty if the server has yet to make one.
    pub name: &'a str,
    /// What it is recorded as if it has no name. The same for each attempt at the same request.
    pub uid: &'a str,
    /// Its [version](super::version).
    pub version: &'a str,
}

/// A pod that is about to be deleted.
#[derive(Clone, Copy, Debug)]
pub struct GoingPod<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its [version](super::version).
    pub version: &'a str,
    /// When it was created, if that is known.
    pub created: Option<Timestamp>,
}

/// Where a new pod belongs.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// No subset has room for it.
    Nothing,
    /// In this subset, and nothing has to be stored.
    Free(Matched),
    /// In this subset, once this status is stored.
    Counted(Matched, WorkloadSpreadStatus),
}

/// The subsets of a version of which no pods were seen so far.
///
/// # Errors
/// As [`limits`].
pub fn initial(spec: &WorkloadSpreadSpec, replicas: Option<i32>) -> Result<Vec<SubsetStatus>, String> {
    let limits = limits(spec, replicas)?;
    let subsets = spec
        .subsets
        .iter()
        .zip(limits)
        .map(|(subset, limit)| SubsetStatus {
            name: subset.name.clone(),
            missing_replicas: limit.unwrap_or(UNLIMITED),
            ..SubsetStatus::default()
        });
    Ok(subsets.collect())
}

/// Chooses the subset of a new pod, and counts it. The first subset of the status that exists, that pods can be
/// scheduled to and that misses pods takes it. A pod that is recorded already keeps its subset and costs nothing
/// more: its request is made again. An entry of a deletion is of an earlier pod of that name. `replicas` of the
/// target are needed only for a version that is not in the status yet, and for percentages.
///
/// # Errors
/// As [`limits`], for a version that is not in the status yet.
pub fn assign(
    spread: &WorkloadSpread,
    pod: &NewPod<'_>,
    replicas: Option<i32>,
    now: Timestamp,
) -> Result<Choice, String> {
    let (key, uid) = match pod.name {
        "" => (pod.uid, pod.uid),
        name => (name, ""),
    };
    let matched = |subset: &str, uid: &str| Matched {
        name: spread.metadata.name.clone(),
        subset: subset.to_owned(),
        uid: uid.to_owned(),
    };
    let mut subsets = match of_version(&spread.status, pod.version) {
        Some(subsets) => subsets.to_vec(),
        None => initial(&spread.spec, replicas)?,
    };
    let with = |subsets| with_version(&spread.status, pod.version, subsets);
    if let Some(found) = subsets
        .iter_mut()
        .find(|one| one.creating_pods.get(key).is_some())
    {
        let matched = matched(&found.name, uid);
        let since = found.creating_pods.get(key);
        if since.is_some_and(|since| is_current(since, CREATING, now)) {
            return Ok(Choice::Free(matched));
        }
        record(&mut found.creating_pods, key, now);
        return Ok(Choice::Counted(matched, with(subsets)));
    }
    let has_room = |one: &SubsetStatus| {
        let misses = one.missing_replicas > 0 || one.missing_replicas == UNLIMITED;
        misses && is_schedulable(one) && index(spread, &one.name).is_some()
    };
    let place = if is_injected("LastSubsetFirst") {
        subsets.iter().rposition(has_room)
    } else {
        subsets.iter().position(has_room)
    };
    let Some(found) = place else {
        return Ok(Choice::Nothing);
    };
    if let Some(found) = subsets.get(found)
        && found.missing_replicas == UNLIMITED
    {
        return Ok(Choice::Free(matched(&found.name, "")));
    }
    for one in &mut subsets {
        // The pod of that name was counted, and is gone.
        let is_gone = one.deleting_pods.0.remove(key).is_some();
        one.replicas = one.replicas.saturating_sub(i32::from(is_gone)).max(0);
    }
    let Some(found) = subsets.get_mut(found) else {
        return Ok(Choice::Nothing);
    };
    found.missing_replicas -= i32::from(!is_injected("SlotUncounted"));
    record(&mut found.creating_pods, key, now);
    let matched = matched(&found.name, uid);
    Ok(Choice::Counted(matched, with(subsets)))
}

/// Records the deletion of a pod that is in a subset; `None` if nothing has to be stored: the deletion is recorded
/// already, or the subset has no limit or is not in the status. The pod need not be seen any more to know that it
/// was created. A subset that has more pods than its limit misses none when one of them goes. `replicas` of the
/// target are needed only for a limit that is a percentage.
pub fn delete(
    spread: &WorkloadSpread,
    pod: &GoingPod<'_>,
    matched: &Matched,
    replicas: Option<i32>,
    now: Timestamp,
) -> Option<WorkloadSpreadStatus> {
    let mut subsets = of_version(&spread.status, pod.version)?.to_vec();
    let with = |subsets| Some(with_version(&spread.status, pod.version, subsets));
    let is_of_pod = |since: Timestamp| {
        let created = pod.created.map(Timestamp::as_second);
        created.is_none_or(|created| since.as_second() >= created)
    };
    for one in &mut subsets {
        match one.deleting_pods.get(pod.name) {
            Some(since) if is_of_pod(since) && is_current(since, DELETING, now) => return None,
            Some(since) if is_of_pod(since) => {
                record(&mut one.deleting_pods, pod.name, now);
                return with(subsets);
            }
            _ => {}
        }
    }
    let limit = known_limit(&spread.spec, &matched.subset, replicas);
    let found = subsets.iter_mut().find(|one| one.name == matched.subset)?;
    if found.missing_replicas == UNLIMITED {
        return None;
    }
    let is_surplus = limit.is_some_and(|limit| taken(found) > i64::from(limit));
    let mut is_new = false;
    for key in [pod.name, &matched.uid] {
        is_new |= found.creating_pods.0.remove(key).is_some();
    }
    // It has come, and was not counted yet.
    found.replicas = found.replicas.saturating_add(i32::from(is_new));
    let missing = found.missing_replicas.saturating_add(i32::from(!is_surplus));
    found.missing_replicas = limit.map_or(missing, |limit| missing.min(limit));
    record(&mut found.deleting_pods, pod.name, now);
    with(subsets)
}

/// The subset of a pod of a StatefulSet, of which each takes as many ordinals as it may have pods, in the order of
/// the specification. Subsets that pods cannot be scheduled to take none. `None` if no subset takes the pod, or its
/// name has no ordinal.
pub fn by_ordinal<'s>(spread: &'s WorkloadSpread, pod: &str) -> Option<&'s Subset> {
    let ordinal: i64 = pod.rsplit_once('-')?.1.parse().ok()?;
    let limits = limits(&spread.spec, None).ok()?;
    let mut end = 0;
    let subsets = spread.spec.subsets.iter().zip(limits);
    let mut usable = subsets.filter(|(subset, _)| {
        let mut statuses = spread.status.subset_statuses.iter();
        statuses
            .find(|one| one.name == subset.name)
            .is_none_or(is_schedulable)
    });
    let found = usable.find(|(_, limit)| {
        end += i64::from(limit.unwrap_or(i32::MAX));
        ordinal < end
    });
    found.map(|(subset, _)| subset)
}

/// Can pods be scheduled to it, as far as that is known?
pub fn is_schedulable(subset: &SubsetStatus) -> bool {
    let mut conditions = subset.conditions.iter();
    !conditions.any(|condition| condition.kind == SCHEDULABLE && condition.status == "False")
}

/// The merge patch from one status to another; `None` if they are the same. The subsets of a version are one list,
/// which is replaced as a whole; other versions are not named. Versions that are dropped are removed by name.
pub fn status_patch(before: &WorkloadSpreadStatus, after: &WorkloadSpreadStatus) -> Option<Value> {
    let mut members = Map::new();
    if before.observed_generation != after.observed_generation {
        members.insert("observedGeneration".into(), after.observed_generation.into());
    }
    if before.subset_statuses != after.subset_statuses {
        members.insert("subsetStatuses".into(), json!(after.subset_statuses));
    }
    let (old, new) = (
        &before.versioned_subset_statuses,
        &after.versioned_subset_statuses,
    );
    let gone = old.keys().filter(|version| !new.contains_key(*version));
    let mut versions: Map<String, Value> = gone.map(|version| (version.clone(), Value::Null)).collect();
    let changed = new
        .iter()
        .filter(|(version, subsets)| old.get(*version) != Some(*subsets));
    versions.extend(changed.map(|(version, subsets)| (version.clone(), json!(subsets))));
    if !versions.is_empty() {
        members.insert("versionedSubsetStatuses".into(), versions.into());
    }
    (!members.is_empty()).then(|| json!({"status": members}))
}

/// The subsets of a version; `None` if none were stored.
fn of_version<'s>(status: &'s WorkloadSpreadStatus, version: &str) -> Option<&'s [SubsetStatus]> {
    let subsets = status.versioned_subset_statuses.get(version)?;
    Some(subsets.as_slice()).filter(|subsets| !subsets.is_empty())
}

fn with_version(
    status: &WorkloadSpreadStatus,
    version: &str,
    subsets: Vec<SubsetStatus>,
) -> WorkloadSpreadStatus {
    let mut after = status.clone();
    after
        .versioned_subset_statuses
        .insert(version.to_owned(), subsets);
    after
}

/// Times have whole seconds.
fn record(entries: &mut Entries, key: &str, now: Timestamp) {
    let second = Timestamp::from_second(now.as_second()).unwrap_or(now);
    entries.0.insert(key.to_owned(), second);
}

fn is_current(since: Timestamp, life: std::time::Duration, now: Timestamp) -> bool {
    let age = now.as_millisecond().saturating_sub(since.as_millisecond());
    age <= i64::try_from(life.as_millis()).unwrap_or(i64::MAX)
}

/// The limit of a subset; `None` if it has none, or is a percentage of a number that is not known.
fn known_limit(spec: &WorkloadSpreadSpec, subset: &str, replicas: Option<i32>) -> Option<i32> {
    let subset = spec.subsets.iter().find(|one| one.name == subset)?;
    let max = subset.max_replicas.as_ref()?;
    match (max, replicas) {
        (IntOrString::Int(_), _) | (_, Some(_)) => limit(max, replicas).ok(),
        (IntOrString::String(_), None) => None,
    }
}

/// How many pods a subset has, with those that are about to come, and without those that are about to go.
fn taken(subset: &SubsetStatus) -> i64 {
    let number = |entries: &Entries| i64::try_from(entries.len()).unwrap_or(i64::MAX);
    i64::from(subset.replicas) + number(&subset.creating_pods) - number(&subset.deleting_pods)
}
