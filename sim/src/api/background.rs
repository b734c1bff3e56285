//! What a controller manager does that an API is not usable without: definitions are established, namespaces get
//! their service account and are emptied when they go, dependents follow their owners.
//!
//! Everything happens in [`Api::tick`], by ordinary requests, in a fixed order; a tick that finds nothing to do
//! changes nothing.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Api;
use super::collector::GARBAGE;
use crate::crd;
use crate::object::{finalizers, metadata_text};
use crate::store::{Key, Place, ResourceId};
use crate::wire::{Method, Request};

// Who acts in the background, as servers name them.
const ACCOUNTS: &str = "system:serviceaccount:kube-system:service-account-controller";
const DEFINITIONS: &str = "system:apiserver";
const NAMESPACES: &str = "system:serviceaccount:kube-system:namespace-controller";

/// Rounds of one tick: chains of owners longer than this take several ticks.
const ROUNDS: usize = 16;

/// Holds a definition until its objects are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

fn id(group: &str, plural: &str) -> ResourceId {
    ResourceId {
        group: group.into(),
        plural: plural.into(),
    }
}

impl Api {
    /// Does what is due in the background. Returns whether anything was.
    pub fn tick(&mut self, now: Timestamp) -> bool {
        let before = self.store.revision();
        for _ in 0..ROUNDS {
            let start = self.store.revision();
            // whoever waits for a webhook would only repeat itself
            if !self.waits(ACCOUNTS) {
                self.furnish_namespaces(now);
            }
            if !self.waits(NAMESPACES) {
                self.empty_namespaces(now);
            }
            if !self.waits(GARBAGE) {
                self.collect_garbage(now);
            }
            if self.store.revision() == start {
                break;
            }
        }
        self.store.revision() != before
    }

    /// A request of the background.
    pub(super) fn act(&mut self, user: &str, mut request: Request, now: Timestamp) {
        user.clone_into(&mut request.user);
        self.submit(request, now);
    }

    /// A definition was written: its resource is served, and its status shows that.
    pub(crate) fn definition_changed(&mut self, definition: &Value, now: Timestamp) {
        let Some(resource) = crd::resource(definition) else {
            return;
        };
        self.registry.insert(resource);
        let name = metadata_text(definition, "name").to_owned();
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        if !metadata_text(definition, "deletionTimestamp").is_empty() {
            // its objects go with it
            let kept: Vec<&str> = finalizers(definition)
                .into_iter()
                .filter(|one| *one != CLEANUP)
                .collect();
            if kept.len() < finalizers(definition).len() {
                let patch = json!({"metadata": {"finalizers": kept}});
                let request = Request::new(Method::Patch, &path, Some(&patch));
                self.act(
                    DEFINITIONS,
                    request.content_type("application/merge-patch+json"),
                    now,
                );
            }
            return;
        }
        let established = definition.pointer("/status/conditions").and_then(Value::as_array);
        if established.is_some_and(|list| !list.is_empty()) {
            return;
        }
        let mut definition = definition.clone();
        crd::established(&mut definition, now);
        let mut kept: Vec<Value> = finalizers(&definition).into_iter().map(Value::from).collect();
        kept.push(CLEANUP.into());
        crate::object::set_metadata(&mut definition, "finalizers", kept.into());
        let request = Request::new(Method::Put, &format!("{path}/status"), Some(&definition));
        self.act(DEFINITIONS, request, now);
    }

    /// A definition is gone, and with it all objects of its kind.
    pub(crate) fn definition_removed(&mut self, definition: &Value) {
        let text = |pointer: &str| {
            definition
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let gone = id(text("/spec/group"), text("/spec/names/plural"));
        self.registry.remove(&gone);
        self.store.forget(&gone);
    }

    fn namespaces(&self, deleting: bool) -> Vec<String> {
        let collection = self.store.collection(&id("", "namespaces"));
        let all = collection
            .into_iter()
            .flat_map(|collection| collection.range("", None));
        all.filter(|(_, stored)| stored.head.deleting == deleting)
            .map(|(key, _)| key.name.to_string())
            .collect()
    }

    fn furnish_namespaces(&mut self, now: Timestamp) {
        let accounts = id("", "serviceaccounts");
        for namespace in self.namespaces(false) {
            if self
                .store
                .get(&accounts, &Key::new(&namespace, "default"))
                .is_none()
            {
                let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
                let account = json!({"metadata": {"name": "default"}});
                self.act(ACCOUNTS, Request::new(Method::Post, &path, Some(&account)), now);
            }
        }
    }

    fn empty_namespaces(&mut self, now: Timestamp) {
        for namespace in self.namespaces(true) {
            let mut places: Vec<Place> = Vec::new();
            for (resource, collection) in self.store.collections() {
                let content = collection.range(&namespace, None);
                places.extend(content.map(|(key, _)| (resource.clone(), key.clone())));
            }
            for place in &places {
                self.delete_place(NAMESPACES, place, &json!({}), now);
            }
            if places.is_empty() {
                let path = format!("/api/v1/namespaces/{namespace}");
                let read = self
                    .handle(&Request::new(Method::Get, &path, None), now)
                    .response();
                let mut object = read.map(|response| response.value()).unwrap_or_default();
                if let Some(Value::Object(spec)) = object.get_mut("spec") {
                    spec.remove("finalizers");
                }
                let finalize = format!("{path}/finalize");
                self.act(
                    NAMESPACES,
                    Request::new(Method::Put, &finalize, Some(&object)),
                    now,
                );
                self.act(NAMESPACES, Request::new(Method::Delete, &path, None), now);
            }
        }
    }

    pub(super) fn path(&self, place: &Place) -> Option<String> {
        let resource = self.registry.by_id(&place.0)?;
        let version = resource.versions.first()?;
        let (group, plural) = (&place.0.group, &place.0.plural);
        let root = if group.is_empty() {
            "/api".to_owned()
        } else {
            format!("/apis/{group}")
        };
        let namespace = match place.1.namespace.as_ref() {
            "" => String::new(),
            namespace => format!("/namespaces/{namespace}"),
        };
        Some(format!(
            "{root}/{}{namespace}/{plural}/{}",
            version.name, place.1.name
        ))
    }

    pub(super) fn delete_place(&mut self, user: &str, place: &Place, options: &Value, now: Timestamp) {
        if let Some(path) = self.path(place) {
            self.act(user, Request::new(Method::Delete, &path, Some(options)), now);
        }
    }
}
