//! Resource quotas: how many objects of a kind a namespace may have.
//!
//! Counts are enforced: `pods`, `services` and others of the core by their names, all resources as
//! `count/deployments.apps`. What pods request, scopes and classes of storage are not.

mod limits;

use std::sync::Arc;

use serde_json::{Map, Value, json};

pub(crate) use self::limits::without_effect;
use self::limits::{counted, hard};
use crate::api::{Api, Call};
use crate::object::{at, metadata_text};
use crate::status::Failure;
use crate::store::ResourceId;

/// How many there are in a namespace.
fn used(api: &Api, namespace: &str, name: &str) -> Option<i128> {
    let (group, plural) = counted(name)?;
    let id = ResourceId {
        group: group.into(),
        plural: plural.into(),
    };
    let objects = api.store.collection(&id).map(|all| all.range(namespace, None));
    let objects = objects.into_iter().flatten();
    // pods that have ended count as objects only
    let is_over = |pod: &Value| {
        matches!(
            at(pod, "/status/phase").and_then(Value::as_str),
            Some("Succeeded" | "Failed")
        )
    };
    let count = objects
        .filter(|(_, stored)| name != "pods" || !is_over(&stored.value()))
        .count();
    i128::try_from(count).ok()
}

fn quotas(api: &Api, namespace: &str) -> Vec<Arc<Value>> {
    let id = ResourceId {
        group: "".into(),
        plural: "resourcequotas".into(),
    };
    let all = api.store.collection(&id).map(|all| all.range(namespace, None));
    all.into_iter()
        .flatten()
        .map(|(_, quota)| quota.value())
        .collect()
}

/// Admission: a namespace does not get more objects than its quotas allow.
///
/// # Errors
/// One of them is used up.
pub(crate) fn check(api: &Api, call: &Call<'_>, object: &Value) -> Result<(), Failure> {
    let namespace = &call.target.namespace;
    if namespace.is_empty() {
        return Ok(());
    }
    let own = (call.resource.id.group.as_ref(), call.resource.id.plural.as_ref());
    for quota in quotas(api, namespace) {
        let of_own = hard(&quota).filter(|(name, _)| counted(name) == Some(own));
        let full: Vec<(&String, i128, i128)> = of_own
            .filter_map(|(name, most)| Some((name, used(api, namespace, name)?, most)))
            .filter(|(_, used, most)| used >= most)
            .collect();
        if full.is_empty() {
            continue;
        }
        let list = |amount: &dyn Fn(&(&String, i128, i128)) -> i128| {
            let pairs: Vec<String> = full
                .iter()
                .map(|one| format!("{}={}", one.0, amount(one)))
                .collect();
            pairs.join(",")
        };
        let why = format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            metadata_text(&quota, "name"),
            list(&|_| 1),
            list(&|one| one.1),
            list(&|one| one.2),
        );
        return Err(Failure::forbidden(
            &call.resource.subject(),
            metadata_text(object, "name"),
            &why,
        ));
    }
    Ok(())
}

/// The status of a quota in a namespace.
pub(crate) fn status(api: &Api, namespace: &str, quota: &Value) -> Value {
    let mut counts = Map::new();
    for (name, _) in hard(quota) {
        if let Some(used) = used(api, namespace, name) {
            counts.insert(name.clone(), used.to_string().into());
        }
    }
    if counts.is_empty() {
        return json!({});
    }
    let limits: Map<String, Value> = at(quota, "/spec/hard")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(name, _)| counts.contains_key(*name))
        .map(|(name, amount)| (name.clone(), amount.clone()))
        .collect();
    json!({"hard": limits, "used": counts})
}
