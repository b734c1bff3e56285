//! The CustomResourceDefinition of CloneSet. Descriptions are what `kubectl explain` shows.

use serde_json::{Value, json};

use crate::schema::{
    Field, anything, boolean, field, int_or_string, int32, int64, label_selector, list, object, required,
    string, text_items, text_map, time,
};

/// The definition. `namespace` is where the conversion webhook's service lives.
pub fn manifest(namespace: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "clonesets.apps.kruise.io"},
        "spec": {
            "group": "apps.kruise.io",
            "scope": "Namespaced",
            "names": {
                "kind": "CloneSet", "listKind": "CloneSetList", "plural": "clonesets", "singular": "cloneset",
                "shortNames": ["clone"],
            },
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1", "v1beta1"],
                "clientConfig": {"service": {
                    "namespace": namespace, "name": "kruise-webhook-service", "path": "/convert", "port": 443}},
            }},
            "versions": [version("v1alpha1", false, v1alpha1()), version("v1beta1", true, v1beta1())],
        },
    })
}

fn version(name: &str, storage: bool, spec: Value) -> Value {
    let root = object(
        "CloneSet keeps a number of pods of one template in service and changes them in place where it can.",
        vec![
            field(
                "apiVersion",
                string("Version of this representation, apps.kruise.io/v1alpha1 or v1beta1."),
            ),
            field(
                "kind",
                string("Kind of this representation: CloneSet, or CloneSetList for a list."),
            ),
            field("metadata", json!({"type": "object"})),
            field("spec", spec),
            field("status", status()),
        ],
    );
    json!({
        "name": name, "served": true, "storage": storage,
        "schema": {"openAPIV3Schema": root},
        "subresources": {"status": {}, "scale": {
            "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.labelSelector"}},
        "additionalPrinterColumns": columns(),
    })
}

fn columns() -> Value {
    let count = |name: &str, path: &str| json!({"name": name, "type": "integer", "jsonPath": path});
    let wide =
        |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path, "priority": 1});
    json!([
        count("DESIRED", ".spec.replicas"),
        count("UPDATED", ".status.updatedReplicas"),
        count("UPDATED_READY", ".status.updatedReadyReplicas"),
        count("UPDATED_AVAILABLE", ".status.updatedAvailableReplicas"),
        count("READY", ".status.readyReplicas"),
        count("TOTAL", ".status.replicas"),
        {"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        wide("CONTAINERS", ".spec.template.spec.containers[*].name"),
        wide("IMAGES", ".spec.template.spec.containers[*].image"),
        wide("SELECTOR", ".status.labelSelector"),
    ])
}

fn v1beta1() -> Value {
    let reuse = json!({"type": "boolean", "default": false,
        "description": "Give instance ids and claims of vanished pods to new pods. Default: false."});
    let scale = vec![
        field("enablePVCReuse", reuse),
        field(
            "excludePreparingDelete",
            boolean("Do not count pods in state PreparingDelete as replicas. Default: false."),
        ),
    ];
    let mut rolling = rolling_update();
    rolling.push(field(
        "podUpdatePolicy",
        string("How a pod changes: ReCreate, InPlaceIfPossible or InPlaceOnly. Default: ReCreate."),
    ));
    let update = vec![
        field(
            "type",
            string(
                "RollingUpdate changes pods by itself, OnDelete waits for deletions. Default: RollingUpdate.",
            ),
        ),
        field(
            "rollingUpdate",
            object(
                "Parameters of RollingUpdate: how many pods change, and in which order.",
                rolling,
            ),
        ),
    ];
    spec(scale, update)
}

fn v1alpha1() -> Value {
    let scale = vec![field(
        "disablePVCReuse",
        boolean("Do not give instance ids and claims of vanished pods to new pods. Default: false."),
    )];
    let mut update = rolling_update();
    update.push(field(
        "type",
        string("How pods change: ReCreate, InPlaceIfPossible, InPlaceOnly or OnDelete. Default: ReCreate."),
    ));
    spec(scale, update)
}

