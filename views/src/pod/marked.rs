//! Sidecars that are marked to end when the main containers of their pod have ended.

use kruise_api::names::sidecarterminator::{
    SIDECAR_IGNORE_EXIT_CODE, TERMINATE_SIDECAR, TERMINATE_SIDECAR_WITH_IMAGE,
};

use super::view::{MarkedSidecar, MarkedView};
use super::wire::{ContainerStatus, Marks};

/// Is this a variable that marks a container?
pub(super) fn is_mark(variable: &str) -> bool {
    variable == TERMINATE_SIDECAR
        || variable == TERMINATE_SIDECAR_WITH_IMAGE
        || variable == SIDECAR_IGNORE_EXIT_CODE
}

/// What the variables of a container say of it; none if it is not marked. Of a variable that is there twice, the
/// last one counts, as for the container.
pub(super) fn sidecar(name: &str, marks: &Marks) -> Option<MarkedSidecar> {
    let value = |variable: &str| {
        let mut found = marks.iter().rev();
        let found = found.find(|(name, _)| **name == *variable);
        found.map_or("", |(_, value)| value)
    };
    let is_true = |variable: &str| value(variable).eq_ignore_ascii_case("true");
    let (by_request, image) = (is_true(TERMINATE_SIDECAR), value(TERMINATE_SIDECAR_WITH_IMAGE));
    let marked = MarkedSidecar {
        name: name.into(),
        by_request,
        image: image.into(),
        ignores_exit_code: by_request && is_true(SIDECAR_IGNORE_EXIT_CODE),
    };
    (by_request || !image.is_empty()).then_some(marked)
}

/// The marked containers of a pod and which of its containers have ended; none if none is marked.
pub(super) fn view(
    sidecars: Vec<MarkedSidecar>,
    statuses: &[ContainerStatus],
    restart_policy: Option<&str>,
) -> Option<Box<MarkedView>> {
    if sidecars.is_empty() {
        return None;
    }
    let ended = statuses.iter().filter(|status| status.has_ended());
    Some(Box::new(MarkedView {
        sidecars: sidecars.into(),
        ended: ended.map(|status| status.name.clone()).collect(),
        is_never_restarted: restart_policy == Some("Never"),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::PodView;

    const WHEN: &str = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT";
    const IMAGE: &str = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE";
    const IGNORE: &str = "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE";

    /// A pod whose container `log` has these variables, beside the container `main`.
    fn pod(env: &Value) -> PodView {
        let pod = json!({
            "metadata": {"name": "report", "namespace": "shop"},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main"}, {"name": "log", "env": env}]},
            "status": {"containerStatuses": [
                {"name": "main", "state": {"terminated": {"exitCode": 1}}},
                {"name": "log", "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                    "lastState": {"terminated": {"exitCode": 0}}},
            ]},
        });
        serde_json::from_str(&pod.to_string()).unwrap()
    }

    /// The flags of `log`, and its image.
    fn read(env: &Value) -> Option<(bool, String, bool)> {
        let pod = pod(env);
        let marked = pod.marked.as_deref()?;
        let [one] = &*marked.sidecars else {
            panic!("{marked:?}");
        };
        assert!(marked.is_sidecar("log") && !marked.is_sidecar("main"));
        Some((one.by_request, one.image.to_string(), one.ignores_exit_code))
    }

    #[test]
    fn literal_variables_mark_a_container_and_only_the_word_true_in_any_case_is_true() {
        let set = |name: &str, value: &str| json!({"name": name, "value": value});
        let by_request = Some((true, String::new(), false));
        assert_eq!(read(&json!([set(WHEN, "true")])), by_request);
        assert_eq!(read(&json!([set("A", "b"), set(WHEN, "TRUE")])), by_request);
        for no in ["", "false", "1", "yes", " true"] {
            assert_eq!(read(&json!([set(WHEN, no)])), None, "{no:?}");
            assert_eq!(
                read(&json!([set(WHEN, "true"), set(IGNORE, no)])),
                by_request,
                "{no:?}"
            );
        }
        assert_eq!(
            read(&json!([set(IGNORE, "True"), set(WHEN, "true")])),
            Some((true, String::new(), true))
        );
        let image = Some((false, "exit:1".to_owned(), false));
        assert_eq!(read(&json!([set(IMAGE, "exit:1")])), image);
        assert_eq!(
            read(&json!([set(IMAGE, "exit:1"), set(IGNORE, "true")])),
            image,
            "not by a request"
        );
        assert_eq!(read(&json!([set(IMAGE, "")])), None);
        assert_eq!(read(&json!([set(IGNORE, "true")])), None);
        assert_eq!(
            read(&json!([set(WHEN, "true"), set(WHEN, "false")])),
            None,
            "the last one counts"
        );
        let reference =
            json!([{"name": WHEN, "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}}]);
        assert_eq!(read(&reference), None);
        assert_eq!(read(&json!([{"name": WHEN, "value": null}])), None);
        assert_eq!(
            read(&json!([{"value": "true", "name": WHEN}])),
            by_request,
            "in any order"
        );
        assert_eq!(read(&Value::Null), None);
    }

    #[test]
    fn a_container_has_ended_while_it_is_terminated_and_not_while_it_waits_to_start_anew() {
        let pod = pod(&json!([{"name": WHEN, "value": "true"}]));
        let marked = pod.marked.unwrap();
        assert!(marked.has_ended("main") && !marked.has_ended("log") && !marked.has_ended("other"));
    }
}
