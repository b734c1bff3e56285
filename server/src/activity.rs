//! When a connection was last used, when it has been idle for too long, and if it has to close.
//!
//! A request is in flight until its answer is sent. A client that does not take an answer in time is cut off.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::{listen::Limits, share::State};

/// State of one connection.
#[derive(Debug)]
pub(crate) struct Activity {
    header: Duration,
    idle: Duration,
    answer: Duration,
    usage: Mutex<Usage>,
    close: Notify,
    cut: Notify,
}

#[derive(Debug)]
struct Usage {
    in_flight: usize,
    /// Requests so far.
    begun: u64,
    /// Until when the client has to take the answers that are made, by request.
    answers: BTreeMap<u64, Instant>,
    /// When it was opened, or a request last began or ended.
    since: Instant,
    /// When to close the connection if no request is in flight then.
    due: Instant,
}

/// A request in flight until this is dropped.
pub(crate) struct Busy {
    activity: Arc<Activity>,
    request: u64,
}

impl Activity {
    /// A connection opened now.
    pub(crate) fn new(limits: &Limits) -> Self {
        let now = Instant::now();
        let usage = Usage {
            in_flight: 0,
            begun: 0,
            answers: BTreeMap::new(),
            since: now,
            due: now + limits.header,
        };
        Self {
            header: limits.header,
            idle: limits.idle,
            answer: limits.answer,
            usage: Mutex::new(usage),
            close: Notify::new(),
            cut: Notify::new(),
        }
    }

    /// Requests can be sent from now on; until then something else bounded the time.
    pub(crate) fn ready(&self) {
        self.with(|usage| usage.due = Instant::now() + self.header);
    }

    /// Begins a request.
    pub(crate) fn begin(this: &Arc<Self>) -> Busy {
        let request = this.with(|usage| {
            usage.in_flight += 1;
            usage.since = Instant::now();
            usage.begun += 1;
            usage.begun
        });
        Busy {
            activity: this.clone(),
            request,
        }
    }

    /// Is a request in flight, and since when?
    pub(crate) fn state(&self) -> (State, Instant) {
        self.with(|usage| {
            let state = match usage.in_flight {
                0 => State::Idle,
                _ => State::Busy,
            };
            (state, usage.since)
        })
    }

    /// Makes the connection finish what is in flight and close.
    pub(crate) fn close(&self) {
        self.close.notify_one();
    }

    /// Resolves once after [`Activity::close`].
    pub(crate) async fn closing(&self) {
        self.close.notified().await;
    }

    /// Ends the connection at once, with all its requests and answers.
    pub(crate) fn cut(&self) {
        self.cut.notify_one();
    }

    /// Resolves after [`Activity::cut`], or when the client does not take an answer in time.
    pub(crate) async fn is_cut(&self) {
        let mut cut = std::pin::pin!(self.cut.notified());
        loop {
            let now = Instant::now();
            let first = self.with(|usage| usage.answers.values().min().copied());
            if first.is_some_and(|first| first <= now) {
                return;
            }
            // The answers of later requests are due later than this.
            let next = first.unwrap_or(now + self.answer);
            tokio::select! {
                () = &mut cut => return,
                () = sleep_until(next) => {}
            }
        }
    }

    /// Resolves when the connection has been without a request for too long.
    pub(crate) async fn idle(&self) {
        loop {
            let now = Instant::now();
            let due = self.with(|usage| match usage.in_flight {
                0 => usage.due,
                _ => now + self.idle,
            });
            if due <= now {
                return;
            }
            sleep_until(due).await;
        }
    }

    fn with<T>(&self, read: impl FnOnce(&mut Usage) -> T) -> T {
        read(&mut self.usage.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Busy {
    /// The answer is made, and the client has to take it.
    pub(crate) fn answered(&self) {
        let until = Instant::now() + self.activity.answer;
        self.activity
            .with(|usage| usage.answers.insert(self.request, until));
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let now = Instant::now();
        self.activity.with(|usage| {
            usage.answers.remove(&self.request);
            usage.in_flight = usage.in_flight.saturating_sub(1);
            usage.since = now;
            usage.due = now + self.activity.idle;
        });
    }
}
