//! Do the containers run what the specification asks for?

use std::time::Duration;

use jiff::Timestamp;
use kruise_api::names::RUNTIME_CONTAINERS_META;
use kruise_views::{ContainerStatusView, PodView};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    image::same_image,
    injected::{self, Bug},
};

use super::{
    diff::metadata_variables,
    grace, resources, resume,
    state::{ImageStatus, UpdateState, read_state},
};

/// How far an in-place update is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing under way, or everything arrived.
    Complete,
    /// Under way; in plain words, what it waits for.
    Waiting(String),
    /// Its grace period runs, for this much longer.
    Grace(Duration),
    /// The next part of it is due.
    Due {
        /// Strategic merge patch of its containers' resources, to be made before the other one.
        resize: Option<Value>,
        /// Strategic merge patch of the pod, right for this very version of it.
        patch: Value,
        /// Why, in plain words.
        reason: &'static str,
    },
    /// The progress annotation cannot be read; the pod needs somebody's eyes. The parser's words.
    Unreadable(String),
}

/// Reads a pod's progress. `template` is the template of the revision the pod is labelled with, if it still exists: it
/// names the variables to compare when the environment changes.
pub fn progress(pod: &PodView, template: Option<&Value>, now: Timestamp) -> Progress {
    let state = match read_state(pod) {
        Err(error) => return Progress::Unreadable(error),
        Ok(state) => state,
    };
    match grace::read(pod) {
        Err(error) => Progress::Unreadable(error),
        Ok(Some(grace)) => resume::after_grace(pod, &grace, state, now),
        Ok(None) => state.map_or(Progress::Complete, |state| of_state(pod, state, template, now)),
    }
}

fn of_state(pod: &PodView, state: UpdateState, template: Option<&Value>, now: Timestamp) -> Progress {
    match containers(pod, &state, template) {
        Progress::Complete if state.has_next_batch() => resume::next_batch(pod, state, now),
        progress => progress,
    }
}

/// Do the containers that were changed so far run what they should?
fn containers(pod: &PodView, state: &UpdateState, template: Option<&Value>) -> Progress {
    if injected::is_injected(Bug::ReadyBeforeCompletion) {
        return Progress::Complete;
    }
    let meta = match pod
        .annotations
        .get(RUNTIME_CONTAINERS_META)
        .map(serde_json::from_str::<RuntimeMeta>)
    {
        Some(Err(_)) => {
            return Progress::Waiting("the node's report on its containers cannot be read".into());
        }
        Some(Ok(meta)) => Some(meta),
        None => None,
    };
    if state.update_env_from_metadata {
        let consistent = meta.as_ref().is_some_and(|meta| {
            meta.consistent(pod, |name, seen| {
                // What a later batch changes holds its old value until then.
                state.next_container_ref_metadata.contains_key(name)
                    || is_injected(template, name)
                    || seen.extracted_env_from_metadata_hash == environment_hash(template, name)
            })
        });
        if !consistent {
            return Progress::Waiting("the node has not reported the new environment yet".into());
        }
    }
    if state.update_resources
        && let Some(container) = resources::awaited(pod)
    {
        return Progress::Waiting(resources::waiting(pod, container));
    }
    if meta.is_some_and(|meta| {
        meta.consistent(pod, |name, seen| {
            pod.image_of(name)
                .is_some_and(|image| seen.plain_hash == plain_hash(name, image))
        })
    }) {
        return Progress::Complete;
    }
    for (container, before) in state.last_container_statuses.iter().flatten() {
        let Some(status) = pod.status_of(container) else {
            return Progress::Waiting(format!("container {container} has no status yet"));
        };
        let wanted = pod.image_of(container).unwrap_or_default();
        if is_pending(status, before, wanted) {
            return Progress::Waiting(format!("container {container} still runs {}", status.image));
        }
    }
    Progress::Complete
}

/// Does a container still run what it ran when its image was changed?
///
/// Two names of one image have one id, and some runtimes go on reporting the first name. Then a new container that
/// serves is the only sign of the change.
pub fn is_pending(status: &ContainerStatusView, before: &ImageStatus, wanted: &str) -> bool {
    let restarted = !before.container_id.is_empty()
        && !status.container_id.is_empty()
        && *status.container_id != *before.container_id
        && status.ready;
    *status.image_id == *before.image_id && !restarted && !same_image(wanted, &status.image)
}

