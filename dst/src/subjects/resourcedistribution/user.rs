//! What users do to a ResourceDistribution, to namespaces and to copies.

use super::start::{COPY, DISTRIBUTIONS, Edit, Start, data, namespace, targets, team};
use crate::rules::prelude::*;

/// Users of one ResourceDistribution, and those who own the namespaces.
impl Users for Start {
    type Edit = Edit;

    fn gates(&self) -> Vec<&'static str> {
        vec!["ResourceDistributionGate"]
    }

    async fn prepare(&self, cluster: &Arc<Cluster>) {
        for number in 0..=self.namespaces {
            add(cluster, number, number % 2 == 0).await;
        }
        if self.refused {
            user::forbid_updates(cluster, self.resource(), "true").await;
        }
    }

    async fn create(&self, cluster: &Arc<Cluster>) {
        user::create(cluster, &DISTRIBUTIONS.path(), &self.distribution()).await;
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        let distribution = format!("{}/{COPY}", DISTRIBUTIONS.path());
        let within = |number: u8| format!("{}/{}", NAMESPACES.path(), namespace(number));
        let copies = |number: u8| format!("{}/{}", within(number), self.resource().plural);
        let copy = |number: u8| format!("{}/{COPY}", copies(number));
        let label = |key: &str, value: &str| json!({"metadata": {"labels": {key: value}}});
        let (path, patch) = match edit.clone() {
            Edit::Namespace(number, web) => return add(cluster, number, web).await,
            Edit::Team(number, web) => (within(number), label("team", team(web))),
            Edit::Leave(number) => return user::delete(cluster, &within(number)).await,
            Edit::Data(number) => (
                distribution,
                json!({"spec": {"resource": {"data": data(number)}}}),
            ),
            Edit::Targets(wanted) => (distribution, json!({"spec": {"targets": targets(wanted)}})),
            Edit::ChangeCopy(number, value) => {
                let mut data = data(value);
                data["extra"] = json!("more");
                (copy(number), json!({"data": data}))
            }
            Edit::LabelCopy(number) => (copy(number), label(user::OWN, "yes")),
            Edit::DeleteCopy(number) => return user::delete(cluster, &copy(number)).await,
            Edit::Foreign(number) => return user::create(cluster, &copies(number), &self.object(99)).await,
        };
        user::patch(cluster, &path, &patch).await
    }
}

/// Creates a namespace.
async fn add(cluster: &Arc<Cluster>, number: u8, web: bool) -> bool {
    let object = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": namespace(number), "labels": {"team": team(web)}}});
    user::create(cluster, &NAMESPACES.path(), &object).await
}
