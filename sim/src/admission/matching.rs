//! Which webhooks a request concerns.

use serde_json::Value;

use super::Admission;
use super::conditions::Condition;
use crate::api::{Api, Call};
use crate::selector::Selector;
use crate::store::{Head, Key, ResourceId};
use crate::validation::text;

/// A webhook of a configuration.
pub(super) struct Hook {
    pub(super) name: String,
    /// The version that it is asked in.
    pub(super) version: String,
    pub(super) client: Value,
    pub(super) timeout_seconds: i64,
    object_selector: Option<Selector>,
    namespace_selector: Option<Selector>,
    pub(super) conditions: Vec<Condition>,
    /// `failurePolicy: Ignore`.
    pub(super) ignored_on_failure: bool,
    /// `reinvocationPolicy: IfNeeded`.
    pub(super) reinvoked: bool,
}

fn list<'a>(of: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    of.get(name).and_then(Value::as_array).into_iter().flatten()
}

/// The webhooks whose rules are about a request, in order.
pub(super) fn hooks(api: &Api, call: &Call<'_>, plural: &str, operation: &str) -> Vec<Hook> {
    const GROUP: &str = "admissionregistration.k8s.io";
    // configurations are not subject to webhooks: a broken one can be taken away
    if call.admission == Admission::Done || call.resource.id.group.as_ref() == GROUP {
        return Vec::new();
    }
    let id = ResourceId {
        group: GROUP.into(),
        plural: plural.into(),
    };
    let Some(configurations) = api.store.collection(&id) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (_, stored) in configurations.range("", None) {
        let configuration = stored.value();
        for webhook in list(&configuration, "webhooks") {
            if let Some(version) = version(call, webhook, operation) {
                found.push(hook(webhook, version));
            }
        }
    }
    found
}

/// The version in which a webhook is asked about this request, if its rules are about it at all: that of the request,
/// or else (`matchPolicy: Equivalent`) another served one.
fn version<'a>(call: &'a Call<'_>, webhook: &Value, operation: &str) -> Option<&'a str> {
    let matches =
        |version: &str| list(webhook, "rules").any(|rule| matches_rule(call, rule, version, operation));
    let requested = call.version.name.as_str();
    if matches(requested) {
        return Some(requested);
    }
    if text(webhook, "matchPolicy") == "Exact" {
        return None;
    }
    let mut served = call.resource.versions.iter().map(|version| version.name.as_str());
    served.find(|version| matches(version))
}

fn hook(webhook: &Value, version: &str) -> Hook {
    Hook {
        version: version.to_owned(),
        name: text(webhook, "name").to_owned(),
        client: webhook.get("clientConfig").cloned().unwrap_or_default(),
        timeout_seconds: webhook
            .get("timeoutSeconds")
            .and_then(Value::as_i64)
            .unwrap_or(10),
        object_selector: webhook.get("objectSelector").map(Selector::of_object),
        namespace_selector: webhook.get("namespaceSelector").map(Selector::of_object),
        conditions: list(webhook, "matchConditions").map(Condition::of).collect(),
        ignored_on_failure: text(webhook, "failurePolicy") == "Ignore",
        reinvoked: text(webhook, "reinvocationPolicy") == "IfNeeded",
    }
}

fn matches_rule(call: &Call<'_>, rule: &Value, version: &str, operation: &str) -> bool {
    let names = |member: &str, wanted: &str| list(rule, member).any(|one| one == "*" || one == wanted);
    let scope = || match text(rule, "scope") {
        "Namespaced" => call.resource.is_namespaced(),
        "Cluster" => !call.resource.is_namespaced(),
        _ => true,
    };
    // first what tells most rules apart
    list(rule, "resources").any(|one| matches_resource(call, one.as_str().unwrap_or_default()))
        && scope()
        && names("operations", operation)
        && names("apiGroups", &call.resource.id.group)
        && names("apiVersions", version)
}

/// `pods`, `pods/status`, `*`, `*/*`, `pods/*`, `*/status`.
fn matches_resource(call: &Call<'_>, pattern: &str) -> bool {
    let (plural, subresource) = pattern.split_once('/').unwrap_or((pattern, ""));
    let wanted = call.target.subresource.as_str();
    (plural == "*" || plural == call.resource.id.plural.as_ref())
        && (subresource == "*" || subresource == wanted)
}

impl Hook {
    /// Whether the webhook's selectors show an object, or showed the old one.
    pub(super) fn selects(&self, api: &Api, call: &Call<'_>, object: &Value, old: &Value) -> bool {
        self.selects_object(object, old) && self.selects_namespace(api, call, object)
    }

    fn selects_object(&self, object: &Value, old: &Value) -> bool {
        let Some(selector) = &self.object_selector else {
            return true;
        };
        let either = [object, old].into_iter().filter(|one| !one.is_null());
        let mut heads = either.map(|one| Head::of(one, std::iter::empty()));
        heads.any(|head| selector.matches("", "", &head))
    }

    fn selects_namespace(&self, api: &Api, call: &Call<'_>, object: &Value) -> bool {
        let Some(selector) = &self.namespace_selector else {
            return true;
        };
        if call.resource.id.plural.as_ref() == "namespaces" {
            return selector.matches("", "", &Head::of(object, std::iter::empty()));
        }
        if !call.resource.is_namespaced() {
            return true;
        }
        let id = ResourceId {
            group: "".into(),
            plural: "namespaces".into(),
        };
        let namespace = api.store.get(&id, &Key::new("", &call.target.namespace));
        namespace.is_some_and(|stored| selector.matches("", "", &stored.head))
    }
}
