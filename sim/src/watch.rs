//! Watches: a cursor into a resource's history, drained by whoever serves it.
//!
//! A watch shows the objects that its selectors show: one that comes to match is ADDED, one that ceases to is DELETED.
//! It ends with an ERROR of code 410 when history was compacted beyond its cursor.

use std::fmt;
use std::sync::Arc;

use jiff::{Timestamp, ToSpan};
use kube_schema::validate::Errors;
use serde_json::{Value, json};

use crate::api::{Api, Call};
use crate::negotiate::Form;
use crate::object::set_metadata;
use crate::query::Query;
use crate::registry::Schema;
use crate::route::Target;
use crate::selector::Selector;
use crate::status::Failure;
use crate::store::{Change, Collection, Stored};
use crate::verbs;
use crate::wire::Request;

/// How often an idle watch that allows bookmarks gets one.
const BOOKMARK_SECONDS: i64 = 60;

/// A watch of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchId(u64);

impl fmt::Display for WatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One event of a watch.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchEvent {
    /// A line to send: type and object.
    Line(&'static str, Value),
    /// The stream ends.
    End,
}

impl WatchEvent {
    /// The line as text, without the newline; `None` at the end.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Line(kind, object) => Some(json!({"type": kind, "object": object}).to_string()),
            Self::End => None,
        }
    }
}

/// An open watch.
#[derive(Debug)]
pub(crate) struct Watch {
    request: Arc<Request>,
    target: Target,
    selector: Selector,
    /// Changes up to here were shown.
    cursor: u64,
    /// The state at the cursor is still to be shown.
    initial: Initial,
    bookmarks: bool,
    next_bookmark: Timestamp,
    until: Option<Timestamp>,
    has_header: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Initial {
    Done,
    /// Show the state.
    State,
    /// Show the state, then say that it is complete.
    StateAndBookmark,
}

impl Api {
    pub(crate) fn open_watch(&mut self, call: &Call<'_>) -> Result<WatchId, Failure> {
        let mut selector = Selector::of_call(call)?;
        if !call.target.name.is_empty() {
            selector.only(&call.target.name);
        }
        if call.target.watch && !call.query.flag("watch") {
            // the old form of watches is checked like a list
            verbs::check_list(call)?;
        } else {
            check(&call.query)?;
        }
        let wanted = version(call.query.text("resourceVersion"))?;
        let current = self.store.revision();
        let streams = call.query.flag("sendInitialEvents");
        let bookmarks = call.query.flag("allowWatchBookmarks");
        let initial = match (streams, wanted) {
            (true, _) if bookmarks => Initial::StateAndBookmark,
            (true, _) => Initial::State,
            (false, 0) if !call.query.has("sendInitialEvents") => Initial::State,
            (false, _) => Initial::Done,
        };
        let seconds = call.query.number("timeoutSeconds").filter(|seconds| *seconds > 0);
        let after = |seconds: i64| call.now.checked_add(seconds.seconds()).ok();
        let watch = Watch {
            request: Arc::new(call.request.clone()),
            target: call.target.clone(),
            selector,
            cursor: if initial == Initial::Done && wanted > 0 {
                wanted
            } else {
                current
            },
            initial,
            bookmarks,
            next_bookmark: after(BOOKMARK_SECONDS).unwrap_or(call.now),
            until: seconds.and_then(after),
            has_header: false,
        };
        let id = WatchId(self.next_watch);
        self.next_watch += 1;
        self.watches.insert(id, watch);
        Ok(id)
    }

    /// What a watch has to show since it was last drained. After [`WatchEvent::End`] it is closed.
    pub fn watch_events(&mut self, id: WatchId, now: Timestamp) -> Vec<WatchEvent> {
        let Some(mut watch) = self.watches.remove(&id) else {
            return vec![WatchEvent::End];
        };
        let events = self.drain(&mut watch, now);
        if events.last() != Some(&WatchEvent::End) {
            self.watches.insert(id, watch);
        }
        events
    }

    /// Forgets a watch whose client is gone.
    pub fn close_watch(&mut self, id: WatchId) {
        self.watches.remove(&id);
    }

