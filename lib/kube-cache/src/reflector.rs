//! Decides which request comes next to keep an informer up to date, and what follows a failure.
//!
//! A driver passes in [`Input`]s and performs the returned [`Effect`]s in order. After each step with effects
//! exactly one thing is pending: a list request, a watch, a sleep, or the result of applying a finished list to the
//! informer. Inputs that belong to something else (a late response to a cancelled request) are ignored.
//!
//! ```text
//! Start ─► Listing ─ last page ─► Confirming ─ ListAccepted ─► Watching ─ Gone ─► BackingOff ─ Timer ─► Listing
//!            ▲ └ 410 on a page ┘      └ Refused ─► BackingOff          ├ other ─► BackingOff ─ Timer ─► Watching
//!            │                                                         └ Stale ─► Listing ◄─ Stale ─ BackingOff
//! ```
//!
//! * Every list is a quorum read (`resourceVersion` unset), the first one as well as those after 410, so it is at least
//!   as new as anything this process has observed. A list that the informer refuses as stale is repeated.
//! * The exception is the first attempt at a first list at a given version ([`Reflector::first_list_at`]), which
//!   the caller has read from the server. After any failure the next list is a quorum read.
//! * Ten refusals in a row, some minutes, mean that a restore rewound the history. The informer then discards what it
//!   knows of versions. Otherwise it would refuse every list for ever.
//! * A list interrupted by 410 between pages starts over, the first time without a delay. After the second interruption
//!   it is requested without paging: a list that takes longer than the server keeps history would never end.
//! * A watch that fails with server errors at one version is replaced by a list after five attempts. An unreachable or
//!   overloaded server never causes a list: otherwise all clients would list at the same time after an outage.
//! * Delays are client-go's (see [`Backoff`]); `Retry-After` is a lower bound. An accepted list or a watch event resets
//!   them. [`Input::Stale`] ends a delay at once and resets the delays of later failures. A watch that the server
//!   closes within a second and without an event counts as a failure; any other close is routine.

use std::time::Duration;

use crate::backoff::fraction_of;
use crate::{Backoff, Cached, Event, Failure, Version};

/// Objects per list page, as in client-go.
pub const PAGE_LIMIT: u32 = 500;
/// Shortest watch that is requested; jitter makes it up to twice as long, as in client-go.
const WATCH_TIMEOUT: Duration = Duration::from_mins(5);
/// A watch closed earlier than this without an event is a failure.
const SHORTEST_WATCH: Duration = Duration::from_secs(1);
/// Refused lists in a row after which the server's history counts as rewound.
const MAX_STALE_LISTS: u32 = 10;
/// Watches in a row that fail with a server error and without an event, before a list replaces the watch.
const MAX_WATCH_FAILURES: u32 = 5;
/// Lists interrupted by 410 between pages before the list is requested without paging.
const MAX_INTERRUPTIONS: u32 = 2;

/// The result of the pending effect, or an event from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input<T> {
    /// Start. Ignored after the first.
    Start,
    /// A list request succeeded.
    Page {
        /// The objects of this page.
        items: Vec<T>,
        /// `metadata.resourceVersion` of the list.
        version: Version,
        /// `metadata.continue`; `None` or empty on the last page.
        continue_token: Option<Box<str>>,
    },
    /// The informer accepted [`Event::ListDone`].
    ListAccepted,
    /// The informer refused an event, usually [`Event::ListDone`]. The list is repeated.
    Refused,
    /// The watch delivered an event.
    Watch(WatchInput<T>),
    /// The server closed the watch in an orderly way.
    WatchClosed {
        /// Time it was open.
        lasted: Duration,
    },
    /// The list or watch failed.
    Failed(Failure),
    /// The sleep is over.
    Timer,
    /// The caller needs newer state than the watch has delivered. A list is requested at once, also during a back-off.
    Stale,
}

impl<T> Input<T> {
    /// The same input with other objects.
    pub fn map<U>(self, mut change: impl FnMut(T) -> U) -> Input<U> {
        match self {
            Self::Start => Input::Start,
            Self::Page {
                items,
                version,
                continue_token,
            } => Input::Page {
                items: items.into_iter().map(change).collect(),
                version,
                continue_token,
            },
            Self::ListAccepted => Input::ListAccepted,
            Self::Refused => Input::Refused,
            Self::Watch(event) => Input::Watch(event.map(&mut change)),
            Self::WatchClosed { lasted } => Input::WatchClosed { lasted },
            Self::Failed(failure) => Input::Failed(failure),
            Self::Timer => Input::Timer,
            Self::Stale => Input::Stale,
        }
    }
}

/// One event of a watch; an `ERROR` event is [`Input::Failed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchInput<T> {
    /// `ADDED`.
    Added(T),
    /// `MODIFIED`.
    Modified(T),
    /// `DELETED`.
    Deleted(T),
    /// `BOOKMARK`.
    Bookmark(Version),
}

