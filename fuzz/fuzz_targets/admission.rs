//! An AdmissionReview, whoever sends it: it is answered, the patch of a good answer applies, and what it yields
//! needs no further patch. The first byte chooses among the webhooks of the kind, or of all for one that has none.

#![no_main]

use std::sync::Arc;

use kruise_admission::lookup::{Lookup, LookupResult};
use kruise_admission::table::{Webhook, webhooks};
use kruise_admission::{Lookups, Options, Outcome, Request, Response};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

kruise_fuzz::json_mutator!(1);

/// Reviews of lookups that a review makes one after the other.
const ROUNDS: usize = 8;

fuzz_target!(|data: &[u8]| {
    let Some((choice, body)) = data.split_first() else {
        return;
    };
    let Ok(mut review) = serde_json::from_slice::<Value>(body) else {
        return;
    };
    let Some(request) = review.get_mut("request").map(Value::take) else {
        return;
    };
    let Ok(mut request) = Request::from_review(request) else {
        return;
    };
    let kind = request.kind.to_lowercase();
    let mut all: Vec<Webhook> = webhooks(kruise_admission::kinds::ALL).collect();
    if all.iter().any(|webhook| webhook.path().contains(&kind)) {
        all.retain(|webhook| webhook.path().contains(&kind));
    }
    let webhook = all[usize::from(*choice) % all.len()];
    let options = Options {
        deletion_protection: true,
        definitions_protection: true,
        pull_jobs: true,
        distributions: true,
        vertical_scaling: true,
        ..Options::DEFAULT
    };
    let Some(patch) = review_of(webhook, &request, options) else {
        return;
    };
    let patch: Value = serde_json::from_str(&patch).expect("a patch is JSON");
    let applied = kube_schema::patch::json(&mut request.object, &patch);
    applied.expect("a patch applies to what it was made for");
    if let Some(again) = review_of(webhook, &request, options) {
        panic!("{}: {patch}\nthen {again}", webhook.path());
    }
});

/// The patch of the answer. Nothing exists that is looked up.
fn review_of(webhook: Webhook, request: &Request, options: Options) -> Option<String> {
    let mut lookups = Lookups::default();
    for _ in 0..ROUNDS {
        match webhook.review(request, options, &lookups, &mut |_, _| {}) {
            Outcome::Missing(missing) => {
                for lookup in missing {
                    let result = nothing(&lookup);
                    lookups.insert_live(lookup, result);
                }
            }
            Outcome::Response(response) => return patch(response),
            _ => return None,
        }
    }
    None
}

fn patch(response: Response) -> Option<String> {
    match response {
        Response::Allow { patch, .. } => patch,
        Response::Deny { code, message, .. } => {
            assert!((400..600).contains(&code), "{code} {message}");
            assert!(!message.is_empty());
            None
        }
    }
}

fn nothing(lookup: &Lookup) -> LookupResult {
    match lookup {
        Lookup::All(kind, _) => kind.all(Vec::new()),
        Lookup::NamespaceLabels(_) | Lookup::NodeLabels(_) => LookupResult::Labels(Default::default()),
        Lookup::DryRunCreate { .. } => LookupResult::Accepted,
        Lookup::PodTemplate { .. } => LookupResult::Causes(Vec::new()),
        Lookup::Dependants(_) => LookupResult::Count(Ok(0)),
        Lookup::Owner { .. } => LookupResult::Owner(None),
        Lookup::Replicas { .. } => LookupResult::Replicas(None),
        Lookup::NamespaceEnds(_) => LookupResult::Ends(false),
        Lookup::Workloads { .. } => LookupResult::Workloads(Vec::new()),
        _ => LookupResult::NotFound,
    }
}
