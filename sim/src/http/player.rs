//! Moves a world along with the clock.

use std::convert::Infallible;
use std::time::Duration;

use super::live::{self, Live};

/// How long to sleep when nothing is due: writes wake the player.
const LONG: Duration = Duration::from_secs(3600);

/// Plays what is due when it is due, and what follows from writes.
pub(super) async fn play(live: &Live) -> Infallible {
    let mut changes = live.changes();
    loop {
        changes.mark_unchanged();
        let now = live::now();
        // one step at a time, so that requests come between
        let due = live.with_world(|world| {
            let due = world.next_due();
            world.advance(due.map_or(now, |due| due.min(now)));
            world.next_due()
        });
        let left = match due {
            Some(due) => Duration::try_from(due.duration_since(now)).unwrap_or_default(),
            None => LONG,
        };
        if left.is_zero() {
            tokio::task::yield_now().await;
        } else {
            // either way there may be something to do: time has passed, or somebody wrote
            let _elapsed = tokio::time::timeout(left.min(LONG), changes.changed()).await;
        }
    }
}
