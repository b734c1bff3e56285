//! How far an update got when a webhook had to be called.
//!
//! A request that was stopped runs again from its start ([`crate::webhook`]). An update need not: what it read and made
//! of it is the same as long as the object is, so it continues where it stopped. If the object changed meanwhile, what
//! is known of it is dropped.

use std::sync::Arc;

use serde_json::Value;

pub(crate) use super::under_way::{Next, Progress};
use crate::api::{Api, Call};
use crate::webhook::Stop;

/// A stop with what was done: of the object as it is stored, `new` is to be made.
pub(super) fn noted(
    api: &Api,
    call: &Call<'_>,
    stop: Stop,
    (old, new): (&Arc<Value>, Value),
    next: Next,
) -> Stop {
    let Stop::Call(mut needed) = stop else {
        return stop;
    };
    let stored = api.store.get(&call.resource.id, &call.key());
    needed.progress = stored.map(|stored| {
        Box::new(Progress {
            revision: stored.revision,
            old: old.clone(),
            new,
            touched: call.touched.clone(),
            warnings: call.warnings.borrow().clone(),
            next,
        })
    });
    Stop::Call(needed)
}

/// What was done already, if it still holds.
pub(super) fn resumed(api: &Api, call: &mut Call<'_>) -> Option<Progress> {
    let progress = call.progress.take()?;
    let stored = api.store.get(&call.resource.id, &call.key())?;
    if stored.revision != progress.revision {
        return None;
    }
    call.touched = progress.touched.clone();
    call.warn(progress.warnings.iter().cloned());
    Some(*progress)
}
