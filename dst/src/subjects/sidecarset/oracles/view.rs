//! SidecarSets and their pods, as their documentation explains them.

use crate::rules::prelude::*;

/// Pod annotation: what each set injected.
const HASH: &str = "kruise.io/sidecarset-hash";
/// Pod and set annotation: the same but for images.
const HASH_WITHOUT_IMAGE: &str = "kruise.io/sidecarset-hash-without-image";
/// Pod annotation: names of the sets.
const LIST: &str = "kruise.io/sidecarset-injected-list";
/// Pod annotation: upgrades.
const STATE: &str = "kruise.io/sidecarset-inplace-update-state";
/// Pod annotation: which twins work.
const WORKING: &str = "kruise.io/sidecarset-working-hotupgrade-container";

/// A sidecar of a set.
#[derive(Clone, Copy, Debug)]
pub struct Sidecar<'a> {
    /// Name.
    pub name: &'a str,
    /// Image that is wanted.
    pub image: &'a str,
    /// Image of the twin that idles, if there are twins.
    pub empty: Option<&'a str>,
}

impl Sidecar<'_> {
    /// Names of its containers in a pod.
    pub fn containers(&self) -> Vec<String> {
        if self.empty.is_some() {
            vec![format!("{}-1", self.name), format!("{}-2", self.name)]
        } else {
            vec![self.name.to_owned()]
        }
    }
}

/// What a version of a SidecarSet demands.
#[derive(Clone, Copy, Debug)]
pub struct Spec<'a>(pub &'a Object);

impl<'a> Spec<'a> {
    fn strategy(self) -> &'a Value {
        &self.0.spec()["updateStrategy"]
    }

    /// The hash of what is injected.
    pub fn hash(self) -> &'a str {
        text(&self.0.annotations()[HASH])
    }

    /// Are pods upgraded at all?
    pub fn upgrades(self) -> bool {
        let strategy = self.strategy();
        strategy["type"] != "NotUpdate" && strategy["paused"] != true && !self.0.is_going()
    }

    /// Are new pods of this namespace to get its sidecars?
    pub fn injects(self, namespace: &Object) -> bool {
        self.0.spec()["injectionStrategy"]["paused"] != true && !self.shuns(namespace)
    }

    /// Is the pod one of those that may be upgraded?
    pub fn selects(self, pod: &Object) -> bool {
        let selector = &self.strategy()["selector"];
        selector.is_null() || matches(selector, pod)
    }

    /// Does it look at labels of namespaces, and not find them on this one?
    pub fn shuns(self, namespace: &Object) -> bool {
        let selector = &self.0.spec()["namespaceSelector"];
        !selector.is_null() && !matches(selector, namespace)
    }

    /// Its sidecars.
    pub fn sidecars(self) -> Vec<Sidecar<'a>> {
        let read = |one: &'a Value| {
            let upgrade = &one["upgradeStrategy"];
            Sidecar {
                name: text(&one["name"]),
                image: text(&one["image"]),
                empty: (upgrade["upgradeType"] == "HotUpgrade")
                    .then(|| text(&upgrade["hotUpgradeEmptyImage"])),
            }
        };
        items(&self.0.spec()["containers"]).map(read).collect()
    }

    /// Pods that stay as they are, of so many. A percentage below all leaves one to upgrade.
    pub fn partition(self, of: i64) -> i64 {
        kept(&self.strategy()["partition"], of)
    }

    /// Pods that may be unavailable because of it, of so many.
    pub fn max_unavailable(self, of: i64) -> i64 {
        rounded_up(&self.strategy()["maxUnavailable"], of, 1)
    }

    /// Does a pod count? Namespaces apart.
    pub fn counts(self, pod: &Object) -> bool {
        let has = |name: &String| image(pod, name).is_some();
        let is_whole = |one: &Sidecar<'_>| {
            one.containers().iter().all(has) && (one.empty.is_none() || !working(pod, one.name).is_null())
        };
        pod.is_active()
            && is_in_list(pod, &self.0.name)
            && matches(&self.0.spec()["selector"], pod)
            && self.sidecars().iter().all(is_whole)
    }

    /// Was it injected, or upgraded, to what is wanted?
    pub fn is_updated(self, pod: &Object) -> bool {
        hash(pod, &self.0.name) == self.hash()
    }

    /// Do only images differ?
    pub fn can_follow(self, pod: &Object) -> bool {
        let wanted = text(&self.0.annotations()[HASH_WITHOUT_IMAGE]);
        let entry = entry(pod, HASH_WITHOUT_IMAGE, &self.0.name);
        text(&entry["hash"]) == wanted
    }

    /// Do all its sidecars run their images?
    pub fn runs(self, pod: &Object) -> bool {
        let mut all = self.sidecars().into_iter().flat_map(|one| one.containers());
        all.all(|name| running(pod, &name).is_some_and(|running| Some(running) == image(pod, &name)))
    }

    /// Is it ready, with one twin of each idle?
    pub fn is_ready(self, pod: &Object) -> bool {
        let idles = |one: &Sidecar<'_>| {
            one.empty.is_none_or(|empty| {
                let works = working(pod, one.name);
                let other = one.containers().into_iter().find(|twin| works != twin.as_str());
                other.is_some_and(|other| image(pod, &other) == Some(empty))
            })
        };
        pod.is_active()
            && pod.status()["phase"] == "Running"
            && pod.state("Ready") == "True"
            && self.sidecars().iter().all(idles)
    }

    /// Is it unavailable because of the SidecarSet: upgraded and not back, or changed and not there yet?
    pub fn is_out(self, pod: &Object) -> bool {
        if self.is_updated(pod) {
            return !self.runs(pod) || !self.is_ready(pod);
        }
        !entry(pod, STATE, &self.0.name).is_null() && !self.runs(pod)
    }
}

