//! *"The next pod of a name is scheduled to a node with the same labels."* Each new pod is judged by the records
//! that a webhook may have known, whichever replica reviewed it: it has what one of them says, and nothing else.

use super::super::start::STATES;
use super::facts::{LAG, is_for_workload, record};
use super::wanted::Wanted;
use crate::rules::moments;
use crate::rules::prelude::*;
use crate::subjects::statefulset::start::STATEFULSETS;

/// The annotation of a pod that got what is recorded.
const INJECTED: &str = "kruise.io/injected-persistent-pod-state";

/// Where a new pod is to go.
#[derive(Debug, Default, PartialEq)]
struct Places<'a> {
    /// The PersistentPodState that says so.
    of: Option<&'a str>,
    /// `nodeSelector`.
    required: BTreeMap<&'a str, &'a str>,
    /// Preferred node affinity: weights with labels.
    preferred: Vec<(i64, Vec<(&'a str, &'a str)>)>,
}

/// Judges a new pod.
pub fn judge(pod: &Object, mirror: &Mirror) -> Option<Violation> {
    if !mirror.of(STATEFULSETS).objects.contains_key(pod.owner()) {
        return None;
    }
    let from = moments::before(pod.at, LAG);
    // Is there a PersistentPodState that every webhook must know?
    let mut is_known = false;
    let mut allowed = Vec::new();
    for versions in mirror.of(STATES).objects.values() {
        let recent = moments::since(versions, from, pod.version);
        let recent = recent.iter().filter(|state| is_for_workload(state));
        let is_old = versions.first().is_some_and(|first| first.at <= from);
        is_known |= is_old && recent.clone().count() > 0 && recent.clone().all(|state| !state.is_going());
        let lives = recent.filter(|state| !state.is_going());
        allowed.extend(lives.map(|state| Places::recorded(state, &pod.name)));
    }
    if !is_known {
        allowed.push(Places::default());
    }
    let found = Places::of(pod);
    never!(Violation::of, "new pods come back to where the last one of their name was",
        !allowed.contains(&found) => "pod {} has {found:?}, and not one of {allowed:?}", pod.name);
    None
}

impl<'a> Places<'a> {
    /// Those that a pod has. Its template has none.
    fn of(pod: &'a Object) -> Self {
        let spec = pod.spec();
        let affinity = &spec["affinity"]["nodeAffinity"];
        let preferred = items(&affinity["preferredDuringSchedulingIgnoredDuringExecution"]);
        let preferred = preferred.map(|one| {
            let expressions = items(&one["preference"]["matchExpressions"]);
            let labels = expressions.map(|one| (text(&one["key"]), text(&one["values"][0])));
            (number(&one["weight"]), labels.collect())
        });
        Self {
            of: pod.annotations()[INJECTED].as_str(),
            required: pairs(&spec["nodeSelector"])
                .map(|(key, value)| (key, text(value)))
                .collect(),
            preferred: preferred.collect(),
        }
    }

    /// Those that a PersistentPodState says of a pod.
    fn recorded(state: &'a Object, pod: &str) -> Self {
        let labels = &record(state, pod)["nodeTopologyLabels"];
        let label = |key: &&'a str| Some((*key, labels[*key].as_str()?));
        let wanted = Wanted::of(state);
        let required: BTreeMap<_, _> = wanted.required.iter().filter_map(label).collect();
        let preferred = wanted.preferred.iter().map(|(weight, keys)| {
            let labels: Vec<_> = keys.iter().filter_map(label).collect();
            (*weight, labels)
        });
        let preferred: Vec<_> = preferred.filter(|(_, labels)| !labels.is_empty()).collect();
        let says_something = !required.is_empty() || !preferred.is_empty();
        Self {
            of: says_something.then_some(&*state.name),
            required,
            preferred,
        }
    }
}
