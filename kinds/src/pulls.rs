//! How far nodes are that pull the images of a rollout ahead of it, in words.

use std::{fmt::Write as _, sync::Arc};

use kruise_api::imagepulljob::{ImagePullJobSpec, ImagePullJobStatus, RESOURCE};
use kruise_frame::explain::workload::{Cluster, is_controlled_by};
use kruise_plan_kit::{Plan, revision::short_hash};
use kruise_views::ImageJobView;
use serde::Deserialize;

/// A job of a workload that pulls an image: as plans read it, and how far it is.
#[derive(Clone)]
struct Pull {
    /// As plans read it.
    view: ImageJobView,
    progress: Progress,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default)]
struct Progress {
    spec: ImagePullJobSpec,
    status: Option<ImagePullJobStatus>,
}

impl<'de> Deserialize<'de> for Pull {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let job = serde_json::Value::deserialize(deserializer)?;
        let view = ImageJobView::deserialize(&job).map_err(<D::Error as serde::de::Error>::custom)?;
        // A job of a form that is not known pulls nothing that could be counted.
        let progress = Progress::deserialize(&job).unwrap_or_default();
        Ok(Self { view, progress })
    }
}

/// The jobs of this owner that pull images; none unless plans want them. The outlook then says how far they are.
pub async fn pull_jobs(
    cluster: &mut Cluster<'_>,
    images_ahead: bool,
    uid: &str,
) -> anyhow::Result<Vec<Arc<ImageJobView>>> {
    if !images_ahead {
        return Ok(Vec::new());
    }
    let mut pulls: Vec<Arc<Pull>> = cluster.list(RESOURCE).await?;
    pulls.retain(|pull| is_controlled_by(&pull.view, uid));
    let views = pulls.iter().map(|pull| Arc::new(pull.view.clone())).collect();
    cluster.add_outlook(move |plan| lines(&pulls, plan));
    Ok(views)
}

/// What the jobs of the rollout that a plan is about have done, one line for each.
fn lines(pulls: &[Arc<Pull>], plan: &Plan) -> Vec<String> {
    let Some(stage) = &plan.stage else {
        return Vec::new();
    };
    let hash = short_hash(&stage.revision);
    let of_rollout = pulls
        .iter()
        .filter(|pull| !pull.view.deleting && pull.view.revision_hash.as_deref() == Some(hash));
    of_rollout.map(|pull| pull.line()).collect()
}

impl Pull {
    fn line(&self) -> String {
        let (image, name) = (&self.progress.spec.image, &self.view.name);
        let Some(status) = &self.progress.status else {
            return format!("ImagePullJob {name} has not begun to pull {image}; pods do not wait for it");
        };
        let mut text = format!(
            "{} of {} nodes with pods to be updated have {image} already",
            status.succeeded, status.desired
        );
        if status.active > 0 {
            let _ = write!(text, ", {} pull it", status.active);
        }
        if status.failed > 0 {
            let _ = write!(text, ", {} could not pull it", status.failed);
        }
        let _ = write!(text, " (ImagePullJob {name}); pods do not wait for it");
        text
    }
}

#[cfg(test)]
mod tests {
    use kruise_plan_kit::rollout::{Course, Stage};
    use serde_json::{Value, json};

    use super::*;

    fn job(hash: &str, status: &Value) -> Arc<Pull> {
        let job = json!({
            "metadata": {"name": format!("web-{hash}-main"), "namespace": "shop",
                         "labels": {"controller.kubernetes.io/hash": hash}},
            "spec": {"image": "web:2", "completionPolicy": {"type": "Always"}, "parallelism": 1},
            "status": status,
        });
        Arc::new(serde_json::from_value(job).unwrap())
    }

    fn plan() -> Plan {
        Plan {
            stage: Some(Stage {
                reported: String::new(),
                revision: "web-7f9c".into(),
                has_old: true,
                course: Course::Moving,
            }),
            ..Plan::default()
        }
    }

    #[test]
    fn jobs_of_the_rollout_say_how_many_nodes_have_its_image() {
        let pulls = [
            job("old", &json!({"desired": 9, "succeeded": 9})),
            job(
                "7f9c",
                &json!({"desired": 5, "succeeded": 3, "active": 1, "failed": 1}),
            ),
        ];
        let expected = "3 of 5 nodes with pods to be updated have web:2 already, 1 pull it, 1 could not pull it \
                        (ImagePullJob web-7f9c-main); pods do not wait for it";
        assert_eq!(lines(&pulls, &plan()), [expected]);
        assert_eq!(lines(&pulls, &Plan::default()), [""; 0]);
    }

    #[test]
    fn a_job_that_nobody_has_begun_says_so() {
        let expected = "ImagePullJob web-7f9c-main has not begun to pull web:2; pods do not wait for it";
        assert_eq!(lines(&[job("7f9c", &Value::Null)], &plan()), [expected]);
    }
}
