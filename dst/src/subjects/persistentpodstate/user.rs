//! What users do to a PersistentPodState, to the StatefulSet below it and to its pods.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use kruise_sim::{Method, Request};
use serde::Deserialize;
use serde_json::{Value, json};

use super::start::{BROKER, Edit, Start, policy};
use crate::engine::{
    cluster::Cluster,
    subject::User,
    user::{self, insist},
};
use crate::subjects::nodes;

const SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const STATES: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/persistentpodstates";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Users of one PersistentPodState.
pub struct PersistentPodStateUser {
    /// The objects when they are created.
    pub start: Start,
}

impl User for PersistentPodStateUser {
    fn prepare<'a>(&'a self, cluster: &'a Arc<Cluster>) -> BoxFuture<'a, ()> {
        nodes::prepare(cluster, self.start.nodes).boxed()
    }

    fn create<'a>(&'a self, cluster: &'a Arc<Cluster>) -> BoxFuture<'a, ()> {
        async move {
            let (set, state) = (self.start.stateful_set(), self.start.state());
            insist(cluster, Request::new(Method::Post, SETS, Some(&set))).await;
            // Until a manager answers for it.
            insist(cluster, Request::new(Method::Post, STATES, Some(&state))).await;
        }
        .boxed()
    }

    fn edit<'a>(
        &'a self,
        cluster: &'a Arc<Cluster>,
        change: &'a Value,
    ) -> BoxFuture<'a, anyhow::Result<bool>> {
        async move {
            Ok(match Edit::deserialize(change)? {
                Edit::Scale(replicas) => {
                    let patch = json!({"spec": {"replicas": replicas}});
                    user::patch(cluster, &format!("{SETS}/{BROKER}"), &patch).await
                }
                Edit::Delete(number) => {
                    let path = format!("{PODS}/{BROKER}-{number}");
                    insist(cluster, Request::new(Method::Delete, &path, None)).await
                }
                Edit::Keep(keeps) => {
                    let patch = json!({"spec": {"persistentPodStateRetentionPolicy": policy(keeps)}});
                    user::patch(cluster, &format!("{STATES}/{BROKER}"), &patch).await
                }
            })
        }
        .boxed()
    }
}
