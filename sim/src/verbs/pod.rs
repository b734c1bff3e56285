//! The two subresources that only pods have: eviction and binding.

use std::sync::Arc;

use serde_json::{Value, json};

use super::delete::{self, Progress};
use super::found::{find, success};
use super::{DeleteOptions, commit};
use crate::admission;
use crate::api::{Api, Call, Reply};
use crate::object::{at, get_metadata, metadata, metadata_text, seconds};
use crate::selector::Selector;
use crate::status::{Failure, Subject};
use crate::store::{Key, ResourceId};
use crate::webhook::Stop;

/// What the subresource takes, a type of the table; it must name the pod of the path.
fn body(call: &Call<'_>, of: &str) -> Result<Value, Failure> {
    let value = super::body::other(call, of)?;
    let name = metadata_text(&value, "name");
    if name != call.target.name && (!name.is_empty() || call.target.subresource == "eviction") {
        let kind = of.rsplit('.').next().unwrap_or_default();
        return Err(Failure::bad_request(format!(
            "name in URL does not match name in {kind} object"
        )));
    }
    Ok(value)
}

/// Deletes a pod unless a budget forbids it now.
pub(super) fn evict(api: &mut Api, call: &mut Call<'_>) -> Result<Reply, Stop> {
    let eviction = body(call, "policy/v1.Eviction")?;
    let mut options = DeleteOptions::default();
    if let Some(given) = eviction.get("deleteOptions") {
        options.of_body(given);
    }
    // The eviction is admitted, not the deletion that it is, and before anybody looks for the pod. That it is a dry run
    // webhooks find in its body only, unless the query says so, too.
    admission::admit(api, call, "CREATE", eviction, &Arc::default())?;
    call.dry_run |= options.dry_run;
    let pod = call.read(find(api, call)?)?;
    let phase = at(&pod, "/status/phase")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let free = matches!(phase, "Succeeded" | "Failed" | "Pending")
        || !get_metadata(&pod, "deletionTimestamp").is_null();
    if !free {
        spend_budget(api, call, &pod)?;
    }
    match delete::delete(api, call, options)? {
        Progress::Gone(_) | Progress::Waiting(_) => {
            let mut value = success(None);
            if let Value::Object(members) = &mut value {
                members.insert("code".into(), 201.into());
            }
            Ok(Reply::new(201, value))
        }
    }
}

fn budgets() -> ResourceId {
    ResourceId {
        group: "policy".into(),
        plural: "poddisruptionbudgets".into(),
    }
}

/// Takes one disruption from the budget that covers the pod, if one does.
fn spend_budget(api: &mut Api, call: &Call<'_>, pod: &Value) -> Result<(), Failure> {
    let Some(stored) = api.store.get(&call.resource.id, &call.key()) else {
        return Ok(());
    };
    let head = stored.head.clone();
    let found = api.store.collection(&budgets());
    let covering: Vec<(Key, Arc<Value>)> = found
        .into_iter()
        .flat_map(|collection| collection.range(&call.target.namespace, None))
        .map(|(key, stored)| (key.clone(), stored.value()))
        .filter(|(_, budget)| {
            let selector = at(budget, "/spec/selector").map(Selector::of_object);
            selector
                .is_some_and(|selector| selector.matches(&call.target.namespace, &call.target.name, &head))
        })
        .collect();
    let [(key, budget)] = covering.as_slice() else {
        return match covering.len() {
            0 => Ok(()),
            _ => Err(Failure::unknown(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            )),
        };
    };
    let status = |name: &str| {
        budget
            .pointer(&format!("/status/{name}"))
            .and_then(Value::as_i64)
            .unwrap_or_default()
    };
    let healthy = is_ready(pod);
    let policy = at(budget, "/spec/unhealthyPodEvictionPolicy");
    if !healthy && policy == Some(&"AlwaysAllow".into()) {
        return Ok(());
    }
    if !healthy && status("currentHealthy") >= status("desiredHealthy") && status("desiredHealthy") > 0 {
        return Ok(());
    }
    let allowed = status("disruptionsAllowed");
    if allowed <= 0 {
        let why = format!(
            "The disruption budget {} needs {} healthy pods and has {} currently",
            key.name,
            status("desiredHealthy"),
            status("currentHealthy")
        );
        return Err(Failure::too_many_requests(
            "Cannot evict pod as it would violate the pod's disruption budget.",
            &why,
        ));
    }
    let mut budget = Value::clone(budget);
    if let Some(Value::Object(status)) = budget.get_mut("status") {
        status.insert("disruptionsAllowed".into(), (allowed - 1).into());
        let condition = disruption_allowed(allowed - 1, status.get("observedGeneration"), call);
        status.insert("conditions".into(), json!([condition]));
        let disrupted = status.entry("disruptedPods").or_insert_with(|| json!({}));
        if let Value::Object(disrupted) = disrupted {
            disrupted.insert(call.target.name.clone(), seconds(call.now).into());
        }
    }
    if let (false, Some(resource)) = (call.dry_run, api.registry.by_id(&budgets()).cloned()) {
        let revision = api.store.next_revision().to_string();
        crate::object::set_metadata(&mut budget, "resourceVersion", revision.into());
        commit::write(api, &resource, key.clone(), &Arc::new(budget));
    }
    Ok(())
}

