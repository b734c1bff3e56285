//! What a watch has seen and not shown yet.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{BOOKMARK_SECONDS, Event, Initial, Watch, WatchEvent};
use crate::api::Call;
use crate::conversion;
use crate::form::Form;
use crate::object::set_metadata;
use crate::registry::{Conversion, Schema};
use crate::status::Failure;
use crate::store::{Change, Collection, Stored};
use crate::validation::text;
use crate::verbs;

impl Watch {
    /// Whether nothing happened since the cursor, and the time brings nothing: most watches are read far more often
    /// than they have something to show.
    pub(super) fn is_idle(&self, collection: &Collection, now: Timestamp) -> bool {
        let has_come = |at: Timestamp| now >= at;
        self.initial == Initial::Done
            && self.backlog.is_empty()
            && !(self.bookmarks && has_come(self.next_bookmark))
            && !self.until.is_some_and(has_come)
            && collection
                .log
                .after(self.cursor)
                .is_some_and(|mut changes| changes.next().is_none())
    }

    /// Puts into the backlog what happened since the cursor, and what the time brings.
    pub(super) fn collect(&mut self, call: &Call<'_>, collection: &Collection, revision: u64) {
        if matches!(self.backlog.back(), Some(Event::Other(WatchEvent::End))) {
            return;
        }
        self.initial_events(call, collection);
        let Some(changes) = collection.log.after(self.cursor) else {
            let oldest = collection.log.compacted() + 1;
            let why = format!("too old resource version: {} ({oldest})", self.cursor);
            self.end(&Failure::expired(why));
            return;
        };
        for change in changes {
            if let Some(kind) = self.event(change) {
                self.push(call, kind, shown(kind, change));
            }
        }
        self.cursor = self.cursor.max(revision);
        if self.bookmarks && call.now >= self.next_bookmark {
            self.next_bookmark = call
                .now
                .checked_add(SignedDuration::from_secs(BOOKMARK_SECONDS))
                .unwrap_or(call.now);
            self.backlog.push_back(Event::Ready(
                "BOOKMARK",
                bookmark(call, self.cursor, false).into(),
            ));
        }
        if self.until.is_some_and(|until| call.now >= until) {
            self.backlog.push_back(Event::Other(WatchEvent::End));
        }
    }

    pub(super) fn end(&mut self, failure: &Failure) {
        let error = WatchEvent::Line("ERROR", failure.status().into());
        self.backlog.push_back(Event::Other(error));
        self.backlog.push_back(Event::Other(WatchEvent::End));
    }

    /// The state at the cursor: of a drained watch, nothing.
    fn initial_events(&mut self, call: &Call<'_>, collection: &Collection) {
        let initial = std::mem::replace(&mut self.initial, Initial::Done);
        if initial == Initial::Done {
            return;
        }
        // what changed between opening and the first drain is part of the history that follows
        let objects = collection.at(self.cursor).unwrap_or_default();
        for (key, stored) in &objects {
            let namespace = &self.target.namespace;
            let inside = namespace.is_empty() || key.namespace.as_ref() == namespace;
            if inside && self.selector.matches(&key.namespace, &key.name, &stored.head) {
                self.push(call, "ADDED", stored.value());
            }
        }
        if initial == Initial::StateAndBookmark {
            self.backlog
                .push_back(Event::Ready("BOOKMARK", bookmark(call, self.cursor, true).into()));
        }
    }

    /// Adds an event with an object as it is stored.
    fn push(&mut self, call: &Call<'_>, kind: &'static str, object: Arc<Value>) {
        let foreign = text(&object, "apiVersion") != call.api_version();
        let event = match &call.resource.conversion {
            _ if !foreign => Event::Ready(kind, object),
            Conversion::Webhook(_) => Event::Waiting(kind, Arc::unwrap_or_clone(object)),
            Conversion::None => match conversion::one(call, Arc::unwrap_or_clone(object), &call.version.name)
            {
                Ok(object) => Event::Ready(kind, object.into()),
                // without a webhook there is no call, and nothing fails
                Err(_) => return,
            },
        };
        self.backlog.push_back(event);
    }

    /// Takes from the backlog what waits for nothing.
    pub(super) fn show(&mut self, call: &Call<'_>) -> Vec<WatchEvent> {
        let mut events = Vec::new();
        while !matches!(self.backlog.front(), None | Some(Event::Waiting(..))) {
            match self.backlog.pop_front() {
                Some(Event::Other(WatchEvent::End)) => {
                    events.push(WatchEvent::End);
                    break;
                }
                Some(Event::Other(event)) => events.push(event),
                Some(Event::Ready(kind, object)) => events.push(self.line(call, kind, object)),
                Some(Event::Waiting(kind, object)) => events.push(self.line(call, kind, object.into())),
                None => {}
            }
        }
        events
    }

    fn line(&mut self, call: &Call<'_>, kind: &'static str, object: Arc<Value>) -> WatchEvent {
        let object = match call.form {
            Form::Whole => object,
            Form::Table => verbs::table(call, &[Arc::unwrap_or_clone(object)], !self.has_header).into(),
            form => form.object(call, Arc::unwrap_or_clone(object)).into(),
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

/// The object of an event as it is stored. One that ceased to match is shown as it last matched, at the revision of
/// the change.
fn shown(kind: &str, change: &Change) -> Arc<Value> {
    match &change.old {
        Some(old) if kind == "DELETED" && !change.deleted => {
            let mut object = Arc::unwrap_or_clone(old.value());
            set_metadata(&mut object, "resourceVersion", change.revision.to_string().into());
            object.into()
        }
        _ => change.new.value(),
    }
}

fn bookmark(call: &Call<'_>, revision: u64, complete: bool) -> Value {
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if complete && let Value::Object(members) = &mut metadata {
        members.insert("annotations".into(), json!({"k8s.io/initial-events-end": "true"}));
    }
    let object =
        json!({"kind": call.resource.kind.as_ref(), "apiVersion": call.api_version(), "metadata": metadata});
    // of a built-in kind, an object without content, which has some members even so
    match call.version.schema {
        Schema::Typed(_) => {
            crate::object::shape(object.clone(), &call.version).map_or(object, |read| read.value)
        }
        Schema::Structural(_) => object,
    }
}
