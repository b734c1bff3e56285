//! Admission of ImagePullJobs and ImageListPullJobs, whose versions say the same in the same places.
//!
//! The finalizer that OpenKruise's webhook puts on a new `v1alpha1` job is not: who removes it is the controller, and a
//! job that waits for a controller which does not run could never be deleted.

mod reference;
pub mod validate;

use serde_json::{Map, Value, json};

use crate::{Answer, Operation, Request};

/// Kinds that are admitted here.
const KINDS: [&str; 2] = ["ImagePullJob", "ImageListPullJob"];

/// The specification of a request that is to be looked at; the answer to any other.
fn subject(request: &Request) -> Result<&Value, Answer> {
    let written = matches!(request.operation, Operation::Create | Operation::Update);
    if !written || !request.sub_resource.is_empty() {
        return Err(Answer::ALLOW);
    }
    if !KINDS.contains(&request.kind.as_str()) {
        return Err(Answer::undecodable(format_args!(
            "{} is not known here",
            request.kind
        )));
    }
    let spec = request.object.get("spec").filter(|spec| spec.is_object());
    spec.ok_or_else(|| Answer::undecodable("spec must be an object"))
}

/// Fills in what the client left out, as a minimal patch.
pub fn mutate(request: &Request) -> Answer {
    let spec = match subject(request) {
        Ok(spec) => spec,
        Err(answer) => return answer,
    };
    let mut after = spec.clone();
    if let Some(spec) = after.as_object_mut() {
        defaults(spec, request.kind == "ImagePullJob");
    }
    let mut object = request.object.clone();
    if let Some(members) = object.as_object_mut() {
        members.insert("spec".into(), after);
    }
    Answer::patched(&request.object, &object)
}

/// A list leaves the policy to the jobs that are made of it.
fn defaults(spec: &mut Map<String, Value>, single: bool) {
    if let Some(policy) = object(spec, "completionPolicy") {
        fill(policy, "type", json!("Always"));
    }
    if let Some(policy) = object(spec, "pullPolicy") {
        fill(policy, "timeoutSeconds", json!(600));
        fill(policy, "backoffLimit", json!(3));
    }
    if single {
        fill(spec, "imagePullPolicy", json!("IfNotPresent"));
    }
}

/// A member that is an object, made if it is absent; `None` if it is something else.
fn object<'a>(members: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Map<String, Value>> {
    fill(members, name, json!({}));
    members.get_mut(name)?.as_object_mut()
}

/// Sets what is absent or empty.
fn fill(members: &mut Map<String, Value>, name: &str, value: Value) {
    let slot = members.entry(name).or_insert(Value::Null);
    if slot.is_null() || slot == "" {
        *slot = value;
    }
}

#[cfg(test)]
mod tests;
