//! Resources that a pod was given by this program and that its label does not tell of.
//!
//! An update asks for the resources first and labels the pod afterwards. If it breaks off in between and the template goes
//! back, the pod stays with the amounts of a revision that it never came to. What others asked for (an autoscaler, a person)
//! is left alone: the API server remembers who wrote an amount last.

use std::collections::BTreeMap;

use kruise_views::{PodView, amount};
use serde_json::Value;

use super::resources::{LISTS, NAMES, Resize, VerticalScaling, asked, containers, restarts_for};
use crate::put;

/// What the containers of a template ask for.
#[derive(Clone, Debug)]
pub struct Amounts {
    all: Vec<Wanted>,
}

/// One amount of one container.
#[derive(Clone, Debug)]
struct Wanted {
    container: String,
    list: &'static str,
    name: &'static str,
    quantity: Value,
    amount: i64,
    restarts: bool,
}

impl Amounts {
    /// Reads a template.
    pub fn of(template: &Value) -> Self {
        let places = LISTS.into_iter().flat_map(|list| NAMES.map(|name| (list, name)));
        let all = containers(template, "containers").flat_map(|container| {
            let places = places.clone();
            places.filter_map(move |(list, name)| {
                let quantity = asked(container, list, name)?;
                Some(Wanted {
                    container: container.get("name")?.as_str()?.to_owned(),
                    list,
                    name,
                    amount: amount(quantity)?,
                    quantity: quantity.clone(),
                    restarts: restarts_for(container, name),
                })
            })
        });
        Self { all: all.collect() }
    }

    /// What a pod of this template has to be given back, by container. Nothing where the server would refuse a part of it.
    pub fn missing(&self, pod: &PodView, scaling: VerticalScaling) -> BTreeMap<String, Resize> {
        let mut missing: BTreeMap<String, Resize> = BTreeMap::new();
        for wanted in &self.all {
            let container = pod.containers.iter().find(|have| *have.name == *wanted.container);
            let Some(container) = container.filter(|have| have.written.get(wanted.list, wanted.name)) else {
                continue;
            };
            let resources = container.resources.as_deref();
            let Some(have) = resources.and_then(|have| have.get(wanted.list, wanted.name)) else {
                continue;
            };
            if have == wanted.amount {
                continue;
            }
            let lowers_memory = (wanted.list, wanted.name) == ("limits", "memory") && wanted.amount < have;
            if lowers_memory && !wanted.restarts && scaling != VerticalScaling::Endpoint {
                return BTreeMap::new();
            }
            let resize = missing.entry(wanted.container.clone()).or_default();
            put(
                &mut resize.amounts,
                &[wanted.list, wanted.name],
                wanted.quantity.clone(),
            );
            resize.restarts |= wanted.restarts;
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A pod whose container has so much memory, written by this program if `fields` say so.
    fn pod(memory: &str, written: bool) -> PodView {
        let list = if written { "f:limits" } else { "f:other" };
        let fields = json!({"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {"f:resources": {list: {"f:memory": {}}}}}}});
        serde_json::from_value(json!({
            "metadata": {"managedFields": [{"manager": "kruise-manager", "subresource": "resize", "fieldsV1": fields}]},
            "spec": {"containers": [{"name": "main", "resources": {"limits": {"memory": memory, "cpu": "9"}}}]},
        }))
        .unwrap()
    }

    fn template(memory: &str, policy: &str) -> Value {
        let policy = json!([{"resourceName": "memory", "restartPolicy": policy}]);
        let resources = json!({"limits": {"memory": memory, "cpu": "1"}});
        json!({"spec": {"containers": [{"name": "main", "resources": resources, "resizePolicy": policy}]}})
    }

    fn missing(pod: &PodView, template: &Value, scaling: VerticalScaling) -> Option<(Value, bool)> {
        let mut missing = Amounts::of(template).missing(pod, scaling).into_values();
        missing.next().map(|resize| (resize.amounts, resize.restarts))
    }

    #[test]
    fn what_only_this_program_wrote_is_given_back() {
        let (newest, stays) = (VerticalScaling::Endpoint, template("1Gi", "NotRequired"));
        let back = |restarts| Some((json!({"limits": {"memory": "1Gi"}}), restarts));
        assert_eq!(missing(&pod("2Gi", true), &stays, newest), back(false));
        assert_eq!(missing(&pod("2Gi", false), &stays, newest), None);
        assert_eq!(missing(&pod("1024Mi", true), &stays, newest), None, "it has that");
        let restarts = template("1Gi", "RestartContainer");
        assert_eq!(missing(&pod("2Gi", true), &restarts, newest), back(true));
        let none = json!({"spec": {"containers": [{"name": "main"}]}});
        assert_eq!(missing(&pod("2Gi", true), &none, newest), None);
    }

    #[test]
    fn a_memory_limit_is_lowered_only_where_the_server_takes_that() {
        let older = VerticalScaling::RaisingEndpoint;
        for (policy, has, given) in [
            ("NotRequired", "2Gi", false),
            ("NotRequired", "512Mi", true),
            ("RestartContainer", "2Gi", true),
        ] {
            let found = missing(&pod(has, true), &template("1Gi", policy), older);
            assert_eq!(found.is_some(), given, "{policy} {has}");
        }
    }
}