impl<T> WatchInput<T> {
    /// The same event with another object.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> WatchInput<U> {
        match self {
            Self::Added(object) => WatchInput::Added(change(object)),
            Self::Modified(object) => WatchInput::Modified(change(object)),
            Self::Deleted(object) => WatchInput::Deleted(change(object)),
            Self::Bookmark(version) => WatchInput::Bookmark(version),
        }
    }
}

/// What the driver must do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<T> {
    /// Request a list page.
    List {
        /// `resourceVersion`, with `resourceVersionMatch=Exact`; `None` leaves it unset (a quorum read).
        at: Option<Version>,
        /// `continue`; `None` for the first page.
        continue_token: Option<Box<str>>,
        /// `limit`; `None` requests everything at once.
        limit: Option<u32>,
    },
    /// Open a watch.
    Watch {
        /// `resourceVersion`: changes above it are sent.
        version: Version,
        /// `allowWatchBookmarks`.
        bookmarks: bool,
        /// `timeoutSeconds`.
        timeout_seconds: u64,
    },
    /// Wait, then report [`Input::Timer`].
    Sleep(Duration),
    /// Apply this to the informer. Report [`Input::Refused`] on an error, and [`Input::ListAccepted`] on the success of
    /// [`Event::ListDone`].
    Inform(Event<T>),
    /// Call [`Informer::forget_history`](crate::Informer::forget_history), and report it to the operator.
    ForgetHistory,
}

#[derive(Clone, Debug)]
enum State {
    Idle,
    Listing(Position),
    Confirming {
        version: Version,
    },
    Watching {
        version: Version,
        progress: Progress,
    },
    BackingOff {
        resume: Resume,
        failure: Option<Failure>,
    },
}

/// Where in a paged list the pending request is.
#[derive(Clone, Debug)]
struct Position {
    /// `None` on the first page.
    continue_token: Option<Box<str>>,
    /// Oldest version of the pages so far.
    version: Option<Version>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    None,
    Some,
}

#[derive(Clone, Debug)]
enum Resume {
    List,
    Page(Position),
    Watch(Version),
}

/// The list/watch state machine of one resource. See the [module](self) for its rules.
#[derive(Clone, Debug)]
pub struct Reflector {
    state: State,
    backoff: Backoff,
    interruptions: u32,
    refusals: u32,
    watch_failures: u32,
    /// Version of the next list, if it is the first.
    first: Option<Version>,
}

impl Reflector {
    /// Waits for [`Input::Start`].
    pub fn new() -> Self {
        Self::first_list_at(None)
    }

    /// As [`Reflector::new`]. The first list is requested at exactly this version, which the server has had; `None`
    /// for a quorum read.
    pub fn first_list_at(version: Option<Version>) -> Self {
        Self {
            first: version,
            state: State::Idle,
            backoff: Backoff::new(),
            interruptions: 0,
            refusals: 0,
            watch_failures: 0,
        }
    }

    /// Processes one input. `jitter` is a uniform random number for delays and watch timeouts.
    pub fn step<T: Cached>(&mut self, input: Input<T>, jitter: u64) -> Vec<Effect<T>> {
        match (std::mem::replace(&mut self.state, State::Idle), input) {
            (State::Idle, Input::Start) => self.list(),
            (State::Watching { .. } | State::BackingOff { .. }, Input::Stale) => {
                self.backoff.reset();
                self.list()
            }
            (
                State::Listing(position),
                Input::Page {
                    items,
                    version,
                    continue_token,
                },
            ) => self.take_page(position, items, version, continue_token),
            (State::Listing(position), Input::Failed(failure)) => self.list_failed(position, failure, jitter),
            (State::Confirming { version }, Input::ListAccepted) => {
                self.backoff.reset();
                self.interruptions = 0;
                self.refusals = 0;
                self.watch_failures = 0;
                self.watch(version, jitter)
            }
            (State::Confirming { .. } | State::Watching { .. }, Input::Refused) => self.refused(jitter),
            (State::Watching { version, .. }, Input::Watch(event)) => self.take_event(version, event),
            (State::Watching { version, progress }, Input::WatchClosed { lasted }) => {
                if progress == Progress::None && lasted < SHORTEST_WATCH {
                    self.back_off(Resume::Watch(version), None, jitter)
                } else {
                    self.watch(version, jitter)
                }
            }
            (State::Watching { version, .. }, Input::Failed(failure)) => {
                let resume = self.after_watch_failure(failure, version);
                self.back_off(resume, Some(failure), jitter)
            }
            (State::BackingOff { resume, .. }, Input::Timer) => match resume {
                Resume::List => self.list(),
                Resume::Page(position) => vec![self.request_page(position)],
                Resume::Watch(version) => self.watch(version, jitter),
            },
            (state, _) => {
                self.state = state;
                Vec::new()
            }
        }
    }

    /// Whether a watch is open: the informer then receives changes as the server sends them.
    pub fn is_watching(&self) -> bool {
        matches!(self.state, State::Watching { .. })
    }

