//! Priority classes: which priority a new pod gets.

use std::sync::Arc;

use serde_json::Value;

use crate::api::{Api, Call};
use crate::object::{at, metadata_text};
use crate::status::Failure;
use crate::store::{Key, ResourceId};
use crate::validation::text;

/// Admission: gives a new pod the priority of its class, or of the one that is the default.
///
/// # Errors
/// The class is missing, or the pod says something else than its class.
pub(crate) fn give(api: &Api, call: &Call<'_>, object: &mut Value) -> Result<(), Failure> {
    if call.resource.id.plural.as_ref() != "pods" || !call.resource.id.group.is_empty() {
        return Ok(());
    }
    let refuse = |why: String| {
        let name = metadata_text(object, "name");
        Failure::forbidden(&call.resource.subject(), name, &why)
    };
    let named = at(object, "/spec/priorityClassName")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let class = match named {
        "" => default_class(api),
        name => match api.store.get(&id(), &Key::new("", name)) {
            Some(class) => Some(class.value()),
            None => return Err(refuse(format!("no PriorityClass with name {name} was found"))),
        },
    };
    let value = class
        .as_ref()
        .and_then(|class| class.get("value")?.as_i64())
        .unwrap_or_default();
    if let Some(given) = at(object, "/spec/priority")
        .and_then(Value::as_i64)
        .filter(|given| *given != value)
    {
        return Err(refuse(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name"
        )));
    }
    let Some(class) = class else {
        return Ok(());
    };
    let policy = match text(&class, "preemptionPolicy") {
        "" => "PreemptLowerPriority",
        policy => policy,
    };
    let given = at(object, "/spec/preemptionPolicy").and_then(Value::as_str);
    if let Some(given) = given.filter(|given| *given != policy) {
        return Err(refuse(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        )));
    }
    if let Some(Value::Object(spec)) = object.get_mut("spec") {
        spec.insert("priorityClassName".into(), metadata_text(&class, "name").into());
        spec.insert("priority".into(), value.into());
        spec.insert("preemptionPolicy".into(), policy.into());
    }
    Ok(())
}

fn id() -> ResourceId {
    ResourceId {
        group: "scheduling.k8s.io".into(),
        plural: "priorityclasses".into(),
    }
}

/// The class of pods that name none: of several defaults the one with the lowest value.
fn default_class(api: &Api) -> Option<Arc<Value>> {
    let classes = api.store.collection(&id())?.range("", None);
    let defaults = classes
        .map(|(_, class)| class.value())
        .filter(|class| class.get("globalDefault") == Some(&true.into()));
    defaults.min_by_key(|class| class.get("value").and_then(Value::as_i64))
}