#[derive(Deserialize)]
struct RuntimeMeta {
    #[serde(default)]
    containers: Vec<RuntimeContainer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RuntimeContainer {
    name: String,
    #[serde(default, rename = "containerID")]
    container_id: String,
    #[serde(default)]
    hashes: RuntimeHashes,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RuntimeHashes {
    plain_hash: u64,
    extracted_env_from_metadata_hash: u64,
}

impl RuntimeMeta {
    /// Every container of the specification runs under the id that was reported, and passes the test.
    fn consistent(&self, pod: &PodView, test: impl Fn(&str, &RuntimeHashes) -> bool) -> bool {
        pod.containers.iter().all(|container| {
            let seen = self.containers.iter().find(|seen| seen.name == *container.name);
            let status = pod.status_of(&container.name);
            seen.zip(status).is_some_and(|(seen, status)| {
                seen.container_id == *status.container_id && test(&container.name, &seen.hashes)
            })
        })
    }
}

fn plain_hash(name: &str, image: &str) -> u64 {
    go_compat::hash::dump_hash(&go_compat::json::to_go_json(
        &json!({"image": image, "name": name}),
    ))
}

/// Does the template lack this container? Then somebody else gave it to the pod, and its environment is not what this
/// update changes.
fn is_injected(template: Option<&Value>, container: &str) -> bool {
    template.is_some_and(|template| named(template, container).next().is_none())
}

/// The containers of a template that have this name: one, or none.
fn named<'a>(template: &'a Value, container: &str) -> impl Iterator<Item = &'a Value> {
    let containers = template.pointer("/spec/containers").and_then(Value::as_array);
    let containers = containers.into_iter().flatten();
    containers.filter(move |found| found.get("name").is_some_and(|name| name == container))
}

fn environment_hash(template: Option<&Value>, container: &str) -> u64 {
    let mut variables: Vec<(&str, &str)> = Vec::new();
    if let Some(template) = template {
        for found in named(template, container) {
            for (name, map, key) in metadata_variables(found) {
                let value = template
                    .pointer(&format!("/metadata/{map}"))
                    .and_then(|map| map.get(key));
                variables.push((name, value.and_then(Value::as_str).unwrap_or_default()));
            }
        }
    }
    variables.sort_unstable();
    let list: Vec<Value> = variables
        .iter()
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    let text = if list.is_empty() {
        "null".to_owned()
    } else {
        go_compat::json::to_go_json(&Value::Array(list))
    };
    go_compat::hash::dump_hash(&text)
}

#[cfg(test)]
mod tests {
    use kruise_api::names::{INPLACE_GRACE, INPLACE_STATE, RUNTIME_CONTAINERS_META};
    use kruise_views::{ContainerStatusView, ContainerView, PodView};
    use serde_json::json;

    use super::{Progress, environment_hash, plain_hash, same_image};
    use crate::inplace::fixture::now;

    fn progress(pod: &PodView, template: Option<&serde_json::Value>) -> Progress {
        super::progress(pod, template, now())
    }

    fn pod(annotations: &[(&str, String)], reported: &str, image_id: &str) -> PodView {
        PodView {
            annotations: annotations
                .iter()
                .map(|(key, value)| (*key, value.as_str()))
                .collect(),
            containers: Box::new([ContainerView {
                name: "main".into(),
                image: "web:2".into(),
                ..ContainerView::default()
            }]),
            statuses: Box::new([ContainerStatusView {
                name: "main".into(),
                image: reported.into(),
                image_id: image_id.into(),
                container_id: "cri://1".into(),
                ..ContainerStatusView::default()
            }]),
            ..PodView::default()
        }
    }

    fn state(extra: &str) -> (&'static str, String) {
        let text = format!(
            r#"{{"revision":"r","updateTimestamp":null,"lastContainerStatuses":{{"main":{{"imageID":"id1"}}}}{extra}}}"#
        );
        (INPLACE_STATE, text)
    }

