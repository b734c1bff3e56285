//! A Deployment in the place of a CloneSet: a workload that the manager does not control, for subjects that act on
//! the pods of any workload.

use crate::rules::pod_writes;
use crate::rules::prelude::*;
use crate::subjects::cloneset::draft::{CLONESETS, Draft, NAME as CLONESET};
use crate::subjects::cloneset::edit::Edit;
use crate::subjects::cloneset::manifest::amounts;
use crate::subjects::templates::annotation;

pub const NAME: &str = "deployment";
const PATH: &str = "/apis/apps/v1/namespaces/default/deployments";
const OBJECT: &str = "/apis/apps/v1/namespaces/default/deployments/web";

/// A Deployment when it is created.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// `spec.replicas`.
    pub replicas: u32,
    /// The label of its pods that is `on`.
    pub label: String,
    /// Containers request processor time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resources: bool,
}

/// The scenario of a CloneSet, with a Deployment in its place, which has the edits that mean something to it.
pub fn instead(draft: Draft, label: &str, resources: bool) -> Scenario {
    let Draft { mut scenario, start } = draft;
    let start = Start {
        replicas: start.replicas,
        label: label.to_owned(),
        resources,
    };
    scenario.add(NAME, &start);
    for step in &mut scenario.steps {
        if let Action::Edit(edit) = &mut step.what
            && edit.subject == CLONESET
        {
            NAME.clone_into(&mut edit.subject);
        }
    }
    scenario
}

/// Deployments.
pub static SUBJECT: Subject = Subject {
    name: NAME,
    // That of CloneSets: their controller runs, and has nothing to do.
    definitions: &[&kruise_api::cloneset::KIND],
    resources: &[PODS],
    is_always_watched: true,
    is_release: |change| says(change, Edit::is_release),
    owns: |pod, _| pod.label("app") == "web" && !pod.owner().is_empty(),
    reads: Some(OBJECT),
    least_at_first: Some(("replicas", 5)),
    begin: |scenario| begun(DeploymentUser(scenario.start(NAME)?), DeploymentOracles),
    ..Subject::PLAIN
};

struct DeploymentUser(Start);

impl Users for DeploymentUser {
    type Edit = Edit;

    fn gates(&self) -> Vec<&'static str> {
        vec!["InPlaceWorkloadVerticalScaling"]
    }

    async fn create(&self, cluster: &Arc<Cluster>) {
        user::create(cluster, PATH, &manifest(&self.0)).await;
    }

    async fn edit(&self, cluster: &Arc<Cluster>, edit: &Edit) -> bool {
        self::edit(cluster, edit).await
    }
}

struct DeploymentOracles;

impl Oracles for DeploymentOracles {
    fn judge_other(&mut self, write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
        pod_writes::judge(write, mirror, CLONESETS)
    }

    fn unfinished(&self, mirror: &Mirror, _: Timestamp, deployment: &Value) -> Result<(), String> {
        rolled_out(deployment, mirror)
    }
}

fn manifest(start: &Start) -> Value {
    let mut deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": start.replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2, "maxSurge": 1}},
            "template": {
                "metadata": {"labels": {"app": "web", start.label.as_str(): "on"}},
                "spec": {"terminationGracePeriodSeconds": 3, "containers": [
                    {"name": "main", "image": "web:1", "env": [{"name": "MODE", "value": "0"}]}]},
            },
        },
    });
    if start.resources {
        deployment["spec"]["template"]["spec"]["containers"][0]["resources"] = amounts("10m");
    }
    deployment
}

/// Changes it. False if that is refused, or means nothing to a Deployment.
async fn edit(cluster: &Arc<Cluster>, edit: &Edit) -> bool {
    let container = |mut container: Value| {
        container["name"] = "main".into();
        json!({"spec": {"template": {"spec": {"containers": [container]}}}})
    };
    let patch = match edit {
        Edit::Image(number) => container(json!({"image": format!("web:{number}")})),
        Edit::Env(number) => container(json!({"env": [{"name": "MODE", "value": number.to_string()}]})),
        Edit::Annotation(number) => annotation("team", Some(*number)),
        Edit::Scale(replicas) => json!({"spec": {"replicas": replicas}}),
        Edit::MaxUnavailable(text) => {
            json!({"spec": {"strategy": {"rollingUpdate": {"maxUnavailable": int_or_string(text)}}}})
        }
        Edit::Paused(paused) => json!({"spec": {"paused": paused}}),
        _ => return false,
    };
    let request = Request::new(Method::Patch, OBJECT, Some(&patch))
        .content_type("application/strategic-merge-patch+json");
    insist(cluster, request).await
}

/// The pods of a Deployment are there and ready.
fn rolled_out(deployment: &Value, mirror: &Mirror) -> Result<(), String> {
    let wanted = number(&deployment["spec"]["replicas"]);
    // A pod that was relabelled has no owner any more. Others may be beside it.
    let is_ours = |pod: &&Arc<Object>| pod.is_active() && (SUBJECT.owns)(pod, mirror);
    let pods: Vec<_> = mirror.of(PODS).now().filter(is_ours).collect();
    expect("pods of the deployment", pods.len() as i64, wanted)?;
    let updated = number(&deployment["status"]["updatedReplicas"]);
    wrong!(updated != wanted && deployment["spec"]["paused"] != true
        => "{updated} of {wanted} pods have the template of the deployment");
    wrong!(some pod in pods.iter().find(|pod| pod.state("Ready") != "True")
        => "pod {} is not ready: {}", pod.name, pod.status());
    Ok(())
}
