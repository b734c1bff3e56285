//! Admission webhooks.
//!
//! Mutating webhooks come in the order of their configurations' names; those that ask for it are called once more if
//! a later one changed the object. One that is registered for another version of the resource is called in that version
//! unless it says `matchPolicy: Exact`.

mod conditions;
mod matching;
mod registered;
mod review;

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube_schema::patch;
use serde_json::Value;

use self::matching::{Hook, hooks};
use self::registered::Kind;
pub(crate) use self::registered::{GROUP, Webhooks};
use crate::api::{Api, Call};
pub(crate) use crate::call::Admission;
use crate::cel::Variables;
use crate::conversion;
use crate::entropy::Entropy;
use crate::status::Failure;
use crate::webhook::{About, Awaited, NeededCall, Stop, Verdict};

/// Asks all webhooks about the object of a subresource, which has no other rules; returns it as they leave it.
pub(crate) fn admit(
    api: &Api,
    call: &mut Call<'_>,
    operation: &'static str,
    mut object: Value,
    old: &Arc<Value>,
) -> Result<Value, Stop> {
    mutate(api, call, operation, &mut object, old)?;
    validate(api, call, operation, &object, old)?;
    call.admission = Admission::Done;
    Ok(object)
}

/// Whether webhooks changed an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutated {
    Yes,
    No,
}

/// Calls the mutating webhooks; the object is as they leave it, or as it was if one is still to be called.
pub(crate) fn mutate(
    api: &Api,
    call: &Call<'_>,
    operation: &'static str,
    object: &mut Value,
    old: &Arc<Value>,
) -> Result<Mutated, Stop> {
    let mut original = None;
    let called = call_all(api, call, operation, (object, old), &mut original);
    match (called, original) {
        (Ok(()), Some(_)) => Ok(Mutated::Yes),
        (Ok(()), None) => Ok(Mutated::No),
        (Err(stop), original) => {
            if let Some(original) = original {
                *object = original;
            }
            Err(stop)
        }
    }
}

/// Asks the mutating webhooks; `original` becomes what the object was, if one changes it.
fn call_all(
    api: &Api,
    call: &Call<'_>,
    operation: &'static str,
    (object, old): (&mut Value, &Arc<Value>),
    original: &mut Option<Value>,
) -> Result<(), Stop> {
    let hooks = hooks(api, call, Kind::Mutating, operation);
    let mut again: Vec<(&Hook, Value)> = Vec::new();
    for hook in &hooks {
        if let Some(mutated) = mutated(api, call, hook, operation, object, old)? {
            let before = std::mem::replace(object, mutated);
            original.get_or_insert(before);
        }
        if hook.reinvoked {
            again.push((hook, object.clone()));
        }
    }
    for (hook, seen) in again {
        if seen != *object
            && let Some(mutated) = mutated(api, call, hook, operation, object, old)?
        {
            *object = mutated;
        }
    }
    Ok(())
}

/// The object as a webhook wants it; `None` if it does not patch it.
fn mutated(
    api: &Api,
    call: &Call<'_>,
    hook: &Hook,
    operation: &'static str,
    object: &Value,
    old: &Arc<Value>,
) -> Result<Option<Value>, Stop> {
    // selectors look at what earlier webhooks made of the object
    if !hook.selects(api, call, object, old) {
        return Ok(None);
    }
    let (shown, old) = in_version(call, hook, object, old)?;
    let Some(response) = ask(call, hook, operation, &shown, &old)? else {
        return Ok(None);
    };
    let failed = |why: &str| Failure::internal(&format!("failed calling webhook {:?}: {why}", hook.name));
    let Some(encoded) = response.get("patch").and_then(Value::as_str) else {
        return Ok(None);
    };
    let decoded = STANDARD
        .decode(encoded)
        .map_err(|error| failed(&error.to_string()))?;
    let operations: Value = serde_json::from_slice(&decoded).map_err(|error| failed(&error.to_string()))?;
    let mut shown = shown.into_owned();
    patch::json(&mut shown, &operations).map_err(|error| Failure::internal(&error.to_string()))?;
    if review::kind_of_subresource(call).is_some() {
        return Ok(Some(shown));
    }
    if hook.version != call.version.name && !shown.is_null() {
        shown = conversion::one(call, shown, &call.version.name)?;
    }
    Ok(Some(crate::verbs::reshape(call, shown)?))
}

/// The new and the old object in the version that a webhook is registered for.
fn in_version<'v>(
    call: &Call<'_>,
    hook: &Hook,
    object: &'v Value,
    old: &Arc<Value>,
) -> Result<(Cow<'v, Value>, Arc<Value>), Stop> {
    let same = hook.version == call.version.name || review::kind_of_subresource(call).is_some();
    let convert = |one: &Value| {
        let converts = !same && !one.is_null();
        converts
            .then(|| conversion::one(call, one.clone(), &hook.version))
            .transpose()
    };
    let object = convert(object)?.map_or(Cow::Borrowed(object), Cow::Owned);
    let old = convert(old)?.map_or_else(|| old.clone(), Arc::new);
    Ok((object, old))
}

/// Asks the validating webhooks.
pub(crate) fn validate(
    api: &Api,
    call: &Call<'_>,
    operation: &'static str,
    object: &Value,
    old: &Arc<Value>,
) -> Result<(), Stop> {
    for hook in hooks(api, call, Kind::Validating, operation) {
        if hook.selects(api, call, object, old) {
            let (object, old) = in_version(call, &hook, object, old)?;
            ask(call, &hook, operation, &object, &old)?;
        }
    }
    Ok(())
}

/// A webhook's response if it allows the request; `None` if its conditions keep it out, or if it failed and may.
fn ask(
    call: &Call<'_>,
    hook: &Hook,
    operation: &'static str,
    object: &Value,
    old: &Arc<Value>,
) -> Result<Option<Value>, Stop> {
    let request = review::request(call, &hook.version, operation, object);
    let variables = Variables {
        object,
        old_object: old,
        request: &request,
        of_policy: &Value::Null,
    };
    if !conditions::hold(call, hook, &variables)? {
        return Ok(None);
    }
    let Some(reply) = call.answers.review(&hook.name, &request, object, old) else {
        let about = About {
            request,
            object: object.clone(),
            old: old.clone(),
        };
        let uid = Entropy::new(call.seed.wrapping_add(call.answers.next()?)).uid();
        return Err(Stop::Call(Box::new(NeededCall {
            webhook: hook.name.clone(),
            client: hook.client.clone(),
            timeout_seconds: hook.timeout_seconds,
            review: review::review(&about, &uid),
            awaited: Awaited::Admission {
                webhook: hook.name.clone(),
                about,
                uid,
            },
            progress: None,
        })));
    };
    let why = match reply {
        Verdict::Response(response) if response.get("allowed") == Some(&Value::Bool(true)) => {
            let warnings = response.get("warnings").and_then(Value::as_array);
            let texts = warnings.into_iter().flatten().filter_map(Value::as_str);
            call.warn(texts.map(str::to_owned));
            return Ok(Some(response.clone()));
        }
        Verdict::Response(response) => return Err(review::denied(&hook.name, response).into()),
        Verdict::Unusable(why) => why,
    };
    if hook.ignored_on_failure {
        return Ok(None);
    }
    let why = format!("failed calling webhook {:?}: {why}", hook.name);
    Err(Failure::internal(&why).into())
}
