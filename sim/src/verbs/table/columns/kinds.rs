//! The columns of built-in kinds.

use super::cells::{
    access_modes, bound, claim, class_name, containers, controller, expands, gates, involved,
    job_completions, job_status, labels, node_status, pod_status, ports, ready, ready_of_replicas, restarts,
    scaled, selector, storage_status, targets,
};
use super::{Cell, Column, column, wide};

fn name() -> Column {
    column("Name", "string", Cell::Name)
}

fn age() -> Column {
    column("Age", "string", Cell::Age)
}

/// The columns of a kind; those that say nothing of their own have a name and an age.
pub(super) fn columns(kind: &str) -> Vec<Column> {
    let found = workloads(kind)
        .or_else(|| content(kind))
        .or_else(|| cluster(kind));
    found.unwrap_or_else(|| vec![name(), age()])
}

fn workloads(kind: &str) -> Option<Vec<Column>> {
    Some(match kind {
        "Pod" => vec![
            name(),
            column("Ready", "string", Cell::Function(ready)),
            column("Status", "string", Cell::Function(pod_status)),
            column("Restarts", "string", Cell::Function(restarts)),
            age(),
            wide("IP", Cell::Pointer("/status/podIP")),
            wide("Node", Cell::Pointer("/spec/nodeName")),
            wide("Nominated Node", Cell::Pointer("/status/nominatedNodeName")),
            wide("Readiness Gates", Cell::Function(gates)),
        ],
        "Deployment" => vec![
            name(),
            column("Ready", "string", Cell::Function(ready_of_replicas)),
            column("Up-to-date", "string", Cell::Count("/status/updatedReplicas")),
            column("Available", "string", Cell::Count("/status/availableReplicas")),
            age(),
            wide("Containers", Cell::Function(|object| containers(object, "name"))),
            wide("Images", Cell::Function(|object| containers(object, "image"))),
            wide("Selector", Cell::Function(selector)),
        ],
        "HorizontalPodAutoscaler" => vec![
            name(),
            column("Reference", "string", Cell::Function(scaled)),
            column("Targets", "string", Cell::Function(targets)),
            column("MinPods", "string", Cell::Pointer("/spec/minReplicas")),
            column("MaxPods", "integer", Cell::Count("/spec/maxReplicas")),
            column("Replicas", "integer", Cell::Count("/status/currentReplicas")),
            age(),
        ],
        "StatefulSet" => vec![
            name(),
            column("Ready", "string", Cell::Function(ready_of_replicas)),
            age(),
            wide("Containers", Cell::Function(|object| containers(object, "name"))),
            wide("Images", Cell::Function(|object| containers(object, "image"))),
        ],
        "ReplicaSet" => vec![
            name(),
            column("Desired", "integer", Cell::Count("/spec/replicas")),
            column("Current", "integer", Cell::Count("/status/replicas")),
            column("Ready", "integer", Cell::Count("/status/readyReplicas")),
            age(),
            wide("Containers", Cell::Function(|object| containers(object, "name"))),
            wide("Images", Cell::Function(|object| containers(object, "image"))),
            wide("Selector", Cell::Function(selector)),
        ],
        "Job" => vec![
            name(),
            column("Status", "string", Cell::Function(job_status)),
            column("Completions", "string", Cell::Function(job_completions)),
            age(),
            wide("Containers", Cell::Function(|object| containers(object, "name"))),
            wide("Images", Cell::Function(|object| containers(object, "image"))),
            wide("Selector", Cell::Function(selector)),
        ],
        "ControllerRevision" => vec![
            name(),
            column("Controller", "string", Cell::Function(controller)),
            column("Revision", "string", Cell::Count("/revision")),
            age(),
        ],
        "PodDisruptionBudget" => vec![
            name(),
            column(
                "Min Available",
                "string",
                Cell::Function(|one| bound(one, "/spec/minAvailable")),
            ),
            column(
                "Max Unavailable",
                "string",
                Cell::Function(|one| bound(one, "/spec/maxUnavailable")),
            ),
            column(
                "Allowed Disruptions",
                "integer",
                Cell::Count("/status/disruptionsAllowed"),
            ),
            age(),
        ],
        _ => return None,
    })
}

