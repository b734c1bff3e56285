//! The workload that a plan is for, as the objects that it owns name it.

use kruise_api::meta::ObjectMeta;
use serde_json::{Value, json};

use crate::ResourceId;
use crate::ledger::Workload;
use crate::{
    Intent,
    write::{Body, Target, Write},
};

/// Controller of the objects that a plan writes.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// `apiVersion` for owner references: that of the version on the wire.
    pub api_version: &'a str,
    /// Kind.
    pub kind: &'static str,
    /// Name.
    pub name: &'a str,
    /// UID.
    pub uid: &'a str,
    /// Where its objects are.
    pub namespace: &'a str,
}

impl<'a> Owner<'a> {
    /// A workload whose objects are in its own namespace.
    pub fn new(api_version: &'a str, kind: &'static str, metadata: &'a ObjectMeta) -> Self {
        Self {
            api_version,
            kind,
            name: &metadata.name,
            uid: &metadata.uid,
            namespace: &metadata.namespace,
        }
    }

    /// The workload, as budgets name it.
    pub fn workload(&self) -> Workload {
        let group = self.api_version.split_once('/').map_or("", |(group, _)| group);
        Workload {
            group: group.to_owned(),
            kind: self.kind.to_owned(),
            name: self.name.to_owned(),
        }
    }

    /// The controller reference to it.
    pub fn reference(&self) -> Value {
        json!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }

    /// An object in the namespace of its objects.
    pub fn target(&self, resource: ResourceId, name: impl Into<String>) -> Target {
        Target {
            resource,
            namespace: self.namespace.to_owned(),
            name: name.into(),
        }
    }

    /// Creation of an object that it owns.
    pub fn create(
        &self,
        intent: Intent,
        resource: ResourceId,
        name: impl Into<String>,
        body: impl Into<Body>,
    ) -> Write {
        Write::Create {
            intent,
            target: self.target(resource, name),
            body: body.into(),
            owner_uid: Some(self.uid.to_owned()),
        }
    }
}
