//! Which new pods an API server has to show us for the sake of SidecarSets, budgets, PersistentPodStates, PodProbeMarkers and
//! WorkloadSpreads: one match condition, in CEL.
//!
//! It holds for every pod that a set may be injected into, that a budget may cover, that may have a record, probes or a subset,
//! and for no other that labels and the name of the namespace tell apart. Labels of namespaces cannot be said in it: pods that only those keep out come, and leave as they were.
//! What gets too long is said wider, never wrong: by the keys of labels alone, and at last for all pods.
//!
//! No text of a set gets into the expression but what can be a label, which needs no escaping: no stored pod has
//! anything else, so a requirement of anything else is decided already.

use std::collections::BTreeSet;

use kruise_api::{
    meta::LabelSelector, names::podprobemarker::POD_MARKERS, persistentpodstate::PersistentPodState,
    podprobemarker::PodProbeMarker, podunavailablebudget::PodUnavailableBudget,
    workloadspread::WorkloadSpread,
};
use kruise_plan_kit::sidecars::{Matcher, names::NAMESPACE_NAME};
use kruise_plan_kit::spread::is_known;

use super::set::{Set, Sets};

/// Longest expression, in bytes. A server takes 100,000 characters, and has more to store in the same object.
pub const LENGTH: usize = 32 * 1024;

/// The condition of all pods.
const EVERY: &str = "true";
/// The condition of pods with an owner.
const OWNED: &str = "has(object.metadata.ownerReferences)";
/// What is said about the labels of a pod, `l`, is between this and [`TAIL`].
const HEAD: &str = "[has(object.metadata.labels) ? object.metadata.labels : {}].exists(l, ";
const TAIL: &str = ")";

/// Which pods one set or budget is for, as conditions in CEL.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reach {
    /// Holds of the pods that the set matches, as far as labels and the name of the namespace tell.
    exact: String,
    /// Holds of them, and of others that have one of the labels with another value.
    by_key: String,
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
            exact: alternative(&set.matcher)?,
            by_key: by_key(&set.matcher.pods),
        })
    }

    /// Of a budget: of the pods that it may cover. Which workload a pod belongs to does not say the pod alone, but one that a
    /// workload owns says that it has an owner.
    pub fn of_budget(budget: &PodUnavailableBudget) -> Option<Self> {
        let in_namespace = |pods: &LabelSelector| in_namespace(pods, &budget.metadata.namespace);
        if budget.spec.target_ref.is_some() {
            let exact = format!("{} && {OWNED}", in_namespace(&LabelSelector::default())?);
            let by_key = exact.clone();
            return Some(Self { exact, by_key });
        }
        let selector = budget.spec.selector.as_ref().filter(|one| !one.is_empty())?;
        Some(Self {
            exact: in_namespace(selector)?,
            by_key: by_key(selector),
        })
    }

    /// Of a PodProbeMarker: of the pods that its selector matches, and of those of its namespace that name their markers.
    pub fn of_probe_marker(marker: &PodProbeMarker) -> Vec<Self> {
        let namespace = &marker.metadata.namespace;
        let selector = Some(&marker.spec.selector).filter(|one| !one.is_empty());
        let selected = selector.and_then(|selector| {
            Some(Self {
                exact: in_namespace(selector, namespace)?,
                by_key: by_key(selector),
            })
        });
        let named = quote(namespace).map(|namespace| {
            let exact = format!(
                "request.namespace == {namespace} && has(object.metadata.annotations) && '{POD_MARKERS}' in object.metadata.annotations"
            );
            let by_key = exact.clone();
            Self { exact, by_key }
        });
        selected.into_iter().chain(named).collect()
    }

    /// Of a PersistentPodState: of pods that its target controls. `None` if there can be none.
    pub fn of_pod_state(state: &PersistentPodState) -> Option<Self> {
        let target = &state.spec.target_ref;
        let (kind, name) = (quote(&target.kind)?, quote(&target.name)?);
        let namespace = format!("request.namespace == {}", quote(&state.metadata.namespace)?);
        Some(Self {
            exact: format!(
                "{namespace} && {OWNED} && object.metadata.ownerReferences.exists(o, o.kind == {kind} && o.name == {name})"
            ),
            by_key: format!("{namespace} && {OWNED}"),
        })
    }

    /// Of a WorkloadSpread: of pods that its target controls. What a ReplicaSet or a workload of a kind that administrators list
    /// belongs to does not say the pod alone. `None` if there can be none.
    pub fn of_spread(spread: &WorkloadSpread) -> Option<Self> {
        let target = spread.spec.target_ref.as_ref()?;
        let (kind, name) = (quote(&target.kind)?, quote(&target.name)?);
        let namespace = format!("request.namespace == {}", quote(&spread.metadata.namespace)?);
        let owned = format!("{namespace} && {OWNED}");
        let by = |test: &str| format!("{owned} && object.metadata.ownerReferences.exists(o, {test})");
        let exact = match (target.group(), target.kind.as_str()) {
            ("apps", "Deployment") => by("o.kind == 'ReplicaSet'"),
            (group, of) if is_known(group, of, &[]) => by(&format!("o.kind == {kind} && o.name == {name}")),
            _ => owned.clone(),
        };
        Some(Self { exact, by_key: owned })
    }

    /// Of all sets.
    pub fn of_all(sets: &Sets) -> BTreeSet<Self> {
        sets.iter().filter_map(|set| Self::of(set)).collect()
    }

    fn exact(&self) -> &str {
        &self.exact
    }

    fn by_key(&self) -> &str {
        &self.by_key
    }

    /// Does a condition hold of all its pods? Certain if true: a condition that is written in another way than here is
    /// taken not to.
    pub(crate) fn is_within(&self, condition: &str) -> bool {
        // Beside the one in `HEAD`, such an operator would bind weaker than those that are looked for.
        let is_plain = !condition.replace(HEAD, "").contains('?');
        is_plain && self.is_within_plain(condition)
    }

    fn is_within_plain(&self, condition: &str) -> bool {
        let wanted: BTreeSet<&str> = split(&self.exact, " && ").into_iter().collect();
        let covers = |alternative: &str| {
            let parts = split(alternative, " && ");
            alternative == EVERY || parts.iter().all(|part| wanted.contains(part))
        };
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
    let found = whole(reaches, Reach::exact).or_else(|| whole(reaches, Reach::by_key));
    Some(found.unwrap_or_else(|| EVERY.to_owned()))
}

