//! Delete, of one object or of many: at once, after a grace period, or once the finalizers are gone.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::delete_options::Policy;
use super::found::{find, success};
use super::{DeleteOptions, Touched, commit};
use crate::admission;
use crate::api::{Api, Call, Purpose, Reply};
use crate::object::{at, finalizers, get_metadata, metadata_text, seconds, set_metadata};
use crate::query::Query;
use crate::registry::{Grace, Propagation};
use crate::selector::Selector;
use crate::status::{Failure, Subject};
use crate::store::{Key, Stored};
use crate::webhook::Stop;

pub(crate) const ORPHAN: &str = "orphan";
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// Kinds whose deletion answers with the object.
const ANSWERED_WITH_OBJECT: &[&str] = &[
    "pods",
    "services",
    "namespaces",
    "persistentvolumes",
    "persistentvolumeclaims",
    "serviceaccounts",
    "resourcequotas",
    "storageclasses",
];

/// Where a deletion has got.
pub(crate) enum Progress {
    /// The object is gone.
    Gone(Arc<Value>),
    /// The object is marked, and waits for its node or its finalizers.
    Waiting(Arc<Value>),
}

pub(super) fn one(api: &mut Api, call: &mut Call<'_>) -> Result<Reply, Stop> {
    let options = DeleteOptions::read(call)?;
    call.dry_run |= options.dry_run;
    let waits = options.orphan_dependents == Some(false);
    let reply = match delete(api, call, options)? {
        Progress::Gone(object) => {
            let plural = call.resource.id.plural.as_ref();
            let value = if ANSWERED_WITH_OBJECT.contains(&plural) && !call.resource.is_custom() {
                object
            } else {
                success(Some(details(call, &object))).into()
            };
            Reply { code: 200, value }
        }
        Progress::Waiting(value) => Reply {
            code: if waits { 202 } else { 200 },
            value,
        },
    };
    Ok(reply)
}

fn details(call: &Call<'_>, object: &Value) -> Value {
    let mut details = Map::new();
    details.insert("name".into(), metadata_text(object, "name").into());
    if !call.resource.id.group.is_empty() {
        details.insert("group".into(), call.resource.id.group.as_ref().into());
    }
    details.insert("kind".into(), call.resource.id.plural.as_ref().into());
    details.insert("uid".into(), metadata_text(object, "uid").into());
    Value::Object(details)
}

/// Deletes the object that the call names.
pub(crate) fn delete(api: &mut Api, call: &Call<'_>, options: DeleteOptions) -> Result<Progress, Stop> {
    let before = call.read(find(api, call)?)?;
    let mut object = Value::clone(&before);
    let is_namespace = call.resource.id.plural.as_ref() == "namespaces" && call.resource.id.group.is_empty();
    if is_namespace {
        check_namespace(call, &object, &options)?;
    } else {
        check(call, &object, &options)?;
    }
    admission::mutate(api, call, "DELETE", &mut Value::Null, &before)?;
    admission::validate(api, call, "DELETE", &Value::Null, &before)?;
    if is_namespace && terminate(&mut object, call.now) {
        set_finalizers(call, &mut object, &options);
        return Ok(Progress::Waiting(save(api, call, &before, object)?));
    }
    let is_definition = call.resource.id.plural.as_ref() == "customresourcedefinitions";
    if is_definition
        && get_metadata(&object, "deletionTimestamp").is_null()
        && !finalizers(&object).is_empty()
    {
        crate::crd::terminate(&mut object, call.now);
        return Ok(Progress::Waiting(save(api, call, &before, object)?));
    }
    let spec_finalizers = at(&object, "/spec/finalizers").and_then(Value::as_array);
    if is_namespace && spec_finalizers.is_some_and(|list| !list.is_empty()) {
        return Ok(Progress::Waiting(object.into()));
    }
    let grace = grace(call, &mut object, &options);
    if grace == Waits::Already {
        return Ok(Progress::Waiting(object.into()));
    }
    set_finalizers(call, &mut object, &options);
    let pending = !finalizers(&object).is_empty();
    if grace == Waits::No && pending {
        mark(&mut object, call.now);
    }
    if pending || matches!(grace, Waits::For(1..)) {
        return Ok(Progress::Waiting(save(api, call, &before, object)?));
    }
    if matches!(grace, Waits::For(_)) {
        // watches see that it was marked before it went
        object = Arc::unwrap_or_clone(save(api, call, &before, object)?);
    }
    let key = call.key();
    Ok(Progress::Gone(commit::remove(api, call, &key, object)?))
}

