//! What the kubelet records in events, in the words of version 1.34.

use std::time::Duration;

use serde_json::Value;

use super::container::Note;
use super::pod::Pod;
use super::spec::{ContainerSpec, Role};
use crate::object::metadata_text;
use crate::world::{Client, Source};

/// Records what happened to the containers of a pod since the last time; without `events` it is forgotten.
pub(super) fn record(
    client: &mut Client<'_>,
    pod: &Value,
    runtime: &mut Pod,
    specs: &[ContainerSpec<'_>],
    events: bool,
) {
    let node = runtime.node.clone();
    for (container, spec) in runtime.containers.iter_mut().zip(specs) {
        let notes = std::mem::take(&mut container.notes);
        if !events {
            continue;
        }
        let list = match spec.role {
            Role::Main => "containers",
            Role::Init | Role::Sidecar => "initContainers",
            Role::Ephemeral => "ephemeralContainers",
        };
        let field = format!("spec.{list}{{{}}}", spec.name);
        let source = Source {
            component: "kubelet",
            host: &node,
            field: &field,
        };
        for note in notes {
            for (kind, reason, message) in texts(&note, pod, spec) {
                client.record(pod, &source, kind, reason, &message);
            }
        }
    }
}

type Text = (&'static str, &'static str, String);

/// Type, reason and message.
fn texts(note: &Note, pod: &Value, spec: &ContainerSpec<'_>) -> Vec<Text> {
    let ContainerSpec { name, image, .. } = spec;
    let normal = |reason: &'static str, message: String| ("Normal", reason, message);
    let failed = |message: String| ("Warning", "Failed", message);
    match note {
        Note::Pulling => vec![normal("Pulling", format!("Pulling image {image:?}"))],
        Note::Pulled(None) => {
            let message = format!("Container image {image:?} already present on machine");
            vec![normal("Pulled", message)]
        }
        Note::Pulled(Some([takes, all])) => {
            let [takes, all] = [takes, all].map(|one| shown(*one));
            let message = format!(
                "Successfully pulled image {image:?} in {takes} ({all} including waiting). Image size: 0 bytes."
            );
            vec![normal("Pulled", message)]
        }
        Note::NotPulled(why) => vec![
            failed(format!("Failed to pull image {image:?}: {why}")),
            failed("Error: ErrImagePull".into()),
        ],
        Note::PullBackOff => vec![
            normal("BackOff", format!("Back-off pulling image {image:?}")),
            failed("Error: ImagePullBackOff".into()),
        ],
        Note::NotConfigured => {
            let missing = spec.missing.as_deref().unwrap_or_default();
            vec![failed(format!("Error: {missing}"))]
        }
        Note::Started => vec![
            normal("Created", format!("Created container: {name}")),
            normal("Started", format!("Started container {name}")),
        ],
        Note::Restarts(why) => vec![normal("Killing", format!("Container {name} {why}"))],
        Note::Stops => vec![normal("Killing", format!("Stopping container {name}"))],
        Note::BackOff => {
            let of = |field: &str| metadata_text(pod, field);
            let message = format!(
                "Back-off restarting failed container {name} in pod {}_{}({})",
                of("name"),
                of("namespace"),
                of("uid")
            );
            vec![("Warning", "BackOff", message)]
        }
    }
}

/// As Go shows it, in whole milliseconds.
fn shown(time: Duration) -> String {
    let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    go_compat::duration::format(jiff::SignedDuration::from_millis(millis))
}
