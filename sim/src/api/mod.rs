//! The server's state and its entry point.

mod background;
mod bootstrap;
mod endpoint;
mod garbage;
mod own;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use serde_json::Value;

use self::garbage::Garbage;
use self::own::Line;
use crate::admission::{Admission, Webhooks};
use crate::conversion;
use crate::entropy::Entropy;
use crate::negotiate::Form;
use crate::object::metadata_text;
use crate::query::Query;
use crate::registry::{Registry, Resource, Version};
use crate::route::{Route, Target};
use crate::status::Failure;
use crate::store::{Key, Store, Stored};
use crate::validation::text;
use crate::verbs::{Progress, Touched};
use crate::watch::{Watch, WatchId};
use crate::webhook::{Answers, Awaited, CallId, Stop, WebhookCall, WebhookReply};
use crate::wire::{Method, Request, Response};
use crate::{discovery, negotiate, verbs};

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct Config {
    /// Seed of uids and generated names.
    pub seed: u64,
    /// Changes kept per resource: how far back a watch may resume.
    pub window: usize,
    /// Whether `metadata.managedFields` says of each object who set which fields. Without that it does so of objects to which
    /// somebody has applied something, and of what `resize` changed.
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
    lines: BTreeMap<String, Line>,
    /// Users of own requests that failed for no fault of theirs.
    failed: BTreeSet<String>,
    /// What is to be collected.
    garbage: Garbage,
    /// The configurations of admission, read when they are first needed.
    webhooks: OnceLock<Arc<Webhooks>>,
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
    request: Request,
    now: Timestamp,
    seed: u64,
    answers: Answers,
    /// What need not be done again.
    progress: Option<Box<Progress>>,
}

/// Whether a call is to change anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Act,
    /// Only to learn which webhooks will be called.
    Rehearsal,
}

/// A request for objects, understood.
pub(crate) struct Call<'a> {
    pub(crate) request: &'a Request,
    pub(crate) target: Target,
    pub(crate) query: Query,
    pub(crate) resource: Arc<Resource>,
    pub(crate) version: Version,
    pub(crate) form: Form,
    pub(crate) now: Timestamp,
    pub(crate) dry_run: bool,
    pub(crate) purpose: Purpose,
    pub(crate) admission: Admission,
    /// What this request may change of the object.
    pub(crate) touched: Touched,
    /// For the client, each once. Webhooks add to them while they are asked about a call that does not change.
    pub(crate) warnings: RefCell<Vec<String>>,
    /// Source of the uid and name that this request gives.
    pub(crate) seed: u64,
    /// The answers of webhooks so far.
    pub(crate) answers: &'a Answers,
    /// What was done before one of them was called.
    pub(crate) progress: Option<Box<Progress>>,
}

impl Call<'_> {
    pub(crate) fn key(&self) -> Key {
        Key::new(&self.target.namespace, &self.target.name)
    }

    /// Adds warnings for the client.
    pub(crate) fn warn(&self, texts: impl IntoIterator<Item = String>) {
        let mut warnings = self.warnings.borrow_mut();
        for text in texts {
            if !warnings.contains(&text) {
                warnings.push(text);
            }
        }
    }

    pub(crate) fn api_version(&self) -> String {
        self.resource.api_version(&self.version.name)
    }

    /// The object as a stored one reads in the requested version.
    pub(crate) fn read(&self, stored: &Stored) -> Result<Arc<Value>, Stop> {
        let object = stored.value();
        if text(&object, "apiVersion") == self.api_version() {
            return Ok(object);
        }
        let object = conversion::one(self, Arc::unwrap_or_clone(object), &self.version.name)?;
        Ok(Arc::new(object))
    }

    /// As [`Call::read`], of many.
    pub(crate) fn read_all<'s>(&self, stored: impl Iterator<Item = &'s Stored>) -> Result<Vec<Value>, Stop> {
        let objects = stored.map(|one| Arc::unwrap_or_clone(one.value()));
        conversion::all(self, objects.collect(), &self.version.name)
    }
}

/// What a verb answers.
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) value: Arc<Value>,
}

impl Reply {
    pub(crate) fn new(code: u16, value: impl Into<Arc<Value>>) -> Self {
        let value = value.into();
        Self { code, value }
    }
}

impl Api {
    /// A server with the namespaces and objects that every cluster has.
    pub fn new(config: &Config, now: Timestamp) -> Self {
        let mut api = Self::empty(config);
        api.bootstrap(now);
        api
    }

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

    /// Answers a request.
    pub fn handle(&mut self, request: &Request, now: Timestamp) -> Outcome {
        self.begin(request.clone(), now, Origin::Client)
    }

    fn begin(&mut self, request: Request, now: Timestamp, origin: Origin) -> Outcome {
        let attempt = Attempt {
            request,
            now,
            seed: self.entropy.next(),
            answers: Answers::default(),
            progress: None,
        };
        self.attempt(attempt, origin)
    }

