//! What users do to a ResourceDistribution, to namespaces and to copies.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use kruise_sim::{Method, Request};
use serde::Deserialize;
use serde_json::{Value, json};

use super::start::{COPY, DISTRIBUTIONS, Edit, Start, data, namespace, targets, team};
use crate::engine::{
    cluster::Cluster,
    subject::User,
    user::{self, insist},
};

const NAMESPACES_PATH: &str = "/api/v1/namespaces";

/// Users of one ResourceDistribution, and those who own the namespaces.
pub struct ResourceDistributionUser {
    /// The ResourceDistribution when it is created.
    pub start: Start,
}

impl User for ResourceDistributionUser {
    fn gates(&self) -> Vec<&'static str> {
        vec!["ResourceDistributionGate"]
    }

    fn prepare<'a>(&'a self, cluster: &'a Arc<Cluster>) -> BoxFuture<'a, ()> {
        async move {
            for number in 0..=self.start.namespaces {
                add(cluster, number, number % 2 == 0).await;
            }
            if self.start.refused {
                user::forbid_updates(cluster, self.start.resource(), "true").await;
            }
        }
        .boxed()
    }

    fn create<'a>(&'a self, cluster: &'a Arc<Cluster>) -> BoxFuture<'a, ()> {
        async move {
            // Until a manager answers for it.
            let distribution = self.start.distribution();
            let request = Request::new(Method::Post, &DISTRIBUTIONS.path(), Some(&distribution));
            insist(cluster, request).await;
        }
        .boxed()
    }

    fn edit<'a>(
        &'a self,
        cluster: &'a Arc<Cluster>,
        change: &'a Value,
    ) -> BoxFuture<'a, anyhow::Result<bool>> {
        async move {
            let distribution = format!("{}/{COPY}", DISTRIBUTIONS.path());
            let within = |number: u8| format!("{NAMESPACES_PATH}/{}", namespace(number));
            let copies = |number: u8| format!("{}/{}", within(number), self.start.resource().plural);
            let copy = |number: u8| format!("{}/{COPY}", copies(number));
            Ok(match Edit::deserialize(change)? {
                Edit::Namespace(number, web) => add(cluster, number, web).await,
                Edit::Team(number, web) => {
                    let patch = json!({"metadata": {"labels": {"team": team(web)}}});
                    user::patch(cluster, &within(number), &patch).await
                }
                Edit::Leave(number) => {
                    insist(cluster, Request::new(Method::Delete, &within(number), None)).await
                }
                Edit::Data(number) => {
                    let patch = json!({"spec": {"resource": {"data": data(number)}}});
                    user::patch(cluster, &distribution, &patch).await
                }
                Edit::Targets(wanted) => {
                    let patch = json!({"spec": {"targets": targets(wanted)}});
                    user::patch(cluster, &distribution, &patch).await
                }
                Edit::ChangeCopy(number, value) => {
                    let mut data = data(value);
                    data["extra"] = json!("more");
                    user::patch(cluster, &copy(number), &json!({"data": data})).await
                }
                Edit::LabelCopy(number) => {
                    let patch = json!({"metadata": {"labels": {(user::OWN): "yes"}}});
                    user::patch(cluster, &copy(number), &patch).await
                }
                Edit::DeleteCopy(number) => {
                    insist(cluster, Request::new(Method::Delete, &copy(number), None)).await
                }
                Edit::Foreign(number) => {
                    let foreign = self.start.object(99);
                    let request = Request::new(Method::Post, &copies(number), Some(&foreign));
                    insist(cluster, request).await
                }
            })
        }
        .boxed()
    }
}

/// Creates a namespace.
async fn add(cluster: &Arc<Cluster>, number: u8, web: bool) -> bool {
    let object = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": namespace(number), "labels": {"team": team(web)}}});
    insist(
        cluster,
        Request::new(Method::Post, NAMESPACES_PATH, Some(&object)),
    )
    .await
}
