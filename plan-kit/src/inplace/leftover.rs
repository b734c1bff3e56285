//! Resources that a pod was given by this program and of a revision that its label does not name.
//!
//! An update asks for the resources first and labels the pod afterwards. If it breaks off in between and the
//! template goes back, the pod stays with the amounts of a revision that it never came to. What others asked for
//! (an autoscaler, a person) is left alone: the API server remembers who wrote an amount last.
//!
//! An amount that differs may also be what somebody made of our request (an admission webhook of the `resize`
//! endpoint). To ask for it again would change it again, and may restart a container each time. So resources are
//! given back to a pod once, which its record says, until they have arrived or another update begins. And only
//! amounts of another revision are taken for left behind.

use std::collections::BTreeMap;

use kruise_api::names::INPLACE_STATE;
use kruise_views::{AmountsView, ContainerView, PodView, amount};
use serde_json::Value;

use super::{
    read_state,
    record::serialize,
    resources::{LISTS, NAMES, Resize, VerticalScaling, asked, containers, each, restarts_for},
};
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

    /// What a pod of this template has to be given back, by container. Nothing where the server would refuse a part
    /// of it, nor where anybody else has asked for resources of the pod.
    pub fn missing(&self, pod: &PodView, scaling: VerticalScaling) -> BTreeMap<String, Resize> {
        let by_others = pod.containers.iter().any(|container| container.written.by_others);
        let missing = if by_others {
            BTreeMap::new()
        } else {
            self.differing(pod, scaling)
        };
        if is_taken(pod, &missing) {
            missing
        } else {
            BTreeMap::new()
        }
    }

    /// Is what the pod has in place of these amounts what this template asks for?
    pub fn left(&self, pod: &PodView, missing: &BTreeMap<String, Resize>) -> bool {
        let asks = |container: &str, list: &str, name: &str| {
            let mut all = self.all.iter();
            all.find(|wanted| (&*wanted.container, wanted.list, wanted.name) == (container, list, name))
                .map(|wanted| wanted.amount)
        };
        missing.iter().all(|(container, resize)| {
            let have = pod.resources_of(container);
            each(&resize.amounts).all(|(list, name, _)| {
                let have = have.and_then(|have| have.get(list, name));
                have.is_some() && have == asks(container, list, name)
            })
        })
    }

    fn differing(&self, pod: &PodView, scaling: VerticalScaling) -> BTreeMap<String, Resize> {
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

/// Have resources of this revision been given back to the pod already, and not arrived?
pub fn was_given_back(pod: &PodView, is_revision: impl Fn(&str) -> bool) -> bool {
    match read_state(pod) {
        Ok(state) => state.is_some_and(|state| state.given_back && is_revision(&state.revision)),
        // It is not known.
        Err(_) => true,
    }
}

/// The record of a pod to which resources were given back, once they have arrived; `None` for every other pod.
pub fn record_of_arrival(
    pod: &PodView,
    wanted: impl FnOnce() -> Option<Amounts>,
    scaling: VerticalScaling,
) -> Option<String> {
    // Most records are not worth parsing.
    pod.annotations
        .get(INPLACE_STATE)
        .filter(|text| text.contains("givenBack"))?;
    let mut state = read_state(pod).ok()??;
    let arrived = state.given_back && wanted()?.missing(pod, scaling).is_empty();
    state.given_back = false;
    arrived.then(|| serialize(&state))
}

/// Does the server take it? It refuses a request above its limit and another class of service, which init
/// containers, that do not change, make no better.
fn is_taken(pod: &PodView, missing: &BTreeMap<String, Resize>) -> bool {
    let before = |container: &ContainerView| container.resources.as_deref().copied().unwrap_or_default();
    let after = |container: &ContainerView| {
        let mut amounts = before(container);
        let resize = missing.get(&*container.name);
        for (list, name, wanted) in resize.iter().flat_map(|resize| each(&resize.amounts)) {
            let place = match (list, name) {
                ("limits", "cpu") => &mut amounts.cpu_limit,
                ("limits", _) => &mut amounts.memory_limit,
                (_, "cpu") => &mut amounts.cpu_request,
                _ => &mut amounts.memory_request,
            };
            *place = amount(wanted);
        }
        amounts
    };
    let after: Vec<AmountsView> = pod.containers.iter().map(after).collect();
    let fits = |amounts: &AmountsView| {
        pairs(amounts)
            .iter()
            .all(|(request, limit)| limit.is_none() || request <= limit)
    };
    class(pod.containers.iter().map(before)) == class(after.iter().copied()) && after.iter().all(fits)
}

/// Request and limit of each resource.
fn pairs(amounts: &AmountsView) -> [(Option<i64>, Option<i64>); 2] {
    NAMES.map(|name| (amounts.get("requests", name), amounts.get("limits", name)))
}

/// Is anything asked for, and is every request its limit?
fn class(all: impl Iterator<Item = AmountsView>) -> (bool, bool) {
    let (mut any, mut guaranteed) = (false, true);
    for (request, limit) in all.flat_map(|amounts| pairs(&amounts)) {
        let [request, limit] = [request, limit].map(|amount| amount.filter(|amount| *amount > 0));
        any |= request.is_some() || limit.is_some();
        guaranteed &= limit.is_some() && request == limit;
    }
    (any, guaranteed)
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

    /// A pod whose container asks for this, all of it by this program.
    fn asking(resources: &Value) -> PodView {
        let both = json!({"f:cpu": {}, "f:memory": {}});
        let lists = json!({"f:limits": both, "f:requests": both});
        let fields = json!({"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {"f:resources": lists}}}});
        serde_json::from_value(json!({
            "metadata": {"managedFields": [{"manager": "kruise-manager", "subresource": "resize", "fieldsV1": fields}]},
            "spec": {"containers": [{"name": "main", "resources": resources}]},
        }))
        .unwrap()
    }

    fn asks(resources: &Value) -> Value {
        json!({"spec": {"containers": [{"name": "main", "resources": resources}]}})
    }

    #[test]
    fn nothing_is_given_back_that_the_server_would_refuse() {
        let newest = VerticalScaling::Endpoint;
        for (has, wants, given) in [
            // A request of the template is lower than what it left unsaid.
            (
                json!({"requests": {"cpu": "2"}, "limits": {"cpu": "4"}}),
                json!({"limits": {"cpu": "1"}, "requests": {"cpu": "500m"}}),
                true,
            ),
            // Nothing speaks of the request, which is above the limit.
            (
                json!({"requests": {"memory": "2Gi"}, "limits": {"memory": "4Gi"}}),
                json!({"limits": {"memory": "1Gi"}, "requests": {"memory": "x"}}),
                false,
            ),
            // Guaranteed, which it was not.
            (
                json!({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}),
                json!({"limits": {"cpu": "1", "memory": "1Gi"}}),
                false,
            ),
        ] {
            let found = missing(&asking(&has), &asks(&wants), newest);
            assert_eq!(found.is_some(), given, "{has} to {wants}");
        }
    }

    #[test]
    fn only_amounts_that_a_template_asks_for_are_left_by_it() {
        let pod = asking(&json!({"limits": {"cpu": "2", "memory": "1Gi"}}));
        let missing = Amounts::of(&asks(&json!({"limits": {"cpu": "1", "memory": "1Gi"}})))
            .missing(&pod, VerticalScaling::Endpoint);
        let left_by = |resources: Value| Amounts::of(&asks(&resources)).left(&pod, &missing);
        assert!(left_by(json!({"limits": {"cpu": "2", "memory": "3Gi"}})));
        assert!(!left_by(json!({"limits": {"cpu": "1500m", "memory": "1Gi"}})));
        assert!(!left_by(json!({"limits": {"memory": "1Gi"}})));
    }
}
