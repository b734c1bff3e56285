//! A Deployment in the place of the CloneSet: its pods are nobody's whom the manager knows.

use std::sync::Arc;

use kruise_sim::{Method, Request, Response};
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, Reply, State},
    history::{Edit, Start, sidecars::Above},
    sidecars,
    user::{insist, int_or_string},
};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// Creates it.
pub async fn create(cluster: &Arc<Cluster>, start: &Start) {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": start.replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2, "maxSurge": 1}},
            "template": {
                "metadata": {"labels": {"app": "web", sidecars::LABEL: "on"}},
                "spec": {"terminationGracePeriodSeconds": 3, "containers": [
                    {"name": "main", "image": "web:1", "env": [{"name": "MODE", "value": "0"}]}]},
            },
        },
    });
    insist(
        cluster,
        Request::new(Method::Post, DEPLOYMENTS, Some(&deployment)),
    )
    .await;
}

/// Changes it. False if that is refused, or means nothing to a Deployment.
pub async fn edit(cluster: &Arc<Cluster>, edit: &Edit) -> bool {
    let container = |member: Value| {
        let mut container = member;
        container["name"] = "main".into();
        json!({"spec": {"template": {"spec": {"containers": [container]}}}})
    };
    let patch = match edit {
        Edit::Image(number) => container(json!({"image": format!("web:{number}")})),
        Edit::Env(number) => container(json!({"env": [{"name": "MODE", "value": number.to_string()}]})),
        Edit::Annotation(number) => {
            json!({"spec": {"template": {"metadata": {"annotations": {"team": number.to_string()}}}}})
        }
        Edit::Scale(replicas) => json!({"spec": {"replicas": replicas}}),
        Edit::MaxUnavailable(text) => {
            json!({"spec": {"strategy": {"rollingUpdate": {"maxUnavailable": int_or_string(text)}}}})
        }
        Edit::Paused(paused) => json!({"spec": {"paused": paused}}),
        _ => return false,
    };
    let request = Request::new(Method::Patch, &format!("{DEPLOYMENTS}/web"), Some(&patch))
        .content_type("application/strategic-merge-patch+json");
    insist(cluster, request).await
}

impl State {
    /// Is there a Deployment in place of the CloneSet?
    pub fn has_deployment(&self) -> bool {
        self.sidecars
            .as_ref()
            .is_some_and(|sidecars| sidecars.above == Above::Deployment)
    }

    /// The Deployment as it is, or null.
    pub fn deployment(&mut self) -> Value {
        match self.answer(&Request::new(Method::Get, &format!("{DEPLOYMENTS}/web"), None)) {
            Reply::Response(Response { code: 200, body, .. }) => {
                serde_json::from_slice(&body).unwrap_or_default()
            }
            _ => Value::Null,
        }
    }
}
