//! The labels that say which of the set's pods one is. Somebody may have removed them.

use kruise_api::names::statefulset::{POD_INDEX, POD_NAME};
use kruise_plan_kit::{
    Intent, ObjectWrites, Owner, Part,
    pod_writes::{self, Guard},
};
use serde_json::{Value, json};

use super::{events, members::Member};

/// Gives a pod the label of its name back. The label of its ordinal comes with it, as nothing else depends on that.
pub(super) fn repair(owner: &Owner<'_>, member: &Member<'_>, with_index: bool) -> Option<ObjectWrites> {
    let view = member.pod.view;
    if view.labels.get(POD_NAME) == Some(&*view.name) {
        return None;
    }
    let mut labels = json!({POD_NAME: view.name});
    if let (Value::Object(labels), true) = (&mut labels, with_index) {
        labels.insert(POD_INDEX.into(), member.ordinal.to_string().into());
    }
    let patch = json!({"metadata": {"labels": labels}});
    let reason = "its label does not name it";
    let (intent, part) = (Intent::REPAIR_IDENTITY, Part::Main);
    let step = pod_writes::patch(view, intent, part, patch, Guard::SamePod, reason);
    let step = events::reported(step, events::repair(owner, &view.name));
    Some(ObjectWrites::of_pod(vec![step]))
}
