//! Which new pods an API server has to show us for the sake of SidecarSets, budgets, PersistentPodStates,
//! PodProbeMarkers and WorkloadSpreads: one match condition, in CEL.
//!
//! It holds for every pod that a set may be injected into, that a budget may cover, that may have a record, probes
//! or a subset, and for no other that labels and the name of the namespace tell apart. Labels of namespaces cannot
//! be said in it: pods that only those keep out come, and leave as they were.
//!
//! What gets too long is said wider, never wrong: by the keys of labels alone, and at last for all pods. Who uses
//! up the room pays for it: the namespace whose objects take most of it is widened first, and never beyond itself.
//! So no tenant makes the pods of others depend on a manager. All pods come only if that is not enough, which takes
//! thousands of namespaces, or SidecarSets, which are in no namespace.
//!
//! No text of a set gets into the expression but what can be a label, which needs no escaping: no stored pod has
//! anything else, so a requirement of anything else is decided already.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use kruise_api::{
    meta::LabelSelector, names::podprobemarker::POD_MARKERS, persistentpodstate::PersistentPodState,
    podprobemarker::PodProbeMarker, podunavailablebudget::PodUnavailableBudget,
    workloadspread::WorkloadSpread,
};
use kruise_plan_kit::sidecars::{Matcher, names::NAMESPACE_NAME};
use kruise_plan_kit::spread::is_known;

use super::set::{Set, Sets};
use crate::namespaces::{IN_NAMESPACE, names_in, test_of};

/// Longest expression, in bytes. A server takes 100,000 characters, and has more to store in the same object.
pub const LENGTH: usize = 32 * 1024;

/// The condition of all pods.
const EVERY: &str = "true";
/// The condition of pods with an owner.
const OWNED: &str = "has(object.metadata.ownerReferences)";
/// The condition of pods with annotations.
const ANNOTATED: &str = "has(object.metadata.annotations)";
/// Between alternatives.
const OR: &str = " || ";
/// What is said about the labels of a pod, `l`, is between this and [`TAIL`].
const HEAD: &str = "[has(object.metadata.labels) ? object.metadata.labels : {}].exists(l, ";
const TAIL: &str = ")";

/// Which pods one set or budget is for, as conditions in CEL.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reach {
    /// The namespace of the object, as a literal; `None` if it is in none.
    namespace: Option<String>,
    /// Holds of the pods that the set matches, as far as labels and the name of the namespace tell.
    exact: String,
    /// Holds of them, and of others that have one of the labels with another value.
    by_key: String,
}

/// How wide it is said what a reach is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Width {
    Exact,
    ByKey,
    /// All pods of the namespace; all pods, for an object that is in none.
    Whole,
}

impl Width {
    fn next(self) -> Option<Self> {
        match self {
            Self::Exact => Some(Self::ByKey),
            Self::ByKey => Some(Self::Whole),
            Self::Whole => None,
        }
    }
}

/// Holds of pods one of whose owners, `o`, passes a test.
fn owned_by(test: &str) -> String {
    format!("{OWNED} && object.metadata.ownerReferences.exists(o, {test})")
}

/// Holds of the pods of a namespace that a selector matches.
fn in_namespace(pods: &LabelSelector, namespace: &str) -> Option<String> {
    let name = (NAMESPACE_NAME.to_owned(), namespace.to_owned());
    let namespace = LabelSelector {
        match_labels: [name].into(),
        ..LabelSelector::default()
    };
    alternative(&Matcher {
        pods: pods.clone(),
        namespaces: Some(namespace),
    })
}

impl Reach {
    /// Of a set; `None` if it injects into no new pod.
    pub fn of(set: &Set) -> Option<Self> {
        if set.paused || set.matcher.pods.is_empty() {
            return None;
        }
        Some(Self {
            namespace: None,
            exact: alternative(&set.matcher)?,
            by_key: by_key(&set.matcher.pods),
        })
    }

    /// Of a budget: of the pods that it may cover. Which workload a pod belongs to does not say the pod alone, but
    /// one that a workload owns says that it has an owner.
    pub fn of_budget(budget: &PodUnavailableBudget) -> Option<Self> {
        let namespace = &budget.metadata.namespace;
        if budget.spec.target_ref.is_some() {
            return Self::in_namespace(namespace, OWNED, OWNED);
        }
        let selector = budget.spec.selector.as_ref().filter(|one| !one.is_empty())?;
        Self::selected(selector, namespace)
    }

