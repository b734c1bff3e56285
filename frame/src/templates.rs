//! Pod templates, as the API server judges them: a `PodTemplate` is created as a dry run, so nothing is stored.
//!
//! Only 422 is a verdict. Whatever else is said, the rules of the webhooks have decided: a server that is slow or
//! too busy keeps nobody from storing a workload, and nor does a manager without the right.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use kruise_admission::lookup::Cause;
use kruise_api::path::segment;
use kruise_runtime::{ApiError, Client, metrics::PodMetrics};
use serde_json::{Value, json};
use tokio::time::timeout;

/// Time limit of one answer.
const LIMIT: Duration = Duration::from_secs(1);

/// Where the template is in what the server is asked to create.
const TEMPLATE: &str = "template";

/// Asks the API server about pod templates.
pub struct Judge {
    client: Client,
    /// Namespace of the manager, for templates of objects that are in none.
    namespace: String,
    metrics: Option<PodMetrics>,
    /// The log says that a right is missing.
    is_told: AtomicBool,
}

impl Judge {
    /// Asks with this client. `namespace` is that of the manager.
    pub fn new(client: Client, namespace: &str) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
            metrics: None,
            is_told: AtomicBool::new(false),
        }
    }

    /// The same, with metrics.
    #[must_use]
    pub fn measured(self, metrics: PodMetrics) -> Self {
        Self {
            metrics: Some(metrics),
            ..self
        }
    }

    /// What is wrong with a template in this namespace; nothing without a verdict.
    pub async fn causes(&self, namespace: &str, template: &str) -> Vec<Cause> {
        let namespace = if namespace.is_empty() {
            &self.namespace
        } else {
            namespace
        };
        let template: Value = serde_json::from_str(template).unwrap_or_default();
        let object = json!({
            "apiVersion": "v1", "kind": "PodTemplate",
            "metadata": {"generateName": "kruise-trial-", "namespace": namespace},
            TEMPLATE: template,
        });
        let path = format!("/api/v1/namespaces/{}/podtemplates", segment(namespace));
        let (result, causes) = match timeout(LIMIT, self.client.would_create(&path, &object)).await {
            Ok(Ok(())) => ("accepted", Vec::new()),
            Ok(Err(error)) => self.verdict(namespace, &error),
            Err(_) => ("unanswered", Vec::new()),
        };
        if let Some(metrics) = &self.metrics {
            metrics.tried(result);
        }
        causes
    }

    fn verdict(&self, namespace: &str, error: &ApiError) -> (&'static str, Vec<Cause>) {
        let Some(status) = error.status() else {
            return ("unanswered", Vec::new());
        };
        match status.code {
            422 => {
                let causes: Vec<Cause> = status.details.causes.iter().filter_map(within).collect();
                // Somebody else's webhook may say 422 about something else.
                let result = if causes.is_empty() {
                    "unanswered"
                } else {
                    "refused"
                };
                (result, causes)
            }
            403 => {
                if !self.is_told.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        namespace,
                        %error,
                        "the API server does not judge pod templates here, only the rules of the webhooks do; the manager \
                         needs the right to create podtemplates"
                    );
                }
                ("forbidden", Vec::new())
            }
            _ => ("unanswered", Vec::new()),
        }
    }
}

/// The cause, if it is about the template, from the template on.
fn within(cause: &kruise_runtime::Cause) -> Option<Cause> {
    let rest = cause.field.strip_prefix(TEMPLATE)?;
    let field = match rest.strip_prefix('.') {
        Some(field) => field,
        None if rest.is_empty() => "",
        None => return None,
    };
    Some(Cause {
        field: field.to_owned(),
        message: cause.message.clone(),
    })
}

#[cfg(test)]
mod tests;
