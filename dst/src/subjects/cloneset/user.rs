//! What users do to a CloneSet.

use super::draft::CLONESETS;
use super::edit::Edit;
use super::manifest::{amounts, claim_templates, rolling_update, set};
use super::start::Start;
use crate::rules::prelude::*;
use crate::subjects::templates::{
    annotation, containers, image, on_delete, rolling, specified_delete, variable,
};

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
        let resizes = Some("InPlaceWorkloadVerticalScaling");
        resizes.into_iter().chain(rollback).collect()
    }

    fn attend(&self, cluster: &Arc<Cluster>) {
        self.start.hooks().attend(cluster, self.seed);
    }

    async fn create(&self, cluster: &Arc<Cluster>) {
        user::create(cluster, &CLONESETS.in_default(), &set(&self.start)).await;
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        self::edit(cluster, &self.start, edit).await
    }
}

/// Changes the CloneSet. False if that is refused, or means nothing now.
async fn edit(cluster: &Arc<Cluster>, start: &Start, edit: &Edit) -> bool {
    let resources = |cpu: &str| containers(cluster, CLONESETS, |all| all[0]["resources"] = amounts(cpu));
    let patch = match edit {
        Edit::Image(number) => image(cluster, CLONESETS, *number),
        Edit::Env(number) => variable(cluster, CLONESETS, *number),
        Edit::Annotation(number) => annotation("team", Some(*number)),
        Edit::Config(number) => annotation("config", Some(*number)),
        Edit::ConfigGone => annotation("config", None),
        Edit::Cpu(hundredths) | Edit::Enough(hundredths) => resources(&format!("{hundredths}0m")),
        Edit::TooMuch => resources(TOO_MUCH),
        Edit::Both(number) => containers(cluster, CLONESETS, |all| {
            all[0]["image"] = format!("web:{}", 100 + number).into();
            all[1]["image"] = format!("side:{number}").into();
        }),
        Edit::MinReady(seconds) => json!({"spec": {"minReadySeconds": seconds}}),
        Edit::Deadline(seconds) => {
            json!({"spec": {"progressDeadlineSeconds": (*seconds > 0).then_some(seconds)}})
        }
        Edit::OnDelete(is_on) => on_delete((!is_on).then(|| rolling_update(start))),
        Edit::Scale(replicas) => json!({"spec": {"replicas": replicas}}),
        Edit::Partition(text) => rolling("partition", int_or_string(text)),
        Edit::Everywhere => rolling("partition", 0),
        Edit::MaxUnavailable(text) => rolling("maxUnavailable", int_or_string(text)),
        Edit::MaxSurge(text) => rolling("maxSurge", int_or_string(text)),
        Edit::Paused(paused) => rolling("paused", *paused),
        Edit::ClaimSize(size) => json!({"spec": {"volumeClaimTemplates": claim_templates(*size)}}),
        // The older version has the opposite field.
        Edit::Reuse(reuse) => json!({"spec": {"scaleStrategy": {"disablePVCReuse": !reuse}}}),
        Edit::Policy(to) => rolling("podUpdatePolicy", json!(to)),
        Edit::PodsToDelete(places, shrink) => pods_to_delete(cluster, places, *shrink),
        Edit::MarkPod(place) => return user::touch(cluster, *place, &specified_delete(), "").await,
    };
    // Some is written in the older version: all it does not name must survive.
    let of = match edit {
        Edit::Annotation(_) | Edit::Scale(_) | Edit::PodsToDelete(..) | Edit::Reuse(_) => CLONESETS.older(),
        _ => CLONESETS,
    };
    let accepted = user::patch(cluster, &of.one("web"), &patch).await;
    if let Edit::Reuse(reuse) = edit
        && accepted
    {
        cluster.with(|state| state.check_reuse(*reuse));
    }
    accepted
}

/// Names the pods at these places; if `shrink`, also requests as many replicas fewer.
fn pods_to_delete(cluster: &Arc<Cluster>, places: &[u8], shrink: bool) -> Value {
    let pods = places
        .iter()
        .filter_map(|place| cluster.look(|state| state.pod_at(*place)));
    let names: Vec<String> = pods.map(|pod| pod.name.to_string()).collect();
    let replicas = cluster.look(|state| state.mirror.only(CLONESETS)?.spec()["replicas"].as_i64());
    let mut replicas = replicas.unwrap_or(5);
    if shrink {
        replicas = (replicas - names.len() as i64).max(5);
    }
    json!({"spec": {"replicas": replicas, "scaleStrategy": {"podsToDelete": names}}})
}

impl State {
    /// What was written in the older version must be what the newer one shows.
    fn check_reuse(&mut self, wanted: bool) {
        let set = self.mirror.only(CLONESETS);
        let shown = set.map(|set| set.spec()["scaleStrategy"]["enablePVCReuse"] == true);
        if shown == Some(!wanted) {
            let what = format!("disablePVCReuse was set to {shown:?}, enablePVCReuse is as well");
            self.found(Violation::of("both versions agree", what));
        }
    }
}
