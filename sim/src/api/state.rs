//! The server's state.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;

use super::garbage::Garbage;
use crate::admission::Webhooks;
use crate::entropy::Entropy;
use crate::registry::Registry;
use crate::store::Store;
use crate::verbs::Progress;
use crate::watch::{Watch, WatchId};
use crate::webhook::{Answers, Awaited, CallId, WebhookCall};
use crate::wire::{Request, Response};

/// Requests that wait for one of the same user to be answered.
pub(super) type Line = VecDeque<(Request, Timestamp)>;

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct Config {
    /// Seed of uids and generated names.
    pub seed: u64,
    /// Changes kept per resource: how far back a watch may resume.
    pub window: usize,
    /// Whether `metadata.managedFields` says of each object who set which fields. Without that it does so of
    /// objects to which somebody has applied something, and of what `resize` changed.
    pub managed_fields: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 1,
            window: 10_000,
            managed_fields: false,
        }
    }
}

/// What a request leads to.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The answer.
    Respond(Response),
    /// A watch was opened: drain it with [`Api::watch_events`] until it ends, and close it when the client leaves.
    Watch(WatchId),
    /// A webhook must be called before the request can go on: see [`Api::resume`]. Calls that are not for a request are
    /// in [`Api::calls`].
    Call(Box<WebhookCall>),
}

impl Outcome {
    /// The answer, if there is one yet.
    pub fn response(self) -> Option<Response> {
        match self {
            Self::Respond(response) => Some(response),
            Self::Watch(_) | Self::Call(_) => None,
        }
    }
}

/// An embedded Kubernetes API.
#[derive(Clone, Debug)]
pub struct Api {
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    pub(crate) entropy: Entropy,
    pub(crate) watches: BTreeMap<WatchId, Watch>,
    pub(crate) next_watch: u64,
    /// Service addresses handed out.
    pub(crate) addresses: u32,
    /// What waits for a webhook.
    pub(crate) pending: BTreeMap<CallId, Pending>,
    pub(crate) next_call: u64,
    /// Calls that the server itself needs.
    pub(crate) calls: Vec<WebhookCall>,
    /// By user: what waits for a request of that user.
    pub(super) lines: BTreeMap<String, Line>,
    /// Users of own requests that failed for no fault of theirs.
    pub(super) failed: BTreeSet<String>,
    /// What is to be collected.
    pub(super) garbage: Garbage,
    /// The configurations of admission, read when they are first needed.
    pub(super) webhooks: OnceLock<Arc<Webhooks>>,
    /// Whether all writes are noted in `managedFields`.
    pub(crate) managed_fields: bool,
}

/// What waits for a webhook.
#[derive(Clone, Debug)]
pub(crate) enum Pending {
    /// A request: all it takes to run it again.
    Request(Box<Attempt>, Awaited, Origin),
    /// A watch whose next events are converted.
    Watch(WatchId, Awaited),
}

/// Who learns what came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Whoever called [`Api::handle`].
    Client,
    /// Nobody: it was one of the server's own.
    Component,
}

/// A request and what makes it repeatable.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(super) request: Request,
    pub(super) now: Timestamp,
    pub(super) seed: u64,
    pub(super) answers: Answers,
    /// What need not be done again.
    pub(super) progress: Option<Box<Progress>>,
}

impl Api {
    /// A server on which there is nothing.
    pub(crate) fn empty(config: &Config) -> Self {
        Self {
            store: Store::new(config.window),
            registry: Registry::builtin(),
            entropy: Entropy::new(config.seed),
            watches: BTreeMap::new(),
            next_watch: 1,
            addresses: 1,
            pending: BTreeMap::new(),
            next_call: 1,
            calls: Vec::new(),
            lines: BTreeMap::new(),
            failed: BTreeSet::new(),
            garbage: Garbage::default(),
            webhooks: OnceLock::new(),
            managed_fields: config.managed_fields,
        }
    }

    /// All webhooks that are registered.
    pub(crate) fn webhooks(&self) -> &Webhooks {
        self.webhooks
            .get_or_init(|| Arc::new(Webhooks::read(&self.store)))
    }

    /// A configuration of admission has changed.
    pub(crate) fn webhooks_changed(&mut self) {
        self.webhooks.take();
    }

    pub(crate) fn next_call(&mut self) -> CallId {
        let id = CallId(self.next_call);
        self.next_call += 1;
        id
    }

    /// The revision of the newest write: when it moves, watches may have events.
    pub fn revision(&self) -> u64 {
        self.store.revision()
    }

    /// How many objects a resource has, for instance `pods` of the group ``.
    pub fn count(&self, group: &str, plural: &str) -> usize {
        let id = self
            .registry
            .get(group, plural)
            .map(|resource| resource.id.clone());
        let collection = id.and_then(|id| self.store.collection(&id));
        collection.map_or(0, crate::store::Collection::len)
    }

    /// Forgets history, as a compaction of etcd does: older watches and continuations end with 410.
    pub fn compact(&mut self) {
        self.store.compact();
    }
}
