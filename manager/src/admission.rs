//! The routes of the webhook server: a reviewer for each path in the table of webhooks, and conversion.

use std::{collections::BTreeMap, sync::Arc};

use kruise_admission::{
    Request, Response,
    convert::convert,
    table::{Subject, webhooks},
};
use kruise_server::{review::Review, webhook::Handler};

use super::reviews::{Reviews, to_server_response};

/// Path of the conversion webhook in definitions.
pub(super) const CONVERT: &str = "/convert";

/// The routes to what is reviewed. The webhook controller removes other webhooks from the live configuration.
pub(super) fn routes(reviews: Reviews, is_reviewed: impl Fn(&Subject) -> bool) -> BTreeMap<String, Handler> {
    let mut routes = BTreeMap::new();
    let reviews = Arc::new(reviews);
    for webhook in webhooks(kruise_kinds::webhooks()).filter(|webhook| is_reviewed(&webhook.subject)) {
        let reviews = reviews.clone();
        let reviewer = move |review: Review| match Request::from_review(review.request) {
            Ok(mut request) => {
                request.now = reviews.now();
                reviews.decide(webhook, request, review.peer)
            }
            Err(error) => to_server_response(unreadable(&error)).into(),
        };
        let handler = Handler::Review(Arc::new(reviewer));
        let paths = webhook.paths().into_iter();
        routes.extend(paths.map(|path| (path, handler.clone())));
    }
    let converter = |body: Vec<u8>| convert(kruise_kinds::kinds(), body).map_err(|error| error.to_string());
    routes.insert(CONVERT.to_owned(), Handler::Convert(Arc::new(converter)));
    routes
}

fn unreadable(error: &kruise_admission::Error) -> Response {
    Response::denied(400, error.to_string())
}
