//! Resources of running containers: what they have, and when they get what they request.
//!
//! As on a kubelet a pod gets all that it requests or nothing. More than its node has is `Infeasible`; more than the
//! others leave is `Deferred`, and tried again when one of them is removed or gets less.

use serde_json::{Value, json};

use super::container::Container;
use super::spec::{ContainerSpec, Role};
use crate::scheduler::request::Amounts;

/// Why a pod does not get what it requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// Room on a node.
pub(super) struct Room<'a> {
    pub(super) allocatable: &'a Amounts,
    /// What the other pods there have.
    pub(super) used: &'a Amounts,
}

impl Room<'_> {
    /// Whether there is none for a pod that requests so much.
    pub(super) fn refuses(&self, request: &Amounts) -> Option<Refusal> {
        // In the units of the kubelet: thousandths of a processor, bytes.
        let shown = |name: &str, amount: i128| if name == "cpu" { amount } else { amount / 1000 };
        for name in ["memory", "cpu"] {
            let (wanted, capacity) = (request.get(name), self.allocatable.get(name));
            if wanted > capacity {
                let (wanted, capacity) = (shown(name, wanted), shown(name, capacity));
                return Some(Refusal {
                    reason: "Infeasible",
                    message: format!(
                        "Node didn't have enough capacity: {name}, requested: {wanted}, capacity: {capacity}"
                    ),
                });
            }
        }
        for name in ["cpu", "memory"] {
            let (wanted, used, capacity) =
                (request.get(name), self.used.get(name), self.allocatable.get(name));
            if wanted > 0 && used.saturating_add(wanted) > capacity {
                let [wanted, used, capacity] = [wanted, used, capacity].map(|amount| shown(name, amount));
                return Some(Refusal {
                    reason: "Deferred",
                    message: format!(
                        "Node didn't have enough resource: {name}, requested: {wanted}, used: {used}, capacity: {capacity}"
                    ),
                });
            }
        }
        None
    }
}

/// What containers have: the resources of their specifications, as they were when the pod got them.
pub(super) fn requested(specs: &[ContainerSpec<'_>]) -> Vec<Value> {
    specs.iter().map(|spec| spec.resources.clone()).collect()
}

/// Gives containers what they request; those that restart for it do.
pub(super) fn give(has: &mut [Value], containers: &mut [Container], specs: &[ContainerSpec<'_>]) {
    for ((has, container), spec) in has.iter_mut().zip(containers).zip(specs) {
        let differs = |name: &str| {
            let of = |resources: &Value| {
                ["requests", "limits"]
                    .map(|list| resources.get(list).and_then(|list| list.get(name)).cloned())
            };
            of(has) != of(spec.resources)
        };
        if spec.restarts_for.iter().any(|name| differs(name)) {
            container.restart("resize requires restart");
        }
        has.clone_from(spec.resources);
    }
}

/// A pod of which containers have so much, for counting.
pub(super) fn as_pod(has: &[Value], specs: &[ContainerSpec<'_>]) -> Value {
    let of = |init: bool| -> Vec<Value> {
        let pairs = has
            .iter()
            .zip(specs)
            .filter(|(_, spec)| spec.role != Role::Ephemeral && (spec.role != Role::Main) == init);
        let one = |(resources, spec): (&Value, &ContainerSpec<'_>)| {
            let policy = (spec.role == Role::Sidecar).then_some("Always");
            json!({"resources": resources, "restartPolicy": policy})
        };
        pairs.map(one).collect()
    };
    json!({"spec": {"containers": of(false), "initContainers": of(true)}})
}
