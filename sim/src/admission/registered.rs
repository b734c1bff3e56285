//! The webhooks that are registered.

use std::sync::Arc;

use serde_json::Value;

use crate::cel::{Expression, Variables};
use crate::selector::Selector;
use crate::store::{ResourceId, Store};
use crate::validation::text;

/// Group of the configurations.
pub(crate) const GROUP: &str = "admissionregistration.k8s.io";

/// The webhooks of all configurations, as they are registered now.
#[derive(Debug, Default)]
pub(crate) struct Webhooks {
    pub(super) mutating: Vec<Arc<Registered>>,
    pub(super) validating: Vec<Arc<Registered>>,
}

/// Which of two kinds a webhook is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Mutating,
    Validating,
}

/// A webhook of a configuration.
#[derive(Debug)]
pub(super) struct Registered {
    pub(super) name: String,
    pub(super) client: Value,
    pub(super) timeout_seconds: i64,
    pub(super) rules: Vec<Rule>,
    /// `matchPolicy: Exact`.
    pub(super) exact: bool,
    pub(super) object_selector: Option<Selector>,
    pub(super) namespace_selector: Option<Selector>,
    pub(super) conditions: Vec<Condition>,
    /// `failurePolicy: Ignore`.
    pub(super) ignored_on_failure: bool,
    /// `reinvocationPolicy: IfNeeded`.
    pub(super) reinvoked: bool,
}

/// What a webhook is called about.
#[derive(Debug)]
pub(super) struct Rule {
    /// Plural and subresource of `pods`, `pods/status`, `*`, `*/*`, `pods/*`, `*/status`.
    pub(super) resources: Vec<(String, String)>,
    pub(super) operations: Vec<String>,
    pub(super) groups: Vec<String>,
    pub(super) versions: Vec<String>,
    pub(super) scope: String,
}

fn list<'a>(of: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    of.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn texts(of: &Value, name: &str) -> Vec<String> {
    let texts = list(of, name).filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

impl Webhooks {
    /// Reads all configurations, in the order of their names.
    pub(crate) fn read(store: &Store) -> Self {
        let all = |plural: &str| {
            let id = ResourceId {
                group: GROUP.into(),
                plural: plural.into(),
            };
            let configurations = store.collection(&id).into_iter();
            let values = configurations.flat_map(|all| all.range("", None).map(|(_, stored)| stored.value()));
            let hooks = values.flat_map(|configuration| {
                list(&configuration, "webhooks")
                    .map(|webhook| Arc::new(Registered::read(webhook)))
                    .collect::<Vec<_>>()
            });
            hooks.collect()
        };
        Self {
            mutating: all("mutatingwebhookconfigurations"),
            validating: all("validatingwebhookconfigurations"),
        }
    }
}

impl Registered {
    fn read(webhook: &Value) -> Self {
        Self {
            name: text(webhook, "name").to_owned(),
            client: webhook.get("clientConfig").cloned().unwrap_or_default(),
            timeout_seconds: webhook
                .get("timeoutSeconds")
                .and_then(Value::as_i64)
                .unwrap_or(10),
            rules: list(webhook, "rules").map(Rule::read).collect(),
            exact: text(webhook, "matchPolicy") == "Exact",
            object_selector: webhook.get("objectSelector").map(Selector::of_object),
            namespace_selector: webhook.get("namespaceSelector").map(Selector::of_object),
            conditions: list(webhook, "matchConditions").map(Condition::of).collect(),
            ignored_on_failure: text(webhook, "failurePolicy") == "Ignore",
            reinvoked: text(webhook, "reinvocationPolicy") == "IfNeeded",
        }
    }
}

impl Rule {
    fn read(rule: &Value) -> Self {
        let resource = |pattern: &str| {
            let (plural, subresource) = pattern.split_once('/').unwrap_or((pattern, ""));
            (plural.to_owned(), subresource.to_owned())
        };
        let resources = list(rule, "resources").filter_map(Value::as_str);
        Self {
            resources: resources.map(resource).collect(),
            operations: texts(rule, "operations"),
            groups: texts(rule, "apiGroups"),
            versions: texts(rule, "apiVersions"),
            scope: text(rule, "scope").to_owned(),
        }
    }
}

/// A condition of a webhook.
#[derive(Debug)]
pub(super) struct Condition {
    text: String,
    /// Registration refuses what is not understood.
    expression: Result<Expression, String>,
}

impl Condition {
    pub(super) fn of(condition: &Value) -> Self {
        let text = crate::validation::text(condition, "expression").to_owned();
        let expression = Expression::parse(&text);
        Self { text, expression }
    }

    pub(super) fn holds(&self, variables: &Variables<'_>) -> Result<bool, String> {
        let truth = match &self.expression {
            Ok(expression) => expression.holds(variables),
            Err(why) => Err(why.clone()),
        };
        truth.map_err(|why| format!("expression '{}' resulted in error: {why}", self.text))
    }
}