    /// The failure it is backing off from, for logs and readiness.
    pub fn failure(&self) -> Option<Failure> {
        match &self.state {
            State::BackingOff { failure, .. } => *failure,
            State::Idle | State::Listing(_) | State::Confirming { .. } | State::Watching { .. } => None,
        }
    }

    fn after_watch_failure(&mut self, failure: Failure, version: Version) -> Resume {
        match failure {
            // The version has expired, the resource is no longer served, or one event cannot be decoded: a new
            // watch would fail in the same way.
            Failure::Gone | Failure::NotFound | Failure::Malformed | Failure::Status { .. } => Resume::List,
            Failure::Server { .. } => {
                self.watch_failures = self.watch_failures.saturating_add(1);
                if self.watch_failures > MAX_WATCH_FAILURES {
                    Resume::List
                } else {
                    Resume::Watch(version)
                }
            }
            Failure::Unauthorized
            | Failure::Forbidden
            | Failure::TooManyRequests { .. }
            | Failure::Transport => Resume::Watch(version),
        }
    }

    fn list<T>(&mut self) -> Vec<Effect<T>> {
        let first = self.request_page(Position {
            continue_token: None,
            version: None,
        });
        vec![Effect::Inform(Event::ListStarted), first]
    }

    fn request_page<T>(&mut self, position: Position) -> Effect<T> {
        let continue_token = position.continue_token.clone();
        self.state = State::Listing(position);
        let limit = (self.interruptions < MAX_INTERRUPTIONS).then_some(PAGE_LIMIT);
        Effect::List {
            at: self.first.take(),
            continue_token,
            limit,
        }
    }

    fn take_page<T>(
        &mut self,
        position: Position,
        items: Vec<T>,
        version: Version,
        continue_token: Option<Box<str>>,
    ) -> Vec<Effect<T>> {
        // Pages of one list share a version. If a server breaks that, the oldest one is safe: the watch then
        // repeats some events.
        let version = position.version.map_or(version, |seen| seen.min(version));
        let page = Effect::Inform(Event::Page(items));
        if let Some(token) = continue_token.filter(|token| !token.is_empty()) {
            let next = Position {
                continue_token: Some(token),
                version: Some(version),
            };
            vec![page, self.request_page(next)]
        } else {
            self.state = State::Confirming { version };
            vec![page, Effect::Inform(Event::ListDone { version })]
        }
    }

    fn list_failed<T>(&mut self, position: Position, failure: Failure, jitter: u64) -> Vec<Effect<T>> {
        match (position.continue_token.is_some(), failure) {
            (true, Failure::Gone) => {
                self.interruptions = self.interruptions.saturating_add(1);
                if self.interruptions == 1 {
                    return self.list();
                }
                self.back_off(Resume::List, Some(failure), jitter)
            }
            (true, Failure::NotFound | Failure::Status { .. }) | (false, _) => {
                self.back_off(Resume::List, Some(failure), jitter)
            }
            (true, _) => self.back_off(Resume::Page(position), Some(failure), jitter),
        }
    }

    fn refused<T>(&mut self, jitter: u64) -> Vec<Effect<T>> {
        self.refusals = self.refusals.saturating_add(1);
        let mut effects = Vec::new();
        if self.refusals >= MAX_STALE_LISTS {
            self.refusals = 0;
            effects.push(Effect::ForgetHistory);
        }
        effects.extend(self.back_off(Resume::List, None, jitter));
        effects
    }

    fn watch<T>(&mut self, version: Version, jitter: u64) -> Vec<Effect<T>> {
        self.state = State::Watching {
            version,
            progress: Progress::None,
        };
        let timeout_seconds = WATCH_TIMEOUT
            .saturating_add(fraction_of(WATCH_TIMEOUT, jitter))
            .as_secs();
        vec![Effect::Watch {
            version,
            bookmarks: true,
            timeout_seconds,
        }]
    }

    fn take_event<T: Cached>(&mut self, version: Version, event: WatchInput<T>) -> Vec<Effect<T>> {
        let (seen, event) = match event {
            WatchInput::Added(object) => (Version::of(&object), Event::Added(object)),
            WatchInput::Modified(object) => (Version::of(&object), Event::Modified(object)),
            WatchInput::Deleted(object) => (Version::of(&object), Event::Deleted(object)),
            WatchInput::Bookmark(version) => (Some(version), Event::Bookmark(version)),
        };
        self.backoff.reset();
        self.watch_failures = 0;
        let version = seen.map_or(version, |seen| seen.max(version));
        self.state = State::Watching {
            version,
            progress: Progress::Some,
        };
        vec![Effect::Inform(event)]
    }

    fn back_off<T>(&mut self, resume: Resume, failure: Option<Failure>, jitter: u64) -> Vec<Effect<T>> {
        self.state = State::BackingOff { resume, failure };
        let retry_after = failure.map_or(Duration::ZERO, Failure::retry_after);
        vec![Effect::Sleep(self.backoff.delay(jitter).max(retry_after))]
    }
}

impl Default for Reflector {
    fn default() -> Self {
        Self::new()
    }
}