fn save(api: &mut Api, call: &Call<'_>, before: &Value, object: Value) -> Result<Arc<Value>, Stop> {
    if before == &object {
        return Ok(object.into());
    }
    commit::put(api, call, call.key(), object)
}

fn check(call: &Call<'_>, object: &Value, options: &DeleteOptions) -> Result<(), Failure> {
    let subject = Subject::new(&call.resource.id.group, &call.resource.kind);
    let pairs = [
        ("UID", "uid", &options.uid, "deleted and then recreated"),
        (
            "ResourceVersion",
            "resourceVersion",
            &options.resource_version,
            "modified",
        ),
    ];
    for (label, name, wanted, then) in pairs {
        let found = metadata_text(object, name);
        let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != found) else {
            continue;
        };
        let why = format!(
            "the {label} in the precondition ({wanted}) does not match the {label} in record ({found}). The object might have been {then}"
        );
        return Err(Failure::conflict(&subject, &call.target.name, &why));
    }
    Ok(())
}

/// As [`check`], in the words that namespaces have.
fn check_namespace(call: &Call<'_>, namespace: &Value, options: &DeleteOptions) -> Result<(), Failure> {
    let pairs = [
        ("UID", "uid", &options.uid),
        ("ResourceVersion", "resourceVersion", &options.resource_version),
    ];
    for (label, name, wanted) in pairs {
        let found = metadata_text(namespace, name);
        if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != found) {
            let why = format!(
                "Precondition failed: {label} in precondition: {wanted}, {label} in object meta: {found}"
            );
            return Err(Failure::conflict(
                &call.resource.subject(),
                &call.target.name,
                &why,
            ));
        }
    }
    Ok(())
}

/// A namespace first stops taking content; true if it just did.
fn terminate(namespace: &mut Value, now: Timestamp) -> bool {
    if !get_metadata(namespace, "deletionTimestamp").is_null() {
        return false;
    }
    set_metadata(namespace, "deletionTimestamp", seconds(now).into());
    if let Some(Value::Object(status)) = namespace.get_mut("status") {
        status.insert("phase".into(), "Terminating".into());
    }
    true
}

/// Whether a node must first stop the pod.
#[derive(PartialEq, Eq)]
enum Waits {
    /// The kind has no grace period.
    No,
    /// It waits already, and not for longer than requested.
    Already,
    /// From now on, for seconds.
    For(i64),
}

