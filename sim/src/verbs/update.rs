//! Update, of objects and of their status. Patches end here too.

use std::sync::Arc;

use kube_schema::validate::{FieldError, Kind};
use serde_json::{Map, Value};

use super::found::find;
use super::progress::{self, Next, Progress};
use super::{Touched, body, commit, create};
use crate::admission::{self, Mutated};
use crate::api::{Api, Call, Reply};
use crate::managed;
use crate::object::{self, finalizers, get_metadata, metadata_text, set_metadata};
use crate::registry::{Generation, Metadata, Subresource};
use crate::status::Failure;
use crate::storage;
use crate::validation;
use crate::webhook::Stop;

pub(super) fn put(api: &mut Api, call: &mut Call<'_>) -> Result<Reply, Stop> {
    if let Some(progress) = progress::resumed(api, call) {
        return go_on(api, call, progress);
    }
    let mut new = body::object(call)?;
    create::place(call, &mut new)?;
    check_name(call, &new)?;
    let exists = find(api, call).is_ok();
    let creates = !exists && call.resource.traits.create_on_update && call.target.subresource.is_empty();
    let old = if creates {
        Arc::default()
    } else {
        call.read(find(api, call)?)?
    };
    check_uid(call, &old, &new)?;
    if creates {
        object::wipe_system_fields(&mut new);
        let value = create::insert(api, call, new)?;
        return Ok(Reply { code: 201, value });
    }
    replace(api, call, &old, new)
}

/// The name in the body must be that of the path.
pub(super) fn check_name(call: &Call<'_>, new: &Value) -> Result<(), Failure> {
    let name = metadata_text(new, "name");
    if name == call.target.name {
        return Ok(());
    }
    Err(Failure::bad_request(if name.is_empty() {
        "name must be provided".to_owned()
    } else {
        format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.target.name
        )
    }))
}

/// A uid in the body must be that of the stored object.
fn check_uid(call: &Call<'_>, old: &Value, new: &Value) -> Result<(), Failure> {
    let (wanted, found) = (metadata_text(new, "uid"), metadata_text(old, "uid"));
    if wanted.is_empty() || wanted == found {
        return Ok(());
    }
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}",
        storage_key(call)
    );
    Err(Failure::conflict(
        &call.resource.subject(),
        &call.target.name,
        &why,
    ))
}

/// Where a real server keeps the object; it shows in this one error.
fn storage_key(call: &Call<'_>) -> String {
    let id = &call.resource.id;
    let prefix = match id.plural.as_ref() {
        "services" => "services/specs".to_owned(),
        "endpoints" => "services/endpoints".to_owned(),
        "nodes" => "minions".to_owned(),
        _ if call.resource.is_custom() => format!("{}/{}", id.group, id.plural),
        plural => plural.to_owned(),
    };
    let namespace = match call.target.namespace.as_str() {
        "" => String::new(),
        namespace => format!("/{namespace}"),
    };
    format!("/registry/{prefix}{namespace}/{}", call.target.name)
}

/// Replaces an object, which has its shape and defaults, as far as the kind and the subresource allow.
pub(super) fn replace(
    api: &mut Api,
    call: &Call<'_>,
    old: &Arc<Value>,
    mut new: Value,
) -> Result<Reply, Stop> {
    create::namespace_exists(api, call)?;
    let entries = managed::noted(api, call, old, &new);
    set_metadata(&mut new, "managedFields", entries.clone());
    let touched = match admission::mutate(api, call, "UPDATE", &mut new, old) {
        Ok(Mutated::Yes) => &Touched::All,
        Ok(Mutated::No) => &call.touched,
        Err(stop) => return Err(progress::noted(api, call, stop, (old, new), Next::Mutate)),
    };
    check_version(call, old, &mut new)?;
    if call.target.subresource == "status" {
        new = status_only(call, old, new, touched);
        (call.resource.traits.prepare_status)(&mut new, old);
    } else if call.target.subresource == "resize" {
        (call.resource.traits.prepare_resize)(&mut new, old);
    } else if call.target.subresource == "ephemeralcontainers" {
        (call.resource.traits.prepare_ephemeral)(&mut new, old);
    } else if call.target.subresource == "finalize" {
        crate::kinds::keep(&mut new, old, "status");
    } else {
        if call.resource.is_custom() && call.resource.has(Subresource::Status) {
            crate::kinds::keep(&mut new, old, "status");
        }
        (call.resource.traits.prepare_update)(&mut new, old);
    }
    set_metadata(&mut new, "managedFields", entries);
    keep_system_fields(call, old, &mut new);
    body::default(call, &mut new, &body::within(call, touched))?;
    validate(call, old, &new)?;
    managed::settle(old, &mut new);
    admit(api, call, old, new)
}