fn spec(scale: Vec<Field>, update: Vec<Field>) -> Value {
    let mut scale_strategy = vec![
        field(
            "maxUnavailable",
            int_or_string(
                "Most pods, or percent of replicas, out of service while pods are added. Default: no limit.",
            ),
        ),
        field(
            "podsToDelete",
            list(
                "Names of pods to delete first, whatever the order says. Default: none.",
                text_items(),
            ),
        ),
    ];
    scale_strategy.extend(scale);
    object(
        "What is wanted: how many pods, of which template, and how they may change.",
        vec![
            field(
                "replicas",
                int32("Number of pods wanted, zero or more. Default: 1."),
            ),
            required(
                "selector",
                label_selector(
                    "Labels of the pods that belong to this set; must match the template; cannot change.",
                ),
            ),
            required(
                "template",
                anything("Template of the pods: metadata and specification, stored as written."),
            ),
            field(
                "volumeClaimTemplates",
                anything("Claims made for each pod, one per entry, stored as written. Default: none."),
            ),
            field(
                "scaleStrategy",
                object(
                    "How pods are added and removed; all fields are optional.",
                    scale_strategy,
                ),
            ),
            field(
                "updateStrategy",
                object(
                    "How pods move to a changed template; all fields are optional.",
                    update,
                ),
            ),
            field(
                "revisionHistoryLimit",
                int32("Number of unused revisions kept for going back. Default: 10."),
            ),
            field(
                "minReadySeconds",
                int32("Seconds a pod must be Ready before it counts as available. Default: 0."),
            ),
            field(
                "progressDeadlineSeconds",
                int32("Seconds without progress before condition Progressing turns False. Default: never."),
            ),
            field("lifecycle", lifecycle()),
        ],
    )
}

fn rolling_update() -> Vec<Field> {
    let order = object(
        "One label key; pods without any of the listed keys are updated first.",
        vec![required(
            "orderedKey",
            string("Label key whose value's trailing number orders pods, larger first."),
        )],
    );
    let weight = object(
        "One weight; the weights of all matching selectors of a pod are added up.",
        vec![
            required(
                "weight",
                int32("Weight of matching pods, 0 to 100; larger sums are updated first."),
            ),
            required(
                "matchSelector",
                label_selector("Labels of the pods that have this weight; must not be empty."),
            ),
        ],
    );
    let scatter = object(
        "One label; pods that carry it are spread over the update order.",
        vec![
            required(
                "key",
                string("Label key of the pods to be spread over the update order."),
            ),
            required(
                "value",
                string("Label value of the pods to be spread over the update order."),
            ),
        ],
    );
    let priority = object(
        "Which pods are updated first; either list, not both. Default: no priorities.",
        vec![
            field(
                "orderPriority",
                list(
                    "Label keys that order pods by number, first key found wins. Default: none.",
                    order,
                ),
            ),
            field(
                "weightPriority",
                list(
                    "Selectors with weights that order pods by their sum. Default: none.",
                    weight,
                ),
            ),
        ],
    );
    vec![
        field(
            "partition",
            int_or_string("Number of pods, or percent of replicas, kept on old revisions. Default: 0."),
        ),
        field(
            "maxUnavailable",
            int_or_string("Most pods, or percent of replicas, out of service meanwhile. Default: 20%."),
        ),
        field(
            "maxSurge",
            int_or_string("Most pods, or percent of replicas, above replicas meanwhile. Default: 0."),
        ),
        field(
            "paused",
            boolean("Stop updating pods; adding and removing goes on. Default: false."),
        ),
        field("priorityStrategy", priority),
        field(
            "scatterStrategy",
            list(
                "Labels whose pods are not updated one after another. Default: none.",
                scatter,
            ),
        ),
        field("inPlaceUpdateStrategy", in_place()),
    ]
}