    /// Of a PodProbeMarker: of the pods that its selector matches, and of those of its namespace that name their
    /// markers.
    pub fn of_probe_marker(marker: &PodProbeMarker) -> Vec<Self> {
        let namespace = &marker.metadata.namespace;
        let selector = Some(&marker.spec.selector).filter(|one| !one.is_empty());
        let selected = selector.and_then(|selector| Self::selected(selector, namespace));
        let named = format!("{ANNOTATED} && '{POD_MARKERS}' in object.metadata.annotations");
        let named = Self::in_namespace(namespace, &named, &named);
        selected.into_iter().chain(named).collect()
    }

    /// Of a PersistentPodState: of pods that its target controls. `None` if there can be none.
    pub fn of_pod_state(state: &PersistentPodState) -> Option<Self> {
        let target = &state.spec.target_ref;
        let (kind, name) = (quote(&target.kind)?, quote(&target.name)?);
        let exact = owned_by(&format!("o.kind == {kind} && o.name == {name}"));
        Self::in_namespace(&state.metadata.namespace, &exact, OWNED)
    }

    /// Of a WorkloadSpread: of pods that its target controls. What a ReplicaSet or a workload of a kind that
    /// administrators list belongs to does not say the pod alone. `None` if there can be none.
    pub fn of_spread(spread: &WorkloadSpread) -> Option<Self> {
        let target = spread.spec.target_ref.as_ref()?;
        let (kind, name) = (quote(&target.kind)?, quote(&target.name)?);
        let exact = match (target.group(), target.kind.as_str()) {
            ("apps", "Deployment") => owned_by("o.kind == 'ReplicaSet'"),
            (group, of) if is_known(group, of, &[]) => {
                owned_by(&format!("o.kind == {kind} && o.name == {name}"))
            }
            _ => OWNED.to_owned(),
        };
        Self::in_namespace(&spread.metadata.namespace, &exact, OWNED)
    }

    /// Of an object in a namespace: of the pods there of which these hold.
    fn in_namespace(namespace: &str, exact: &str, by_key: &str) -> Option<Self> {
        let namespace = quote(namespace)?;
        let of = |test: &str| format!("{IN_NAMESPACE}{namespace} && {test}");
        Some(Self {
            exact: of(exact),
            by_key: of(by_key),
            namespace: Some(namespace),
        })
    }

    /// Of an object in a namespace that selects pods there.
    fn selected(pods: &LabelSelector, namespace: &str) -> Option<Self> {
        let by_key = by_key(pods);
        let by_key = if by_key == EVERY {
            format!("{IN_NAMESPACE}{}", quote(namespace)?)
        } else {
            format!("{IN_NAMESPACE}{} && {by_key}", quote(namespace)?)
        };
        Some(Self {
            exact: in_namespace(pods, namespace)?,
            by_key,
            namespace: Some(quote(namespace)?),
        })
    }

    /// Of all sets.
    pub fn of_all(sets: &Sets) -> BTreeSet<Self> {
        sets.iter().filter_map(|set| Self::of(set)).collect()
    }

    /// As wide as this; names of namespaces whose pods all count are in `whole` instead.
    fn say<'r>(&'r self, width: Width, whole: &mut BTreeSet<&'r str>) -> Option<&'r str> {
        match (width, &self.namespace) {
            (Width::Exact, _) => Some(&self.exact),
            (Width::ByKey, _) => Some(&self.by_key),
            (Width::Whole, None) => Some(EVERY),
            (Width::Whole, Some(namespace)) => {
                whole.insert(namespace);
                None
            }
        }
    }

    /// Does a condition hold of all its pods? Certain if true: a condition that is written in another way than here is
    /// taken not to.
    pub(crate) fn is_within(&self, condition: &str) -> bool {
        // Beside the one in `HEAD`, such an operator would bind weaker than those that are looked for.
        let is_plain = !condition.replace(HEAD, "").contains('?');
        is_plain && self.is_within_plain(condition)
    }

    /// Is it of a namespace that is one of several in this test?
    fn is_in_one_of(&self, test: &str) -> bool {
        let is_own = |name: &&str| self.namespace.as_deref() == Some(*name);
        names_in(test).is_some_and(|names| names.iter().any(is_own))
    }

    fn is_within_plain(&self, condition: &str) -> bool {
        let wanted: BTreeSet<&str> = split(&self.exact, " && ").into_iter().collect();
        let is_wanted = |part: &&str| wanted.contains(part) || self.is_in_one_of(part);
        let covers =
            |alternative: &str| alternative == EVERY || split(alternative, " && ").iter().all(is_wanted);
        split(condition, " || ").into_iter().map(bare).any(|one| {
            let of_labels = one.strip_prefix(HEAD).and_then(|rest| rest.strip_suffix(TAIL));
            match of_labels {
                Some(alternatives) => split(alternatives, " || ").into_iter().any(covers),
                None if one.len() < condition.len() => self.is_within_plain(one),
                None => one == EVERY,
            }
        })
    }
}

