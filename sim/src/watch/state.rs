//! The state of a watch.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::route::Target;
use crate::selector::Selector;
use crate::wire::Request;

/// A watch of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchId(pub(super) u64);

impl fmt::Display for WatchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One event of a watch.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchEvent {
    /// A line to send: type and object.
    Line(&'static str, Arc<Value>),
    /// The stream ends.
    End,
}

impl WatchEvent {
    /// The line as text, without the newline; `None` at the end. As of a server, the type comes first: whoever reads
    /// the line knows what the object is before it comes.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Line(kind, object) => Some(format!(r#"{{"type":"{kind}","object":{object}}}"#)),
            Self::End => None,
        }
    }
}

/// An open watch.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(super) request: Arc<Request>,
    pub(super) target: Target,
    pub(super) selector: Selector,
    /// Changes up to here were shown.
    pub(super) cursor: u64,
    /// The state at the cursor is still to be shown.
    pub(super) initial: Initial,
    pub(super) bookmarks: bool,
    pub(super) next_bookmark: Timestamp,
    pub(super) until: Option<Timestamp>,
    pub(super) has_header: bool,
    /// What is still to be shown, in order.
    pub(super) backlog: VecDeque<Event>,
    /// A webhook converts what waits in the backlog, but for what came after the call.
    pub(super) converting: bool,
    /// How often one was called.
    pub(super) conversions: u64,
}

/// An event on its way.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// Its object must be converted.
    Waiting(&'static str, Value),
    /// Its object is in the watch's version.
    Ready(&'static str, Arc<Value>),
    /// It has no object.
    Other(WatchEvent),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Initial {
    Done,
    /// Show the state.
    State,
    /// Show the state, then say that it is complete.
    StateAndBookmark,
}
