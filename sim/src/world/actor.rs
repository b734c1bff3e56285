//! What a component of the cluster does.

use jiff::Timestamp;

use crate::api::Api;

/// A component of the cluster.
pub(crate) trait Actor: std::fmt::Debug + Send {
    /// Whom it acts as, if it does nothing else while a request of that user waits for a webhook. Those that act as
    /// many users go on, and must not mind that their requests are carried out later.
    fn user(&self) -> Option<&'static str> {
        None
    }
    /// Does what is due.
    fn act(&mut self, api: &mut Api, now: Timestamp);
    /// Looks at everything again: a request of its was answered with a server's error.
    fn restart(&mut self) {}
    /// When something is due though nothing changes.
    fn due(&self) -> Option<Timestamp>;
    /// Another one with the same state.
    fn boxed(&self) -> Box<dyn Actor>;
    /// Draws from another seed from now on.
    fn reseed(&mut self, _seed: u64) {}
}

impl Clone for Box<dyn Actor> {
    fn clone(&self) -> Self {
        self.boxed()
    }
}
