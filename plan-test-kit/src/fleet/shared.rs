//! What all namespaces share: the namespaces themselves, and nodes with what is stored for them.

use serde_json::{Value, json};

use super::by_hand;
use super::copy::{Copy, metadata};
use super::files::Files;

/// Namespaces, nodes, NodeImages and NodePodProbes.
pub(super) fn objects(rest: &Files, copies: &[Copy<'_>]) -> Vec<Value> {
    let created = &rest.newest;
    let namespaces = copies.iter().map(|copy| {
        let uid = format!("00000000-0000-4000-8000-{:012x}", copy.number);
        let mut metadata = metadata(("", &copy.namespace), &uid, created);
        metadata["labels"] = json!({"kubernetes.io/metadata.name": copy.namespace});
        metadata.as_object_mut().unwrap().remove("generation");
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata,
            "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}})
    });
    let nodes = rest.of_kind("NodeImage").enumerate();
    let nodes = nodes.map(|(number, image)| by_hand::node(number, image, created));
    let images = rest
        .of_kind("NodeImage")
        .map(|image| node_image(rest, image, copies));
    let probes = rest
        .of_kind("NodePodProbe")
        .map(|probe| node_pod_probe(rest, probe, copies));
    namespaces.chain(nodes).chain(images).chain(probes).collect()
}

/// The images that a node is to pull, for the ImagePullJobs of all namespaces.
fn node_image(rest: &Files, stored: &Value, copies: &[Copy<'_>]) -> Value {
    let mut image = rest.renewed(stored, 0);
    let repositories = image["spec"]["images"].as_object_mut();
    let tags = repositories.into_iter().flat_map(|all| all.values_mut());
    let tags = tags
        .filter_map(|repository| repository["tags"].as_array_mut())
        .flatten();
    for tag in tags {
        let owners = tag["ownerReferences"].as_array().unwrap();
        let [owner] = owners.as_slice() else {
            panic!("one job: {owners:?}")
        };
        let owners = copies.iter().map(|copy| {
            let job = rest
                .of_kind("ImagePullJob")
                .find(|job| job["metadata"]["name"] == owner["name"]);
            let mut owner = owner.clone();
            owner["uid"] = rest.renewed(&job.unwrap()["metadata"]["uid"], copy.number);
            owner["namespace"] = json!(copy.namespace);
            owner
        });
        tag["ownerReferences"] = owners.collect();
    }
    image
}

/// What a node is to probe, in the pods of all namespaces.
fn node_pod_probe(rest: &Files, stored: &Value, copies: &[Copy<'_>]) -> Value {
    let mut probe = rest.renewed(stored, 0);
    let name = &stored["metadata"]["name"];
    let probes: Vec<Value> = copies
        .iter()
        .flat_map(|copy| {
            let of_phase = copy
                .files
                .of_kind("NodePodProbe")
                .find(|probe| probe["metadata"]["name"] == *name);
            let pods = of_phase.unwrap()["spec"]["podProbes"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let pods = pods.into_iter().map(|pod| {
                let mut pod = copy.files.renewed(&pod, copy.number);
                pod["namespace"] = json!(copy.namespace);
                pod
            });
            pods.collect::<Vec<Value>>()
        })
        .collect();
    if !probes.is_empty() {
        probe["spec"]["podProbes"] = json!(probes);
    }
    probe
}
