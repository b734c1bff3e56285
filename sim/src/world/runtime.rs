//! The container runtimes of the world's nodes, for those who drive it. See [`runtime`](crate::runtime).

use super::World;
use crate::runtime::{Answer, Call, CallId, Error, Fault, Registries};

impl World {
    /// Makes a call of the runtime of a node, at the world's time: a driver in real time calls [`World::advance`]
    /// first. It is answered once, in [`World::runtime_answers`]; most calls are answered when this returns. A node
    /// that does not exist has no runtime: [`Error::Unavailable`].
    ///
    /// What a stop leads to is seen at the next [`World::advance`], which [`World::next_due`] asks for.
    pub fn call_runtime(&mut self, node: &str, call: Call) -> CallId {
        self.nodes.call_runtime(&self.api, node, call, self.now)
    }

    /// Ends a call early, unless it was answered: it is answered with [`Error::Cancelled`]. A pull is broken off,
    /// unless another call waits for the same image; a container that is being stopped stops nevertheless.
    pub fn cancel_runtime_call(&mut self, id: CallId) {
        self.nodes.cancel_runtime_call(id);
    }

    /// The answers to calls since the last time, in the order in which they came.
    pub fn runtime_answers(&mut self) -> Vec<(CallId, Result<Answer, Error>)> {
        self.nodes.take_answers()
    }

    /// The answers to some calls since the last time. [`World::runtime_answers`] has the others.
    #[cfg(feature = "http")]
    pub(crate) fn runtime_answers_to(
        &mut self,
        is_wanted: impl Fn(CallId) -> bool,
    ) -> Vec<(CallId, Result<Answer, Error>)> {
        self.nodes.take_answers_to(is_wanted)
    }

    /// Changes registries. Pulls that run break if their registry is [`Down`](crate::runtime::Trouble::Down) now,
    /// and hang if it [`Hangs`](crate::runtime::Trouble::Hangs); kubelets try again to pull what they could not.
    pub fn change_registries(&mut self, change: impl FnOnce(&mut Registries)) {
        self.nodes.change_registries(change, self.now);
    }

    /// Injects a fault, or ends it. Returns whether that changed anything: not for a node that does not exist, for
    /// a runtime that is away (or there) already, for an image that is not there or in use.
    pub fn inject_runtime_fault(&mut self, node: &str, fault: Fault) -> bool {
        self.nodes.inject_fault(node, fault, self.now)
    }

    /// Moves with each call, answer and fault.
    #[cfg(feature = "http")]
    pub(crate) fn runtime_news(&self) -> u64 {
        self.nodes.runtime_news()
    }
}
