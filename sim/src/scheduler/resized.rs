//! What a pod on a node counts with while its resources change.
//!
//! Of each container the most of what it requests, what it was given and what it has; what its node can never give
//! does not count. (Kubernetes: `resource.PodRequests` with the resources of the status.)

use serde_json::Value;

use super::request::Amounts;
use crate::object::at;

/// What a pod on a node counts with.
pub(super) fn request(pod: &Value) -> Amounts {
    let never = is_infeasible(pod);
    Amounts::of_containers(pod, |container| match had(pod, container) {
        Some(had) if never => had,
        Some(mut had) => {
            had.raise(&Amounts::of_container(container));
            had
        }
        None => Amounts::of_container(container),
    })
}

/// Does a container request something else than it has?
pub(super) fn is_unsettled(pod: &Value) -> bool {
    let lists = ["/spec/containers", "/spec/initContainers"];
    let containers = lists
        .iter()
        .filter_map(|list| at(pod, list)?.as_array())
        .flatten();
    let differs =
        |container: &Value| had(pod, container).is_some_and(|had| had != Amounts::of_container(container));
    containers.into_iter().any(differs)
}

/// The most of what a container was given and what it has, if its status has that.
fn had(pod: &Value, container: &Value) -> Option<Amounts> {
    let lists = ["/status/containerStatuses", "/status/initContainerStatuses"];
    let mut statuses = lists
        .iter()
        .filter_map(|list| at(pod, list)?.as_array())
        .flatten();
    let status = statuses.find(|status| status.get("name") == container.get("name"))?;
    let (given, has) = (
        status.get("allocatedResources"),
        at(status, "/resources/requests"),
    );
    given.or(has)?;
    let mut all = Amounts::of_list(given);
    all.raise(&Amounts::of_list(has));
    Some(all)
}

fn is_infeasible(pod: &Value) -> bool {
    let conditions = at(pod, "/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        let is = |member: &str, text: &str| condition.get(member).and_then(Value::as_str) == Some(text);
        is("type", "PodResizePending") && is("status", "True") && is("reason", "Infeasible")
    })
}
