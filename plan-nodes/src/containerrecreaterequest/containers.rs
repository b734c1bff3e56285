//! Which of the requested containers run anew.

use kruise_api::containerrecreaterequest::SnapshotEntry;
use kruise_views::{ContainerStatusView, PodView};

use super::snapshot::Snapshot;

/// The entries for the agent, if they are not what the status says. Containers that have ended leave the entries as
/// they are if none would be left.
pub(super) fn changed(snapshot: &Snapshot<'_>, pod: &PodView) -> Option<Vec<SnapshotEntry>> {
    let request = snapshot.request;
    // Both times are stored in whole seconds.
    let created = request.metadata.creation_timestamp;
    let runs =
        |status: &&ContainerStatusView| status.running_since.is_some() && status.running_since >= created;
    let requested = request.spec.containers.iter();
    let entries: Vec<SnapshotEntry> = requested
        .filter_map(|container| pod.lasting_status_of(&container.name).filter(runs))
        .map(|status| SnapshotEntry {
            name: status.name.to_string(),
            ready: status.ready,
            restart_count: status.restart_count,
            container_id: status.container_id.to_string(),
        })
        .collect();
    (!entries.is_empty() && entries != request.status.container_status_snapshot).then_some(entries)
}
