//! Which form of an answer a client takes, and giving it that form.

use std::sync::Arc;

use kube_schema::table::Table;
use serde_json::{Value, json};

use crate::api::{Call, Reply};
use crate::registry::Schema;
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
    /// Only their metadata, of a list.
    MetadataList,
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
        let mut other_form = false;
        for clause in accept.split(',') {
            let mut parts = clause.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            if !matches!(kind, "application/json" | "application/*" | "*/*") {
                continue;
            }
            let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
            let of = |name: &str| {
                parameters
                    .iter()
                    .find(|(one, _)| *one == name)
                    .map(|(_, value)| *value)
            };
            let is_meta = of("g") == Some("meta.k8s.io") && matches!(of("v"), Some("v1" | "v1beta1"));
            match of("as") {
                None => return Ok(Self::Whole),
                Some("Table") if is_meta => return Ok(Self::Table),
                Some("PartialObjectMetadata") if is_meta => return Ok(Self::Metadata),
                Some("PartialObjectMetadataList") if is_meta => return Ok(Self::MetadataList),
                Some(_) => other_form = true,
            }
        }
        if other_form {
            return Err(Failure::not_acceptable_custom());
        }
        let is_list = target.name.is_empty();
        Err(Failure::not_acceptable(if is_list { LISTS } else { OBJECTS }))
    }

    /// An object in this form.
    pub(crate) fn object(self, call: &Call<'_>, object: Value) -> Value {
        match self {
            Self::Whole => object,
            Self::Metadata | Self::MetadataList => partial(&object),
            Self::Table => crate::verbs::table(call, &[object], true),
        }
    }
}

fn partial(object: &Value) -> Value {
    let mut partial = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"});
    if let Value::Object(members) = &mut partial {
        let metadata = object.get("metadata").cloned().unwrap_or_default();
        members.insert("metadata".into(), metadata);
    }
    partial
}

/// A kind as Go prints its internal type.
fn go_type(call: &Call<'_>, kind: &str) -> String {
    match &call.version.schema {
        Schema::Typed(of) => {
            let name = Table::builtin().get(*of).name;
            let package = name.split('/').next().unwrap_or_default();
            format!("*{package}.{kind}")
        }
        Schema::Structural(_) if kind == call.resource.kind.as_ref() => "*unstructured.Unstructured".into(),
        Schema::Structural(_) => "*unstructured.UnstructuredList".into(),
    }
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
    let is_list = kind == call.resource.list_kind();
    let unfit = match call.form {
        Form::Metadata if is_list => Some(("PartialObjectMetadata", "a list")),
        Form::MetadataList if !is_list => Some(("PartialObjectMetadataList", "not a list")),
        _ => None,
    };
    if let Some((form, found)) = unfit {
        let what = go_type(call, kind);
        let why = format!("you requested {form}, but the requested object is {found} ({what})");
        return Failure::unfit_form(why).response();
    }
    if !is_list {
        let shown = match call.form {
            Form::Metadata | Form::MetadataList => partial(&reply.value),
            form => form.object(call, Arc::unwrap_or_clone(reply.value)),
        };
        return Response::json(reply.code, &shown);
    }
    let mut list = Arc::unwrap_or_clone(reply.value);
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
        let items: Vec<Value> = items.iter().map(partial).collect();
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
