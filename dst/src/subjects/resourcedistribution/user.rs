//! What users do to a ResourceDistribution, to namespaces and to copies.

use super::start::{COPY, DISTRIBUTIONS, Edit, Start, data, namespace, targets, team};
use crate::rules::prelude::*;

const NAMESPACES_PATH: &str = "/api/v1/namespaces";

/// Users of one ResourceDistribution, and those who own the namespaces.
pub struct ResourceDistributionUser {
    /// The ResourceDistribution when it is created.
    pub start: Start,
}

impl Users for ResourceDistributionUser {
    type Edit = Edit;

    fn gates(&self) -> Vec<&'static str> {
        vec!["ResourceDistributionGate"]
    }

    async fn prepare(&self, cluster: &Arc<Cluster>) {
        for number in 0..=self.start.namespaces {
            add(cluster, number, number % 2 == 0).await;
        }
        if self.start.refused {
            user::forbid_updates(cluster, self.start.resource(), "true").await;
        }
    }

    async fn create(&self, cluster: &Arc<Cluster>) {
        // Until a manager answers for it.
        let distribution = self.start.distribution();
        user::create(cluster, &DISTRIBUTIONS.path(), &distribution).await;
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        let distribution = format!("{}/{COPY}", DISTRIBUTIONS.path());
        let within = |number: u8| format!("{NAMESPACES_PATH}/{}", namespace(number));
        let copies = |number: u8| format!("{}/{}", within(number), self.start.resource().plural);
        let copy = |number: u8| format!("{}/{COPY}", copies(number));
        match edit.clone() {
            Edit::Namespace(number, web) => add(cluster, number, web).await,
            Edit::Team(number, web) => {
                let patch = json!({"metadata": {"labels": {"team": team(web)}}});
                user::patch(cluster, &within(number), &patch).await
            }
            Edit::Leave(number) => user::delete(cluster, &within(number)).await,
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
            Edit::DeleteCopy(number) => user::delete(cluster, &copy(number)).await,
            Edit::Foreign(number) => {
                let foreign = self.start.object(99);
                user::create(cluster, &copies(number), &foreign).await
            }
        }
    }
}

/// Creates a namespace.
async fn add(cluster: &Arc<Cluster>, number: u8, web: bool) -> bool {
    let object = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": namespace(number), "labels": {"team": team(web)}}});
    user::create(cluster, NAMESPACES_PATH, &object).await
}
