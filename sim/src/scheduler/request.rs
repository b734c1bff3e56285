//! Amounts of resources, in thousandths.

use std::collections::BTreeMap;

use crate::object::at;
use go_compat::quantity::Quantity;
use serde_json::Value;

/// Amounts by resource. What is absent is nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amounts(BTreeMap<String, i128>);

impl Amounts {
    /// A resource list, as nodes and containers have them. What is no quantity counts as nothing.
    pub(crate) fn of_list(list: Option<&Value>) -> Self {
        let members = list.and_then(Value::as_object).into_iter().flatten();
        let amounts = members.filter_map(|(name, value)| {
            let amount = Quantity::from_json(value).ok()?;
            Some((name.clone(), amount.thousandths()))
        });
        Self(amounts.collect())
    }

    /// What a pod requests: its containers and sidecars together, or an init container with the sidecars before it if
    /// that is more; and the overhead of its runtime.
    pub(crate) fn of_pod(pod: &Value) -> Self {
        Self::of_containers(pod, Self::of_container)
    }

    /// What a container requests.
    pub(super) fn of_container(container: &Value) -> Self {
        Self::of_list(at(container, "/resources/requests"))
    }

    /// A pod of which each container needs so much.
    pub(super) fn of_containers(pod: &Value, of: impl Fn(&Value) -> Self) -> Self {
        let list = |name: &str| {
            let items = pod.pointer(&format!("/spec/{name}")).and_then(Value::as_array);
            items.into_iter().flatten()
        };
        let (mut sidecars, mut peak) = (Self::default(), Self::default());
        for container in list("initContainers") {
            let own = of(container);
            if container.get("restartPolicy") == Some(&"Always".into()) {
                sidecars.add(&own);
                peak.raise(&sidecars);
            } else {
                let mut together = sidecars.clone();
                together.add(&own);
                peak.raise(&together);
            }
        }
        let mut all = sidecars;
        for container in list("containers") {
            all.add(&of(container));
        }
        all.raise(&peak);
        all.add(&Self::of_list(at(pod, "/spec/overhead")));
        all
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let sum = self.0.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*amount);
        }
    }

    pub(crate) fn subtract(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let left = self.0.entry(name.clone()).or_default();
            *left = left.saturating_sub(*amount);
        }
    }

    /// At least as much as another, resource by resource.
    pub(super) fn raise(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let own = self.0.entry(name.clone()).or_default();
            *own = (*own).max(*amount);
        }
    }

    pub(crate) fn get(&self, name: &str) -> i128 {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// Resources of which this requests something that others leave too little of.
    pub(crate) fn lacking<'a>(&'a self, used: &'a Self, all: &'a Self) -> impl Iterator<Item = &'a str> {
        let wanted = self.0.iter().filter(|(_, amount)| **amount > 0);
        wanted
            .filter(|(name, amount)| used.get(name).saturating_add(**amount) > all.get(name))
            .map(|(name, _)| name.as_str())
    }
}