    #[test]
    fn a_pod_never_updated_is_complete_and_one_in_grace_is_not() {
        assert_eq!(progress(&pod(&[], "web:1", "id1"), None), Progress::Complete);
        let state = r#"{"revision":"web-a","updateTimestamp":"2026-01-02T03:04:00Z"}"#;
        let grace = r#"{"revision":"web-a","containerImages":{"main":"web:3"},"graceSeconds":10}"#;
        let mut waiting = pod(
            &[(INPLACE_STATE, state.into()), (INPLACE_GRACE, grace.into())],
            "web:1",
            "id1",
        );
        waiting.labels = [("controller-revision-hash", "web-a")].into_iter().collect();
        assert!(matches!(progress(&waiting, None), Progress::Grace(_)));
        let unreadable = pod(&[(INPLACE_GRACE, "{".into())], "web:1", "id1");
        assert!(matches!(progress(&unreadable, None), Progress::Unreadable(_)));
    }

    #[test]
    fn an_unchanged_image_id_completes_only_under_the_wanted_image() {
        assert!(matches!(
            progress(&pod(&[state("")], "web:1", "id1"), None),
            Progress::Waiting(_)
        ));
        assert_eq!(
            progress(&pod(&[state("")], "web:1", "id2"), None),
            Progress::Complete
        );
        assert_eq!(
            progress(&pod(&[state("")], "docker.io/library/web:2", "id1"), None),
            Progress::Complete
        );
    }

    #[test]
    fn under_an_unchanged_image_id_a_new_container_that_serves_completes() {
        let text = |id: &str| {
            format!(
                r#"{{"revision":"r","updateTimestamp":null,"lastContainerStatuses":{{"main":{{"imageID":"id1","containerID":"{id}"}}}}}}"#
            )
        };
        for (before, ready, complete) in [
            ("cri://0", true, true),
            ("cri://0", false, false),
            ("cri://1", true, false),
            ("", true, false),
        ] {
            let mut retagged = pod(&[(INPLACE_STATE, text(before))], "docker.io/library/web:1", "id1");
            retagged.statuses[0].ready = ready;
            assert_eq!(
                progress(&retagged, None) == Progress::Complete,
                complete,
                "{before} {ready}"
            );
        }
    }

    #[test]
    fn a_later_batch_waits_for_the_one_before_it_and_for_its_containers_to_be_ready() {
        let next = r#","nextContainerImages":{"log":"log:2"},"preCheckBeforeNext":{"containersRequiredReady":["main"]}"#;
        let mut batched = pod(&[state(next)], "web:1", "id1");
        assert!(
            matches!(progress(&batched, None), Progress::Waiting(_)),
            "it still runs the old image"
        );
        batched.statuses[0].image_id = "id2".into();
        assert!(
            matches!(progress(&batched, None), Progress::Waiting(_)),
            "it is not ready"
        );
        batched.statuses[0].ready = true;
        assert!(matches!(progress(&batched, None), Progress::Due { .. }));
    }

    #[test]
    fn garbage_in_the_annotation_is_reported_not_guessed() {
        let broken = pod(&[(INPLACE_STATE, "{".into())], "web:2", "id2");
        assert!(matches!(progress(&broken, None), Progress::Unreadable(_)));
    }

    #[test]
    fn the_nodes_hash_completes_an_update_whose_image_id_did_not_change() {
        let meta = json!({"containers": [{"name": "main", "containerID": "cri://1",
                          "hashes": {"plainHash": plain_hash("main", "web:2")}}]});
        let reported = pod(
            &[state(""), (RUNTIME_CONTAINERS_META, meta.to_string())],
            "sha256:x",
            "id1",
        );
        assert_eq!(progress(&reported, None), Progress::Complete);
    }