/// The condition that reports how many disruptions are left.
fn disruption_allowed(left: i64, generation: Option<&Value>, call: &Call<'_>) -> Value {
    let (status, reason) = if left > 0 {
        ("True", "SufficientPods")
    } else {
        ("False", "InsufficientPods")
    };
    let mut condition = json!({"type": "DisruptionAllowed", "status": status, "reason": reason, "message": "",
        "lastTransitionTime": seconds(call.now)});
    if let (Some(generation), Value::Object(members)) = (generation, &mut condition) {
        members.insert("observedGeneration".into(), generation.clone());
    }
    condition
}

fn is_ready(pod: &Value) -> bool {
    let conditions = at(pod, "/status/conditions").and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|one| one.get("type") == Some(&"Ready".into()) && one.get("status") == Some(&"True".into()))
}

/// Gives a pod its node.
pub(super) fn bind(api: &mut Api, call: &mut Call<'_>) -> Result<Reply, Stop> {
    let binding = body(call, "core/v1.Binding")?;
    let binding = admission::admit(api, call, "CREATE", binding, &Arc::default())?;
    let node = at(&binding, "/target/name")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    if node.is_empty() {
        return Err(Failure::unknown("target.name: Required value").into());
    }
    let mut pod = Arc::unwrap_or_clone(call.read(find(api, call)?)?);
    let name = &call.target.name;
    let subject = Subject::new("", "pods/binding");
    if !get_metadata(&pod, "deletionTimestamp").is_null() {
        let why = format!("pod {name} is being deleted, cannot be assigned to a host");
        return Err(Failure::conflict(&subject, name, &why).into());
    }
    if let Some(taken) = at(&pod, "/spec/nodeName").and_then(Value::as_str) {
        let why = format!("pod {name} is already assigned to node {taken:?}");
        return Err(Failure::conflict(&subject, name, &why).into());
    }
    if let Some(Value::Object(spec)) = pod.get_mut("spec") {
        spec.insert("nodeName".into(), node.into());
    }
    let annotations = get_metadata(&binding, "annotations").as_object().cloned();
    if let (Some(added), Some(metadata)) = (annotations, metadata(&mut pod)) {
        let entry = metadata.entry("annotations").or_insert_with(|| json!({}));
        if let Value::Object(entry) = entry {
            entry.extend(added);
        }
    }
    let condition = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null,
        "lastTransitionTime": seconds(call.now)});
    if let Some(Value::Object(status)) = pod.get_mut("status") {
        let conditions = status.entry("conditions").or_insert_with(|| json!([]));
        if let Value::Array(list) = conditions {
            list.retain(|one| one.get("type") != Some(&"PodScheduled".into()));
            list.push(condition);
        }
    }
    commit::put(api, call, call.key(), pod)?;
    let mut value = success(None);
    if let Value::Object(members) = &mut value {
        members.insert("code".into(), 201.into());
    }
    Ok(Reply::new(201, value))
}
