//! Terms of a required node affinity.

use kruise_views::NodeView;
use serde_json::Value;

/// One term: all of its requirements have to hold. One that Kubernetes cannot read matches no node, and nor does
/// one without requirements.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Term(Option<Vec<Requirement>>);

/// A requirement on one label of a node, or on its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Requirement {
    /// `None` means the name of the node.
    key: Option<Box<str>>,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Test {
    In(Vec<Box<str>>),
    NotIn(Vec<Box<str>>),
    Exists,
    DoesNotExist,
    Above(i64),
    Below(i64),
}

/// The terms of `requiredDuringSchedulingIgnoredDuringExecution`.
pub(super) fn terms(required: &Value) -> Vec<Term> {
    let terms = required.get("nodeSelectorTerms").and_then(Value::as_array);
    terms.into_iter().flatten().map(Term::of).collect()
}

impl Term {
    fn of(term: &Value) -> Self {
        let list = |member: &str| term.get(member).and_then(Value::as_array).into_iter().flatten();
        let labels = list("matchExpressions").map(Requirement::on_label);
        let all: Option<Vec<Requirement>> = labels
            .chain(list("matchFields").map(Requirement::on_name))
            .collect();
        Self(all.filter(|all| !all.is_empty()))
    }

    pub(super) fn matches(&self, node: &NodeView) -> bool {
        let all = self.0.as_ref();
        all.is_some_and(|all| all.iter().all(|requirement| requirement.holds(node)))
    }
}

impl Requirement {
    fn on_label(requirement: &Value) -> Option<Self> {
        let key = requirement.get("key").and_then(Value::as_str)?;
        let values = values(requirement);
        let number = || match values.as_slice() {
            [value] => value.parse().ok(),
            _ => None,
        };
        let test = match operator(requirement) {
            "In" if !values.is_empty() => Test::In(values),
            "NotIn" if !values.is_empty() => Test::NotIn(values),
            "Exists" if values.is_empty() => Test::Exists,
            "DoesNotExist" if values.is_empty() => Test::DoesNotExist,
            "Gt" => Test::Above(number()?),
            "Lt" => Test::Below(number()?),
            _ => return None,
        };
        let key = Some(key.into());
        Some(Self { key, test })
    }

    /// The only field is the name of the node, and it has one value.
    fn on_name(requirement: &Value) -> Option<Self> {
        let is_name = requirement.get("key").and_then(Value::as_str) == Some("metadata.name");
        let values = values(requirement);
        let test = match operator(requirement) {
            "In" => Test::In(values),
            "NotIn" => Test::NotIn(values),
            _ => return None,
        };
        let one = matches!(&test, Test::In(values) | Test::NotIn(values) if values.len() == 1);
        (is_name && one).then_some(Self { key: None, test })
    }

    fn holds(&self, node: &NodeView) -> bool {
        let value = match &self.key {
            Some(key) => node.labels.get(key),
            None => Some(&*node.name),
        };
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        let listed = |values: &[Box<str>]| values.iter().any(|listed| Some(&**listed) == value);
        match &self.test {
            Test::In(values) => listed(values),
            Test::NotIn(values) => !listed(values),
            Test::Exists => value.is_some(),
            Test::DoesNotExist => value.is_none(),
            Test::Above(limit) => number().is_some_and(|number| number > *limit),
            Test::Below(limit) => number().is_some_and(|number| number < *limit),
        }
    }
}

fn operator(requirement: &Value) -> &str {
    let operator = requirement.get("operator").and_then(Value::as_str);
    operator.unwrap_or_default()
}

fn values(requirement: &Value) -> Vec<Box<str>> {
    let values = requirement.get("values").and_then(Value::as_array);
    let values = values.into_iter().flatten().filter_map(Value::as_str);
    values.map(Box::from).collect()
}
