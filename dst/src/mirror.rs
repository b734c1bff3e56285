//! What is true: every version of every object that managers deal with, as the API server shows it to a watch that is
//! never late. Oracles read it, and the watches of managers are fed from it, as late as the history says.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use jiff::Timestamp;
use kruise_sim::{Method, Outcome, Request, Response, WatchEvent, WatchId, World};
use serde_json::{Value, json};

use crate::{history::Watched, object::Object, play::Judged};

/// How old a list is that may be old.
const STALENESS: std::time::Duration = std::time::Duration::from_secs(3);

/// One event of a resource's history.
#[derive(Clone, Debug)]
pub struct Change {
    /// Version of the change.
    pub version: u64,
    /// The line that watches send.
    pub line: Bytes,
    /// Has it the label of those that managers watch by themselves?
    pub is_marked: bool,
}

/// Everything that ever was of one resource.
#[derive(Debug, Default)]
pub struct Resource {
    watch: Option<WatchId>,
    /// Changes in order.
    pub log: Vec<Change>,
    /// Versions of each object, by uid; the last of a deleted one is marked as gone.
    pub objects: BTreeMap<Arc<str>, Vec<Arc<Object>>>,
}

/// The truth.
#[derive(Debug, Default)]
pub struct Mirror {
    resources: [Resource; Watched::COUNT],
    /// Newest revision at each time at which there was a newer one.
    revisions: Vec<(Timestamp, u64)>,
    /// Whether oracles look.
    judged: Judged,
}

/// Labels of what managers watch by themselves: revisions of SidecarSets, and barriers among ConfigMaps.
const MARKS: [&str; 2] = [
    "kruise.io/sidecarset-name",
    "apps.kruise.io/container-launch-barrier",
];

fn is_marked(object: &Object) -> bool {
    MARKS.iter().any(|mark| object.has_label(mark))
}

/// Does a request ask only for what has such a label?
pub fn is_for_marked(request: &Request) -> bool {
    request.query.contains("labelSelector=")
}

/// Path of a watched resource.
pub fn path_of(of: Watched) -> &'static str {
    match of {
        Watched::Sets => "/apis/apps.kruise.io/v1beta1/clonesets",
        Watched::Pods => "/api/v1/pods",
        Watched::Revisions => "/apis/apps/v1/controllerrevisions",
        Watched::Nodes => "/api/v1/nodes",
        Watched::Claims => "/api/v1/persistentvolumeclaims",
        Watched::SidecarSets => "/apis/apps.kruise.io/v1beta1/sidecarsets",
        Watched::Namespaces => "/api/v1/namespaces",
        Watched::Barriers => "/api/v1/configmaps",
    }
}

impl Mirror {
    /// Watches the world from its beginning.
    pub fn new(world: &mut World, judged: Judged) -> Self {
        let mut mirror = Self {
            judged,
            ..Self::default()
        };
        for of in Watched::ALL {
            let request = Request::new(
                Method::Get,
                &format!("{}?watch=true&resourceVersion=0", path_of(of)),
                None,
            );
            if let Outcome::Watch(id) = world.handle(&request) {
                mirror.resources[of.index()].watch = Some(id);
            }
        }
        mirror
    }

    /// One resource.
    pub fn of(&self, of: Watched) -> &Resource {
        &self.resources[of.index()]
    }

    /// Lengths of the logs.
    pub fn marks(&self) -> [usize; Watched::COUNT] {
        Watched::ALL.map(|of| self.of(of).log.len())
    }

    /// A list for which any version will do may be as old as the server likes: here by three seconds.
    pub fn stale_list(&self, request: &Request, now: Timestamp) -> Option<Response> {
        if !request.query.contains("resourceVersion=0") || request.query.contains("watch=") {
            return None;
        }
        let resource = self.of(Watched::of_path(&request.path)?);
        let then = now.checked_sub(STALENESS).ok()?;
        let old =
            |versions: &Vec<Arc<Object>>| versions.iter().rev().find(|object| object.at <= then).cloned();
        let objects: Vec<_> = resource.objects.values().filter_map(old).collect();
        let known = self.revisions.partition_point(|(at, _)| *at <= then);
        let version = self
            .revisions
            .get(known.saturating_sub(1))
            .map_or(1, |(_, revision)| *revision);
        let only_marked = is_for_marked(request);
        let items: Vec<_> = objects
            .iter()
            .filter(|object| !object.gone && (!only_marked || is_marked(object)))
            .map(|object| object.value())
            .collect();
        let metadata = json!({"resourceVersion": version.to_string()});
        Some(Response::json(
            200,
            &json!({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items}),
        ))
    }

    /// Takes in what happened; tells which resources changed.
    pub fn sync(&mut self, world: &mut World) -> [bool; Watched::COUNT] {
        let mut changed = [false; Watched::COUNT];
        let revision = world.api().revision();
        if self
            .revisions
            .last()
            .is_some_and(|(_, newest)| *newest == revision)
        {
            return changed;
        }
        let now = world.now();
        self.revisions.push((now, revision));
        let resources = Watched::ALL.into_iter().zip(&mut self.resources);
        for ((of, resource), changed) in resources.zip(&mut changed) {
            let Some(id) = resource.watch else { continue };
            let (group, plural) = of.resource();
            for event in world.api().watch_events(id, now) {
                let line = world.api().line(group, plural, &event);
                if let (WatchEvent::Line(kind, object), Some(line)) = (event, line) {
                    *changed |= resource.take(kind, object, line, now, self.judged);
                }
            }
        }
        changed
    }
}

impl Resource {
    fn take(
        &mut self,
        kind: &str,
        object: Arc<Value>,
        line: Vec<u8>,
        now: Timestamp,
        judged: Judged,
    ) -> bool {
        if !matches!(kind, "ADDED" | "MODIFIED" | "DELETED") {
            return false;
        }
        let line = Bytes::from(line);
        let object = Object::new(object, line.clone(), kind == "DELETED", now);
        self.log.push(Change {
            version: object.version,
            line,
            is_marked: is_marked(&object),
        });
        let versions = self.objects.entry(object.uid.clone()).or_default();
        // Only oracles look at what is not the newest.
        if let (Judged::No, Some(old)) = (judged, versions.last_mut().and_then(Arc::get_mut)) {
            old.fade();
        }
        versions.push(Arc::new(object));
        true
    }

    /// Objects as they are now.
    pub fn now(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.objects
            .values()
            .filter_map(|versions| versions.last())
            .filter(|object| !object.gone)
    }

    /// The object of this name as it is now.
    pub fn named(&self, name: &str) -> Option<&Arc<Object>> {
        self.now().find(|object| &*object.name == name)
    }

    /// Versions of an object that somebody who knows everything up to `floor` may take for the newest one.
    pub fn window(&self, uid: &str, floor: u64) -> &[Arc<Object>] {
        let Some(versions) = self.objects.get(uid) else {
            return &[];
        };
        let known = versions.partition_point(|object| object.version <= floor);
        versions.get(known.saturating_sub(1)..).unwrap_or_default()
    }

    /// Place in the log after everything up to a version.
    pub fn after(&self, version: u64) -> usize {
        self.log.partition_point(|change| change.version <= version)
    }
}
