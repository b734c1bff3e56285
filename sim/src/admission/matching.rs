//! Which webhooks a request concerns.
//!
//! Every write is held against all rules, so configurations are read once, when one of them has changed.

use std::ops::Deref;
use std::sync::Arc;

use serde_json::Value;

use super::registered::{GROUP, Kind, Registered, Rule};
use crate::api::Api;
use crate::call::{Admission, Call};
use crate::store::{Head, Key, ResourceId};

/// A webhook that is to be called about a request.
pub(super) struct Hook {
    /// The version that it is called in.
    pub(super) version: String,
    of: Arc<Registered>,
}

impl Deref for Hook {
    type Target = Registered;

    fn deref(&self) -> &Registered {
        &self.of
    }
}

/// The webhooks whose rules are about a request, in order.
pub(super) fn hooks(api: &Api, call: &Call<'_>, kind: Kind, operation: &str) -> Vec<Hook> {
    // configurations are not subject to webhooks: a broken one can be taken away
    if call.admission == Admission::Done || call.resource.id.group.as_ref() == GROUP {
        return Vec::new();
    }
    let webhooks = api.webhooks();
    let all = match kind {
        Kind::Mutating => &webhooks.mutating,
        Kind::Validating => &webhooks.validating,
    };
    let hooks = all.iter().filter_map(|of| {
        let version = of.version(call, operation)?.to_owned();
        Some(Hook {
            version,
            of: of.clone(),
        })
    });
    hooks.collect()
}

impl Registered {
    /// The version in which it is called about a request, if its rules are about it at all: that of the request, or
    /// else (`matchPolicy: Equivalent`) another served one.
    fn version<'a>(&self, call: &'a Call<'_>, operation: &str) -> Option<&'a str> {
        let rules = self.rules.iter().filter(|rule| rule.is_about(call, operation));
        let rules: Vec<&Rule> = rules.collect();
        let matches = |version: &str| rules.iter().any(|rule| names(&rule.versions, version));
        let requested = call.version.name.as_str();
        if rules.is_empty() || matches(requested) {
            return (!rules.is_empty()).then_some(requested);
        }
        if self.exact {
            return None;
        }
        let mut served = call.resource.versions.iter().map(|version| version.name.as_str());
        served.find(|version| matches(version))
    }
}

/// Whether a list of a rule has a name.
fn names(list: &[String], wanted: &str) -> bool {
    list.iter().any(|one| one == "*" || one == wanted)
}

impl Rule {
    /// Whether it is about a request, whatever its version.
    fn is_about(&self, call: &Call<'_>, operation: &str) -> bool {
        let scope = || match self.scope.as_str() {
            "Namespaced" => call.resource.is_namespaced(),
            "Cluster" => !call.resource.is_namespaced(),
            _ => true,
        };
        let resource = |(plural, subresource): &(String, String)| {
            (plural == "*" || *plural == *call.resource.id.plural)
                && (subresource == "*" || *subresource == call.target.subresource)
        };
        // first what tells most rules apart
        self.resources.iter().any(resource)
            && scope()
            && names(&self.operations, operation)
            && names(&self.groups, &call.resource.id.group)
    }
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
