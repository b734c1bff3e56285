//! Do the containers run what the specification asks for?

use go_compat::container::{self, image_hash};
use kruise_api::{
    container_meta::{ContainerHashes, ContainersMeta},
    names::RUNTIME_CONTAINERS_META,
};
use kruise_views::{ContainerStatusView, ContainerView, PodView};

use super::{
    resources,
    state::{ImageStatus, UpdateState},
};
use crate::image::same_image;

/// What keeps the containers that were changed so far from running what they should, in plain words; none if they do.
pub(super) fn awaited(pod: &PodView, state: &UpdateState) -> Option<String> {
    if pod.unobserved {
        return Some("its node has not seen the change yet".into());
    }
    let meta = pod
        .annotations
        .get(RUNTIME_CONTAINERS_META)
        .map(serde_json::from_str::<ContainersMeta>);
    let Ok(meta) = meta.transpose() else {
        return Some("the node's report on its containers cannot be read".into());
    };
    if state.update_env_from_metadata {
        let consistent = meta.as_ref().is_some_and(|meta| {
            is_consistent(meta, pod, |container, seen| {
                seen.extracted_env_from_metadata_hash == environment_hash(pod, container)
            })
        });
        if !consistent {
            return Some("the node has not reported the new environment yet".into());
        }
    }
    if state.update_resources
        && let Some(container) = resources::awaited(pod)
    {
        return Some(resources::waiting(pod, container));
    }
    if meta.is_some_and(|meta| {
        is_consistent(&meta, pod, |container, seen| {
            is_plain_hash(container, seen.plain_hash)
        })
    }) {
        return None;
    }
    let mut before = state.last_container_statuses.iter().flatten();
    before.find_map(|(container, before)| {
        let Some(status) = pod.status_of(container) else {
            return Some(format!("container {container} has no status yet"));
        };
        let wanted = pod.image_of(container).unwrap_or_default();
        is_pending(status, before, wanted)
            .then(|| format!("container {container} still runs {}", status.image))
    })
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

/// Every container of the specification runs under the id that was reported, and passes the test.
fn is_consistent(
    meta: &ContainersMeta,
    pod: &PodView,
    test: impl Fn(&ContainerView, &ContainerHashes) -> bool,
) -> bool {
    pod.containers.iter().all(|container| {
        let seen = meta.entry(&container.name);
        let status = pod.status_of(&container.name);
        seen.zip(status).is_some_and(|(seen, status)| {
            seen.container_id == *status.container_id && test(container, &seen.hashes)
        })
    })
}

/// Is it what a kubelet reports of a container that runs as specified? Kubelets before 1.31 hash all of it, later
/// ones its image and name.
fn is_plain_hash(container: &ContainerView, hash: u64) -> bool {
    container.whole_hash.map(u64::from) == Some(hash) || image_hash(&container.name, &container.image) == hash
}

/// The hash of what the container would read of the labels and annotations of its pod, if it began now. The pod
/// counts, not its template: labels that only the pod has are read, too, and variables that a webhook added.
fn environment_hash(pod: &PodView, container: &ContainerView) -> u64 {
    let variables = container.variables.iter();
    container::environment_hash(variables.map(|variable| (&*variable.name, pod.value_of(variable))))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use go_compat::container::{environment_hash, image_hash};
    use jiff::ToSpan;
    use kruise_api::names::{INPLACE_GRACE, INPLACE_STATE, RUNTIME_CONTAINERS_META};
    use kruise_views::{ContainerStatusView, ContainerView, MetadataVariable, PodView};
    use serde_json::json;

    use super::same_image;
    use crate::inplace::{self, Progress, fixture::now};

    fn progress(pod: &PodView) -> Progress {
        inplace::progress(pod, now())
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
        assert_eq!(progress(&pod(&[], "web:1", "id1")), Progress::Complete);
        let state = r#"{"revision":"web-a","updateTimestamp":"2026-01-02T03:04:00Z"}"#;
        let grace = r#"{"revision":"web-a","containerImages":{"main":"web:3"},"graceSeconds":10}"#;
        let mut waiting = pod(
            &[(INPLACE_STATE, state.into()), (INPLACE_GRACE, grace.into())],
            "web:1",
            "id1",
        );
        waiting.labels = [("controller-revision-hash", "web-a")].into_iter().collect();
        assert!(matches!(progress(&waiting), Progress::Grace(_)));
        let unreadable = pod(&[(INPLACE_GRACE, "{".into())], "web:1", "id1");
        assert!(matches!(progress(&unreadable), Progress::Unreadable(_)));
    }

    #[test]
    fn an_unchanged_image_id_completes_only_under_the_wanted_image() {
        assert!(matches!(
            progress(&pod(&[state("")], "web:1", "id1")),
            Progress::Waiting(_)
        ));
        assert_eq!(progress(&pod(&[state("")], "web:1", "id2")), Progress::Complete);
        assert_eq!(
            progress(&pod(&[state("")], "docker.io/library/web:2", "id1")),
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
                progress(&retagged) == Progress::Complete,
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
            matches!(progress(&batched), Progress::Waiting(_)),
            "it still runs the old image"
        );
        batched.statuses[0].image_id = "id2".into();
        assert!(
            matches!(progress(&batched), Progress::Waiting(_)),
            "it is not ready"
        );
        batched.statuses[0].ready = true;
        assert!(matches!(progress(&batched), Progress::Due { .. }));
    }

    #[test]
    fn garbage_in_the_annotation_is_reported_not_guessed() {
        let broken = pod(&[(INPLACE_STATE, "{".into())], "web:2", "id2");
        assert!(matches!(progress(&broken), Progress::Unreadable(_)));
    }

    #[test]
    fn the_nodes_hash_completes_an_update_whose_image_id_did_not_change() {
        let meta = json!({"containers": [{"name": "main", "containerID": "cri://1",
                          "hashes": {"plainHash": image_hash("main", "web:2")}}]});
        let reported = pod(
            &[state(""), (RUNTIME_CONTAINERS_META, meta.to_string())],
            "sha256:x",
            "id1",
        );
        assert_eq!(progress(&reported), Progress::Complete);
    }

    #[test]
    fn the_hash_of_an_older_kubelet_completes_it_too() {
        let report = |hash: u64| {
            let meta = json!({"containers": [{"name": "main", "containerID": "cri://1",
                              "hashes": {"plainHash": hash}}]});
            let annotations = [state(""), (RUNTIME_CONTAINERS_META, meta.to_string())];
            let mut pod = pod(&annotations, "sha256:x", "id1");
            pod.containers[0].whole_hash = Some(7);
            progress(&pod)
        };
        assert_eq!(report(7), Progress::Complete);
        assert!(matches!(report(8), Progress::Waiting(_)));
    }

    /// A pod whose containers have variables, and of which the node reports environments.
    fn reading(containers: &[(&str, &[(&str, &str)])], reported: &[u64]) -> PodView {
        let entries: Vec<_> = containers
            .iter()
            .zip(reported)
            .map(|((name, _), hash)| {
                json!({"name": name, "containerID": format!("cri://{name}"),
                       "hashes": {"plainHash": image_hash(name, "web:2"), "extractedEnvFromMetadataHash": hash}})
            })
            .collect();
        let annotations = [
            state(r#","updateEnvFromMetadata":true"#),
            (
                RUNTIME_CONTAINERS_META,
                json!({"containers": entries}).to_string(),
            ),
        ];
        let container = |(name, variables): &(&str, &[(&str, &str)])| ContainerView {
            name: (*name).into(),
            image: "web:2".into(),
            variables: variables
                .iter()
                .filter_map(|(name, path)| MetadataVariable::of(name, path))
                .collect(),
            ..ContainerView::default()
        };
        let status = |(name, _): &(&str, &[(&str, &str)])| ContainerStatusView {
            name: (*name).into(),
            container_id: format!("cri://{name}").into(),
            image_id: "id2".into(),
            ..ContainerStatusView::default()
        };
        PodView {
            containers: containers.iter().map(container).collect(),
            statuses: containers.iter().map(status).collect(),
            labels: [("app", "web"), ("id", "x7")].into_iter().collect(),
            ..pod(&annotations, "web:2", "id2")
        }
    }

    #[test]
    fn a_changed_environment_waits_for_the_nodes_report() {
        let main: (&str, &[(&str, &str)]) = ("main", &[("CFG", "metadata.labels['app']")]);
        assert!(matches!(progress(&reading(&[main], &[])), Progress::Waiting(_)));
        for (hash, complete) in [(498_188_604, true), (1, false)] {
            let progress = progress(&reading(&[main], &[hash]));
            assert_eq!(progress == Progress::Complete, complete);
        }
    }

    #[test]
    fn what_the_pod_has_is_judged_and_an_annotation_that_is_gone_reads_as_empty() {
        let variables: &[(&str, &str)] = &[
            // The template lacks the label of the first, and the pod by now the annotation of the second.
            ("ID", "metadata.labels['id']"),
            ("CFG", "metadata.annotations['config']"),
        ];
        for (gone, complete) in [("", true), ("v1", false)] {
            let hash = environment_hash([("CFG", gone), ("ID", "x7")]);
            let progress = progress(&reading(&[("main", variables)], &[hash]));
            assert_eq!(progress == Progress::Complete, complete, "{gone}");
        }
    }

    #[test]
    fn containers_that_read_nothing_and_injected_ones_are_judged_like_all_others() {
        let injected: (&str, &[(&str, &str)]) = ("injected", &[("APP", "metadata.labels['app']")]);
        let (nothing, app) = (environment_hash([]), environment_hash([("APP", "web")]));
        for (reported, complete) in [([nothing, app], true), ([1, app], false), ([nothing, 1], false)] {
            let progress = progress(&reading(&[("main", &[]), injected], &reported));
            assert_eq!(progress == Progress::Complete, complete, "{reported:?}");
        }
    }

    #[test]
    fn an_environment_that_a_later_batch_changes_is_judged_after_that() {
        let log: (&str, &[(&str, &str)]) = ("log", &[("CFG", "metadata.labels['app']")]);
        let progress_at = |later: &str, value: &str| {
            let reported = [environment_hash([]), environment_hash([("CFG", value)])];
            let mut pod = reading(&[("main", &[]), log], &reported);
            let (key, state) = state(&format!(r#","updateEnvFromMetadata":true{later}"#));
            let meta = pod.annotations.get(RUNTIME_CONTAINERS_META).unwrap_or_default();
            pod.annotations = [(key, state.as_str()), (RUNTIME_CONTAINERS_META, meta)]
                .into_iter()
                .collect();
            progress(&pod)
        };
        let later =
            r#","nextContainerRefMetadata":{"log":{"labels":{"app":"shop"},"creationTimestamp":null}}"#;
        assert!(matches!(progress_at(later, "web"), Progress::Due { .. }));
        assert!(matches!(progress_at("", "shop"), Progress::Waiting(_)));
        assert_eq!(progress_at("", "web"), Progress::Complete);
    }

    #[test]
    fn a_status_from_before_the_change_completes_nothing() {
        let mut back = pod(&[state("")], "docker.io/library/web:2", "id1");
        assert_eq!(progress(&back), Progress::Complete);
        back.unobserved = true;
        assert!(matches!(progress(&back), Progress::Waiting(_)));
    }

    #[test]
    fn a_new_container_whose_startup_probe_may_not_have_run_completes_nothing_and_starts_no_batch() {
        let next = r#","nextContainerImages":{"log":"log:2"},"preCheckBeforeNext":{"containersRequiredReady":["main"]}"#;
        for state in [state(""), state(next)] {
            let mut started = pod(std::slice::from_ref(&state), "web:2", "id2");
            started.statuses[0].ready = true;
            started.trusted_at = Some(now() + 4.seconds());
            assert_eq!(
                progress(&started),
                Progress::Settling(Duration::from_secs(4)),
                "{state:?}"
            );
            started.trusted_at = Some(now());
            assert!(!matches!(progress(&started), Progress::Settling(_)), "{state:?}");
        }
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
