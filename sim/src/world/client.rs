//! Requests of a component of the cluster, over the path that everybody's requests take.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::Api;
use crate::object::{metadata_text, seconds};
use crate::store::Key;
use crate::wire::{Method, Request, Response};

/// Who records an event: component, node (may be empty), and the part of the object that it is about (may be empty).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub(crate) component: &'a str,
    pub(crate) host: &'a str,
    pub(crate) field: &'a str,
}

/// A component with requests to the API.
pub(crate) struct Client<'a> {
    pub(crate) api: &'a mut Api,
    /// The user that requests are made as.
    pub(crate) user: &'a str,
    pub(crate) now: Timestamp,
}

/// The path of a pod.
pub(crate) fn pod_path(key: &Key) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", key.namespace, key.name)
}

/// The program that acts as a user.
fn program(user: &str) -> &str {
    let name = user.strip_prefix("system:").unwrap_or(user);
    match name.split(':').next() {
        Some("node") => "kubelet",
        Some("serviceaccount") => "kube-controller-manager",
        _ => name,
    }
}

impl Client<'_> {
    fn send(&mut self, mut request: Request) -> Option<Response> {
        self.user.clone_into(&mut request.user);
        program(self.user).clone_into(&mut request.agent);
        self.api.submit(request, self.now)
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Option<Response> {
        self.send(Request::new(Method::Post, path, Some(body)))
    }

    pub(crate) fn patch(&mut self, media_type: &str, path: &str, body: &Value) -> Option<Response> {
        self.send(Request::new(Method::Patch, path, Some(body)).content_type(media_type))
    }

    pub(crate) fn merge(&mut self, path: &str, body: &Value) -> Option<Response> {
        self.patch("application/merge-patch+json", path, body)
    }

    pub(crate) fn strategic(&mut self, path: &str, body: &Value) -> Option<Response> {
        self.patch("application/strategic-merge-patch+json", path, body)
    }

    pub(crate) fn delete(&mut self, path: &str, options: &Value) -> Option<Response> {
        self.send(Request::new(Method::Delete, path, Some(options)))
    }

    /// Records an event about an object.
    pub(crate) fn event(&mut self, about: &Value, component: &str, kind: &str, reason: &str, message: &str) {
        let source = Source {
            component,
            host: "",
            field: "",
        };
        self.record(about, &source, kind, reason, message);
    }

    /// Records an event about an object or a part of it.
    pub(crate) fn record(
        &mut self,
        about: &Value,
        source: &Source<'_>,
        kind: &str,
        reason: &str,
        message: &str,
    ) {
        let namespace = match metadata_text(about, "namespace") {
            "" => "default",
            namespace => namespace,
        };
        let name = metadata_text(about, "name");
        let now = seconds(self.now);
        let Source {
            component,
            host,
            field,
        } = source;
        let mut event = json!({
            "metadata": {"generateName": format!("{name}."), "namespace": namespace},
            "involvedObject": {
                "apiVersion": about.get("apiVersion"), "kind": about.get("kind"),
                "namespace": metadata_text(about, "namespace"), "name": name,
                "uid": metadata_text(about, "uid"),
            },
            "type": kind, "reason": reason, "message": message, "count": 1,
            "source": {"component": component}, "reportingComponent": component,
            "firstTimestamp": now, "lastTimestamp": now,
        });
        for (pointer, name, value) in [("/source", "host", host), ("/involvedObject", "fieldPath", field)] {
            if let (false, Some(Value::Object(members))) = (value.is_empty(), event.pointer_mut(pointer)) {
                members.insert(name.into(), (*value).into());
            }
        }
        self.post(&format!("/api/v1/namespaces/{namespace}/events"), &event);
    }
}
