//! Clusters of many objects, made of what OpenKruise stored.
//!
//! `fixtures/upstream` has what one cluster of each of three versions stored in one namespace. A [`Fleet`] has this
//! namespace many times: those of even number at rest, those of odd number in the middle of a rollout that its
//! partitions and its hook hold. References are consistent: uids, owners, selectors, and the names of what is in no
//! namespace. Times are moved so that the newest is a minute ago.
//!
//! What no fixture has is made by hand: objects of four kinds, the ReplicaSet of the pods with sidecars, and nodes
//! ([`by_hand`]).

mod by_hand;
mod copy;
mod definitions;
mod files;
mod shared;

use jiff::Timestamp;
use kruise_api::kinds;
use serde_json::Value;

use self::copy::Copy;
use self::files::Files;

/// The versions of which there are fixtures.
pub const FLEETS: [&str; 3] = ["1.8.4", "1.9.0", "main"];

/// A cluster of one version.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// The version of OpenKruise.
    pub version: &'static str,
    /// All objects but definitions and what the chart of OpenKruise installs, owners before what they own.
    pub objects: Vec<Value>,
}

impl Fleet {
    /// So many namespaces of a version.
    pub fn new(version: &'static str, namespaces: usize, now: Timestamp) -> Self {
        let [rest, mid] = Files::of(version, now);
        let copies: Vec<Copy<'_>> = (0..namespaces)
            .map(|number| Copy::new(if number % 2 == 0 { &rest } else { &mid }, number))
            .collect();
        let mut objects = shared::objects(&rest, &copies);
        for copy in &copies {
            objects.extend(copy.objects());
            objects.extend(by_hand::objects(version, copy));
        }
        objects.sort_by_key(rank);
        Self { version, objects }
    }

    /// The definitions of this version. `namespace` is that of the manager.
    pub fn definitions(&self, namespace: &str) -> Vec<Value> {
        definitions::of(self.version, namespace)
    }

    /// Names of the definitions that have only `v1alpha1` in this version.
    pub fn only_older(&self) -> Vec<String> {
        definitions::only_older(self.version)
    }

    /// The objects of a kind of OpenKruise, or of another group.
    pub fn of_kind<'f>(&'f self, group: &'f str, kind: &'f str) -> impl Iterator<Item = &'f Value> {
        let objects = self.objects.iter();
        objects.filter(move |object| object["kind"] == kind && resource(object).0 == group)
    }

    /// How many objects are of kinds of OpenKruise, and of how many kinds.
    pub fn counted(&self) -> (usize, usize) {
        let counts: Vec<usize> = kinds::ALL
            .into_iter()
            .map(|kind| self.of_kind(kind.group, kind.kind).count())
            .collect();
        (
            counts.iter().sum(),
            counts.iter().filter(|count| **count > 0).count(),
        )
    }
}

/// What is to exist before others: owners before what they own.
fn rank(object: &Value) -> usize {
    const FIRST: [&str; 3] = ["Namespace", "Node", "UnitedDeployment"];
    const LAST: [&str; 4] = ["ConfigMap", "ControllerRevision", "PersistentVolumeClaim", "Pod"];
    let kind = object["kind"].as_str().unwrap();
    let first = FIRST.iter().position(|one| *one == kind);
    let last = LAST.iter().position(|one| *one == kind);
    first.unwrap_or_else(|| last.map_or(FIRST.len(), |at| FIRST.len() + 1 + at))
}

/// Group and plural name of the resource of an object.
pub fn resource(object: &Value) -> (String, String) {
    let version = object["apiVersion"].as_str().unwrap();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let kind = object["kind"].as_str().unwrap();
    let plural = kinds::find(&kinds::ALL, group, kind).map_or_else(
        || format!("{}s", kind.to_lowercase()),
        |kind| kind.plural.to_owned(),
    );
    (group.to_owned(), plural)
}

/// The path of the collection that an object is in.
pub fn collection(object: &Value) -> String {
    let version = object["apiVersion"].as_str().unwrap();
    let root = if version.contains('/') { "apis" } else { "api" };
    let (_, plural) = resource(object);
    match object["metadata"]["namespace"].as_str() {
        None | Some("") => format!("/{root}/{version}/{plural}"),
        Some(namespace) => format!("/{root}/{version}/namespaces/{namespace}/{plural}"),
    }
}

#[cfg(test)]
mod tests;
