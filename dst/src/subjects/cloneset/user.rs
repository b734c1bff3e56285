//! What users do to a CloneSet.

use super::draft::CLONESETS;
use super::edit::Edit;
use super::manifest::{amounts, claim_templates, policy, rolling_update, set};
use super::start::Start;
use crate::rules::prelude::*;

const PATH: &str = "/apis/apps.kruise.io/v1beta1/namespaces/default/clonesets";
/// The same CloneSets in the version that is converted.
const OLDER: &str = "/apis/apps.kruise.io/v1alpha1/namespaces/default/clonesets";
/// Processors that no node has.
const TOO_MUCH: &str = "99";

/// Users of one CloneSet, and the systems that answer its hooks.
pub struct CloneSetUser {
    /// Seed of the scenario.
    pub seed: u64,
    /// The CloneSet when it is created.
    pub start: Start,
}

impl Users for CloneSetUser {
    type Edit = Edit;

    fn gates(&self) -> Vec<&'static str> {
        let rollback = self.start.rolls_back.then_some("CloneSetPartitionRollback");
        ["InPlaceWorkloadVerticalScaling"]
            .into_iter()
            .chain(rollback)
            .collect()
    }

    fn attend(&self, cluster: &Arc<Cluster>) {
        self.start.hooks().attend(cluster, self.seed);
    }

    async fn create(&self, cluster: &Arc<Cluster>) {
        // Until a manager answers for it.
        user::create(cluster, PATH, &set(&self.start)).await;
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        self::edit(cluster, &self.start, edit).await
    }
}

/// Changes the CloneSet. False if that is refused, or means nothing now.
async fn edit(cluster: &Arc<Cluster>, start: &Start, edit: &Edit) -> bool {
    let rolling =
        |member: &str, value: Value| json!({"spec": {"updateStrategy": {"rollingUpdate": {member: value}}}});
    let containers = |change: &dyn Fn(&mut Value)| {
        let mut containers = cluster.look(|state| containers_of(&state.mirror));
        change(&mut containers);
        json!({"spec": {"template": {"spec": {"containers": containers}}}})
    };
    let container = |change: &dyn Fn(&mut Value)| containers(&|all| change(&mut all[0]));
    let annotation =
        |key: &str, value: String| json!({"spec": {"template": {"metadata": {"annotations": {key: value}}}}});
    let patch = match edit {
        Edit::Image(number) => container(&|one| one["image"] = format!("web:{number}").into()),
        Edit::Env(number) => container(&|one| one["env"][0]["value"] = number.to_string().into()),
        Edit::Annotation(number) => annotation("team", number.to_string()),
        Edit::Config(number) => annotation("config", number.to_string()),
        Edit::ConfigGone => {
            json!({"spec": {"template": {"metadata": {"annotations": {"config": null}}}}})
        }
        Edit::Cpu(hundredths) | Edit::Enough(hundredths) => {
            container(&|one| one["resources"] = amounts(&format!("{hundredths}0m")))
        }
        Edit::TooMuch => container(&|one| one["resources"] = amounts(TOO_MUCH)),
        Edit::Both(number) => containers(&|all| {
            all[0]["image"] = format!("web:{}", 100 + number).into();
            all[1]["image"] = format!("side:{number}").into();
        }),
        Edit::MinReady(seconds) => json!({"spec": {"minReadySeconds": seconds}}),
        Edit::Deadline(0) => json!({"spec": {"progressDeadlineSeconds": null}}),
        Edit::Deadline(seconds) => json!({"spec": {"progressDeadlineSeconds": seconds}}),
        Edit::OnDelete(true) => {
            json!({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}})
        }
        Edit::OnDelete(false) => {
            json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling_update(start)}}})
        }
        Edit::Scale(replicas) => json!({"spec": {"replicas": replicas}}),
        Edit::Partition(text) => rolling("partition", int_or_string(text)),
        Edit::Everywhere => rolling("partition", json!(0)),
        Edit::MaxUnavailable(text) => rolling("maxUnavailable", int_or_string(text)),
        Edit::MaxSurge(text) => rolling("maxSurge", int_or_string(text)),
        Edit::Paused(paused) => rolling("paused", (*paused).into()),
        Edit::ClaimSize(size) => json!({"spec": {"volumeClaimTemplates": claim_templates(*size)}}),
        // The older version has the opposite field.
        Edit::Reuse(reuse) => json!({"spec": {"scaleStrategy": {"disablePVCReuse": !reuse}}}),
        Edit::Policy(to) => rolling("podUpdatePolicy", policy(*to).into()),
        Edit::PodsToDelete(places, shrink) => pods_to_delete(cluster, places, *shrink),
        Edit::MarkPod(place) => {
            let patch = json!({"metadata": {"labels": {"apps.kruise.io/specified-delete": "true"}}});
            return user::touch(cluster, *place, &patch, "").await;
        }
    };
    // Some is written in the older version: all it does not name must survive.
    let sets = match edit {
        Edit::Annotation(_) | Edit::Scale(_) | Edit::PodsToDelete(..) | Edit::Reuse(_) => OLDER,
        _ => PATH,
    };
    let accepted = user::patch(cluster, &format!("{sets}/web"), &patch).await;
    if let Edit::Reuse(reuse) = edit
        && accepted
    {
        cluster.with(|state| state.check_reuse(*reuse));
    }
    accepted
}

/// Names the pods at these places; if `shrink`, also requests as many replicas fewer.
fn pods_to_delete(cluster: &Arc<Cluster>, places: &[u8], shrink: bool) -> Value {
    let names: Vec<String> = places
        .iter()
        .filter_map(|place| cluster.look(|state| state.pod_at(*place)))
        .map(|pod| pod.name.to_string())
        .collect();
    let replicas = cluster.look(|state| {
        cloneset(&state.mirror).map_or(5, |set| set.value()["spec"]["replicas"].as_i64().unwrap_or(5))
    });
    let replicas = if shrink {
        (replicas - names.len() as i64).max(5)
    } else {
        replicas
    };
    json!({"spec": {"replicas": replicas, "scaleStrategy": {"podsToDelete": names}}})
}

/// The CloneSet.
fn cloneset(mirror: &Mirror) -> Option<&Arc<Object>> {
    mirror.of(CLONESETS).now().next()
}

/// The containers of the CloneSet's template.
fn containers_of(mirror: &Mirror) -> Value {
    cloneset(mirror).map_or(Value::Null, |set| {
        set.value()["spec"]["template"]["spec"]["containers"].clone()
    })
}

impl State {
    /// What was written in the older version must be what the newer one shows.
    fn check_reuse(&mut self, wanted: bool) {
        let shown =
            cloneset(&self.mirror).map(|set| set.value()["spec"]["scaleStrategy"]["enablePVCReuse"] == true);
        if shown == Some(!wanted) {
            self.violation.get_or_insert_with(|| Violation {
                oracle: "both versions agree",
                what: format!(
                    "disablePVCReuse was set to {}, enablePVCReuse is as well",
                    !wanted
                ),
            });
        }
    }
}
