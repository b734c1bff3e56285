//! The server's entry point.

mod background;
mod bootstrap;
mod collector;
mod endpoint;
mod garbage;
mod own;
mod state;

use std::cell::RefCell;

use jiff::Timestamp;

use self::state::Attempt;
pub use self::state::{Api, Config, Outcome};
pub(crate) use self::state::{Origin, Pending};
use crate::admission::Admission;
pub(crate) use crate::call::{Call, Purpose, Reply};
use crate::form::Form;
use crate::object::metadata_text;
use crate::query::Query;
use crate::route::{Route, Target};
use crate::status::Failure;
use crate::store::Key;
use crate::verbs::{Progress, Touched};
use crate::webhook::{Answers, CallId, Stop, WebhookReply};
use crate::wire::{Method, Request, Response};
use crate::{discovery, negotiate, verbs};

impl Api {
    /// A server with the namespaces and objects that every cluster has.
    pub fn new(config: &Config, now: Timestamp) -> Self {
        let mut api = Self::empty(config);
        api.bootstrap(now);
        api
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