    /// Goes on with what waits for a webhook. What comes of a request is returned to whoever made it; of what the
    /// server itself needed the webhook for ([`Api::calls`]), nothing is.
    pub fn resume(&mut self, id: CallId, reply: WebhookReply) -> Option<Outcome> {
        match self.pending.remove(&id) {
            None => {
                let failure = Failure::internal("no request waits for this webhook");
                Some(Outcome::Respond(failure.response()))
            }
            Some(Pending::Watch(watch, awaited)) => {
                self.watch_converted(watch, &awaited, &reply);
                None
            }
            Some(Pending::Request(mut attempt, awaited, origin)) => {
                attempt.answers.add(awaited, reply);
                let user = attempt.request.user.clone();
                let outcome = self.attempt(*attempt, origin);
                if origin == Origin::Client {
                    return Some(outcome);
                }
                self.follow(&user, outcome);
                None
            }
        }
    }

    /// Forgets a client's request ([`Outcome::Call`]): the client is gone before the webhook answered.
    pub fn abandon(&mut self, id: CallId) {
        self.pending.remove(&id);
    }

    fn attempt(&mut self, mut attempt: Attempt, origin: Origin) -> Outcome {
        let progress = attempt.progress.take();
        match self.route(&attempt, progress) {
            Ok(outcome) => outcome,
            Err(Stop::Failure(failure)) => Outcome::Respond(failure.response()),
            Err(Stop::Call(mut needed)) => {
                attempt.progress = needed.progress.take();
                let id = self.next_call();
                let (call, awaited) = needed.call(id);
                let pending = Pending::Request(Box::new(attempt), awaited, origin);
                self.pending.insert(id, pending);
                Outcome::Call(Box::new(call))
            }
        }
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

    fn route(&mut self, attempt: &Attempt, progress: Option<Box<Progress>>) -> Result<Outcome, Stop> {
        match Route::parse(&attempt.request.path) {
            Route::Objects(target) => self.objects(attempt, target, progress),
            route => {
                let response = discovery::respond(&self.registry, &attempt.request, &route);
                Ok(Outcome::Respond(response))
            }
        }
    }

    fn objects(
        &mut self,
        attempt: &Attempt,
        target: Target,
        progress: Option<Box<Progress>>,
    ) -> Result<Outcome, Stop> {
        let request = &attempt.request;
        let resource = self.registry.get(&target.group, &target.plural).cloned();
        let version = resource
            .as_ref()
            .and_then(|one| one.version(&target.version))
            .cloned();
        let (Some(resource), Some(version)) = (resource, version) else {
            return Ok(Outcome::Respond(discovery::unknown()));
        };
        if !resource.is_namespaced() && !target.namespace.is_empty() {
            return Ok(Outcome::Respond(discovery::unknown()));
        }
        let query = Query::parse(&request.query);
        let dry_run = query.all("dryRun").iter().any(|value| value == "All");
        let call = Call {
            form: Form::of(&request.accept, &target).map_err(|failure| {
                if resource.is_custom() {
                    Failure::not_acceptable_custom()
                } else {
                    failure
                }
            })?,
            request,
            target,
            query,
            resource,
            version,
            now: attempt.now,
            dry_run,
            warnings: RefCell::default(),
            seed: attempt.seed,
            answers: &attempt.answers,
            progress,
            purpose: Purpose::Act,
            admission: Admission::Due,
            touched: Touched::All,
        };
        if call.request.method == Method::Get && (call.target.watch || call.query.flag("watch")) {
            return Ok(Outcome::Watch(self.open_watch(&call)?));
        }
        if let Some(text) = self.as_stored(&call) {
            return Ok(Outcome::Respond(Response::bytes(200, text)));
        }
        if let Some(text) = verbs::list_as_stored(self, &call)? {
            return Ok(Outcome::Respond(Response::bytes(200, text)));
        }
        if let Some(log) = verbs::log(self, &call)? {
            return Ok(Outcome::Respond(log));
        }
        self.run(call)
    }

    fn run(&mut self, mut call: Call<'_>) -> Result<Outcome, Stop> {
        verbs::check_table(&call)?;
        let reply = verbs::run(self, &mut call)?;
        let mut response = match self.text_of(&call, &reply) {
            Some(text) => Response::bytes(reply.code, text),
            None => negotiate::render(&call, reply),
        };
        response.warnings = call.warnings.into_inner();
        Ok(Outcome::Respond(response))
    }

    /// The text of an answer that is the very object that was stored, which is text already.
    fn text_of(&self, call: &Call<'_>, reply: &Reply) -> Option<Vec<u8>> {
        let name = metadata_text(&reply.value, "name");
        let key = Key::new(&call.target.namespace, name);
        let stored = self.store.get(&call.resource.id, &key)?;
        (call.form == Form::Whole && stored.is(&reply.value)).then(|| stored.json.to_vec())
    }

    /// An object that is read just as it is stored, which needs no decoding.
    fn as_stored(&self, call: &Call<'_>) -> Option<Vec<u8>> {
        let plain = call.request.method == Method::Get
            && call.form == Form::Whole
            && call.target.subresource.is_empty()
            && call.resource.is_stored_as(&call.version.name);
        let stored = plain.then(|| self.store.get(&call.resource.id, &call.key()))??;
        Some(stored.json.to_vec())
    }
}
