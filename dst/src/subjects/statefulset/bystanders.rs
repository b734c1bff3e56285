//! Who else makes pods with such names as a StatefulSet gives, and who removes them.

use crate::rules::prelude::*;

/// When somebody removes pods that stand in the way.
const CLEARANCE: Purpose = Purpose(201);

/// Somebody creates the pod of an ordinal. False if its name is taken.
pub async fn create(cluster: &Arc<Cluster>, ordinal: u32, app: &str) -> bool {
    let pod = json!({"metadata": {"name": format!("web-{ordinal}"), "namespace": "default", "labels": {"app": app}},
        "spec": {"terminationGracePeriodSeconds": 3, "containers": [{"name": "main", "image": "web:1"}]}});
    user::create(cluster, &PODS.in_default(), &pod).await
}

/// Repeatedly deletes pods whose names a StatefulSet needs and which it cannot adopt. A refused deletion is tried
/// again in the next round.
pub async fn clear(cluster: Arc<Cluster>, seed: u64) {
    let mut random = Random::new(seed, CLEARANCE);
    loop {
        sleep(Duration::from_millis(random.between(2_000, 5_000))).await;
        for path in cluster.with(|state| state.blocking()) {
            // The webhook of a budget takes its time.
            let request = Request::new(Method::Delete, &path, None::<&Value>);
            cluster.request(&request).await;
        }
    }
}

/// Has a pod no controller, and labels by which nobody adopts it?
fn is_foreign(pod: &Object) -> bool {
    pod.name.starts_with("web-") && pod.owner().is_empty() && pod.label("app") != "web" && !pod.is_going()
}

impl State {
    /// Paths of these pods.
    fn blocking(&self) -> Vec<String> {
        let pods = self.mirror.of(PODS).now().filter(|pod| is_foreign(pod));
        pods.map(|pod| PODS.one(&pod.name)).collect()
    }
}
