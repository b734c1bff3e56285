//! What users do to PodProbeMarkers and pods.

use super::agents;
use super::start::{Edit, MARKERS, RESULT, Start, marker, name, probes};
use crate::rules::prelude::*;
use crate::subjects::nodes;

/// Users of two PodProbeMarkers, and those who run the pods.
impl Users for Start {
    type Edit = Edit;

    fn attend(&self, cluster: &Arc<Cluster>) {
        tokio::spawn(agents::attend(cluster.clone()));
    }

    async fn prepare(&self, cluster: &Arc<Cluster>) {
        nodes::prepare(cluster, self.nodes).await;
    }

    async fn create(&self, cluster: &Arc<Cluster>) {
        for _ in 0..self.pods {
            user::one_more_pod(cluster, "game").await;
        }
        for place in [0, 1] {
            user::create_once_free(cluster, &MARKERS.in_default(), &self.marker(place)).await;
        }
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        let pod = |place| cluster.look(|state| state.object_at(PODS, place));
        let (pod, patch) = match edit.clone() {
            Edit::Delete(place) => return user::delete(cluster, &MARKERS.one(name(place))).await,
            Edit::Again(place) => return user::again(cluster, MARKERS, &self.marker(place)).await,
            Edit::Probes(place, count) => {
                let patch = json!({"spec": {"probes": probes(place, count)}});
                return user::patch(cluster, &MARKERS.one(name(place)), &patch).await;
            }
            Edit::Pod => return user::one_more_pod(cluster, "game").await,
            Edit::Remove(place) => match pod(place) {
                Some(pod) => return user::delete(cluster, &PODS.one(&pod.name)).await,
                None => return false,
            },
            Edit::Label(place, on) => {
                let app = if on { "game" } else { "other" };
                (pod(place), json!({"metadata": {"labels": {"app": app}}}))
            }
            Edit::Result(place, state) => (
                pod(place),
                json!({"metadata": {"annotations": {(RESULT): state}}}),
            ),
        };
        match pod {
            Some(pod) => user::patch(cluster, &PODS.one(&pod.name), &patch).await,
            None => false,
        }
    }
}

impl Start {
    /// The marker of a place, as at first.
    fn marker(&self, place: u8) -> Value {
        marker(place, self.probes[usize::from(place)])
    }
}
