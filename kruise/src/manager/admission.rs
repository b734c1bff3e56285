//! The routes of a manager: a reviewer for each path of the table of webhooks, and conversion.

use std::{collections::BTreeMap, sync::Arc};

use kruise_admission::{
    Request, Response,
    convert::convert,
    table::{Subject, webhooks},
};
use kruise_server::{review::Review, webhook::Handler};

use super::reviews::{Reviews, sent};

/// Path of the conversion webhook, as definitions name it.
pub(super) const CONVERT: &str = "/convert";

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
