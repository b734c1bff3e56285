//! A StatefulSet's specification as its documentation explains it.

use super::super::start::Start;
use crate::rules::belief;
use crate::rules::prelude::*;
use crate::rules::template::same_template;

/// Feature gates that change what a specification means.
#[derive(Clone, Copy, Debug)]
pub struct Gates {
    /// `ordinals.start` counts.
    first: bool,
    /// Claims may grow.
    resizes: bool,
}

impl Gates {
    /// Those of a play.
    pub fn of(start: &Start) -> Self {
        Self {
            first: start.first.is_some(),
            resizes: start.resizes(),
        }
    }
}

/// What a version of a StatefulSet demands.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec<'a> {
    /// Wanted pods.
    pub replicas: i64,
    /// Their ordinals, ascending.
    pub slots: Vec<i64>,
    /// One pod after the other?
    pub ordered: bool,
    /// Pods that stay on old revisions.
    pub partition: i64,
    /// Pods that may be unavailable while they are updated.
    pub max_unavailable: i64,
    /// Pods that may be unavailable while some are created.
    pub budget: Option<i64>,
    /// Seconds until a ready pod counts.
    pub min_ready_seconds: i64,
    /// No updates?
    pub paused: bool,
    /// Updates only where somebody deletes a pod?
    pub on_delete: bool,
    /// `podUpdatePolicy`.
    pub policy: &'a str,
    /// Are pods updated in another order than that of ordinals?
    pub unordered: bool,
    /// Are claims deleted when their pods are scaled away?
    pub deletes_scaled: bool,
    /// Are claims deleted with the StatefulSet?
    pub deletes_all: bool,
    /// Do claims grow with their pods' updates?
    pub resizes: bool,
    /// The pod template.
    pub template: &'a Value,
    /// Claim templates.
    pub claims: &'a [Value],
    /// `status.currentRevision`.
    pub current: &'a str,
}

impl<'a> Spec<'a> {
    /// Reads a StatefulSet.
    pub fn of(set: &'a Object, gates: Gates) -> Self {
        let spec = set.spec();
        let rolling = &spec["updateStrategy"]["rollingUpdate"];
        let replicas = spec["replicas"].as_i64().unwrap_or(1);
        let start = spec["ordinals"]["start"].as_i64().filter(|_| gates.first);
        let reserved: Vec<(i64, i64)> = list(&spec["reserveOrdinals"]).iter().filter_map(range).collect();
        let retention = &spec["persistentVolumeClaimRetentionPolicy"];
        let budget = &spec["scaleStrategy"]["maxUnavailable"];
        let grows = spec["volumeClaimUpdateStrategy"]["type"] == "OnPodRollingUpdate";
        Self {
            replicas,
            slots: slots(start.unwrap_or(0), replicas, &reserved),
            ordered: spec["podManagementPolicy"] != "Parallel",
            partition: number(&rolling["partition"]).min(replicas),
            max_unavailable: limit(&rolling["maxUnavailable"], replicas),
            budget: (!budget.is_null()).then(|| limit(budget, replicas)),
            min_ready_seconds: number(&rolling["minReadySeconds"]),
            paused: rolling["paused"] == true,
            on_delete: spec["updateStrategy"]["type"] == "OnDelete",
            policy: rolling["podUpdatePolicy"].as_str().unwrap_or("ReCreate"),
            unordered: rolling["unorderedUpdate"].is_object(),
            deletes_scaled: retention["whenScaled"] == "Delete",
            deletes_all: retention["whenDeleted"] == "Delete",
            resizes: gates.resizes && grows,
            template: &spec["template"],
            claims: list(&spec["volumeClaimTemplates"]),
            current: text(&set.status()["currentRevision"]),
        }
    }

    /// May pods be updated that nobody deletes?
    pub fn updates(&self) -> bool {
        !self.paused && !self.on_delete
    }

    /// How many wanted pods have lower ordinals than this one, if it is wanted.
    pub fn rank(&self, ordinal: i64) -> Option<i64> {
        let at = self.slots.iter().position(|slot| *slot == ordinal)?;
        Some(at as i64)
    }

    /// Is this revision one of this template?
    pub fn is_revision(&self, revision: &Object) -> bool {
        same_template(&revision.value()["data"]["spec"]["template"], self.template)
    }

    /// Name of the revision of this template, or `""`.
    pub fn update_revision<'m>(&self, mirror: &'m Mirror) -> &'m str {
        let revisions = mirror.of(REVISIONS);
        let gone = revisions.objects.values().filter_map(|versions| versions.last());
        let mut all = revisions.now().chain(gone);
        let found = all.find(|one| self.is_revision(one));
        found.map_or("", |one| &*one.name)
    }

    /// Its numbers.
    pub fn brief(&self) -> String {
        format!(
            "slots {:?} partition {} maxUnavailable {} scale {:?} paused {} onDelete {} {} claims {}",
            self.slots,
            self.partition,
            self.max_unavailable,
            self.budget,
            self.paused,
            self.on_delete,
            self.policy,
            if self.deletes_scaled { "go" } else { "stay" },
        )
    }
}

/// The revision of a name, though it may be gone: nothing is left of a StatefulSet that is deleted.
pub fn revision<'m>(mirror: &'m Mirror, name: &str) -> Option<&'m Object> {
    belief::revision(mirror, |one| *one.name == *name)
}

/// First and last of an entry of `reserveOrdinals`.
fn range(entry: &Value) -> Option<(i64, i64)> {
    if let Some(number) = entry.as_i64() {
        return Some((number, number));
    }
    let (from, to) = entry.as_str()?.split_once('-')?;
    Some((from.parse().ok()?, to.parse().ok()?))
}

/// So many ordinals from the first on, but for those that are reserved.
fn slots(first: i64, replicas: i64, reserved: &[(i64, i64)]) -> Vec<i64> {
    let mut slots = Vec::new();
    let mut next = first;
    while (slots.len() as i64) < replicas {
        let beyond = reserved.iter().find(|(from, to)| (*from..=*to).contains(&next));
        if let Some((_, to)) = beyond {
            next = to + 1;
        } else {
            slots.push(next);
            next += 1;
        }
    }
    slots
}

/// A number, or a percentage of all rounded down; one at least.
fn limit(value: &Value, all: i64) -> i64 {
    rounded_down(value, all, 1).max(1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reserved_ordinals_are_passed_over() {
        let of = |first, replicas, entries: Value| {
            let reserved: Vec<_> = list(&entries).iter().filter_map(range).collect();
            slots(first, replicas, &reserved)
        };
        assert_eq!(of(0, 4, json!([1])), [0, 2, 3, 4]);
        assert_eq!(of(0, 4, json!([1, 3])), [0, 2, 4, 5]);
        assert_eq!(of(0, 3, json!(["2-4", 1])), [0, 5, 6]);
        assert_eq!(of(4, 2, json!([])), [4, 5]);
        assert_eq!(of(0, 1, json!(["0-1999999999"])), [2_000_000_000]);
    }
}