/// Goes on with an update where it stopped.
pub(super) fn go_on(api: &mut Api, call: &Call<'_>, progress: Progress) -> Result<Reply, Stop> {
    let Progress { old, new, .. } = progress;
    match progress.next {
        Next::Mutate => replace(api, call, &old, new),
        Next::Admit => admit(api, call, &old, new),
    }
}

/// Asks admission about what an object is to be, and stores it.
fn admit(api: &mut Api, call: &Call<'_>, old: &Arc<Value>, new: Value) -> Result<Reply, Stop> {
    storage::check_growth(api, call, &new, old)?;
    if let Err(stop) = admission::validate(api, call, "UPDATE", &new, old) {
        return Err(progress::noted(api, call, stop, (old, new), Next::Admit));
    }
    if is_same(&call.touched, &new, old) && is_stored_as_now(api, call) {
        // the very object that is stored, whose text need not be written again
        return Ok(Reply::new(200, old.clone()));
    }
    // what is not stored in the requested version is converted first
    let kept = (call.version.name != call.resource.storage).then(|| new.clone());
    let written = write(api, call, old, new);
    written.map_err(|stop| match kept {
        Some(new) => progress::noted(api, call, stop, (old, new), Next::Admit),
        None => stop,
    })
}

/// Whether nothing changes. What was touched is compared first: there most changes are.
fn is_same(touched: &Touched, new: &Value, old: &Value) -> bool {
    let same = |name: &String| new.get(name) == old.get(name);
    match touched {
        Touched::Only(members) if !members.iter().all(same) => false,
        _ => new == old,
    }
}

fn write(api: &mut Api, call: &Call<'_>, old: &Value, new: Value) -> Result<Reply, Stop> {
    let key = call.key();
    let value = if is_finished(&new, old) {
        commit::remove(api, call, &key, new)?
    } else {
        commit::put(api, call, key, new)?
    };
    Ok(Reply { code: 200, value })
}

/// Is the object stored in the version that is stored now? One that is not is written anew, though nothing changes.
fn is_stored_as_now(api: &Api, call: &Call<'_>) -> bool {
    let wanted = || format!("{}/{}", call.resource.id.group, call.resource.storage);
    !call.resource.is_custom()
        || find(api, call).is_ok_and(|stored| stored.value().get("apiVersion") == Some(&wanted().into()))
}

fn check_version(call: &Call<'_>, old: &Value, new: &mut Value) -> Result<(), Failure> {
    let (given, found) = (
        metadata_text(new, "resourceVersion"),
        metadata_text(old, "resourceVersion"),
    );
    let name = &call.target.name;
    if given.is_empty() || given == "0" {
        if !call.resource.traits.unconditional_update {
            let error = FieldError {
                path: "metadata.resourceVersion".into(),
                kind: Kind::Invalid,
                value: 0.into(),
                detail: "must be specified for an update".into(),
            };
            let subject = call.resource.subject();
            return Err(Failure::invalid(&subject, name, &[error]));
        }
        set_metadata(new, "resourceVersion", found.into());
    } else if given.parse::<u64>().is_err() {
        let error = FieldError {
            path: "metadata.resourceVersion".into(),
            kind: Kind::Invalid,
            value: given.into(),
            detail: format!("strconv.ParseUint: parsing {given:?}: invalid syntax"),
        };
        return Err(Failure::invalid(&call.resource.subject(), name, &[error]));
    } else if given != found {
        return Err(Failure::modified(&call.resource.subject(), name));
    }
    Ok(())
}

