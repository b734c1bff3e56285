//! Moves a world along with the clock.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::caller;
use super::clock;
use super::live::Live;

/// How long to sleep when nothing is due: news wake the player.
const LONG: Duration = Duration::from_hours(1);

/// Plays what is due when it is due, and what follows from writes.
pub(super) async fn play(live: &Live) -> Infallible {
    let mut news = live.news();
    loop {
        news.mark_unchanged();
        let now = clock::now();
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
            // either way there may be something to do: time has passed, or there are news
            let _elapsed = tokio::time::timeout(left.min(LONG), news.changed()).await;
        }
    }
}

/// Calls the webhooks that the world itself needs, many at a time.
pub(super) async fn call_webhooks(live: &Arc<Live>) -> Infallible {
    let mut news = live.news();
    let mut calls = JoinSet::new();
    loop {
        news.mark_unchanged();
        for call in live.with_world(crate::World::calls) {
            let live = live.clone();
            calls.spawn(async move {
                let reply = caller::call(&live, &call).await;
                live.with_world(|world| world.resume(call.id, reply));
            });
        }
        while calls.try_join_next().is_some() {}
        if news.changed().await.is_err() {
            std::future::pending::<Infallible>().await;
        }
    }
}