fn content(kind: &str) -> Option<Vec<Column>> {
    Some(match kind {
        "ConfigMap" => vec![name(), column("Data", "string", Cell::Length("/data")), age()],
        "Secret" => vec![
            name(),
            column("Type", "string", Cell::Optional("/type")),
            column("Data", "string", Cell::Length("/data")),
            age(),
        ],
        "ServiceAccount" => vec![
            name(),
            column("Secrets", "string", Cell::Length("/secrets")),
            age(),
        ],
        "PersistentVolumeClaim" => vec![
            name(),
            column("Status", "string", Cell::Function(storage_status)),
            column("Volume", "string", Cell::Optional("/spec/volumeName")),
            column("Capacity", "string", Cell::Optional("/status/capacity/storage")),
            column(
                "Access Modes",
                "string",
                Cell::Function(|claim| access_modes(claim, "/status/accessModes")),
            ),
            column("StorageClass", "string", Cell::Optional("/spec/storageClassName")),
            column(
                "VolumeAttributesClass",
                "string",
                Cell::Function(|_| "<unset>".into()),
            ),
            age(),
            wide("VolumeMode", Cell::Pointer("/spec/volumeMode")),
        ],
        "Service" => vec![
            name(),
            column("Type", "string", Cell::Optional("/spec/type")),
            column("Cluster-IP", "string", Cell::Pointer("/spec/clusterIP")),
            column("External-IP", "string", Cell::Function(|_| "<none>".into())),
            column("Port(s)", "string", Cell::Function(ports)),
            age(),
            wide(
                "Selector",
                Cell::Function(|object| labels(object.pointer("/spec/selector"))),
            ),
        ],
        _ => return None,
    })
}

fn cluster(kind: &str) -> Option<Vec<Column>> {
    Some(match kind {
        "Namespace" => {
            vec![
                name(),
                column("Status", "string", Cell::Pointer("/status/phase")),
                age(),
            ]
        }
        "PersistentVolume" => vec![
            name(),
            column("Capacity", "string", Cell::Optional("/spec/capacity/storage")),
            column(
                "Access Modes",
                "string",
                Cell::Function(|volume| access_modes(volume, "/spec/accessModes")),
            ),
            column(
                "Reclaim Policy",
                "string",
                Cell::Optional("/spec/persistentVolumeReclaimPolicy"),
            ),
            column("Status", "string", Cell::Function(storage_status)),
            column("Claim", "string", Cell::Function(claim)),
            column("StorageClass", "string", Cell::Optional("/spec/storageClassName")),
            column(
                "VolumeAttributesClass",
                "string",
                Cell::Function(|_| "<unset>".into()),
            ),
            column("Reason", "string", Cell::Optional("/status/reason")),
            age(),
            wide("VolumeMode", Cell::Pointer("/spec/volumeMode")),
        ],
        "StorageClass" => vec![
            column("Name", "string", Cell::Function(class_name)),
            column("Provisioner", "string", Cell::Optional("/provisioner")),
            column("ReclaimPolicy", "string", Cell::Optional("/reclaimPolicy")),
            column(
                "VolumeBindingMode",
                "string",
                Cell::Optional("/volumeBindingMode"),
            ),
            column("AllowVolumeExpansion", "string", Cell::Function(expands)),
            age(),
        ],
        "Node" => vec![
            name(),
            column("Status", "string", Cell::Function(node_status)),
            column("Roles", "string", Cell::Function(|_| "<none>".into())),
            age(),
            column(
                "Version",
                "string",
                Cell::Pointer("/status/nodeInfo/kubeletVersion"),
            ),
        ],
        "Lease" => vec![
            name(),
            column("Holder", "string", Cell::Pointer("/spec/holderIdentity")),
            age(),
        ],
        "Event" => {
            vec![
                column("Last Seen", "string", Cell::Date("/lastTimestamp".into())),
                column("Type", "string", Cell::Optional("/type")),
                column("Reason", "string", Cell::Pointer("/reason")),
                column("Object", "string", Cell::Function(involved)),
                column("Message", "string", Cell::Pointer("/message")),
            ]
        }
        "CustomResourceDefinition" => {
            vec![
                name(),
                column("Created At", "date", Cell::Pointer("/metadata/creationTimestamp")),
            ]
        }
        _ => return None,
    })
}
