//! What is true: every version of every object that managers watch, as the API server shows it to a watch that is never
//! late. Oracles read it, and the watches of managers are fed from it, as late as the scenario says.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use jiff::Timestamp;
use kruise_sim::{Method, Outcome, Request, Response, WatchEvent, WatchId, World};
use serde_json::{Value, json};

use super::{
    object::Object,
    resource::{PerResource, Resource},
    selector::Selector,
    verdict::Judged,
};

/// How old a list is that may be old.
const STALENESS: std::time::Duration = std::time::Duration::from_secs(3);

/// One event of a resource.
#[derive(Clone, Debug)]
pub struct Change {
    /// Version of the change.
    pub version: u64,
    /// Uid of the object.
    pub uid: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// The line that watches send.
    pub line: Bytes,
    /// Has the object one of the labels by which managers select objects?
    pub is_selected: bool,
}

/// Everything that ever was of one resource.
#[derive(Debug)]
pub struct Log {
    /// Whose it is.
    pub resource: Resource,
    watch: Option<WatchId>,
    /// Changes in order.
    pub changes: Vec<Change>,
    /// Versions of each object, by uid; the last of a deleted one is marked as gone.
    pub objects: BTreeMap<Arc<str>, Vec<Arc<Object>>>,
    /// Places of the changes of each name: watches of one object out of thousands do not look at all the others.
    places: BTreeMap<Arc<str>, Vec<usize>>,
}

/// The truth.
#[derive(Debug)]
pub struct Mirror {
    logs: Vec<Log>,
    /// What is not watched never has an object.
    nothing: Log,
    /// Labels by which managers select objects in lists and watches.
    selectors: Vec<&'static str>,
    /// Newest revision at each time at which there was a newer one.
    revisions: Vec<(Timestamp, u64)>,
    /// Whether oracles look.
    judged: Judged,
}

/// Does a request want only selected objects?
pub fn is_for_selected(request: &Request) -> bool {
    request.query.contains("labelSelector=")
}

impl Mirror {
    /// Watches these resources of a world from its beginning.
    pub fn new(
        world: &mut World,
        resources: &[Resource],
        selectors: Vec<&'static str>,
        judged: Judged,
    ) -> Self {
        let log = |resource: &Resource| {
            let path = format!("{}?watch=true&resourceVersion=0", resource.path());
            let outcome = world.handle(&Request::new(Method::Get, &path, None));
            let watch = match outcome {
                Outcome::Watch(id) => Some(id),
                _ => None,
            };
            Log::new(*resource, watch)
        };
        Self {
            logs: resources.iter().map(log).collect(),
            nothing: Log::new(Resource::kruise("", ""), None),
            selectors,
            revisions: Vec::new(),
            judged,
        }
    }

    /// One resource.
    pub fn of(&self, of: Resource) -> &Log {
        let found = self.logs.iter().find(|log| log.resource == of);
        found.unwrap_or(&self.nothing)
    }

    /// The first object of a resource: the one of a kind of which scenarios have one at a time.
    pub fn only(&self, of: Resource) -> Option<&Arc<Object>> {
        self.of(of).now().next()
    }

    /// Versions of an object, whether it is there or gone.
    pub fn versions(&self, of: Resource, uid: &str) -> &[Arc<Object>] {
        self.of(of).objects.get(uid).map_or(&[], Vec::as_slice)
    }

    /// The newest version of an object, though it may be gone.
    pub fn last(&self, of: Resource, uid: &str) -> Option<&Arc<Object>> {
        self.versions(of, uid).last()
    }

    /// Objects of a resource that another object controls, as they are now.
    pub fn owned<'m>(&'m self, of: Resource, owner: &'m Object) -> impl Iterator<Item = &'m Arc<Object>> {
        self.of(of).now().filter(|object| object.owner() == &*owner.uid)
    }

    /// Is it controlled by the only object of a resource?
    pub fn controls(&self, owner: Resource, object: &Object) -> bool {
        self.only(owner)
            .is_some_and(|owner| object.owner() == &*owner.uid)
    }

    /// The watched resources, in the order in which watches are woken.
    pub fn resources(&self) -> impl Iterator<Item = Resource> {
        self.logs.iter().map(|log| log.resource)
    }

    /// The resource of a list or a watch.
    pub fn resource_of(&self, path: &str) -> Option<Resource> {
        self.resources().find(|one| one.is_at(path))
    }

    /// How often anything changed.
    pub fn changes(&self) -> usize {
        self.logs.iter().map(|log| log.changes.len()).sum()
    }

    /// Lengths of the logs.
    pub fn marks(&self) -> PerResource<usize> {
        let marks = self.logs.iter().map(|log| (log.resource, log.changes.len()));
        marks.collect()
    }

    fn is_selected(&self, object: &Object) -> bool {
        self.selectors.iter().any(|label| object.has_label(label))
    }

