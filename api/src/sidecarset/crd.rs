//! The definition of SidecarSet.

use serde_json::Value;

use super::convert::RULES;
use crate::convert::Conversion;
use crate::definition::{Kind, Scope, Version, columns};
use crate::names::APPS_GROUP;
use crate::schema::shared::{priority_strategy, scatter_strategy};
use crate::schema::{Object, anything, defaulted, label_selector, one_of, string, with};

/// SidecarSet.
pub const KIND: Kind = Kind {
    group: APPS_GROUP,
    kind: "SidecarSet",
    plural: "sidecarsets",
    short_names: &[],
    scope: Scope::Cluster,
    about: "SidecarSet injects containers into new pods, and updates these containers in place.",
    versions,
    conversion: Conversion::Rules(RULES),
};

fn versions() -> Vec<Version> {
    let version = |name, storage, own: Object| Version {
        name,
        storage,
        spec: spec().and(own).into(),
        status: status().into(),
        scale: false,
        columns: vec![
            columns::count("MATCHED", ".status.matchedPods"),
            columns::count("UPDATED", ".status.updatedPods"),
            columns::count("READY", ".status.readyPods"),
            columns::age("AGE"),
        ],
    };
    let older = Object::new("").text(
        "namespace",
        "Name of the only namespace whose pods match; wins over namespaceSelector. Default: all.",
    );
    let newer = Object::new("").text(
        "customVersion",
        "Name given to the newest revision, by which injectionStrategy finds it. Default: none.",
    );
    vec![version("v1alpha1", false, older), version("v1beta1", true, newer)]
}

fn spec() -> Object {
    let patch = Object::new("Annotations for pods, and how they are merged with those that pods have.")
        .text_map(
            "annotations",
            "Annotations that are put on pods at injection; keys must be allowed by the whitelist. Default: none.",
            "Value of the annotation; JSON where the policy is MergePatchJson.",
        )
        .text(
            "patchPolicy",
            "Retain keeps the value of a pod, Overwrite replaces it, MergePatchJson merges JSON. Default: Retain.",
        );
    let secret = Object::new("One secret, by its name in the namespace of the pod, to pull images with.")
        .with(
            "name",
            defaulted(
                string("Name of the secret in the namespace of the pod. Default: empty."),
                "",
            ),
        );
    let secret = with(secret.into(), "x-kubernetes-map-type", "atomic".into());
    Object::new("What is put into which pods, and how it changes later.")
        .with(
            "selector",
            label_selector("Labels of the pods that match; required, and must not be empty. No default."),
        )
        .with(
            "namespaceSelector",
            label_selector("Labels of the namespaces whose pods match. Default: every namespace."),
        )
        .list(
            "initContainers",
            "Init containers that are injected into new pods. Default: none.",
            container(
                "containers that start before those of the pod",
                "AfterAppContainer",
            ),
        )
        .list(
            "containers",
            "Containers that are injected into new pods, and updated in place. Default: none.",
            container(
                "containers that run beside those of the pod",
                "BeforeAppContainer",
            ),
        )
        .with(
            "volumes",
            anything("Volumes that mounts of these containers name, stored as written. Default: none."),
        )
        .list(
            "imagePullSecrets",
            "Secrets that are added to those of the pod. Default: none.",
            secret,
        )
        .int32(
            "revisionHistoryLimit",
            "Number of revisions kept for injection by revision. Default: 10.",
        )
        .list(
            "patchPodMetadata",
            "Annotations that are put on pods at injection. Default: none.",
            patch,
        )
        .with("injectionStrategy", injection())
        .with("updateStrategy", update())
}

fn injection() -> Object {
    let revision = Object::new("Revision that new pods get, named in one of two ways. Default: the newest.")
        .text(
            "revisionName",
            "Name of the ControllerRevision; wins over customVersion. Default: none.",
        )
        .text(
            "customVersion",
            "Custom version of the revision; the newest that has it. Default: none.",
        )
        .with(
            "policy",
            defaulted(
                one_of(
                    string("Always: for every pod. Partial: where updateStrategy keeps it. Default: Always."),
                    &["Always", "Partial"],
                ),
                "Always",
            ),
        );
    Object::new("Whether new pods get these containers, and of which revision. Default: those of its fields.")
        .flag(
            "paused",
            "Inject nothing into new pods; updates of injected pods continue. Default: false.",
        )
        .with("revision", revision)
}

fn update() -> Object {
    Object::new("How containers that have been put into pods change; all fields are optional. Default: those of its fields.")
        .text(
            "type",
            "RollingUpdate changes injected pods in place, NotUpdate leaves them. Default: RollingUpdate.",
        )
        .flag(
            "paused",
            "Stop updating injected pods; injection continues. Default: false.",
        )
        .with(
            "selector",
            label_selector("Labels of the only pods that are updated; excludes a partition. Default: all."),
        )
        .int_or_string(
            "partition",
            "Number of pods, or percent of matched ones, kept as they are. Default: 0.",
        )
        .int_or_string(
            "maxUnavailable",
            "Most pods, or percent of matched ones, unavailable during an update. Default: 1.",
        )
        .with("priorityStrategy", priority_strategy())
        .with("scatterStrategy", scatter_strategy())
}

