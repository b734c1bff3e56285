//! Create.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Touched, body, commit};
use crate::admission;
use crate::api::{Api, Call, Reply};
use crate::entropy::Entropy;
use crate::managed;
use crate::object::{self, at, get_metadata, metadata_text, set_metadata};
use crate::priority;
use crate::quota;
use crate::registry::{Generation, Subresource};
use crate::status::Failure;
use crate::storage;
use crate::store::{Key, ResourceId, Stored};
use crate::validation;
use crate::webhook::Stop;

/// Names that a server tries before it gives up on a prefix.
const NAME_ATTEMPTS: usize = 8;
/// Longest prefix of a generated name.
const PREFIX: usize = 58;

pub(super) fn create(api: &mut Api, call: &mut Call<'_>) -> Result<Reply, Stop> {
    let mut object = body::object(call)?;
    object::wipe_system_fields(&mut object);
    place(call, &mut object)?;
    let value = insert(api, call, object)?;
    Ok(Reply { code: 201, value })
}

/// The namespace of the request is that of the object.
pub(super) fn place(call: &Call<'_>, object: &mut Value) -> Result<(), Failure> {
    let given = metadata_text(object, "namespace");
    if !given.is_empty() && !call.target.namespace.is_empty() && given != call.target.namespace {
        return Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let namespace = match call.target.namespace.as_str() {
        "" => Value::Null,
        namespace => namespace.into(),
    };
    set_metadata(object, "namespace", namespace);
    Ok(())
}

/// Stores a new object that has its shape, place and defaults.
pub(super) fn insert(api: &mut Api, call: &Call<'_>, mut object: Value) -> Result<Arc<Value>, Stop> {
    admit(api, call, metadata_text(&object, "name"))?;
    let entries = managed::noted(api, call, &Value::Null, &object);
    set_metadata(&mut object, "managedFields", entries.clone());
    storage::give_class(api, call, &mut object);
    priority::give(api, call, &mut object)?;
    admission::mutate(api, call, "CREATE", &mut object, &Arc::default())?;
    let mut entropy = Entropy::new(call.seed);
    set_metadata(&mut object, "uid", entropy.uid().into());
    set_metadata(&mut object, "creationTimestamp", object::seconds(call.now).into());
    name(api, call, &mut entropy, &mut object);
    prepare(api, call, &mut object)?;
    set_metadata(&mut object, "managedFields", entries);
    validate(call, &object)?;
    admission::validate(api, call, "CREATE", &object, &Arc::default())?;
    quota::check(api, call, &object)?;
    let key = Key::new(&call.target.namespace, metadata_text(&object, "name"));
    if let Some(there) = api.store.get(&call.resource.id, &key) {
        return Err(Failure::already_exists(&call.resource.subject(), &key.name, there.head.deleting).into());
    }
    let created = commit::put(api, call, key, object)?;
    if !call.dry_run && at(&created, "/spec/clusterIP") == Some(&address(api).into()) {
        api.addresses = api.addresses.saturating_add(1);
    }
    Ok(created)
}

/// Admission: the namespace of what is created exists and is not being deleted.
fn admit(api: &Api, call: &Call<'_>, name: &str) -> Result<(), Failure> {
    match namespace_exists(api, call)? {
        Some(namespace) if namespace.head.deleting => Err(Failure::terminating(
            &call.resource.subject(),
            name,
            &call.target.namespace,
        )),
        _ => Ok(()),
    }
}

/// Admission: what is written is in a namespace, or in none.
pub(super) fn namespace_exists<'a>(api: &'a Api, call: &Call<'_>) -> Result<Option<&'a Stored>, Failure> {
    let name = &call.target.namespace;
    if name.is_empty() {
        return Ok(None);
    }
    let namespaces = ResourceId {
        group: "".into(),
        plural: "namespaces".into(),
    };
    let found = api.store.get(&namespaces, &Key::new("", name));
    let absent = || Failure::not_found(&crate::status::Subject::new("", "namespaces"), name);
    Ok(Some(found.ok_or_else(absent)?))
}

/// A name for an object that only has a prefix.
fn name(api: &Api, call: &Call<'_>, entropy: &mut Entropy, object: &mut Value) {
    let prefix = metadata_text(object, "generateName").to_owned();
    if prefix.is_empty() || !metadata_text(object, "name").is_empty() {
        return;
    }
    let prefix: String = prefix.chars().take(PREFIX).collect();
    for _ in 0..NAME_ATTEMPTS {
        let name = format!("{prefix}{}", entropy.name_ending());
        let key = Key::new(&call.target.namespace, &name);
        set_metadata(object, "name", name.into());
        if api.store.get(&call.resource.id, &key).is_none() {
            break;
        }
    }
}

/// Resets what a creation may not set.
fn prepare(api: &Api, call: &Call<'_>, object: &mut Value) -> Result<(), Failure> {
    let traits = &call.resource.traits;
    if call.resource.is_custom() && call.resource.has(Subresource::Status) {
        crate::kinds::workload::drop_status(object);
    }
    (traits.prepare_create)(object);
    if traits.generation != Generation::None {
        set_metadata(object, "generation", 1.into());
    }
    if call.resource.id.plural.as_ref() == "services" {
        give_address(api, object);
    }
    body::default(call, object, &Touched::All)
}

/// The cluster address that the next service gets.
fn address(api: &Api) -> String {
    format!("10.0.{}.{}", api.addresses / 256, api.addresses % 256)
}

/// A cluster address for a service without one.
fn give_address(api: &Api, service: &mut Value) {
    let Some(Value::Object(spec)) = service.get_mut("spec") else {
        return;
    };
    let external = spec.get("type") == Some(&"ExternalName".into());
    if external || spec.contains_key("clusterIP") {
        return;
    }
    let address = address(api);
    spec.insert("clusterIP".into(), address.clone().into());
    spec.insert("clusterIPs".into(), json!([address]));
}

fn validate(call: &Call<'_>, object: &Value) -> Result<(), Failure> {
    let traits = &call.resource.traits;
    let mut errors = validation::create(object, traits.metadata, traits.name);
    errors.extend((traits.validate)(object));
    errors.extend(object::schema_errors(object, None, &call.version));
    if errors.is_empty() {
        call.warn((traits.without_effect)(object));
        return Ok(());
    }
    let name = get_metadata(object, "name").as_str().unwrap_or_default();
    Err(Failure::invalid(&call.resource.kind_subject(), name, &errors))
}