    /// A list for which any version will do may be as old as the server likes: here by three seconds.
    pub fn stale_list(&self, request: &Request, now: Timestamp) -> Option<Response> {
        if !request.query.contains("resourceVersion=0") || request.query.contains("watch=") {
            return None;
        }
        let resource = self.of(self.resource_of(&request.path)?);
        let then = now.checked_sub(STALENESS).ok()?;
        let old =
            |versions: &Vec<Arc<Object>>| versions.iter().rev().find(|object| object.at <= then).cloned();
        let objects: Vec<_> = resource.objects.values().filter_map(old).collect();
        let known = self.revisions.partition_point(|(at, _)| *at <= then);
        let version = self
            .revisions
            .get(known.saturating_sub(1))
            .map_or(1, |(_, revision)| *revision);
        let only_selected = is_for_selected(request);
        let items: Vec<_> = objects
            .iter()
            .filter(|object| !object.gone && (!only_selected || self.is_selected(object)))
            .map(|object| object.value())
            .collect();
        let metadata = json!({"resourceVersion": version.to_string()});
        Some(Response::json(
            200,
            &json!({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items}),
        ))
    }

    /// When a version was the newest one of all resources for the first time.
    pub fn time_of(&self, version: u64) -> Option<Timestamp> {
        let known = self
            .revisions
            .partition_point(|(_, revision)| *revision <= version);
        let newest = self.revisions.get(known.checked_sub(1)?);
        newest.map(|(at, _)| *at)
    }

    /// Takes in what happened.
    pub fn sync(&mut self, world: &mut World) {
        let revision = world.api().revision();
        if self
            .revisions
            .last()
            .is_some_and(|(_, newest)| *newest == revision)
        {
            return;
        }
        let now = world.now();
        self.revisions.push((now, revision));
        for log in &mut self.logs {
            let Some(id) = log.watch else { continue };
            let Resource { group, plural, .. } = log.resource;
            for event in world.api().watch_events(id, now) {
                let line = world.api().line(group, plural, &event);
                if let (WatchEvent::Line(kind, object), Some(line)) = (event, line) {
                    log.take(kind, object, line, now, &self.selectors, self.judged);
                }
            }
        }
    }
}

impl Log {
    fn new(resource: Resource, watch: Option<WatchId>) -> Self {
        Self {
            resource,
            watch,
            changes: Vec::new(),
            objects: BTreeMap::new(),
            places: BTreeMap::new(),
        }
    }

    fn take(
        &mut self,
        kind: &str,
        object: Arc<Value>,
        line: Vec<u8>,
        now: Timestamp,
        selectors: &[&str],
        judged: Judged,
    ) {
        if !matches!(kind, "ADDED" | "MODIFIED" | "DELETED") {
            return;
        }
        let line = Bytes::from(line);
        let object = Object::new(object, line.clone(), kind == "DELETED", now);
        let places = self.places.entry(object.name.clone()).or_default();
        places.push(self.changes.len());
        self.changes.push(Change {
            version: object.version,
            uid: object.uid.clone(),
            name: object.name.clone(),
            line,
            is_selected: selectors.iter().any(|label| object.has_label(label)),
        });
        let versions = self.objects.entry(object.uid.clone()).or_default();
        // Only oracles look at what is not the newest.
        if let (Judged::No, Some(old)) = (judged, versions.last_mut().and_then(Arc::get_mut)) {
            old.fade();
        }
        versions.push(Arc::new(object));
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

    /// The versions of the object that the change at a place made, up to the newest.
    pub fn changed_at(&self, place: usize) -> Option<&[Arc<Object>]> {
        let versions = self.objects.get(&self.changes.get(place)?.uid);
        versions.map(Vec::as_slice)
    }

    /// What a watch that shows selected objects only sends of a change. An object that is not selected any more is
    /// deleted, as far as the watch is concerned; one that is from now on was added.
    pub fn line(&self, change: &Change, selector: &Selector) -> Option<Bytes> {
        let versions = self.objects.get(&change.uid)?;
        let at = versions.partition_point(|one| one.version < change.version);
        let (now, before) = (versions.get(at)?, versions.get(at.wrapping_sub(1)));
        let selects = |one: &Object| match selector.name() {
            // Without a look at a text that nobody has read yet.
            Some(name) => *one.name == *name,
            None => selector.matches(one.value()),
        };
        let was = before.is_some_and(|one| !one.gone && selects(one));
        let is = !now.gone && selects(now);
        let kind = match (was, is) {
            (false, false) => return None,
            (true, true) => return Some(change.line.clone()),
            (false, true) => "ADDED",
            (true, false) => "DELETED",
        };
        Some(format!("{}\n", json!({"type": kind, "object": now.value()})).into())
    }

    /// The changes from a place in the log on: of one name, or all.
    pub fn changes_from(&self, place: usize, name: Option<&str>) -> impl Iterator<Item = &Change> {
        let (all, of_name) = match name {
            None => (self.changes.get(place..), None),
            Some(name) => (None, self.places.get(name)),
        };
        let of_name = of_name.map(|places| {
            let new = places.partition_point(|one| *one < place);
            places.get(new..).unwrap_or_default()
        });
        let of_name = of_name.into_iter().flatten();
        all.into_iter()
            .flatten()
            .chain(of_name.filter_map(|place| self.changes.get(*place)))
    }

    /// Place in the log after everything up to a version.
    pub fn after(&self, version: u64) -> usize {
        self.changes.partition_point(|change| change.version <= version)
    }
}
