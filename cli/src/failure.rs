//! What a person reads if a command fails: one line, which says who may not do what, or what to do.

use kruise_runtime::{ApiError, discovery::DiscoveryError};

use crate::connection::Unreachable;

/// The error and its causes in one line.
pub fn line(error: &anyhow::Error) -> String {
    let text = match of_discovery(error) {
        Some(text) => text,
        None => format!("{error:#}"),
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// What the server said when it was asked what it serves. The advice of the manager is none for people.
fn of_discovery(error: &anyhow::Error) -> Option<String> {
    let error = error.downcast_ref()?;
    Some(match error {
        DiscoveryError::Unreachable { host, error } => match error {
            ApiError::Refused(status) => format!("the API server {host} fails: {}", status.message),
            error => Unreachable::new(host, error).to_string(),
        },
        DiscoveryError::Refused { host, error } => match error.status() {
            Some(status) if status.code == 401 => {
                format!(
                    "the API server {host} does not know who you are: {}",
                    status.message
                )
            }
            _ => error.to_string(),
        },
    })
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    fn refused(code: u16, message: &str) -> ApiError {
        let body = serde_json::json!({"code": code, "message": message});
        ApiError::refused(code, body.to_string().as_bytes(), None)
    }

    #[test]
    fn a_refusal_says_who_may_not_do_what_and_nothing_of_installing_rights() {
        let message = "clonesets.apps.kruise.io \"web\" is forbidden: User \"bob\" cannot get resource";
        let error = DiscoveryError::Refused {
            host: "here".into(),
            error: refused(403, message),
        };
        assert_eq!(line(&error.into()), message);
        let error = Err::<(), _>(refused(403, message)).context("cannot read CloneSet shop/web");
        let text = line(&error.unwrap_err());
        assert_eq!(text, format!("cannot read CloneSet shop/web: {message}"));
        let error = DiscoveryError::Refused {
            host: "here".into(),
            error: refused(401, "Unauthorized"),
        };
        assert_eq!(
            line(&error.into()),
            "the API server here does not know who you are: Unauthorized"
        );
    }

    #[test]
    fn a_server_that_is_gone_is_told_from_one_that_fails() {
        let unreachable = |error| DiscoveryError::Unreachable {
            host: "here".into(),
            error,
        };
        let gone = unreachable(ApiError::Transport("tcp connect error: refused".into()));
        assert_eq!(line(&gone.into()), "cannot reach the API server here: refused");
        let failing = unreachable(refused(503, "not\nready"));
        assert_eq!(line(&failing.into()), "the API server here fails: not ready");
    }
}
