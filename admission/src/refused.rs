//! Refusals that are counted and logged, beside the response to the client.

use kruise_api::podunavailablebudget::{KIND, PodUnavailableBudget};
use kruise_plan_kit::Involved;
use kruise_views::PodView;
use serde_json::Value;

use crate::Request;
use crate::json::text;

/// The guard that is a label, as the protection log names it.
pub const BY_LABEL: &str = "DeletionProtection";
/// The guard that is a budget, as the protection log names it.
pub const BY_BUDGET: &str = "PodUnavailableBudget";

/// A guard refused a request: this object stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The guard, as the protection log names it.
    pub event: &'static str,
    /// Kind of the object.
    pub kind: String,
    /// Empty if the object has no namespace.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// Name of the user who made the request.
    pub user: String,
    /// The budget, if one refused it.
    pub budget: Option<Involved>,
}

impl Refused {
    /// By a protection label. The stored object tells its name, which a request to delete a collection does not.
    pub(crate) fn deletion(kind: &str, request: &Request) -> Self {
        let metadata = request.old_object.get("metadata").unwrap_or(&Value::Null);
        let name = Some(text(metadata, "name")).filter(|name| !name.is_empty());
        Self {
            event: BY_LABEL,
            kind: kind.to_owned(),
            namespace: text(metadata, "namespace").to_owned(),
            name: name.unwrap_or(&request.name).to_owned(),
            user: request.user.clone(),
            budget: None,
        }
    }

    /// By the budget of a pod. What stays is the workload that controls the pod; a pod without one is of an unknown
    /// kind.
    pub(crate) fn disruption(budget: &PodUnavailableBudget, pod: &PodView, user: &str) -> Self {
        let (kind, name) = match &pod.controller {
            Some(owner) => (&*owner.kind, &*owner.name),
            None => ("unknown", &*pod.name),
        };
        let namespace = Some(&*pod.namespace).filter(|namespace| !namespace.is_empty());
        Self {
            event: BY_BUDGET,
            kind: kind.to_owned(),
            namespace: namespace.unwrap_or("default").to_owned(),
            name: name.to_owned(),
            user: user.to_owned(),
            budget: Some(involved(budget)),
        }
    }
}

/// A budget, as an event names it.
fn involved(budget: &PodUnavailableBudget) -> Involved {
    let metadata = &budget.metadata;
    Involved {
        api_version: format!("{}/v1beta1", KIND.group).into(),
        kind: KIND.kind.into(),
        namespace: metadata.namespace.as_str().into(),
        name: metadata.name.as_str().into(),
        uid: metadata.uid.as_str().into(),
        resource_version: metadata.resource_version.as_str().into(),
    }
}
