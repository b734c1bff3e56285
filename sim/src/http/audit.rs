//! The audit log: one line for each request that was answered, as kube-apiserver writes it at level `Metadata`.

use std::fs::File;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::clock::now;
use crate::query::Query;
use crate::route::{Route, Target};
use crate::{Method, Request};

/// A file that lines are appended to.
#[derive(Debug)]
pub struct AuditLog(Mutex<File>);

impl AuditLog {
    /// Writes to a file that is open for appending.
    pub fn new(file: File) -> Self {
        Self(Mutex::new(file))
    }

    /// Appends what is known of a request when its answer begins.
    pub(super) fn answered(&self, request: &Request, user_agent: &str, code: u16) {
        let mut event = entry(request, user_agent, code);
        if let Some(members) = event.as_object_mut() {
            members.insert("stageTimestamp".into(), now().to_string().into());
        }
        let line = format!("{event}\n");
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // a disk that is full must not keep the API from answering
        let _unwritten = file.write_all(line.as_bytes());
    }
}

fn entry(request: &Request, user_agent: &str, code: u16) -> Value {
    let uri = if request.query.is_empty() {
        request.path.clone()
    } else {
        format!("{}?{}", request.path, request.query)
    };
    let mut entry = json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "stage": "ResponseComplete",
        "requestURI": uri, "user": {"username": request.user}, "userAgent": user_agent,
        "responseStatus": {"code": code},
    });
    let (verb, object) = match Route::parse(&request.path) {
        Route::Objects(target) => (verb(request, &target), Some(object(request, &target))),
        _ => (bare_verb(request.method), None),
    };
    if let Some(members) = entry.as_object_mut() {
        members.insert("verb".into(), verb.into());
        members.extend(object.map(|object| ("objectRef".to_owned(), object)));
    }
    entry
}

fn bare_verb(method: Method) -> &'static str {
    match method {
        Method::Get => "get",
        Method::Post => "post",
        Method::Put => "put",
        Method::Patch => "patch",
        Method::Delete => "delete",
    }
}

fn verb(request: &Request, target: &Target) -> &'static str {
    match request.method {
        Method::Get if target.watch || Query::parse(&request.query).flag("watch") => "watch",
        Method::Get if target.name.is_empty() => "list",
        Method::Get => "get",
        Method::Post => "create",
        Method::Put => "update",
        Method::Patch => "patch",
        Method::Delete if target.name.is_empty() => "deletecollection",
        Method::Delete => "delete",
    }
}

fn object(request: &Request, target: &Target) -> Value {
    let mut name = target.name.clone();
    if request.method == Method::Post && name.is_empty() {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let given = body.pointer("/metadata/name").and_then(Value::as_str);
        given.unwrap_or_default().clone_into(&mut name);
    }
    let members = [
        ("apiGroup", &target.group),
        ("apiVersion", &target.version),
        ("resource", &target.plural),
        ("namespace", &target.namespace),
        ("name", &name),
        ("subresource", &target.subresource),
    ];
    let given = members.into_iter().filter(|(_, value)| !value.is_empty());
    Value::Object(
        given
            .map(|(key, value)| (key.to_owned(), value.as_str().into()))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: Method, target: &str) -> (String, Value) {
        let body = json!({"metadata": {"name": "given"}});
        let entry = entry(&Request::new(method, target, Some(&body)), "a/b", 200);
        (
            entry["verb"].as_str().unwrap().to_owned(),
            entry["objectRef"].clone(),
        )
    }

    #[test]
    fn a_request_is_named_as_a_server_names_it() {
        let pods = "/api/v1/namespaces/a/pods";
        let verbs = [
            (Method::Get, pods.to_owned(), "list"),
            (Method::Get, format!("{pods}?watch=true"), "watch"),
            (Method::Get, format!("{pods}/b"), "get"),
            (Method::Post, pods.to_owned(), "create"),
            (Method::Put, format!("{pods}/b"), "update"),
            (Method::Patch, format!("{pods}/b/status"), "patch"),
            (Method::Delete, format!("{pods}/b"), "delete"),
            (Method::Delete, pods.to_owned(), "deletecollection"),
            (Method::Get, "/version".to_owned(), "get"),
        ];
        for (method, target, verb) in verbs {
            assert_eq!(of(method, &target).0, verb, "{target}");
        }
        assert_eq!(
            of(Method::Patch, "/apis/apps/v1/namespaces/a/deployments/b/scale").1,
            json!({"apiGroup": "apps", "apiVersion": "v1", "resource": "deployments", "namespace": "a", "name": "b",
                   "subresource": "scale"})
        );
        assert_eq!(of(Method::Post, pods).1["name"], "given");
        assert_eq!(of(Method::Get, "/version").1, Value::Null);
    }
}
