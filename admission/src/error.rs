//! What can be wrong with a message from the API server. The sender has to change it: an HTTP 400.

/// Why a review cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An AdmissionReview lacks a member of its request, or it holds nonsense.
    #[error("the request of the review has no usable `{0}`")]
    Request(&'static str),
    /// A body is not JSON.
    #[error("body is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A body is JSON, but not a ConversionReview with a uid and a desired version.
    #[error("expected ConversionReview of apiextensions.k8s.io v1 with uid and desiredAPIVersion")]
    Conversion,
}