fn container(what: &str, position: &str) -> Value {
    let volumes = |name, help: &str| (name, Object::new(POLICY_HELP).text("type", help));
    let mounts = volumes(
        "shareVolumePolicy",
        "enabled: take over all volume mounts of the pod's own containers. Default: disabled.",
    );
    let devices = volumes(
        "shareVolumeDevicePolicy",
        "enabled: take over all volume devices of the pod's own containers. Default: disabled.",
    );
    let upgrade = Object::new(
        "How this container changes in pods that have it already. Default: those of its fields.",
    )
    .text(
        "upgradeType",
        "ColdUpgrade restarts it, HotUpgrade runs two containers; cannot change. Default: ColdUpgrade.",
    )
    .text(
        "hotUpgradeEmptyImage",
        "Image of the container that idles; required for HotUpgrade. Default: none.",
    );
    let position =
        format!("BeforeAppContainer or AfterAppContainer: its place in the list. Default: {position}.");
    let container = Object::new("One container, with the fields of a pod's container and some more.")
        .text("podInjectPolicy", &position)
        .with(mounts.0, mounts.1)
        .with(devices.0, devices.1)
        .with("upgradeStrategy", upgrade)
        .list(
            "transferEnv",
            &format!("Environment taken over from the pod's containers, for {what}. Default: none."),
            transfer(),
        )
        .with("resourcesPolicy", resources());
    with(
        container.into(),
        "x-kubernetes-preserve-unknown-fields",
        true.into(),
    )
}

const POLICY_HELP: &str =
    "Whether this container sees what the pod's own containers have mounted. Default: those of its fields.";

fn transfer() -> Object {
    let reference = Object::new("Label or annotation of the pod that names the container. Default: none.")
        .text(
            "fieldPath",
            "metadata.labels['KEY'] or metadata.annotations['KEY'] of the pod.",
        )
        .text(
            "apiVersion",
            "Version of the pod API that the path is written in. Default: v1.",
        )
        .required(&["fieldPath"]);
    let source = Object::new(
        "Field of the pod with the name of the container; wins over sourceContainerName. Default: none.",
    )
    .with(
        "fieldRef",
        with(reference.into(), "x-kubernetes-map-type", "atomic".into()),
    );
    Object::new("Some variables of one container of the pod, copied as they are.")
        .text(
            "sourceContainerName",
            "Name of the pod's container that has the variables. Default: none.",
        )
        .with("sourceContainerNameFrom", source)
        .text(
            "envName",
            "Name of one variable, in addition to those in envNames. Default: none.",
        )
        .texts(
            "envNames",
            "Names of the variables that are copied. Default: none but envName.",
        )
}

fn resources() -> Object {
    let expressions = |help| {
        Object::new(help)
            .text(
                "cpu",
                "Expression over cpu, in cores, such as max(cpu*50%, 50m). Default: none.",
            )
            .text(
                "memory",
                "Expression over memory, in bytes, such as 200Mi or memory*10%. Default: none.",
            )
    };
    let both = Object::new("Expressions for limits and requests; at least one must be set.")
        .with(
            "limits",
            expressions("Expressions over the limits of the chosen containers. Default: no limits."),
        )
        .with(
            "requests",
            expressions("Expressions over the requests of the chosen containers. Default: no requests."),
        );
    Object::new("Resources computed from those of the pod's own containers at injection. Default: none; those of the container count.")
        .with(
            "targetContainersMode",
            one_of(
                string("How the chosen containers count together: sum or max of their resources."),
                &["sum", "max"],
            ),
        )
        .with(
            "targetContainersNameRegex",
            defaulted(
                string("Regular expression that a chosen container's name contains. Default: .*"),
                ".*",
            ),
        )
        .with("resourcesExpr", both)
        .required(&["resourcesExpr", "targetContainersMode"])
}

fn status() -> Object {
    Object::new("Counts of the pods that match; written by the controller.")
        .int64(
            "observedGeneration",
            "Generation of the specification that the numbers belong to.",
        )
        .int32(
            "matchedPods",
            "Number of active pods that match and have these containers.",
        )
        .int32(
            "updatedPods",
            "Number of matched pods whose containers are of the newest revision.",
        )
        .int32(
            "readyPods",
            "Number of matched pods that are Ready, of whatever revision.",
        )
        .int32(
            "updatedReadyPods",
            "Number of matched pods that are of the newest revision and Ready.",
        )
        .text(
            "latestRevision",
            "Name of the ControllerRevision of the specification as it is now.",
        )
        .int32(
            "collisionCount",
            "Number of collisions of revision names so far; part of new names.",
        )
        .required(&["matchedPods", "updatedPods", "readyPods"])
}