/// The condition of all pods that one of these is for; `None` if there is none.
pub fn condition(reaches: &BTreeSet<Reach>) -> Option<String> {
    if reaches.is_empty() {
        return None;
    }
    let groups = groups(reaches);
    let mut widths: Vec<Width> = vec![Width::Exact; groups.len()];
    // Lengths are estimated, so the text is made only when it may be short enough.
    let mut lengths: Vec<usize> = groups.iter().map(|group| length(group, Width::Exact)).collect();
    loop {
        if lengths.iter().sum::<usize>() <= LENGTH {
            let texts = texts(&groups, &widths);
            if texts.len() <= LENGTH {
                return Some(texts);
            }
        }
        let wider = groups.iter().zip(&widths).zip(&lengths).enumerate();
        let wider = wider.filter_map(|(index, ((group, width), length))| {
            let next = width.next()?;
            let is_for_all = next == Width::Whole && group.iter().any(|reach| reach.namespace.is_none());
            Some((Reverse(is_for_all), *length, index, next))
        });
        let Some((_, _, index, next)) = wider.max_by_key(|(for_all, length, ..)| (*for_all, *length)) else {
            return Some(EVERY.to_owned());
        };
        if let (Some(width), Some(estimate), Some(group)) =
            (widths.get_mut(index), lengths.get_mut(index), groups.get(index))
        {
            *width = next;
            *estimate = length(group, next);
        }
    }
}

/// Reaches that are widened together: of one namespace, or of sets that have the same key.
fn groups(reaches: &BTreeSet<Reach>) -> Vec<Vec<&Reach>> {
    let mut groups: BTreeMap<(&Option<String>, &str), Vec<&Reach>> = BTreeMap::new();
    for reach in reaches {
        let key = if reach.namespace.is_some() {
            ""
        } else {
            &reach.by_key
        };
        groups.entry((&reach.namespace, key)).or_default().push(reach);
    }
    groups.into_values().collect()
}

/// About how long the alternatives of a group are.
fn length(group: &[&Reach], width: Width) -> usize {
    let mut whole = BTreeSet::new();
    let said: BTreeSet<&str> = group
        .iter()
        .filter_map(|reach| reach.say(width, &mut whole))
        .collect();
    let lengths = said.iter().chain(&whole).map(|text| text.len() + OR.len());
    lengths.sum()
}

/// One of the alternatives of these groups holds.
fn texts(groups: &[Vec<&Reach>], widths: &[Width]) -> String {
    let mut whole = BTreeSet::new();
    let mut said: BTreeSet<&str> = BTreeSet::new();
    for (group, width) in groups.iter().zip(widths) {
        said.extend(group.iter().filter_map(|reach| reach.say(*width, &mut whole)));
    }
    let whole: Vec<&str> = whole.into_iter().collect();
    let whole = test_of(&whole);
    said.extend(whole.as_deref());
    expression(&said)
}

/// Conditions of all pods that one of these is for, from the narrowest to the widest: none leaves the namespace of
/// its object.
pub(crate) fn expressions(reaches: &BTreeSet<Reach>) -> Vec<String> {
    let groups = groups(reaches);
    let widths = [Width::Exact, Width::ByKey, Width::Whole];
    widths
        .map(|width| texts(&groups, &vec![width; groups.len()]))
        .into()
}

/// One of these holds of the pod's labels, `l`.
fn expression<T: AsRef<str> + Ord>(alternatives: &BTreeSet<T>) -> String {
    let alternatives: Vec<&str> = alternatives.iter().map(AsRef::as_ref).collect();
    if alternatives.contains(&EVERY) {
        return EVERY.to_owned();
    }
    format!("{HEAD}{}{TAIL}", alternatives.join(OR))
}

/// Splits where no parenthesis is open.
fn split<'t>(text: &'t str, separator: &str) -> Vec<&'t str> {
    let mut parts: Vec<&str> = Vec::new();
    let (mut rest, mut scanned, mut open) = (text, 0, 0);
    while let Some(at) = rest.get(scanned..).and_then(|tail| tail.find(separator)) {
        let at = scanned + at;
        open += depth(rest.get(scanned..at).unwrap_or_default());
        scanned = at + separator.len();
        if open == 0 {
            parts.extend(rest.get(..at));
            rest = rest.get(scanned..).unwrap_or_default();
            scanned = 0;
        }
    }
    parts.push(rest);
    parts
}