/// The old object with the new status, and as much of the metadata as the kind lets through.
fn status_only(call: &Call<'_>, old: &Value, new: Value, touched: &Touched) -> Value {
    let policy = call.resource.traits.status_metadata;
    let taken: &[&str] = match policy {
        Metadata::Closed => &["status"],
        Metadata::Open | Metadata::NoLabels | Metadata::NoOwners => &["status", "metadata"],
    };
    let (Value::Object(there), Value::Object(mut given)) = (old, new) else {
        return old.clone();
    };
    let kept = there.iter().filter(|(name, _)| !taken.contains(&name.as_str()));
    let mut out: Map<String, Value> = kept
        .map(|(name, value)| {
            // what is not touched is the same in both
            let same = (!touched.has(name)).then(|| given.remove_entry(name)).flatten();
            same.unwrap_or_else(|| (name.clone(), value.clone()))
        })
        .collect();
    out.extend(taken.iter().filter_map(|name| given.remove_entry(*name)));
    let mut out = Value::Object(out);
    let kept = match policy {
        Metadata::NoLabels => "labels",
        Metadata::NoOwners => "ownerReferences",
        Metadata::Open | Metadata::Closed => return out,
    };
    set_metadata(&mut out, kept, get_metadata(old, kept).clone());
    out
}

/// What the server owns stays, and the generation counts.
fn keep_system_fields(call: &Call<'_>, old: &Value, new: &mut Value) {
    for name in ["generation", "creationTimestamp", "selfLink"] {
        set_metadata(new, name, get_metadata(old, name).clone());
    }
    for name in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let always = name == "deletionTimestamp" && !get_metadata(old, name).is_null();
        if always || get_metadata(new, name).is_null() {
            set_metadata(new, name, get_metadata(old, name).clone());
        }
    }
    let traits = &call.resource.traits;
    let of_spec = matches!(
        call.target.subresource.as_str(),
        "" | "resize" | "ephemeralcontainers"
    );
    let counts = traits.generation != Generation::None && of_spec;
    if counts && object::spec_differs(new, old, &call.resource) {
        let generation = get_metadata(old, "generation").as_i64().unwrap_or_default();
        set_metadata(new, "generation", generation.saturating_add(1).into());
    }
}

fn validate(call: &Call<'_>, old: &Value, new: &Value) -> Result<(), Failure> {
    let mut errors = validation::update(new, old, call.resource.traits.metadata, call.resource.traits.name);
    errors.extend(object::schema_errors(new, Some(old), &call.version));
    if call.target.subresource.is_empty() {
        errors.extend((call.resource.traits.validate_update)(new, old));
    } else if call.target.subresource == "status" {
        errors.extend((call.resource.traits.validate_status)(new, old));
    } else if call.target.subresource == "resize" {
        errors.extend((call.resource.traits.validate_resize)(new, old));
    } else if call.target.subresource == "ephemeralcontainers" {
        errors.extend((call.resource.traits.validate_ephemeral)(new, old));
    }
    if errors.is_empty() {
        if call.target.subresource.is_empty() {
            call.warn((call.resource.traits.without_effect)(new));
        }
        return Ok(());
    }
    Err(Failure::invalid(
        &call.resource.kind_subject(),
        &call.target.name,
        &errors,
    ))
}

/// Whether the last finalizer of a deleted object just went.
fn is_finished(new: &Value, old: &Value) -> bool {
    let of_spec = object::at(new, "/spec/finalizers").and_then(Value::as_array);
    finalizers(new).is_empty()
        // a namespace has some that are its own
        && of_spec.is_none_or(Vec::is_empty)
        && !get_metadata(old, "deletionTimestamp").is_null()
        && get_metadata(old, "deletionGracePeriodSeconds")
            .as_i64()
            .unwrap_or_default()
            == 0
}