/// The condition of all pods that one of these is for, and a wider one.
pub(crate) fn expressions(reaches: &BTreeSet<Reach>) -> [String; 2] {
    let of = [Reach::exact, Reach::by_key];
    of.map(|of| whole(reaches, of).unwrap_or_else(|| EVERY.to_owned()))
}

/// One of these holds; `None` if that is too long to say.
fn whole(reaches: &BTreeSet<Reach>, of: fn(&Reach) -> &str) -> Option<String> {
    let whole = expression(&reaches.iter().map(of).collect());
    (whole.len() <= LENGTH).then_some(whole)
}

/// One of these holds of the pod's labels, `l`.
fn expression<T: AsRef<str> + Ord>(alternatives: &BTreeSet<T>) -> String {
    let alternatives: Vec<&str> = alternatives.iter().map(AsRef::as_ref).collect();
    if alternatives.contains(&EVERY) {
        return EVERY.to_owned();
    }
    format!("{HEAD}{}{TAIL}", alternatives.join(" || "))
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
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(specs: &[Value]) -> Option<String> {
        let sets = specs
            .iter()
            .enumerate()
            .map(|(index, spec)| json!({"metadata": {"name": format!("s{index}")}, "spec": spec}));
        condition(&Reach::of_all(&Sets::of(sets)))
    }

    fn whole(inner: &str) -> String {
        let labels = "[has(object.metadata.labels) ? object.metadata.labels : {}]";
        format!("{labels}.exists(l, {inner})")
    }

    #[test]
    fn sets_that_inject_are_alternatives_and_the_same_one_is_said_once() {
        let web = json!({"selector": {"matchLabels": {"app": "web"}}});
        let paused =
            json!({"selector": {"matchLabels": {"app": "db"}}, "injectionStrategy": {"paused": true}});
        let logs = json!({"selector": {"matchExpressions": [
            {"key": "logs", "operator": "In", "values": ["on", "all", "on"]},
            {"key": "quiet", "operator": "DoesNotExist"},
        ]}});
        assert_eq!(
            of(&[web.clone(), paused.clone(), logs, web]),
            Some(whole(
                "!('quiet' in l) && 'logs' in l && l['logs'] in ['all', 'on'] || 'app' in l && l['app'] == 'web'"
            ))
        );
        assert_eq!(of(&[paused, json!({"selector": {}}), json!({})]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn of_a_namespace_only_the_name_is_said() {
        let spec = |namespaces: Value| json!({"selector": {"matchLabels": {"a": "b"}}, "namespaceSelector": namespaces});
        let name = "kubernetes.io/metadata.name";
        assert_eq!(
            of(&[spec(json!({"matchLabels": {"env": "prod", name: "shop"}}))]),
            Some(whole("'a' in l && l['a'] == 'b' && request.namespace == 'shop'"))
        );
        let except = json!({"matchExpressions": [{"key": name, "operator": "NotIn", "values": ["x", "y"]}]});
        assert_eq!(
            of(&[spec(except)]),
            Some(whole(
                "!(request.namespace in ['x', 'y']) && 'a' in l && l['a'] == 'b'"
            ))
        );
        let nameless = json!({"matchExpressions": [{"key": name, "operator": "DoesNotExist"}]});
        assert_eq!(of(&[spec(nameless)]), None);
        let pinned = json!({"selector": {"matchLabels": {"a": "b"}}, "namespace": "shop"});
        assert_eq!(
            of(&[pinned]),
            Some(whole("'a' in l && l['a'] == 'b' && request.namespace == 'shop'"))
        );
    }

    #[test]
    fn what_can_be_no_label_is_decided_and_not_said() {
        let evil = "x'] == '' || true || l['";
        let with = |operator: &str| {
            json!({"selector": {"matchExpressions": [
                {"key": "a", "operator": "Exists"},
                {"key": evil, "operator": operator, "values": ["b"]},
            ]}})
        };
        for (operator, expected) in [
            ("In", None),
            ("Exists", None),
            ("NotIn", Some(whole("'a' in l"))),
            ("DoesNotExist", Some(whole("'a' in l"))),
        ] {
            assert_eq!(of(&[with(operator)]), expected, "{operator}");
        }
        assert_eq!(of(&[json!({"selector": {"matchLabels": {"a": evil}}})]), None);
        let unequal = json!({"selector": {"matchExpressions": [
            {"key": "a", "operator": "NotIn", "values": [evil]},
        ]}});
        assert_eq!(of(&[unequal]), Some("true".to_owned()));
        let strange =
            json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Like", "values": ["b"]}]}});
        assert_eq!(of(&[strange]), None);
    }

    fn of_budget(spec: &Value) -> Option<Reach> {
        let budget = json!({"apiVersion": "policy.kruise.io/v1beta1",
            "metadata": {"name": "web", "namespace": "shop"}, "spec": spec});
        Reach::of_budget(&PodUnavailableBudget::from_value(budget).unwrap())
    }

    #[test]
    fn a_budget_needs_pods_of_its_namespace_with_its_labels_or_an_owner() {
        let by_target = json!({"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}});
        let by_labels = json!({"selector": {"matchLabels": {"app": "web"}}});
        for (spec, expected) in [
            (
                &by_target,
                "request.namespace == 'shop' && has(object.metadata.ownerReferences)",
            ),
            (
                &by_labels,
                "'app' in l && l['app'] == 'web' && request.namespace == 'shop'",
            ),
        ] {
            let reach = of_budget(spec).unwrap();
            let found = condition(&[reach.clone()].into()).unwrap();
            assert_eq!(found, whole(expected));
            assert!(reach.is_within(&found) && !reach.is_within(&whole("request.namespace == 'office'")));
        }
        assert_eq!(of_budget(&json!({})), None);
        assert_eq!(of_budget(&json!({"selector": {}})), None);
    }

    #[test]
    fn a_spread_needs_pods_of_its_namespace_that_its_target_may_own() {
        let of = |api: &str, kind: &str| {
            let target = json!({"apiVersion": api, "kind": kind, "name": "web"});
            let spread = json!({"apiVersion": "apps.kruise.io/v1beta1",
                "metadata": {"name": "s", "namespace": "shop"}, "spec": {"targetRef": target, "subsets": []}});
            Reach::of_spread(&WorkloadSpread::from_value(spread).unwrap()).unwrap()
        };
        let owned = "request.namespace == 'shop' && has(object.metadata.ownerReferences)";
        for (api, kind, test) in [
            ("apps/v1", "Deployment", Some("o.kind == 'ReplicaSet'")),
            (
                "apps/v1",
                "ReplicaSet",
                Some("o.kind == 'ReplicaSet' && o.name == 'web'"),
            ),
            (
                "apps.kruise.io/v1beta1",
                "CloneSet",
                Some("o.kind == 'CloneSet' && o.name == 'web'"),
            ),
            ("batch/v1", "Job", Some("o.kind == 'Job' && o.name == 'web'")),
            ("example.com/v1", "Game", None),
        ] {
            let reach = of(api, kind);
            let found = condition(&[reach.clone()].into()).unwrap();
            let expected = test.map_or(owned.to_owned(), |test| {
                format!("{owned} && object.metadata.ownerReferences.exists(o, {test})")
            });
            assert_eq!(found, whole(&expected), "{kind}");
            assert!(reach.is_within(&found) && !reach.is_within(&whole("request.namespace == 'office'")));
            assert!(reach.is_within(&whole(owned)));
        }
        let nobodys = json!({"apiVersion": "apps.kruise.io/v1beta1", "metadata": {"name": "s"}, "spec": {}});
        assert_eq!(
            Reach::of_spread(&WorkloadSpread::from_value(nobodys).unwrap()),
            None
        );
    }

    #[test]
    fn a_pod_state_needs_pods_of_its_namespace_that_its_target_owns() {
        let of = |namespace: &str, name: &str| {
            let target = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name});
            let state = json!({"apiVersion": "apps.kruise.io/v1beta1",
                "metadata": {"name": "s", "namespace": namespace}, "spec": {"targetRef": target}});
            Reach::of_pod_state(&PersistentPodState::from_value(state).unwrap())
        };
        let reach = of("shop", "broker").unwrap();
        let found = condition(&[reach.clone()].into()).unwrap();
        let expected = "request.namespace == 'shop' && has(object.metadata.ownerReferences) \
            && object.metadata.ownerReferences.exists(o, o.kind == 'StatefulSet' && o.name == 'broker')";
        assert_eq!(found, whole(expected));
        assert!(reach.is_within(&found) && reach.is_within(&expressions(&[reach.clone()].into())[1]));
        let others = [of("shop", "cache").unwrap(), of("office", "broker").unwrap()];
        assert!(!reach.is_within(&condition(&others.clone().into()).unwrap()));
        let both = condition(&[reach.clone(), others[0].clone()].into()).unwrap();
        assert!(reach.is_within(&both) && others[0].is_within(&both) && !others[1].is_within(&both));
        assert_eq!(of("shop", "x' || true || 'y"), None);
    }

    fn reach(spec: Value) -> Reach {
        Reach::of(&Set::new(std::sync::Arc::new(json!({"spec": spec})))).unwrap()
    }

    #[test]
    fn a_condition_covers_what_one_of_its_alternatives_asks_less_of() {
        let web = json!({"matchLabels": {"app": "web"}});
        let web_in = |namespace: &str| {
            reach(json!({"selector": web, "namespaceSelector": {"matchLabels": {NAMESPACE_NAME: namespace}}}))
        };
        let everywhere = reach(json!({"selector": web}));
        let quiet = reach(json!({"selector": {"matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "quiet", "operator": "NotIn", "values": ["yes"]}]}}));
        let database = reach(json!({"selector": {"matchLabels": {"app": "db"}}}));
        let of = |reaches: &[&Reach]| condition(&reaches.iter().map(|one| (*one).clone()).collect()).unwrap();
        let both = of(&[&everywhere, &database]);
        for reach in [&everywhere, &database, &quiet, &web_in("shop")] {
            assert!(reach.is_within(&both), "{reach:?}");
            assert!(reach.is_within("true"));
            assert!(!reach.is_within("false") && !reach.is_within(""));
            assert!(!reach.is_within(&format!("!({both})")));
            assert!(!reach.is_within(&format!("{both} && false")));
            assert!(!reach.is_within(&format!("(false ? true : false) || false ? false : {both}")));
            assert!(
                reach.is_within(&expressions(&[reach.clone()].into())[1]),
                "{reach:?}"
            );
        }
        assert!(!everywhere.is_within(&of(&[&web_in("shop"), &quiet, &database])));
        assert!(!web_in("shop").is_within(&of(&[&web_in("office")])));
        assert!(
            !quiet.is_within(&of(&[&reach(json!({"selector": {"matchExpressions": [
            {"key": "quiet", "operator": "NotIn", "values": ["no"]}]}}))]))
        );
        let widened = format!(
            "({}) || ({}) || ({})",
            of(&[&database]),
            of(&[&web_in("shop")]),
            of(&[&quiet])
        );
        assert!(quiet.is_within(&widened) && web_in("shop").is_within(&widened));
        assert!(!everywhere.is_within(&widened));
        assert!(everywhere.is_within(&format!("(({widened}) || ({both}))")));
    }

    #[test]
    fn what_gets_too_long_is_said_wider() {
        let many = |key: &str| {
            let specs: Vec<Value> = (0..3000)
                .map(|n| json!({"selector": {"matchLabels": {key: format!("value-{n}")}}}))
                .collect();
            of(&specs)
        };
        assert_eq!(many("app"), Some(whole("'app' in l")));
        let specs: Vec<Value> = (0..5000)
            .map(|n| json!({"selector": {"matchLabels": {format!("key-{n}"): "v"}}}))
            .collect();
        assert_eq!(of(&specs), Some("true".to_owned()));
    }
}
