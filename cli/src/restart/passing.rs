//! Errors that pass by themselves.

use kruise_runtime::{ApiError, discovery::DiscoveryError};

/// May the same request succeed later?
pub(super) fn is_passing(error: &anyhow::Error) -> bool {
    let of_discovery = error.downcast_ref().map(|error| match error {
        DiscoveryError::Unreachable { error, .. } | DiscoveryError::Refused { error, .. } => error,
    });
    let error = error.downcast_ref().or(of_discovery);
    error.is_some_and(ApiError::is_retriable)
}

/// Is the same request to create an object worth repeating? A quota that changes meanwhile shows as a
/// conflict.
pub(super) fn is_worth_repeating(error: &ApiError) -> bool {
    error.is_retriable() || error.may_have_happened() || error.is_conflict()
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    fn refused(code: u16) -> ApiError {
        ApiError::refused(code, b"{}", None)
    }

    #[test]
    fn an_error_passes_whatever_was_said_about_it_and_a_refusal_does_not() {
        let passes =
            |error: ApiError| is_passing(&Err::<(), _>(error).context("cannot list pods").unwrap_err());
        for error in [
            refused(429),
            refused(500),
            refused(503),
            ApiError::Transport("reset".into()),
        ] {
            assert!(passes(error.clone()), "{error}");
        }
        for code in [401, 403, 404, 409, 422] {
            assert!(!passes(refused(code)), "{code}");
        }
        assert!(!is_passing(&anyhow!(
            "CloneSet shop/web was replaced by another one"
        )));
        let unreachable = |error| DiscoveryError::Unreachable {
            host: "here".into(),
            error,
        };
        assert!(is_passing(&unreachable(refused(503)).into()));
        assert!(!is_passing(&unreachable(refused(403)).into()));
    }

    #[test]
    fn a_creation_is_repeated_unless_the_object_itself_is_refused() {
        assert!(is_worth_repeating(&refused(409)) && is_worth_repeating(&refused(504)));
        assert!(is_worth_repeating(&ApiError::Malformed("cut off".into())));
        assert!(!is_worth_repeating(&refused(422)) && !is_worth_repeating(&refused(404)));
    }
}
