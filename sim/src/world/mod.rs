//! A cluster around the API: a few controllers, a scheduler and nodes, in virtual or real time.
//!
//! Each component is an actor. It reads what changed and acts by ordinary requests, so that all it does shows in
//! watches, is admitted, and can conflict. Nothing runs by itself: [`World::advance`] plays everything that is due up
//! to a time, in order of time and, at one time, in a fixed order of actors, until all are at rest.
//!
//! Two kinds of driver sit on top:
//! * a virtual clock jumps: `world.advance(world.next_due()?)`;
//! * a real clock sleeps until [`World::next_due`] or the next request, and calls `world.advance(now)`.
//!
//! Equal configuration and equal requests at equal times yield equal bytes.
//!
//! A component whose write needs a webhook waits: it does nothing else until all of its requests are answered, in
//! order. A controller whose write ends with a server's error (a webhook that is not there) or is forbidden (by a
//! webhook, by a quota) reconciles everything again, after a second first, then after ever longer; what is refused as
//! invalid is not tried again before something changes. After each step, make the calls that [`World::calls`] has
//! and answer them with [`World::resume`].

mod actor;
mod client;
mod feed;
mod retries;
mod runtime;
#[cfg(test)]
pub(crate) mod tests;
mod timers;

use std::time::Duration;

use jiff::Timestamp;

pub(crate) use self::actor::Actor;
pub(crate) use self::client::{Client, Source, pod_path};
pub(crate) use self::feed::Feed;
use self::retries::Retries;
pub(crate) use self::timers::Timers;
use crate::api::{Api, Config, Outcome};
use crate::controllers::{
    Budgets, Claims, Deployments, Jobs, NodeLifecycle, Orphans, Quotas, ReplicaSets, StatefulSets,
};
use crate::entropy::Entropy;
use crate::nodes::{Nodes, Options, StageError};
use crate::scheduler::Scheduler;
use crate::webhook::{CallId, WebhookCall, WebhookReply};
use crate::wire::Request;

/// Rounds that actors may answer each other at one time. Honest ones need a handful.
const ROUNDS: usize = 1000;

/// Whether an actor waits for no webhook.
fn is_free(api: &Api, actor: &dyn Actor) -> bool {
    actor.user().is_none_or(|user| !api.waits(user))
}

/// Whether the actors came to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peace {
    Made,
    None,
}

/// An API with the cluster around it.
#[derive(Clone, Debug)]
pub struct World {
    api: Api,
    /// All actors but the nodes, which act last.
    actors: Vec<Box<dyn Actor>>,
    nodes: Nodes,
    now: Timestamp,
    /// The revision that all actors have seen.
    settled: u64,
    /// An actor may go on that waited for a webhook.
    freed: bool,
    retries: Retries,
}

impl World {
    /// A cluster without nodes: create `Node` objects, and they come up.
    ///
    /// # Errors
    /// A stage that is not understood.
    pub fn new(config: &Config, options: &Options, now: Timestamp) -> Result<Self, StageError> {
        Self::over(Api::new(config, now), options, config.seed, now)
    }

    /// A cluster over an API that has a past: all components begin anew and take over what they find; what the old ones
    /// had requested and waits for a webhook is dropped. `seed` is that of stages.
    ///
    /// # Errors
    /// A stage that is not understood.
    pub fn over(mut api: Api, options: &Options, seed: u64, now: Timestamp) -> Result<Self, StageError> {
        let nodes = Nodes::new(options, seed)?;
        api.forget_components();
        api.delay_garbage(options.garbage);
        let actors: Vec<Box<dyn Actor>> = vec![
            Box::new(Deployments::new()),
            Box::new(ReplicaSets::new()),
            Box::new(StatefulSets::new()),
            Box::new(Jobs::new(options.events)),
            Box::new(Claims::new(options.events)),
            Box::new(Budgets::new()),
            Box::new(NodeLifecycle::new(options.events)),
            Box::new(Orphans::new(options.patience)),
            Box::new(Quotas::new()),
            Box::new(Scheduler::new(options.events)),
        ];
        Ok(Self {
            api,
            actors,
            nodes,
            now,
            settled: 0,
            freed: false,
            retries: Retries::default(),
        })
    }

    /// Uids, generated names and draws of stages follow from another seed from now on. Clones of one world that has
    /// come up become worlds of their own so, without coming up again.
    pub fn reseed(&mut self, seed: u64) {
        self.api.entropy = Entropy::new(seed);
        self.actors.iter_mut().for_each(|actor| actor.reseed(seed));
        self.nodes.reseed(seed);
    }

