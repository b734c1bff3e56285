//! Which objects a stage is about.

use std::collections::BTreeMap;

use serde_json::Value;

use super::jq::{Input, Query, text};
use crate::object::get_metadata;

/// All parts must hold; an empty selector holds for everything.
#[derive(Clone, Debug, Default)]
pub(in crate::nodes) struct Selector {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) expressions: Vec<Requirement>,
}

#[derive(Clone, Debug)]
pub(super) struct Requirement {
    pub(super) query: Query,
    pub(super) test: Test,
}

#[derive(Clone, Debug)]
pub(super) enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
}

impl Selector {
    pub(in crate::nodes) fn matches(&self, input: &Input<'_>) -> bool {
        let has = |name: &str, wanted: &BTreeMap<String, String>| {
            let found = get_metadata(input.object, name);
            wanted
                .iter()
                .all(|(key, value)| found.get(key).and_then(Value::as_str) == Some(value))
        };
        has("labels", &self.labels)
            && has("annotations", &self.annotations)
            && self.expressions.iter().all(|one| one.holds(input))
    }
}

impl Requirement {
    fn holds(&self, input: &Input<'_>) -> bool {
        let found = self.query.run(input);
        let among = |values: &[String]| found.iter().any(|value| values.contains(&text(value)));
        match &self.test {
            Test::In(values) => among(values),
            Test::NotIn(values) => !among(values),
            Test::Exists => !found.is_empty(),
            Test::DoesNotExist => found.is_empty(),
        }
    }
}
