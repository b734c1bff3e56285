//! Which pod a request is about, and what it does to it.

use kruise_plan_kit::ledger::{Gates, Operation, operation_of_update};
use serde_json::Value;

use crate::json::{items, present};
use crate::{Operation as Verb, Request, Response};

/// What may make a pod unavailable.
pub(super) struct Subject<'a> {
    /// The pod as it is stored; `None` if the request does not carry it.
    pub(super) pod: Option<&'a Value>,
    pub(super) operation: Operation,
    pub(super) dry_run: bool,
}

/// `None` if the request makes no pod unavailable that the gates protect.
pub(super) fn subject(request: &Request, gates: Gates) -> Result<Option<Subject<'_>>, Response> {
    let subject = match (request.operation, request.sub_resource.as_str()) {
        (Verb::Delete, "") => stored(request).map(|pod| Subject {
            pod: Some(pod),
            operation: Operation::Delete,
            dry_run: request.dry_run,
        }),
        (Verb::Update, "" | "resize") => updated(request)?,
        (Verb::Create, "eviction") => Some(Subject {
            pod: None,
            operation: Operation::Evict,
            dry_run: request.dry_run || is_dry_run(&request.object)?,
        }),
        _ => None,
    };
    Ok(subject.filter(|subject| gates.limit(subject.operation)))
}

/// The stored pod. Very old servers send none with a deletion.
fn stored(request: &Request) -> Option<&Value> {
    Some(&request.old_object).filter(|pod| pod.is_object())
}

/// The stored pod decides, so that an update cannot take the name of the budget away and change the pod at once.
fn updated(request: &Request) -> Result<Option<Subject<'_>>, Response> {
    let (Some(old), true) = (stored(request), request.object.is_object()) else {
        return Err(Response::undecodable(
            "an update needs the pod before and after it",
        ));
    };
    let operation = operation_of_update(old, &request.object);
    Ok(operation.map(|operation| Subject {
        pod: Some(old),
        operation,
        dry_run: request.dry_run,
    }))
}

/// Does an eviction, of `policy/v1` or `v1beta1`, ask for a dry run?
pub(super) fn is_dry_run(eviction: &Value) -> Result<bool, Response> {
    if !eviction.is_object() {
        return Err(Response::undecodable("an eviction is an object"));
    }
    let options = present(eviction, "deleteOptions");
    Ok(options.is_some_and(|options| !items(options, "dryRun").is_empty()))
}