    #[test]
    fn a_changed_environment_waits_for_the_nodes_report() {
        let environment = state(r#","updateEnvFromMetadata":true"#);
        let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main",
            "env": [{"name": "CFG", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}}]}]}});
        let unreported = pod(std::slice::from_ref(&environment), "web:2", "id2");
        assert!(matches!(
            progress(&unreported, Some(&template)),
            Progress::Waiting(_)
        ));
        let meta = |hash: u64| {
            json!({"containers": [{"name": "main", "containerID": "cri://1",
                   "hashes": {"plainHash": plain_hash("main", "web:2"), "extractedEnvFromMetadataHash": hash}}]})
        };
        for (hash, complete) in [(498_188_604, true), (1, false)] {
            let annotations = [
                environment.clone(),
                (RUNTIME_CONTAINERS_META, meta(hash).to_string()),
            ];
            let reported = pod(&annotations, "web:2", "id2");
            assert_eq!(
                progress(&reported, Some(&template)) == Progress::Complete,
                complete
            );
        }
    }

    #[test]
    fn the_environment_of_an_injected_container_is_not_judged() {
        let annotations = |own: u64| {
            let meta = json!({"containers": [
                {"name": "main", "containerID": "cri://1",
                 "hashes": {"plainHash": plain_hash("main", "web:2"), "extractedEnvFromMetadataHash": own}},
                {"name": "injected", "containerID": "cri://2",
                 "hashes": {"plainHash": 7, "extractedEnvFromMetadataHash": 498_188_604}}]});
            [
                state(r#","updateEnvFromMetadata":true"#),
                (RUNTIME_CONTAINERS_META, meta.to_string()),
            ]
        };
        let template = json!({"spec": {"containers": [{"name": "main"}]}});
        let none = environment_hash(Some(&template), "main");
        for (own, complete) in [(none, true), (1, false)] {
            let annotations = annotations(own);
            let mut reported = pod(&annotations, "web:2", "id2");
            let injected = ContainerView {
                name: "injected".into(),
                image: "agent:1".into(),
                ..ContainerView::default()
            };
            reported.containers = [&*reported.containers, &[injected]].concat().into();
            let injected = ContainerStatusView {
                name: "injected".into(),
                container_id: "cri://2".into(),
                ..ContainerStatusView::default()
            };
            reported.statuses = [&*reported.statuses, &[injected]].concat().into();
            assert_eq!(
                progress(&reported, Some(&template)) == Progress::Complete,
                complete
            );
        }
    }

    #[test]
    fn an_environment_that_a_later_batch_changes_is_judged_after_that() {
        let template = |app: &str| {
            json!({"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": "main"}, {"name": "log",
                "env": [{"name": "CFG", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}}]}]}})
        };
        let (before, after) = (template("web"), template("shop"));
        let progress_at = |later: &str, log: &serde_json::Value| {
            let meta = json!({"containers": [
                {"name": "main", "containerID": "cri://1", "hashes": {
                    "plainHash": plain_hash("main", "web:2"),
                    "extractedEnvFromMetadataHash": environment_hash(Some(log), "main")}},
                {"name": "log", "containerID": "cri://2", "hashes": {
                    "plainHash": plain_hash("log", "log:1"),
                    "extractedEnvFromMetadataHash": environment_hash(Some(log), "log")}}]});
            let annotations = [
                state(&format!(r#","updateEnvFromMetadata":true{later}"#)),
                (RUNTIME_CONTAINERS_META, meta.to_string()),
            ];
            let mut reported = pod(&annotations, "web:2", "id2");
            let log = ContainerView {
                name: "log".into(),
                image: "log:1".into(),
                ..ContainerView::default()
            };
            reported.containers = [&*reported.containers, &[log]].concat().into();
            let log = ContainerStatusView {
                name: "log".into(),
                container_id: "cri://2".into(),
                ..ContainerStatusView::default()
            };
            reported.statuses = [&*reported.statuses, &[log]].concat().into();
            progress(&reported, Some(&after))
        };
        let later =
            r#","nextContainerRefMetadata":{"log":{"labels":{"app":"shop"},"creationTimestamp":null}}"#;
        assert!(matches!(progress_at(later, &before), Progress::Due { .. }));
        assert!(matches!(progress_at("", &before), Progress::Waiting(_)));
        assert_eq!(progress_at("", &after), Progress::Complete);
    }

    #[test]
    fn hashes_equal_the_published_vectors() {
        assert_eq!(plain_hash("main", "nginx:1.25"), 436_018_172);
        assert_eq!(environment_hash(None, "main"), 86_995_377);
    }

    #[test]
    fn references_are_compared_with_their_defaults_written_out() {
        for (wanted, reported, same) in [
            ("nginx", "docker.io/library/nginx:latest", true),
            ("nginx:1", "nginx:1", true),
            ("localhost:5000/a", "localhost:5000/a:latest", true),
            ("team/app:2", "docker.io/team/app:2", true),
            ("nginx:1", "nginx:2", false),
            ("quay.io/a/b:1", "docker.io/a/b:1", false),
        ] {
            assert_eq!(same_image(wanted, reported), same, "{wanted} {reported}");
        }
    }
}
