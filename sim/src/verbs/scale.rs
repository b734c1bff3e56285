//! The scale subresource: replicas of any workload, in one shape.

use kube_schema::patch;
use serde_json::{Value, json};

use super::found::find;
use super::update;
use crate::admission;
use crate::api::{Api, Call, Reply};
use crate::object::{get_metadata, metadata_text};
use crate::registry::Schema;
use crate::status::Failure;
use crate::webhook::Stop;
use crate::wire::Method;

/// What a server reads where a custom resource has no replicas.
const UNSET: i64 = i32::MIN as i64;

/// JSON pointers of the replicas, the counted replicas and the selector.
struct Paths {
    spec: String,
    status: String,
    selector: String,
}

impl Paths {
    fn of(call: &Call<'_>) -> Option<Self> {
        let Schema::Structural(version) = &call.version.schema else {
            return Some(Self {
                spec: "/spec/replicas".into(),
                status: "/status/replicas".into(),
                selector: String::new(),
            });
        };
        let scale = version.pointer("/subresources/scale")?;
        let pointer = |name: &str| {
            let path = scale.get(name).and_then(Value::as_str).unwrap_or_default();
            path.replace('.', "/")
        };
        Some(Self {
            spec: pointer("specReplicasPath"),
            status: pointer("statusReplicasPath"),
            selector: pointer("labelSelectorPath"),
        })
    }
}

pub(super) fn run(api: &mut Api, call: &mut Call<'_>, method: Method) -> Result<Reply, Stop> {
    let paths = Paths::of(call).ok_or_else(Failure::no_resource)?;
    if method == Method::Patch {
        super::patch::check_media(call)?;
    }
    let old = call.read(find(api, call)?)?;
    let mut current = view(&old, &paths);
    let is_unset = call.resource.is_custom() && old.pointer(&paths.spec).is_none();
    if is_unset && method == Method::Get {
        let why = format!(
            "the spec replicas field {:?} does not exist",
            paths.spec.replace('/', ".")
        );
        return Err(Failure::internal(&why).into());
    }
    if is_unset {
        set(&mut current, "/spec/replicas", UNSET.into());
    }
    let wanted = match method {
        Method::Get => {
            return Ok(Reply::new(200, current));
        }
        Method::Put => super::body::other(call, "autoscaling/v1.Scale")?,
        Method::Patch => patched(call, current.clone())?,
        Method::Post | Method::Delete => return Err(Failure::method_unknown().into()),
    };
    let replicas = wanted
        .pointer("/spec/replicas")
        .and_then(Value::as_i64)
        .unwrap_or_default();
    if replicas == UNSET {
        let why = format!(
            "the spec replicas field {:?} cannot be empty",
            paths.spec.replace('/', ".")
        );
        return Err(Failure::bad_request(why).into());
    }
    // a custom resource defines that itself
    if replicas < 0 && !call.resource.is_custom() {
        let mut errors = kube_schema::validate::Errors::default();
        errors.invalid("spec.replicas", replicas, "must be greater than or equal to 0");
        let kind = crate::status::Subject::new("autoscaling", "Scale");
        return Err(Failure::invalid(&kind, &call.target.name, &errors.0).into());
    }
    let given = metadata_text(&wanted, "resourceVersion");
    if !given.is_empty() && given != metadata_text(&old, "resourceVersion") {
        return Err(Failure::modified(&call.resource.subject(), &call.target.name).into());
    }
    let wanted = admission::admit(api, call, "UPDATE", wanted, &current.into())?;
    let replicas = wanted
        .pointer("/spec/replicas")
        .and_then(Value::as_i64)
        .unwrap_or_default();
    let mut new = Value::clone(&old);
    set(&mut new, &paths.spec, replicas.into());
    call.target.subresource.clear();
    let reply = update::replace(api, call, &old, new)?;
    Ok(Reply::new(200, view(&reply.value, &paths)))
}

fn patched(call: &Call<'_>, mut scale: Value) -> Result<Value, Failure> {
    let body: Value = serde_json::from_slice(&call.request.body)
        .map_err(|_| super::patch::malformed(&call.request.body))?;
    if call
        .request
        .content_type
        .starts_with("application/json-patch+json")
    {
        patch::json(&mut scale, &body).map_err(|_| Failure::unprocessable())?;
    } else {
        // a scale has no lists: both kinds of merge are the same
        patch::merge(&mut scale, body);
    }
    let table = kube_schema::table::Table::builtin();
    let Some(of) = table.find("autoscaling/v1.Scale") else {
        return Ok(scale);
    };
    let text = scale.to_string();
    let read = kube_schema::typed::decode(table, of, scale).map_err(|error| {
        let mut errors = kube_schema::validate::Errors::default();
        errors.invalid("patch", text, &error.text);
        Failure::invalid(&crate::status::Subject::new("", ""), "", &errors.0)
    })?;
    Ok(read.value)
}

/// Sets a member, and makes those above it that are absent.
fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for step in pointer.split('/').skip(1) {
        if place.is_null() {
            *place = json!({});
        }
        let Value::Object(members) = place else {
            return;
        };
        place = members.entry(step).or_insert(Value::Null);
    }
    *place = value;
}

/// The object as a scale.
fn view(object: &Value, paths: &Paths) -> Value {
    let mut metadata = json!({});
    if let Value::Object(members) = &mut metadata {
        for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
            members.insert(name.into(), get_metadata(object, name).clone());
        }
        members.retain(|_, value| !value.is_null());
    }
    let count = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_i64)
            .unwrap_or_default()
    };
    let mut spec = json!({});
    if let (replicas @ 1.., Value::Object(members)) = (count(&paths.spec), &mut spec) {
        members.insert("replicas".into(), replicas.into());
    }
    let mut status = json!({"replicas": count(&paths.status)});
    let selector = match object
        .pointer("/spec/selector")
        .filter(|_| paths.selector.is_empty())
    {
        Some(selector) => equalities(selector),
        None => object
            .pointer(&paths.selector)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
    };
    if let (false, Value::Object(members)) = (selector.is_empty(), &mut status) {
        members.insert("selector".into(), selector.into());
    }
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status})
}

/// A label selector's equalities as text.
fn equalities(selector: &Value) -> String {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let pairs = labels.into_iter().flatten();
    let pairs: Vec<String> = pairs
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.join(",")
}
