//! Which handler answers which webhook path.

use std::{collections::BTreeMap, sync::Arc};

use kruise_admission::{
    Answer, Options, Request,
    cloneset::{
        mutate::mutate,
        validate::{Outcome, Pod, validate, validate_with_pods},
    },
    convert::convert,
    kinds,
    manifests::{self, Handler},
    pod, sidecarset,
};
use kruise_server::{
    review::{Review, Verdict},
    webhook,
};
use kruise_views::PodView;
use kube_cache::{ObjectKey, SharedInformer};

use super::{
    config::Config,
    reviews::{LIMIT, PATIENCE, Reviews},
};

/// Path of the conversion webhook, as definitions name it.
pub(super) const CONVERT: &str = "/convert";

/// Gates and flags that admission heeds.
pub(super) fn options(config: &Config) -> Options {
    Options {
        template_defaults: !config.gates.on("TemplateNoDefaults"),
        host_ports: config.gates.on("DefaultHostNetworkHostPortsInPodTemplates"),
        allow_privileged: config.allow_privileged,
        deletion_protection: config.gates.on("ResourcesDeletionProtection"),
        readiness_gate_for_all: config.gates.on("KruisePodReadinessGate"),
        sort_sidecars: config.gates.on("EnableSortSidecarContainerByName"),
        claims_deleted: config.gates.on("StatefulSetAutoDeletePVC"),
        claims_resized: config.gates.on("StatefulSetAutoResizePVCGate"),
        daemon: config.gates.on("KruiseDaemon"),
        probe_markers: config.gates.on("PodProbeMarkerGate"),
        patch_metadata_by_default: config.gates.on("SidecarSetPatchPodMetadataDefaultsAllowed"),
        workload_spread: config.gates.on("WorkloadSpread"),
        budgets: ["PodUnavailableBudgetDeleteGate", "PodUnavailableBudgetUpdateGate"]
            .iter()
            .any(|gate| config.gates.on(gate)),
    }
}

/// The routes of this build. Without `pods` (gate `PodWebhook`) pods are not answered for, and the entries that would
/// send them here are taken out of the live configuration.
pub(super) fn routes(reviews: Reviews, pods: bool) -> BTreeMap<String, webhook::Handler> {
    let mut routes = BTreeMap::new();
    let (options, reviews) = (reviews.options, Arc::new(reviews));
    for (path, handler) in manifests::paths() {
        if handler == Handler::MutatePod && !pods {
            continue;
        }
        let reviews = reviews.clone();
        let reviewer = move |review: Review| {
            let mut request = match Request::from_review(review.request) {
                Ok(request) => request,
                Err(error) => return verdict(unreadable(&error)).into(),
            };
            request.now = reviews.client.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            match handler {
                Handler::MutatePod => reviews.decide(review_pod, LIMIT, request),
                Handler::ValidateSidecarSet => reviews.decide(validate_sidecarset, PATIENCE, request),
                Handler::MutateKind => reviews.decide(mutate_kind, PATIENCE, request),
                Handler::ValidateKind => reviews.decide(validate_kind, PATIENCE, request),
                handler => verdict(decide(handler, &request, options, &reviews.pods)).into(),
            }
        };
        routes.insert(path, webhook::Handler::Review(Arc::new(reviewer)));
    }
    let converter = |body: Vec<u8>| convert(body).map_err(|error| error.to_string());
    routes.insert(CONVERT.to_owned(), webhook::Handler::Convert(Arc::new(converter)));
    routes
}

/// Reviews a new pod, and times each step.
pub(super) fn review_pod(reviews: &Reviews, request: &Request, known: &pod::Known) -> pod::Outcome {
    let mut watch = reviews.metrics.review();
    pod::review_told(request, reviews.options, known, &mut |step, result| {
        watch.ended(step, result);
    })
}

/// Reviews a SidecarSet.
pub(super) fn validate_sidecarset(reviews: &Reviews, request: &Request, known: &pod::Known) -> pod::Outcome {
    sidecarset::validate::validate(request, reviews.options, known)
}

/// Fills in an object of the table.
pub(super) fn mutate_kind(reviews: &Reviews, request: &Request, known: &pod::Known) -> pod::Outcome {
    kinds::mutate(request, reviews.options, known)
}

/// Reviews an object of the table.
pub(super) fn validate_kind(reviews: &Reviews, request: &Request, known: &pod::Known) -> pod::Outcome {
    kinds::validate(request, reviews.options, known)
}

fn unreadable(error: &kruise_admission::Error) -> Answer {
    Answer::Deny {
        code: 400,
        message: error.to_string(),
    }
}

/// Decides what the caches suffice for.
fn decide(handler: Handler, request: &Request, options: Options, pods: &SharedInformer<PodView>) -> Answer {
    match handler {
        // Decided with lookups.
        Handler::MutatePod | Handler::ValidateSidecarSet | Handler::MutateKind | Handler::ValidateKind => {
            Answer::ALLOW
        }
        Handler::MutateSidecarSet => sidecarset::mutate::mutate(request),
        Handler::MutateCloneSet => mutate(request, options),
        Handler::ValidateCloneSet => match validate(request, options) {
            Outcome::Answer(answer) => answer,
            Outcome::NeedPods(names) => {
                let Some(pods) = look_up(pods, &request.namespace, &names) else {
                    let message =
                        "the pods to delete cannot be checked yet, the manager has just started; try again";
                    return Answer::Deny {
                        code: 503,
                        message: message.to_owned(),
                    };
                };
                validate_with_pods(request, options, &pods)
            }
        },
    }
}

/// The pods of these names that exist; `None` before the first list is in.
fn look_up(pods: &SharedInformer<PodView>, namespace: &str, names: &[String]) -> Option<Vec<Pod>> {
    pods.synced_version()?;
    let snapshot = pods.snapshot();
    let found = names
        .iter()
        .filter_map(|name| snapshot.get(&ObjectKey::new(namespace, name.as_str())));
    let pods = found.map(|pod| Pod {
        name: pod.name.to_string(),
        controller: pod.controller.as_ref().map(|owner| owner.uid.to_string()),
        deleting: pod.deleting,
    });
    Some(pods.collect())
}

/// As the server sends it.
pub(super) fn verdict(answer: Answer) -> Verdict {
    match answer {
        Answer::Allow { patch, warnings } => {
            let patch = patch
                .and_then(|patch| patch.as_array().cloned())
                .unwrap_or_default();
            Verdict::Allow { patch, warnings }
        }
        Answer::Deny { code, message } => Verdict::Deny { code, message },
    }
}
