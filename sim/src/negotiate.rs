//! Gives an answer the form that its client takes.

use std::sync::Arc;

use kube_schema::table::Table;
use serde_json::{Value, json};

use crate::call::{Call, Reply};
use crate::form::Form;
use crate::registry::Schema;
use crate::status::Failure;
use crate::wire::Response;

impl Form {
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