/// Name of the container that works for a hot sidecar, or null.
pub fn working(pod: &Object, sidecar: &str) -> Value {
    annotation(pod, WORKING)[sidecar].clone()
}

/// Does a container serve: ready, with the image that its pod names, which is not the empty one?
pub fn serves(pod: &Object, container: &str, empty: &str) -> bool {
    let wanted = image(pod, container);
    let is_ready = status(pod, container).is_some_and(|one| one["ready"] == true);
    is_ready && wanted.is_some() && wanted != Some(empty) && running(pod, container) == wanted
}

/// The hash that a pod records of a set.
pub fn hash(pod: &Object, set: &str) -> String {
    text(&entry(pod, HASH, set)["hash"]).to_owned()
}

/// The revision that a pod records of a set.
pub fn revision(pod: &Object, set: &str) -> String {
    text(&entry(pod, HASH, set)["controllerRevision"]).to_owned()
}

/// Names of the SidecarSets for which the annotations of a pod changed.
pub fn concerned(before: &Object, after: &Object) -> Vec<String> {
    let mut sets: Vec<String> = Vec::new();
    for key in [HASH, STATE] {
        let (old, new) = (annotation(before, key), annotation(after, key));
        let names = pairs(&old).chain(pairs(&new)).map(|(name, _)| name);
        sets.extend(names.filter(|name| old[*name] != new[*name]).map(str::to_owned));
    }
    // What the containers ran before may be the same, where they had not begun.
    if sets.is_empty() {
        let records = annotation(after, HASH);
        let changed = containers(after).filter(|name| image(before, name) != image(after, name));
        let changed: Vec<&str> = changed.collect();
        let is_meant = |record: &Value| {
            let mut sidecars = texts(&record["sidecarList"]);
            sidecars.any(|sidecar| changed.iter().any(|name| is_twin(name, sidecar)))
        };
        let meant = pairs(&records).filter(|(_, record)| is_meant(record));
        sets.extend(meant.map(|(name, _)| name.to_owned()));
    }
    sets.sort();
    sets.dedup();
    sets
}

/// Names of the containers of a pod.
fn containers(pod: &Object) -> impl Iterator<Item = &str> {
    let list = items(&pod.spec()["containers"]);
    list.filter_map(|container| container["name"].as_str())
}

/// Is it the container of this name, or one of its two that take turns?
fn is_twin(container: &str, sidecar: &str) -> bool {
    let rest = container.strip_prefix(sidecar);
    rest.is_some_and(|rest| matches!(rest, "" | "-1" | "-2"))
}

/// Was the set injected into the pod?
pub fn is_in_list(pod: &Object, set: &str) -> bool {
    list(pod).any(|name| name == set)
}

/// Names of the sets that were injected into a pod.
pub fn list(pod: &Object) -> impl Iterator<Item = &str> {
    let list = text(&pod.annotations()[LIST]);
    list.split(',').filter(|name| !name.is_empty())
}

/// Image of a container in the specification of a pod.
pub fn image<'a>(pod: &'a Object, container: &str) -> Option<&'a str> {
    named(&pod.spec()["containers"], container)?["image"].as_str()
}

/// Image that a container runs.
pub fn running<'a>(pod: &'a Object, container: &str) -> Option<&'a str> {
    status(pod, container)?["image"].as_str()
}

fn status<'a>(pod: &'a Object, container: &str) -> Option<&'a Value> {
    named(&pod.status()["containerStatuses"], container)
}

fn entry(pod: &Object, key: &str, set: &str) -> Value {
    annotation(pod, key)[set].clone()
}

fn annotation(pod: &Object, key: &str) -> Value {
    serde_json::from_str(text(&pod.annotations()[key])).unwrap_or_default()
}
