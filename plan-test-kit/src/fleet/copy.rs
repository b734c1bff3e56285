//! One namespace with everything that belongs to it, in a name of its own.

use serde_json::{Value, json};

use super::files::Files;

/// The namespace of the fixtures.
const STORED_IN: &str = "default";
/// The label of pods that get sidecars.
pub(super) const INJECT: &str = "inject";
/// The SidecarSet and the ResourceDistribution of the fixtures.
const SET: &str = "logs";
const DISTRIBUTION: &str = "dist";

/// The name of a copy of a thing that is in no namespace.
pub(super) fn numbered(name: &str, number: usize) -> String {
    format!("{name}-{number}")
}

/// A new object's metadata.
pub(super) fn metadata((namespace, name): (&str, &str), uid: &str, created: &str) -> Value {
    let mut metadata = json!({"name": name, "uid": uid, "generation": 1, "creationTimestamp": created, "resourceVersion": "1"});
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    metadata
}

/// One namespace.
pub(super) struct Copy<'f> {
    pub(super) files: &'f Files,
    pub(super) number: usize,
    pub(super) namespace: String,
}

impl<'f> Copy<'f> {
    pub(super) fn new(files: &'f Files, number: usize) -> Self {
        Self {
            files,
            number,
            namespace: numbered("shop", number),
        }
    }

    /// The value of the label with which pods of this namespace get sidecars.
    pub(super) fn inject(&self) -> String {
        numbered("yes", self.number)
    }

    /// What was stored, in this namespace. What belongs to nodes is not among it.
    pub(super) fn objects(&self) -> Vec<Value> {
        let of_nodes = |object: &&Value| object["kind"] == "NodeImage" || object["kind"] == "NodePodProbe";
        let stored = self.files.objects.iter().filter(|object| !of_nodes(object));
        stored.map(|object| self.object(object)).collect()
    }

    /// An object with other uids, times and names.
    fn object(&self, stored: &Value) -> Value {
        let mut object = self.files.renewed(stored, self.number);
        if object["metadata"]["namespace"] == STORED_IN {
            object["metadata"]["namespace"] = json!(self.namespace);
        }
        match object["kind"].as_str().unwrap() {
            "SidecarSet" => {
                self.rename(&mut object, SET);
                object["spec"]["selector"]["matchLabels"][INJECT] = json!(self.inject());
                self.rename_at(&mut object, "/status/latestRevision", SET);
            }
            "ControllerRevision" if object["metadata"]["ownerReferences"][0]["kind"] == "SidecarSet" => {
                self.rename(&mut object, SET);
                self.rename_at(&mut object, "/metadata/labels/kruise.io~1sidecarset-name", SET);
                self.rename_at(&mut object, "/metadata/ownerReferences/0/name", SET);
            }
            "Pod" if object["metadata"]["labels"][INJECT] == "yes" => self.injected(&mut object),
            "ResourceDistribution" => {
                self.rename(&mut object, DISTRIBUTION);
                object["spec"]["targets"]["includedNamespaces"]["list"][0]["name"] = json!(self.namespace);
            }
            "ConfigMap" => {
                let from = "/metadata/annotations/kruise.io~1resourcedistribution.resource.from";
                self.rename_at(&mut object, from, DISTRIBUTION);
                self.rename_at(&mut object, "/metadata/ownerReferences/0/name", DISTRIBUTION);
            }
            _ => {}
        }
        object
    }

    /// The name of an object that begins with `thing`, and no member that has another meaning.
    fn rename(&self, object: &mut Value, thing: &str) {
        self.rename_at(object, "/metadata/name", thing);
    }

    fn rename_at(&self, object: &mut Value, pointer: &str, thing: &str) {
        if let Some(name) = object.pointer_mut(pointer) {
            let rest = name.as_str().unwrap().strip_prefix(thing).unwrap();
            *name = json!(format!("{}{rest}", numbered(thing, self.number)));
        }
    }

    /// A pod that has the sidecars of the set of this namespace.
    fn injected(&self, pod: &mut Value) {
        let (old, new) = (
            format!("\"{SET}\""),
            format!("\"{}\"", numbered(SET, self.number)),
        );
        let revisions = (format!("\"{SET}-"), format!("\"{}-", numbered(SET, self.number)));
        pod["metadata"]["labels"][INJECT] = json!(self.inject());
        for (key, value) in pod["metadata"]["annotations"].as_object_mut().unwrap() {
            if key.starts_with("kruise.io/sidecarset") {
                let text = value.as_str().unwrap();
                let renamed = text.replace(&revisions.0, &revisions.1).replace(&old, &new);
                *value = json!(if text == SET {
                    numbered(SET, self.number)
                } else {
                    renamed
                });
            }
        }
    }
}