fn grace(call: &Call<'_>, object: &mut Value, options: &DeleteOptions) -> Waits {
    if call.resource.traits.grace == Grace::None {
        return Waits::No;
    }
    let requested = options.grace.map(|grace| if grace < 0 { 1 } else { grace });
    if !get_metadata(object, "deletionTimestamp").is_null() {
        let current = get_metadata(object, "deletionGracePeriodSeconds")
            .as_i64()
            .unwrap_or_default();
        return match requested {
            _ if current == 0 => Waits::No,
            Some(requested) if requested < current => shorten(object, current, requested, call.now),
            _ => Waits::Already,
        };
    }
    let own = at(object, "/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    let phase = at(object, "/status/phase")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let idle = at(object, "/spec/nodeName").is_none() || matches!(phase, "Failed" | "Succeeded");
    let period = if idle {
        0
    } else {
        requested.or(own).unwrap_or_default()
    };
    let period = if period < 0 { 1 } else { period };
    let until = shifted(call.now, period);
    set_metadata(object, "deletionTimestamp", seconds(until).into());
    set_metadata(object, "deletionGracePeriodSeconds", period.into());
    bump(object);
    Waits::For(period)
}

fn shorten(object: &mut Value, current: i64, requested: i64, now: Timestamp) -> Waits {
    let until: Timestamp = metadata_text(object, "deletionTimestamp").parse().unwrap_or(now);
    let moved = shifted(until, requested.saturating_sub(current));
    let late = moved < now;
    let period = if late && requested != 0 { 1 } else { requested };
    let until = if late { now } else { moved };
    set_metadata(object, "deletionTimestamp", seconds(until).into());
    set_metadata(object, "deletionGracePeriodSeconds", period.into());
    Waits::For(period)
}

/// So many seconds later, or earlier if negative; at most to the end of time.
fn shifted(time: Timestamp, seconds: i64) -> Timestamp {
    let end = if seconds < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    time.checked_add(SignedDuration::from_secs(seconds))
        .unwrap_or(end)
}

/// Marks an object that waits for finalizers only.
fn mark(object: &mut Value, now: Timestamp) {
    if get_metadata(object, "deletionTimestamp").is_null() {
        bump(object);
        set_metadata(object, "deletionTimestamp", seconds(now).into());
    }
    set_metadata(object, "deletionGracePeriodSeconds", 0.into());
}

fn bump(object: &mut Value) {
    if let Some(generation) = get_metadata(object, "generation")
        .as_i64()
        .filter(|count| *count > 0)
    {
        set_metadata(object, "generation", generation.saturating_add(1).into());
    }
}

/// The propagation becomes a finalizer that garbage collection works off.
fn set_finalizers(call: &Call<'_>, object: &mut Value, options: &DeleteOptions) {
    let had: Vec<String> = finalizers(object).into_iter().map(str::to_owned).collect();
    let has = |name: &str| had.iter().any(|one| one == name);
    let (orphan, foreground) = match (options.orphan_dependents, options.policy) {
        _ if call.resource.traits.propagation == Propagation::Unsupported => (false, false),
        (Some(orphan), _) => (orphan, false),
        (None, Some(policy)) => (policy == Policy::Orphan, policy == Policy::Foreground),
        (None, None) => (has(ORPHAN), has(FOREGROUND) && !has(ORPHAN)),
    };
    let mut list: Vec<Value> = had
        .iter()
        .filter(|one| *one != ORPHAN && *one != FOREGROUND)
        .map(|one| one.as_str().into())
        .collect();
    if orphan {
        list.push(ORPHAN.into());
    }
    if foreground {
        list.push(FOREGROUND.into());
    }
    let value = if list.is_empty() { Value::Null } else { list.into() };
    set_metadata(object, "finalizers", value);
}

/// Deletes all objects that the selectors show; answers with the list of them.
pub(super) fn collection(api: &mut Api, call: &mut Call<'_>) -> Result<Reply, Stop> {
    let options = DeleteOptions::read(call)?;
    call.dry_run |= options.dry_run;
    call.query.number("timeoutSeconds")?;
    call.query.number("limit")?;
    let selector = Selector::of_call(call)?;
    let found = api.store.collection(&call.resource.id);
    let keys: Vec<Key> = found
        .into_iter()
        .flat_map(|collection| collection.range(&call.target.namespace, None))
        .filter(|(key, stored)| selector.matches(&key.namespace, &key.name, &stored.head))
        .map(|(key, _)| key.clone())
        .collect();
    let revision = api.store.revision();
    // webhooks are called for all objects before the first one is deleted
    let found: Vec<Arc<Stored>> = keys
        .iter()
        .filter_map(|key| api.store.get(&call.resource.id, key).cloned())
        .collect();
    let found = call.read_all(found.iter().map(AsRef::as_ref))?;
    for key in &keys {
        if let Err(stop @ Stop::Call(_)) = delete(api, &named(call, key, Purpose::Rehearsal), options.clone())
        {
            return Err(stop);
        }
    }
    let mut items = Vec::new();
    for (key, before) in keys.iter().zip(found) {
        match delete(api, &named(call, key, call.purpose), options.clone()) {
            // the answer lists what was found, not what became of it
            Ok(_) => items.push(super::list::item(call, before)),
            Err(Stop::Failure(failure)) if failure.code == 404 => {}
            Err(stop) => return Err(stop),
        }
    }
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if let (true, Value::Object(members)) = (call.resource.is_custom(), &mut metadata) {
        members.insert("continue".into(), "".into());
    }
    let value = json!({
        "kind": call.resource.list_kind(), "apiVersion": call.api_version(), "metadata": metadata, "items": items,
    });
    Ok(Reply::new(200, value))
}

/// The same call, for one object.
fn named<'a>(call: &Call<'a>, key: &Key, purpose: Purpose) -> Call<'a> {
    let mut target = call.target.clone();
    target.namespace = key.namespace.to_string();
    target.name = key.name.to_string();
    Call {
        request: call.request,
        target,
        query: Query::default(),
        resource: call.resource.clone(),
        version: call.version.clone(),
        form: call.form,
        now: call.now,
        dry_run: call.dry_run,
        purpose,
        admission: call.admission,
        touched: Touched::All,
        progress: None,
        warnings: std::cell::RefCell::default(),
        seed: call.seed,
        answers: call.answers,
    }
}