    /// The API alone: its components stop.
    pub fn into_api(self) -> Api {
        self.api
    }

    /// The API, to read or to serve. Writes are answered by the actors at the next [`World::advance`].
    pub fn api(&mut self) -> &mut Api {
        &mut self.api
    }

    /// The time up to which everything was played.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Answers a request at the world's time.
    pub fn handle(&mut self, request: &Request) -> Outcome {
        self.api.handle(request, self.now)
    }

    /// Webhook calls that the cluster itself needs, for its components and for watches in a version that is not stored,
    /// since the last call. Clients' requests name theirs in [`Outcome::Call`].
    pub fn calls(&mut self) -> Vec<WebhookCall> {
        self.api.calls()
    }

    /// Continues what waits for a webhook. What comes of a client's request is returned; the cluster's own goes its
    /// way at the next [`World::advance`], and watches may have events.
    pub fn resume(&mut self, id: CallId, reply: WebhookReply) -> Option<Outcome> {
        let outcome = self.api.resume(id, reply);
        self.freed |= outcome.is_none();
        outcome
    }

    /// Whether something but a write is news: a call to make, or an answer to one.
    #[cfg(feature = "http")]
    pub(crate) fn is_stirred(&self) -> bool {
        self.freed || self.api.has_calls()
    }

    /// When something is due next: at once if there were writes that not all actors have seen; `None` if the world is
    /// at rest until somebody writes.
    pub fn next_due(&self) -> Option<Timestamp> {
        if self.api.revision() != self.settled || self.freed {
            return Some(self.now);
        }
        let times = [self.actors_due(), self.api.garbage_due()];
        let due = times.into_iter().flatten().min();
        due.map(|due| due.max(self.now))
    }

    /// When an actor that does not wait has something to do.
    fn actors_due(&self) -> Option<Timestamp> {
        let nodes: &dyn Actor = &self.nodes;
        let all = self.actors.iter().map(AsRef::as_ref).chain([nodes]).enumerate();
        let free = all.filter(|(_, actor)| is_free(&self.api, *actor));
        free.filter_map(|(index, actor)| {
            let times = [actor.due(), self.retries.due(index)];
            times.into_iter().flatten().min()
        })
        .min()
    }

    /// Plays everything that is due up to a time. Time does not go back.
    pub fn advance(&mut self, to: Timestamp) {
        while let Some(due) = self.next_due().filter(|due| *due <= to) {
            self.now = due;
            if self.settle() == Peace::None {
                // time passes even over actors that answer each other forever
                self.now = due.checked_add(Duration::from_millis(1)).unwrap_or(due);
            }
        }
        self.now = self.now.max(to);
    }

    /// Plays until nothing is due any more, or until a time.
    pub fn rest(&mut self, until: Timestamp) {
        while let Some(due) = self.next_due().filter(|due| *due <= until) {
            self.advance(due);
        }
    }

    /// Actors whose requests failed begin anew later.
    fn note_failures(&mut self) {
        for user in self.api.failed() {
            let mut actors = self.actors.iter();
            if let Some(index) = actors.position(|actor| actor.user() == Some(user.as_str())) {
                self.retries.failed(index, self.now);
            }
        }
    }

    /// Lets the actors answer each other, at one time, until none has anything to say.
    fn settle(&mut self) -> Peace {
        for _ in 0..ROUNDS {
            let before = self.api.revision();
            if before != self.settled || self.api.garbage_due().is_some_and(|due| due <= self.now) {
                self.api.tick(self.now);
            }
            self.freed = false;
            self.note_failures();
            let nodes: &mut dyn Actor = &mut self.nodes;
            let actors = self.actors.iter_mut().map(AsMut::as_mut);
            for (index, actor) in actors.chain([nodes]).enumerate() {
                if is_free(&self.api, actor) {
                    if self.retries.take(index, self.now) {
                        actor.restart();
                    }
                    actor.act(&mut self.api, self.now);
                }
            }
            self.note_failures();
            // writes of this round are news to everybody, the background included, in the next
            self.settled = before;
            let due = self.actors_due();
            if self.api.revision() == before && due.is_none_or(|due| due > self.now) {
                return Peace::Made;
            }
        }
        Peace::None
    }
}
