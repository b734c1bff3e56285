//! Watches as streams of lines.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;

use super::clock;
use super::live::Live;
use crate::{WatchEvent, WatchId};

/// How often an idle watch reads the clock.
const IDLE: Duration = Duration::from_secs(1);

/// A watch that is closed when its client leaves.
pub(super) struct OpenWatch {
    live: Arc<Live>,
    id: WatchId,
    news: watch::Receiver<u64>,
    ended: bool,
}

impl Drop for OpenWatch {
    fn drop(&mut self) {
        self.live.with_world(|world| world.api().close_watch(self.id));
    }
}

impl OpenWatch {
    pub(super) fn new(live: Arc<Live>, id: WatchId) -> Self {
        let news = live.news();
        Self {
            live,
            id,
            news,
            ended: false,
        }
    }

    /// The next lines; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        while !self.ended {
            self.news.mark_unchanged();
            let events = self
                .live
                .with_world(|world| world.api().watch_events(self.id, clock::now()));
            let mut lines = String::new();
            for line in events.iter().filter_map(WatchEvent::text) {
                lines.push_str(&line);
                lines.push('\n');
            }
            self.ended = events.contains(&WatchEvent::End);
            if !lines.is_empty() {
                return Some(lines.into());
            }
            if !self.ended {
                // either way there may be something to show: an event, or a bookmark
                let _elapsed = tokio::time::timeout(IDLE, self.news.changed()).await;
            }
        }
        None
    }
}
