//! Who may read metrics with `--metrics-secure`: callers whose token the API server knows, and who may get `/metrics`.
//!
//! The API server is asked twice for each token: whose it is, and what the owner may. It is not asked again for a
//! minute after a grant, and for ten seconds after a refusal. What could not be found out is not remembered. At
//! most [`MOST`] tokens are remembered, and [`AT_A_TIME`] reviewed at a time, so that callers with made-up tokens
//! cost little.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::FutureExt;
use kruise_runtime::{ApiError, Client};
use kruise_server::plain::{Access, Guard};
use serde_json::{Value, json};
use tokio::{sync::Semaphore, time::Instant};

/// Tokens that are remembered. A cluster has few programs that read metrics.
const MOST: usize = 64;
/// Reviews at a time. A caller beyond them is asked to try again.
const AT_A_TIME: usize = 4;
/// How long a grant and a refusal are remembered.
const GRANTED: Duration = Duration::from_mins(1);
const REFUSED: Duration = Duration::from_secs(10);

const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/// The guard of metrics.
pub(super) fn guard(client: Client) -> Arc<Guard> {
    let callers = Arc::new(Callers {
        client,
        known: Mutex::default(),
        permits: Semaphore::new(AT_A_TIME),
    });
    Arc::new(move |token| {
        let callers = callers.clone();
        async move { callers.access(token).await }.boxed()
    })
}

struct Callers {
    client: Client,
    /// By token, with the time until which it holds.
    known: Mutex<BTreeMap<String, (Access, Instant)>>,
    permits: Semaphore,
}

impl Callers {
    async fn access(&self, token: String) -> Access {
        if let Some(access) = self.remembered(&token) {
            return access;
        }
        let Ok(_permit) = self.permits.try_acquire() else {
            return Access::Undecided;
        };
        match self.review(&token).await {
            Ok(access) => {
                self.remember(token, access);
                access
            }
            Err(error) => {
                tracing::warn!("a caller of metrics could not be reviewed: {error}");
                Access::Undecided
            }
        }
    }

    async fn review(&self, token: &str) -> Result<Access, ApiError> {
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
        let reviewed: Value = self.client.create(TOKEN_REVIEWS, &review).await?;
        if reviewed.pointer("/status/authenticated") != Some(&Value::Bool(true)) {
            return Ok(Access::Unknown);
        }
        let user = |field: &str| reviewed.pointer(&format!("/status/user/{field}"));
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": user("username"), "uid": user("uid"), "groups": user("groups"), "extra": user("extra"),
                "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
            },
        });
        let reviewed: Value = self.client.create(ACCESS_REVIEWS, &review).await?;
        Ok(match reviewed.pointer("/status/allowed") {
            Some(Value::Bool(true)) => Access::Granted,
            _ => Access::Forbidden,
        })
    }

    fn remembered(&self, token: &str) -> Option<Access> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (access, until) = known.get(token)?;
        (*until > Instant::now()).then_some(*access)
    }

    /// Makes room first: for what is over, and then for any. A grant is not forgotten for a refusal.
    fn remember(&self, token: String, access: Access) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        known.retain(|_, (_, until)| *until > now);
        if known.len() >= MOST {
            known.retain(|_, (access, _)| *access == Access::Granted);
        }
        let lasts = if access == Access::Granted {
            GRANTED
        } else {
            REFUSED
        };
        if known.len() < MOST {
            known.insert(token, (access, now + lasts));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use kruise_frame::played;

    /// The guard beside an API server that knows `prometheus`, who may read metrics, and `tenant`, who may not; and
    /// how often it was asked.
    fn played() -> (Arc<Guard>, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = asked.clone();
        let client = played::client(move |_, path, body| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move {
                let review: Value = serde_json::from_slice(&body).unwrap();
                let token = review
                    .pointer("/spec/token")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let status = match (path.as_str(), token) {
                    (TOKEN_REVIEWS, "away") => return Ok((500, json!({"message": "away"}))),
                    (TOKEN_REVIEWS, "prometheus" | "tenant") => {
                        json!({"authenticated": true, "user": {"username": token, "groups": ["system:authenticated"]}})
                    }
                    (TOKEN_REVIEWS, _) => json!({"authenticated": false}),
                    _ => {
                        let wanted = json!({"path": "/metrics", "verb": "get"});
                        assert_eq!(review["spec"]["nonResourceAttributes"], wanted);
                        assert_eq!(review["spec"]["groups"], json!(["system:authenticated"]));
                        json!({"allowed": review["spec"]["user"] == "prometheus"})
                    }
                };
                Ok((201, json!({ "status": status })))
            }
        });
        (guard(client), asked)
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_reviewed_once_in_its_time_and_what_could_not_be_found_out_again() {
        let (guard, asked) = played();
        for (token, access, requests, lasts) in [
            ("prometheus", Access::Granted, 2, GRANTED),
            ("tenant", Access::Forbidden, 2, REFUSED),
            ("nobody", Access::Unknown, 1, REFUSED),
        ] {
            let before = asked.load(Ordering::SeqCst);
            for _ in 0..3 {
                assert_eq!(guard(token.to_owned()).await, access, "{token}");
            }
            assert_eq!(asked.load(Ordering::SeqCst) - before, requests, "{token}");
            tokio::time::advance(lasts).await;
            guard(token.to_owned()).await;
            assert_eq!(asked.load(Ordering::SeqCst) - before, 2 * requests, "{token}");
        }
        let before = asked.load(Ordering::SeqCst);
        for _ in 0..2 {
            assert_eq!(guard("away".to_owned()).await, Access::Undecided);
        }
        assert_eq!(asked.load(Ordering::SeqCst) - before, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn made_up_tokens_do_not_displace_a_grant() {
        let (guard, asked) = played();
        guard("prometheus".to_owned()).await;
        for number in 0..2 * MOST {
            guard(format!("made-up-{number}")).await;
        }
        let before = asked.load(Ordering::SeqCst);
        assert_eq!(guard("prometheus".to_owned()).await, Access::Granted);
        assert_eq!(asked.load(Ordering::SeqCst), before);
    }
}
