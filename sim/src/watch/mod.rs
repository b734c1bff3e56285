//! Watches: a cursor into a resource's history, drained by whoever serves it.
//!
//! A watch shows the objects that its selectors show: one that comes to match is ADDED, one that ceases to is DELETED.
//! It ends with an ERROR of code 410 when history was compacted beyond its cursor.
//!
//! In a version that is not stored, events wait until a webhook has converted their objects, all that wait in one
//! call, and the order stays: what comes behind an event that waits, waits too. If the conversion fails, the watch ends
//! with an ERROR of code 500.

mod backlog;
mod state;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube_schema::validate::Errors;
use serde_json::Value;

pub(crate) use self::state::Watch;
use self::state::{Event, Initial};
pub use self::state::{WatchEvent, WatchId};
use crate::admission::Admission;
use crate::api::{Api, Call, Pending, Purpose};
use crate::conversion::Batch;
use crate::entropy::Entropy;
use crate::form::Form;
use crate::object::metadata_text;
use crate::query::Query;
use crate::selector::Selector;
use crate::status::Failure;
use crate::store::Key;
use crate::verbs::{self, Touched};
use crate::webhook::{Answers, Awaited, WebhookReply};
use crate::wire;

/// How often an idle watch that allows bookmarks gets one.
const BOOKMARK_SECONDS: i64 = 60;

impl Api {
    pub(crate) fn open_watch(&mut self, call: &Call<'_>) -> Result<WatchId, Failure> {
        let seconds = call.query.number("timeoutSeconds")?;
        call.query.number("limit")?;
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
        let after = |seconds: i64| call.now.checked_add(SignedDuration::from_secs(seconds)).ok();
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
            until: seconds.filter(|seconds| *seconds > 0).and_then(after),
            has_header: false,
            backlog: VecDeque::new(),
            converting: false,
            conversions: 0,
        };
        let id = WatchId(self.next_watch);
        self.next_watch += 1;
        self.watches.insert(id, watch);
        Ok(id)
    }

    /// What a watch has to show since it was last drained. After [`WatchEvent::End`] it is closed. What must be
    /// converted first is in [`Api::calls`] now, and is shown once that is answered.
    pub fn watch_events(&mut self, id: WatchId, now: Timestamp) -> Vec<WatchEvent> {
        if self.passes(id, now) {
            return Vec::new();
        }
        let Some(mut watch) = self.watches.remove(&id) else {
            return vec![WatchEvent::End];
        };
        let events = self.drain(id, &mut watch, now);
        if events.last() != Some(&WatchEvent::End) {
            self.watches.insert(id, watch);
        }
        events
    }

    /// The line of an event as text, with its newline; `None` at the end. An object that is still what is stored is
    /// text already.
    pub fn line(&self, group: &str, plural: &str, event: &WatchEvent) -> Option<Vec<u8>> {
        let WatchEvent::Line(kind, object) = event else {
            return None;
        };
        let key = Key::new(metadata_text(object, "namespace"), metadata_text(object, "name"));
        let id = self.registry.get(group, plural).map(|resource| &resource.id);
        let stored = id.and_then(|id| self.store.get(id, &key));
        let object: Cow<'_, [u8]> = match stored.filter(|stored| stored.is(object)) {
            Some(stored) => (&*stored.json).into(),
            None => wire::text(object).into(),
        };
        let parts: [&[u8]; 5] = [
            b"{\"type\":\"",
            kind.as_bytes(),
            b"\",\"object\":",
            &object,
            b"}\n",
        ];
        Some(parts.concat())
    }

    /// Forgets a watch whose client is gone.
    pub fn close_watch(&mut self, id: WatchId) {
        self.watches.remove(&id);
    }

    /// Moves a watch over changes that are none of its; false if it may have something to show.
    fn passes(&mut self, id: WatchId, now: Timestamp) -> bool {
        let Some(watch) = self.watches.get_mut(&id) else {
            return false;
        };
        let resource = self.registry.get(&watch.target.group, &watch.target.plural);
        let Some(resource) = resource.filter(|one| one.version(&watch.target.version).is_some()) else {
            return false;
        };
        let empty = self.store.empty();
        let collection = self.store.collection(&resource.id).unwrap_or(&empty);
        let idle = watch.is_idle(collection, now);
        if idle {
            watch.cursor = watch.cursor.max(self.store.revision());
        }
        idle
    }

    fn drain(&mut self, id: WatchId, watch: &mut Watch, now: Timestamp) -> Vec<WatchEvent> {
        let resource = self.registry.get(&watch.target.group, &watch.target.plural);
        let version = resource.and_then(|one| one.version(&watch.target.version));
        let (Some(resource), Some(version)) = (resource, version) else {
            return vec![WatchEvent::End];
        };
        let empty = self.store.empty();
        let collection = self.store.collection(&resource.id).unwrap_or(&empty);
        let request = watch.request.clone();
        let answers = Answers::default();
        let call = Call {
            request: &request,
            target: watch.target.clone(),
            query: Query::parse(&watch.request.query),
            resource: resource.clone(),
            version: version.clone(),
            form: Form::of(&watch.request.accept, &watch.target).unwrap_or(Form::Whole),
            now,
            dry_run: false,
            purpose: Purpose::Act,
            admission: Admission::Due,
            touched: Touched::All,
            warnings: std::cell::RefCell::default(),
            seed: 0,
            answers: &answers,
            progress: None,
        };
        watch.collect(&call, collection, self.store.revision());
        self.convert(id, watch, &call);
        watch.show(&call)
    }

    /// Asks for the conversion of all that waits, unless that was done.
    fn convert(&mut self, id: WatchId, watch: &mut Watch, call: &Call<'_>) {
        let waiting = watch.backlog.iter().filter_map(|event| match event {
            Event::Waiting(_, object) => Some(object.clone()),
            Event::Ready(..) | Event::Other(_) => None,
        });
        let objects: Vec<Value> = waiting.collect();
        if watch.converting || objects.is_empty() {
            return;
        }
        watch.converting = true;
        watch.conversions += 1;
        let batch = Batch {
            resource: call.resource.clone(),
            version: call.version.name.clone(),
            objects,
            uid: Entropy::new((id.0 << 32).wrapping_add(watch.conversions)).uid(),
        };
        let needed = batch.needed_call();
        let call = self.next_call();
        let (to_make, awaited) = needed.call(call);
        self.calls.push(to_make);
        self.pending.insert(call, Pending::Watch(id, awaited));
    }

    /// A webhook answered a call of [`Api::convert`].
    pub(crate) fn watch_converted(&mut self, id: WatchId, awaited: &Awaited, reply: &WebhookReply) {
        let (Some(watch), Awaited::Conversion(batch)) = (self.watches.get_mut(&id), awaited) else {
            return;
        };
        watch.converting = false;
        match batch.accept(reply) {
            Ok(objects) => {
                let waiting = watch.backlog.iter_mut().filter_map(|event| match event {
                    Event::Waiting(kind, _) => Some((*kind, event)),
                    Event::Ready(..) | Event::Other(_) => None,
                });
                for ((kind, event), object) in waiting.zip(objects) {
                    *event = Event::Ready(kind, object.into());
                }
            }
            Err(failure) => {
                let first = watch
                    .backlog
                    .iter()
                    .position(|event| matches!(event, Event::Waiting(..)));
                watch.backlog.truncate(first.unwrap_or_default());
                watch.end(&failure);
            }
        }
    }
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
