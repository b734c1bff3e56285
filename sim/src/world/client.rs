//! Requests of a component of the cluster, over the path that everybody's requests take.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api::Api;
use crate::object::{metadata_text, seconds};
use crate::store::Key;
use crate::wire::{Method, Request, Response};

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

impl Client<'_> {
    fn send(&mut self, mut request: Request) -> Option<Response> {
        self.user.clone_into(&mut request.user);
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
        let namespace = match metadata_text(about, "namespace") {
            "" => "default",
            namespace => namespace,
        };
        let name = metadata_text(about, "name");
        let now = seconds(self.now);
        let event = json!({
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
        self.post(&format!("/api/v1/namespaces/{namespace}/events"), &event);
    }
}