fn in_place() -> Value {
    object(
        "Parameters of changes in place; all fields are optional.",
        vec![
            field(
                "gracePeriodSeconds",
                int32("Seconds between marking a pod not ready and changing it. Default: 0."),
            ),
            field(
                "imagePreDownloadParallelism",
                int_or_string("Number of nodes that pull a new image ahead at a time. Default: 1."),
            ),
            field(
                "imagePreDownloadTimeoutSeconds",
                int32("Seconds one image pull ahead of the update may take. Default: 300."),
            ),
            field(
                "imagePreDownloadMinUpdatedReadyPods",
                int32("Number of updated, ready pods before images are pulled ahead. Default: 0."),
            ),
        ],
    )
}

fn lifecycle() -> Value {
    let hook = |description: &str| {
        object(
            description,
            vec![
                field(
                    "labelsHandler",
                    text_map(
                        "Labels that hold the pod while it carries one of them. Default: none.",
                        "Value the label must have to hold the pod.",
                    ),
                ),
                field(
                    "finalizersHandler",
                    list(
                        "Finalizers that hold the pod while it carries one of them. Default: none.",
                        text_items(),
                    ),
                ),
                field(
                    "markPodNotReady",
                    boolean("Turn readiness condition KruisePodReady False while held. Default: false."),
                ),
            ],
        )
    };
    object(
        "Hooks at the turns of a pod's life, each held by labels or finalizers. Default: none.",
        vec![
            field(
                "preDelete",
                hook("Holds a pod before this set deletes it. Default: no hook."),
            ),
            field(
                "inPlaceUpdate",
                hook("Holds a pod before, and after, it is changed in place. Default: no hook."),
            ),
            field(
                "preNormal",
                hook("Holds a new pod before it counts as available. Default: no hook."),
            ),
        ],
    )
}

