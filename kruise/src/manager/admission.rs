//! The routes of a manager: a reviewer for each path of the table of webhooks, and conversion.

use std::{collections::BTreeMap, sync::Arc};

use kruise_admission::{
    Options, Request, Response,
    convert::convert,
    table::{Subject, webhooks},
};
use kruise_server::{review::Review, webhook::Handler};

use super::{
    config::Config,
    reviews::{Reviews, sent},
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

/// The routes of this build. Without `pods` (gate `PodWebhook`) pods are not reviewed, and the entries that would send
/// them here are taken out of the live configuration.
pub(super) fn routes(reviews: Reviews, pods: bool) -> BTreeMap<String, Handler> {
    let mut routes = BTreeMap::new();
    let reviews = Arc::new(reviews);
    let served = webhooks().filter(|webhook| pods || !matches!(webhook.subject, Subject::Pods));
    for webhook in served {
        let reviews = reviews.clone();
        let reviewer = move |review: Review| match Request::from_review(review.request) {
            Ok(mut request) => {
                request.now = reviews.now();
                reviews.decide(webhook, request)
            }
            Err(error) => sent(unreadable(&error)).into(),
        };
        let handler = Handler::Review(Arc::new(reviewer));
        let paths = webhook.paths().into_iter();
        routes.extend(paths.map(|path| (path, handler.clone())));
    }
    let converter = |body: Vec<u8>| convert(body).map_err(|error| error.to_string());
    routes.insert(CONVERT.to_owned(), Handler::Convert(Arc::new(converter)));
    routes
}

fn unreadable(error: &kruise_admission::Error) -> Response {
    Response::Deny {
        code: 400,
        message: error.to_string(),
    }
}