/// How many parentheses are opened and not closed.
fn depth(text: &str) -> i32 {
    let one = |byte: u8| i32::from(byte == b'(') - i32::from(byte == b')');
    text.bytes().map(one).sum()
}

/// Without parentheses around all of it.
fn bare(text: &str) -> &str {
    let inner = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let is_closed_before = |inner: &str| {
        let mut open = 0;
        let mut bytes = inner.bytes();
        bytes.any(|byte| {
            open += i32::from(byte == b'(') - i32::from(byte == b')');
            open < 0
        })
    };
    inner.filter(|inner| !is_closed_before(inner)).map_or(text, bare)
}

/// What holds of the pods that a set matches; `None` if there can be none.
fn alternative(matcher: &Matcher) -> Option<String> {
    let mut parts = BTreeSet::new();
    for (key, test) in tests(&matcher.pods) {
        let quoted = quote(key);
        // What is no label is on no pod.
        let has = |test: String| quoted.as_ref().map(|key| test.replace("KEY", key));
        match test {
            Test::Present => parts.insert(has("KEY in l".to_owned())?),
            Test::OneOf(values) => {
                let test = format!("KEY in l && {}", one_of("l[KEY]", &values)?);
                parts.insert(has(test)?)
            }
            Test::Absent => has("!(KEY in l)".to_owned()).is_none_or(|part| parts.insert(part)),
            Test::NoneOf(values) => one_of("l[KEY]", &values)
                .and_then(|values| has(format!("!(KEY in l && {values})")))
                .is_none_or(|part| parts.insert(part)),
            Test::Never => return None,
        };
    }
    let namespaces = matcher.namespaces.iter().flat_map(tests);
    for (_, test) in namespaces.filter(|(key, _)| *key == NAMESPACE_NAME) {
        match test {
            Test::Present => {}
            Test::OneOf(values) => {
                parts.insert(one_of("request.namespace", &values)?);
            }
            Test::NoneOf(values) => {
                if let Some(values) = one_of("request.namespace", &values) {
                    parts.insert(format!("!({values})"));
                }
            }
            Test::Absent | Test::Never => return None,
        }
    }
    if parts.is_empty() {
        return Some(EVERY.to_owned());
    }
    Some(parts.into_iter().collect::<Vec<_>>().join(" && "))
}

/// What holds of the pods that a selector matches, and of others that have one of its labels with another value.
fn by_key(selector: &LabelSelector) -> String {
    let needed = tests(selector)
        .filter(|(_, test)| matches!(test, Test::Present | Test::OneOf(_)))
        .filter_map(|(key, _)| quote(key));
    needed
        .min()
        .map_or_else(|| EVERY.to_owned(), |key| format!("{key} in l"))
}

/// A requirement of the value of a label.
enum Test<'a> {
    Present,
    Absent,
    OneOf(Vec<&'a str>),
    NoneOf(Vec<&'a str>),
    /// An operator that nothing satisfies.
    Never,
}

fn tests(selector: &LabelSelector) -> impl Iterator<Item = (&str, Test<'_>)> {
    let equal = selector
        .match_labels
        .iter()
        .map(|(key, value)| (key.as_str(), Test::OneOf(vec![value])));
    let others = selector.match_expressions.iter().map(|requirement| {
        let values = || requirement.values.iter().map(String::as_str).collect();
        let test = match requirement.operator.as_str() {
            "In" => Test::OneOf(values()),
            "NotIn" => Test::NoneOf(values()),
            "Exists" => Test::Present,
            "DoesNotExist" => Test::Absent,
            _ => Test::Never,
        };
        (requirement.key.as_str(), test)
    });
    equal.chain(others)
}

/// The value is one of these; `None` if none of them can be a label.
fn one_of(value: &str, among: &[&str]) -> Option<String> {
    let quoted: BTreeSet<String> = among.iter().filter_map(|one| quote(one)).collect();
    let quoted: Vec<String> = quoted.into_iter().collect();
    match quoted.as_slice() {
        [] => None,
        [one] => Some(format!("{value} == {one}")),
        many => Some(format!("{value} in [{}]", many.join(", "))),
    }
}

/// A literal of what can be a label or its value.
fn quote(text: &str) -> Option<String> {
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte));
    plain.then(|| format!("'{text}'"))
}

#[cfg(test)]
mod tests;