fn status() -> Value {
    let condition = object(
        "One aspect of the set's state, such as Progressing, FailedScale or FailedUpdate.",
        vec![
            required(
                "type",
                string("Name of the condition: Progressing, FailedScale or FailedUpdate."),
            ),
            required(
                "status",
                string("Whether the condition holds: True, False or Unknown."),
            ),
            field(
                "lastUpdateTime",
                time("Time when the condition was last confirmed or changed."),
            ),
            field(
                "lastTransitionTime",
                time("Time when the condition's status last changed."),
            ),
            field(
                "reason",
                string("One word for machines that says why the condition is as it is."),
            ),
            field(
                "message",
                string("A sentence for people that says why the condition is as it is."),
            ),
        ],
    );
    object(
        "What was last seen of the set's pods; written by the controller.",
        vec![
            field(
                "observedGeneration",
                int64("Generation of the specification that the numbers belong to."),
            ),
            required(
                "replicas",
                int32("Number of pods that neither ended nor are being deleted."),
            ),
            required(
                "readyReplicas",
                int32("Number of pods that are Ready and not being changed in place."),
            ),
            required(
                "availableReplicas",
                int32("Number of pods in service for at least minReadySeconds."),
            ),
            required(
                "updatedReplicas",
                int32("Number of pods of the update revision, ready or not."),
            ),
            required(
                "updatedReadyReplicas",
                int32("Number of Ready pods of the update revision."),
            ),
            field(
                "updatedAvailableReplicas",
                int32("Number of available pods of the update revision."),
            ),
            field(
                "expectedUpdatedReplicas",
                int32("Number of pods the update shall reach: replicas less partition."),
            ),
            field(
                "updateRevision",
                string("Name of the revision that is being rolled out."),
            ),
            field(
                "currentRevision",
                string("Name of the revision that was last rolled out in full."),
            ),
            field(
                "collisionCount",
                int32("Number of revision names found taken so far; part of new names."),
            ),
            field(
                "conditions",
                list("Conditions of the set, each type at most once.", condition),
            ),
            field(
                "labelSelector",
                string("The selector as text, for the scale subresource and autoscalers."),
            ),
        ],
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::manifest;

    /// Upstream's own surface, with what differs and why.
    const ALLOWED: &[(&str, &str)] = &[(
        "v1alpha1 status.labelSelector",
        "the scale subresource of both versions reads it, so both must keep it",
    )];

    /// Schema to `path → facts`, in the form of the surface file.
    fn flatten(path: &str, schema: &Value, required: bool, out: &mut BTreeMap<String, Value>) {
        let mut facts = serde_json::Map::new();
        for (ours, theirs) in [
            ("type", "type"),
            ("format", "format"),
            ("default", "default"),
            ("x-kubernetes-int-or-string", "int-or-string"),
            ("x-kubernetes-preserve-unknown-fields", "preserve-unknown-fields"),
            ("x-kubernetes-map-type", "map-type"),
            ("x-kubernetes-list-type", "list-type"),
        ] {
            if let Some(value) = schema.get(ours) {
                facts.insert(theirs.into(), value.clone());
            }
        }
        if required {
            facts.insert("required".into(), json!(true));
        }
        out.insert(path.to_owned(), Value::Object(facts));
        let must = |name: &str| {
            schema["required"]
                .as_array()
                .is_some_and(|names| names.iter().any(|have| have == name))
        };
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            flatten(&format!("{path}.{name}"), member, must(name), out);
        }
        if let Some(items) = schema.get("items") {
            flatten(&format!("{path}[]"), items, false, out);
        }
        if let Some(values) = schema.get("additionalProperties") {
            flatten(&format!("{path}{{}}"), values, false, out);
        }
    }

    fn surface() -> Value {
        serde_json::from_str(include_str!("../../tests/surface/clonesets.json")).unwrap()
    }

    #[test]
    fn every_field_of_the_published_surface_is_served_and_no_other() {
        let ours = manifest("kruise-system");
        for (version, theirs) in ours["spec"]["versions"]
            .as_array()
            .unwrap()
            .iter()
            .zip(surface()["versions"].as_array().unwrap())
        {
            let name = version["name"].as_str().unwrap();
            assert_eq!(version["name"], theirs["name"]);
            let mut flat = BTreeMap::new();
            let properties = &version["schema"]["openAPIV3Schema"]["properties"];
            flatten("spec", &properties["spec"], false, &mut flat);
            flatten("status", &properties["status"], false, &mut flat);
            let mut wanted: BTreeMap<String, Value> = theirs["fields"]
                .as_object()
                .unwrap()
                .clone()
                .into_iter()
                .collect();
            for map in [&mut flat, &mut wanted] {
                map.retain(|path, _| {
                    !ALLOWED
                        .iter()
                        .any(|(allowed, _)| *allowed == format!("{name} {path}"))
                });
            }
            assert_eq!(flat, wanted, "{name}");
        }
    }

    #[test]
    fn names_columns_and_subresources_are_upstreams() {
        let (ours, theirs) = (manifest("kruise-system"), surface());
        for key in ["kind", "listKind", "plural", "singular", "shortNames"] {
            assert_eq!(ours["spec"]["names"][key], theirs[key]);
        }
        for (ours, theirs) in ours["spec"]["versions"]
            .as_array()
            .unwrap()
            .iter()
            .zip(theirs["versions"].as_array().unwrap())
        {
            assert_eq!(ours["additionalPrinterColumns"], theirs["printerColumns"]);
            assert_eq!(ours["subresources"], theirs["subresources"]);
            assert_eq!(
                (&ours["served"], &ours["storage"]),
                (&theirs["served"], &theirs["storage"])
            );
        }
    }

    #[test]
    fn every_field_has_help_worth_reading() {
        fn walk(path: &str, schema: &Value, poor: &mut Vec<String>) {
            let described = schema["description"].as_str().unwrap_or_default();
            let is_item = path.ends_with("[]") && schema["type"] == "string";
            if described.len() < 40 && !is_item && path != ".metadata" {
                poor.push(format!("{path}: {described}"));
            }
            for (name, member) in schema["properties"].as_object().into_iter().flatten() {
                walk(&format!("{path}.{name}"), member, poor);
            }
            if let Some(items) = schema.get("items") {
                walk(&format!("{path}[]"), items, poor);
            }
        }
        let mut poor = Vec::new();
        for version in manifest("n")["spec"]["versions"].as_array().unwrap() {
            walk("", &version["schema"]["openAPIV3Schema"], &mut poor);
        }
        assert_eq!(poor, Vec::<String>::new());
    }
}
