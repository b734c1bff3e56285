//! Which form of an answer a client takes, and giving it that form.

use serde_json::{Value, json};

use crate::api::{Call, Reply};
use crate::route::Target;
use crate::status::Failure;
use crate::wire::Response;

/// The form of objects in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As they are.
    Whole,
    /// Only their metadata.
    Metadata,
    /// Rows with columns for people.
    Table,
}

const OBJECTS: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];
const LISTS: &[&str] = &[
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];

impl Form {
    /// The first form of the `Accept` header that is served.
    pub(crate) fn of(accept: &str, target: &Target) -> Result<Self, Failure> {
        if accept.trim().is_empty() {
            return Ok(Self::Whole);
        }
        for clause in accept.split(',') {
            let mut parts = clause.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            if !matches!(kind, "application/json" | "application/*" | "*/*") {
                continue;
            }
            match parts.find_map(|part| part.strip_prefix("as=")) {
                None => return Ok(Self::Whole),
                Some("Table") => return Ok(Self::Table),
                Some("PartialObjectMetadata" | "PartialObjectMetadataList") => return Ok(Self::Metadata),
                Some(_) => {}
            }
        }
        let is_list = target.name.is_empty();
        Err(Failure::not_acceptable(if is_list { LISTS } else { OBJECTS }))
    }

    /// An object in this form.
    pub(crate) fn object(self, call: &Call<'_>, object: Value) -> Value {
        match self {
            Self::Whole => object,
            Self::Metadata => partial(object),
            Self::Table => crate::verbs::table(call, &[object], true),
        }
    }
}

fn partial(mut object: Value) -> Value {
    let metadata = object.get_mut("metadata").map(Value::take).unwrap_or_default();
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
}

/// Gives an answer the form that the client takes. Failures and statuses have only one.
pub(crate) fn render(call: &Call<'_>, reply: Reply) -> Response {
    let kind = reply
        .value
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if kind == "Status" || call.form == Form::Whole {
        return Response::json(reply.code, &reply.value);
    }
    if kind != call.resource.list_kind() {
        return Response::json(reply.code, &call.form.object(call, reply.value));
    }
    let mut list = reply.value;
    let mut metadata = list.get("metadata").cloned().unwrap_or_default();
    if let Value::Object(members) = &mut metadata {
        members.retain(|_, value| value != "");
    }
    let items = match list.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    let mut value = if call.form == Form::Table {
        crate::verbs::table(call, &items, true)
    } else {
        let items: Vec<Value> = items.into_iter().map(partial).collect();
        // an empty list is null here, and nowhere else
        let items = if items.is_empty() {
            Value::Null
        } else {
            items.into()
        };
        json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "items": items})
    };
    if let Value::Object(members) = &mut value {
        members.insert("metadata".into(), metadata);
    }
    Response::json(reply.code, &value)
}
