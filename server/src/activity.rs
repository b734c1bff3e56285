//! When a connection was last used, when it has been idle for too long, and if it has to close.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::{listen::Limits, share::State};

/// State of one connection.
pub(crate) struct Activity {
    header: Duration,
    idle: Duration,
    usage: Mutex<Usage>,
    close: Notify,
}

struct Usage {
    in_flight: usize,
    /// When it was opened, or a request last began or ended.
    since: Instant,
    /// When to close the connection if no request is in flight then.
    due: Instant,
}

/// A request in flight until this is dropped.
pub(crate) struct Busy(Arc<Activity>);

impl Activity {
    /// A connection opened now.
    pub(crate) fn new(limits: &Limits) -> Self {
        let now = Instant::now();
        let usage = Usage {
            in_flight: 0,
            since: now,
            due: now + limits.header,
        };
        Self {
            header: limits.header,
            idle: limits.idle,
            usage: Mutex::new(usage),
            close: Notify::new(),
        }
    }

    /// Requests can be sent from now on; until then something else bounded the time.
    pub(crate) fn ready(&self) {
        self.with(|usage| usage.due = Instant::now() + self.header);
    }

    /// Begins a request.
    pub(crate) fn begin(this: &Arc<Self>) -> Busy {
        this.with(|usage| {
            usage.in_flight += 1;
            usage.since = Instant::now();
        });
        Busy(this.clone())
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

impl Drop for Busy {
    fn drop(&mut self) {
        let now = Instant::now();
        self.0.with(|usage| {
            usage.in_flight = usage.in_flight.saturating_sub(1);
            usage.since = now;
            usage.due = now + self.0.idle;
        });
    }
}
