//! Reasons of events.

use std::collections::BTreeSet;

use kruise_api::names::events::Reason;
use kruise_kinds::{self as controllers, refusals};
use kruise_runtime::lease;

kruise_api::reasons! {
    CALLED_FOR_ALL = "CalledForAll", Warning, ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"], "A webhook is called for all new pods, or for all evictions, of the cluster: they depend on the managers. The message says what would change that.";
}

/// Reasons of all events, each with the kinds of object that they are about.
pub fn reasons() -> Vec<(&'static Reason, BTreeSet<&'static str>)> {
    let controllers = controllers::ALL.iter().copied().flat_map(|registration| {
        let kind = registration.kind.map(|kind| kind.kind);
        registration.reasons().map(move |reason| (reason, kind))
    });
    let others = [ALL, refusals::ALL, lease::REASONS];
    let others = others.into_iter().flatten().map(|reason| (*reason, None));
    let mut all: Vec<(&Reason, BTreeSet<&str>)> = Vec::new();
    for (reason, kind) in controllers.chain(others) {
        let on = if reason.on.is_empty() {
            kind.as_slice()
        } else {
            reason.on
        };
        match all.iter_mut().find(|(other, _)| *other == reason) {
            Some((_, kinds)) => kinds.extend(on),
            None => all.push((reason, on.iter().copied().collect())),
        }
    }
    all
}
