//! The progress annotation of pods that set out together: what they share is written once.

use std::collections::BTreeMap;

use kruise_views::PodView;
use serde::Serialize;

use super::state::UpdateState;

/// Place of the pod's own part.
const STATUSES: &str = r#""lastContainerStatuses":"#;

/// A progress annotation without what the pod's containers ran.
#[derive(Clone, Debug)]
pub(super) struct Record {
    state: UpdateState,
    /// The annotation up to the containers, and what follows them.
    text: (String, String),
}

/// As `ImageStatus`, of a view.
#[derive(Serialize)]
struct Ran<'a> {
    #[serde(rename = "imageID", skip_serializing_if = "str::is_empty")]
    image_id: &'a str,
    #[serde(rename = "containerID", skip_serializing_if = "str::is_empty")]
    container_id: &'a str,
}

impl Record {
    /// `state` is what all pods have in common.
    pub(super) fn new(state: UpdateState) -> Self {
        let bare = UpdateState {
            last_container_statuses: None,
            ..state
        };
        let text = serialize(&bare);
        // Quotes inside of strings are escaped: this is the member, and it is always there.
        let (before, after) = text.split_once(&format!("{STATUSES}null")).unwrap_or_default();
        Self {
            text: (format!("{before}{STATUSES}"), after.to_owned()),
            state: bare,
        }
    }

    /// What all pods have in common.
    pub(super) fn state(&self) -> &UpdateState {
        &self.state
    }

    /// The annotation of a pod whose containers of these names change.
    pub(super) fn of<'a>(&self, pod: &'a PodView, names: impl Iterator<Item = &'a String>) -> String {
        let ran: BTreeMap<&str, Ran<'_>> = names
            .filter_map(|name| {
                let status = pod.status_of(name)?;
                let ran = Ran {
                    image_id: &status.image_id,
                    container_id: status.running_id(),
                };
                Some((name.as_str(), ran))
            })
            .collect();
        let (before, after) = &self.text;
        let statuses = if ran.is_empty() {
            "null".to_owned()
        } else {
            serialize(&ran)
        };
        [before, statuses.as_str(), after].concat()
    }
}

/// Maps and structs of strings and booleans always serialize.
pub(super) fn serialize(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use kruise_views::ContainerStatusView;

    use super::*;
    use crate::inplace::state::ImageStatus;

    fn state() -> UpdateState {
        UpdateState {
            revision: r#"odd "lastContainerStatuses":null name"#.into(),
            update_timestamp: Some("2026-01-02T03:04:05Z".into()),
            update_images: true,
            ..UpdateState::default()
        }
    }

    #[test]
    fn the_text_is_that_of_the_whole_state() {
        let pod = PodView {
            statuses: ["side", "main"]
                .map(|name| ContainerStatusView {
                    name: name.into(),
                    image_id: "docker://1".into(),
                    ..ContainerStatusView::default()
                })
                .into(),
            ..PodView::default()
        };
        let names = ["main".to_owned(), "side".to_owned(), "starting".to_owned()];
        let before = ImageStatus {
            image_id: "docker://1".into(),
            container_id: String::new(),
        };
        let whole = UpdateState {
            last_container_statuses: Some(
                ["main", "side"]
                    .map(|name| (name.to_owned(), before.clone()))
                    .into(),
            ),
            ..state()
        };
        assert_eq!(Record::new(state()).of(&pod, names.iter()), serialize(&whole));
    }

    #[test]
    fn a_pod_of_which_nothing_is_known_has_null() {
        let names = ["main".to_owned()];
        let text = Record::new(state()).of(&PodView::default(), names.iter());
        assert_eq!(text, serialize(&state()));
    }
}
