//! The server's state and its front door.

mod background;
mod bootstrap;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::admission::{Answered, CallId, Stop, WebhookCall, WebhookReply};
use crate::entropy::Entropy;
use crate::negotiate::Form;
use crate::query::Query;
use crate::registry::{Conversion, Registry, Resource, Version};
use crate::route::{Route, Target};
use crate::status::Failure;
use crate::store::{Key, Store, Stored};
use crate::watch::{Watch, WatchId};
use crate::wire::{Method, Request, Response};
use crate::{discovery, negotiate, verbs};

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct Config {
    /// Seed of uids and generated names.
    pub seed: u64,
    /// Changes kept per resource: how far back a watch may resume.
    pub window: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 1,
            window: 10_000,
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
    /// A webhook must be called before the request can go on: see [`Api::resume`].
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
#[derive(Debug)]
pub struct Api {
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    pub(crate) entropy: Entropy,
    pub(crate) watches: BTreeMap<WatchId, Watch>,
    pub(crate) next_watch: u64,
    /// Service addresses handed out.
    pub(crate) addresses: u32,
    /// Requests that wait for a webhook.
    pending: BTreeMap<CallId, Pending>,
    next_call: u64,
    /// Calls that background work waits for, and what it was about to do.
    background_calls: Vec<WebhookCall>,
    background_targets: BTreeMap<CallId, String>,
}

/// A request that waits for a webhook: all it takes to run it again.
#[derive(Debug)]
struct Pending {
    attempt: Attempt,
    /// The question that is open.
    key: String,
}

/// A request and what makes it repeatable.
#[derive(Clone, Debug)]
struct Attempt {
    request: Request,
    now: Timestamp,
    seed: u64,
    answers: Vec<Answered>,
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
    pub(crate) warnings: Vec<String>,
    /// Source of the uid and name that this request gives.
    pub(crate) seed: u64,
    /// What webhooks said so far.
    pub(crate) answers: Vec<Answered>,
}

impl Call<'_> {
    pub(crate) fn key(&self) -> Key {
        Key::new(&self.target.namespace, &self.target.name)
    }

    pub(crate) fn api_version(&self) -> String {
        self.resource.api_version(&self.version.name)
    }

    /// The object as a stored one reads in the requested version.
    pub(crate) fn read(&self, stored: &Stored) -> Value {
        let mut value: Value = serde_json::from_slice(&stored.json).unwrap_or_default();
        self.convert(&mut value);
        value
    }

    fn convert(&self, value: &mut Value) {
        if self.version.name != self.resource.storage
            && let Value::Object(members) = value
        {
            members.insert("apiVersion".into(), self.api_version().into());
        }
    }
}

/// What a verb answers.
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) value: Value,
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
            background_calls: Vec::new(),
            background_targets: BTreeMap::new(),
        }
    }

    /// Answers a request.
    pub fn handle(&mut self, request: &Request, now: Timestamp) -> Outcome {
        let seed = self.entropy.next();
        self.attempt(Attempt {
            request: request.clone(),
            now,
            seed,
            answers: Vec::new(),
        })
    }

    /// Goes on with a request that waits for a webhook.
    pub fn resume(&mut self, id: CallId, reply: WebhookReply) -> Outcome {
        self.background_targets.remove(&id);
        let Some(Pending { mut attempt, key }) = self.pending.remove(&id) else {
            return Outcome::Respond(Failure::internal("no request waits for this webhook").response());
        };
        attempt.answers.push(Answered { key, reply });
        self.attempt(attempt)
    }

    fn attempt(&mut self, attempt: Attempt) -> Outcome {
        match self.route(&attempt) {
            Ok(outcome) => outcome,
            Err(Stop::Failure(failure)) => Outcome::Respond(failure.response()),
            Err(Stop::Ask(question)) => {
                let id = CallId(self.next_call);
                self.next_call += 1;
                let key = question.key();
                self.pending.insert(id, Pending { attempt, key });
                Outcome::Call(Box::new(question.call(id)))
            }
        }
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

    fn route(&mut self, attempt: &Attempt) -> Result<Outcome, Stop> {
        match Route::parse(&attempt.request.path) {
            Route::Objects(target) => self.objects(attempt, target),
            route => {
                let response = discovery::respond(&self.registry, &attempt.request, &route);
                Ok(Outcome::Respond(response))
            }
        }
    }

    fn objects(&mut self, attempt: &Attempt, target: Target) -> Result<Outcome, Stop> {
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
        self.check_conversion(request.method, &resource, &version)?;
        let query = Query::parse(&request.query);
        let dry_run = query.all("dryRun").iter().any(|value| value == "All");
        let mut call = Call {
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
            warnings: Vec::new(),
            seed: attempt.seed,
            answers: attempt.answers.clone(),
        };
        if call.request.method == Method::Get && (call.target.watch || call.query.flag("watch")) {
            return Ok(Outcome::Watch(self.open_watch(&call)?));
        }
        if let Some(text) = self.as_stored(&call) {
            return Ok(Outcome::Respond(Response::bytes(200, text)));
        }
        let reply = verbs::run(self, &mut call)?;
        let mut response = negotiate::render(&call, reply);
        response.warnings = call.warnings;
        Ok(Outcome::Respond(response))
    }

    /// Nobody calls conversion webhooks yet: where one is needed, it counts as unreachable.
    fn check_conversion(
        &self,
        method: Method,
        resource: &Resource,
        version: &Version,
    ) -> Result<(), Failure> {
        let collection = self.store.collection(&resource.id);
        let has_objects = collection.is_some_and(|collection| collection.len() > 0);
        let needed = method != Method::Get || has_objects;
        if resource.conversion == Conversion::None || version.name == resource.storage || !needed {
            return Ok(());
        }
        let kind = format!(
            "{}, Kind={}",
            resource.api_version(&resource.storage),
            resource.kind
        );
        Err(Failure::unknown(&format!(
            "conversion webhook for {kind} failed: no endpoints available"
        )))
    }

    /// An object that is read just as it is stored, which needs no decoding.
    fn as_stored(&self, call: &Call<'_>) -> Option<Vec<u8>> {
        let plain = call.request.method == Method::Get
            && call.form == Form::Whole
            && call.target.subresource.is_empty()
            && call.version.name == call.resource.storage;
        let stored = plain.then(|| self.store.get(&call.resource.id, &call.key()))??;
        Some(stored.json.to_vec())
    }
}