    fn drain(&self, watch: &mut Watch, now: Timestamp) -> Vec<WatchEvent> {
        let resource = self.registry.get(&watch.target.group, &watch.target.plural);
        let version = resource.and_then(|one| one.version(&watch.target.version));
        let (Some(resource), Some(version)) = (resource, version) else {
            return vec![WatchEvent::End];
        };
        let request = watch.request.clone();
        let call = Call {
            request: &request,
            target: watch.target.clone(),
            query: Query::parse(&watch.request.query),
            resource: resource.clone(),
            version: version.clone(),
            form: Form::of(&watch.request.accept, &watch.target).unwrap_or(Form::Whole),
            now,
            dry_run: false,
            warnings: Vec::new(),
            seed: 0,
            answers: Vec::new(),
        };
        let empty = self.store.empty();
        let collection = self.store.collection(&resource.id).unwrap_or(&empty);
        let mut events = watch.initial_events(&call, collection);
        let Some(changes) = collection.log.after(watch.cursor) else {
            let oldest = collection.log.compacted() + 1;
            let why = format!("too old resource version: {} ({oldest})", watch.cursor);
            events.push(WatchEvent::Line("ERROR", Failure::expired(why).status()));
            events.push(WatchEvent::End);
            return events;
        };
        let seen = changes.filter_map(|change| watch.event(change).map(|kind| (kind, change)));
        let lines: Vec<_> = seen
            .map(|(kind, change)| (kind, shown(&call, kind, change)))
            .collect();
        events.extend(
            lines
                .into_iter()
                .map(|(kind, object)| watch.line(&call, kind, object)),
        );
        watch.cursor = watch.cursor.max(self.store.revision());
        if watch.bookmarks && now >= watch.next_bookmark {
            watch.next_bookmark = now.checked_add(BOOKMARK_SECONDS.seconds()).unwrap_or(now);
            if let WatchEvent::Line(kind, object) = bookmark(&call, watch.cursor, false) {
                events.push(watch.line(&call, kind, object));
            }
        }
        if watch.until.is_some_and(|until| now >= until) {
            events.push(WatchEvent::End);
        }
        events
    }
}

impl Watch {
    /// The state at the cursor: of a drained watch, nothing.
    fn initial_events(&mut self, call: &Call<'_>, collection: &Collection) -> Vec<WatchEvent> {
        let initial = std::mem::replace(&mut self.initial, Initial::Done);
        if initial == Initial::Done {
            return Vec::new();
        }
        // what changed between opening and the first drain is part of the history that follows
        let objects = collection.at(self.cursor).unwrap_or_default();
        let namespace = &self.target.namespace;
        let shown = objects.iter().filter(|(key, stored)| {
            (namespace.is_empty() || key.namespace.as_ref() == namespace)
                && self.selector.matches(&key.namespace, &key.name, &stored.head)
        });
        let objects: Vec<Value> = shown.map(|(_, stored)| call.read(stored)).collect();
        let mut events: Vec<WatchEvent> = objects
            .into_iter()
            .map(|object| self.line(call, "ADDED", object))
            .collect();
        if initial == Initial::StateAndBookmark {
            if let WatchEvent::Line(kind, object) = bookmark(call, self.cursor, true) {
                events.push(self.line(call, kind, object));
            }
        }
        events
    }

    fn line(&mut self, call: &Call<'_>, kind: &'static str, object: Value) -> WatchEvent {
        let object = match call.form {
            Form::Table => verbs::table(call, &[object], !self.has_header),
            form => form.object(call, object),
        };
        self.has_header = true;
        WatchEvent::Line(kind, object)
    }

    /// What a change is to this watch.
    fn event(&self, change: &Change) -> Option<&'static str> {
        let namespace = &self.target.namespace;
        if !namespace.is_empty() && change.key.namespace.as_ref() != namespace {
            return None;
        }
        let shows = |stored: &Stored| {
            self.selector
                .matches(&change.key.namespace, &change.key.name, &stored.head)
        };
        let before = change.old.as_deref().is_some_and(shows);
        let after = !change.deleted && shows(&change.new);
        match (before, after) {
            (false, true) => Some("ADDED"),
            (true, true) => Some("MODIFIED"),
            (true, false) => Some("DELETED"),
            (false, false) => None,
        }
    }
}

/// The object of an event. One that ceased to match is shown as it last matched, at the revision of the change.
fn shown(call: &Call<'_>, kind: &str, change: &Change) -> Value {
    match &change.old {
        Some(old) if kind == "DELETED" && !change.deleted => {
            let mut object = call.read(old);
            set_metadata(&mut object, "resourceVersion", change.revision.to_string().into());
            object
        }
        _ => call.read(&change.new),
    }
}

fn bookmark(call: &Call<'_>, revision: u64, complete: bool) -> WatchEvent {
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if complete && let Value::Object(members) = &mut metadata {
        members.insert("annotations".into(), json!({"k8s.io/initial-events-end": "true"}));
    }
    let object =
        json!({"kind": call.resource.kind.as_ref(), "apiVersion": call.api_version(), "metadata": metadata});
    // of a built-in kind, an object without content, which has some members even so
    let bare = match call.version.schema {
        Schema::Typed(_) => crate::object::shape(object.clone(), &call.version).map_or(object, |read| read.value),
        Schema::Structural(_) => object,
    };
    WatchEvent::Line("BOOKMARK", bare)
}

/// Where to start; absent is zero. A server does not say whose fault a bad one is.
fn version(text: &str) -> Result<u64, Failure> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        Failure::unknown(&format!(
            "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
        ))
    })
}

fn check(query: &Query) -> Result<(), Failure> {
    const MATCHES: &[&str] = &["NotOlderThan"];
    let mut errors = Errors::default();
    let path = "resourceVersionMatch";
    let matching = query.text(path);
    let streams = query.has("sendInitialEvents");
    if streams && matching != "NotOlderThan" {
        errors.forbidden(
            path,
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        );
    }
    if !matching.is_empty() {
        if !streams {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.forbidden(path, why);
        }
        errors.one_of(path, matching, MATCHES);
        if query.has("continue") {
            errors.forbidden(
                path,
                "resourceVersionMatch is forbidden when continue is provided",
            );
        }
    }
    Failure::of_list_options(&errors.0)
}
