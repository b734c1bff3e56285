//! Rows outside of the core and apps groups.

use super::{Row, UPSERT};
use crate::kinds::{autoscaler, budget, cluster, job, storage, webhook};
use crate::registry::resource::Subresource::Status;
use crate::registry::{Defaults, Generation, MetadataRules, Traits};
use crate::validation;

const ROLE: Traits = Traits {
    validate: cluster::validate_role,
    validate_update: cluster::validate_role_update,
    ..UPSERT
};

const BUDGET: Traits = Traits {
    generation: Generation::Spec,
    unconditional_update: false,
    metadata: Traits::GENERIC,
    name: validation::path_segment,
    prepare_create: budget::reset,
    prepare_update: cluster::keep_status,
    validate: budget::validate,
    validate_update: budget::validate_update,
    ..Traits::PLAIN
};

const JOB: Traits = Traits {
    generation: Generation::Spec,
    default: Defaults::Anywhere(job::default),
    prepare_create: job::prepare,
    prepare_update: cluster::keep_status,
    validate: job::validate,
    validate_update: job::validate_update,
    ..Traits::PLAIN
};

const AUTOSCALER: Traits = Traits {
    default: Defaults::Anywhere(autoscaler::default),
    convert: autoscaler::convert,
    prepare_create: autoscaler::prepare,
    prepare_update: cluster::keep_status,
    validate: autoscaler::validate,
    validate_update: |new, _| autoscaler::validate(new),
    without_effect: autoscaler::without_effect,
    ..Traits::PLAIN
};

const RUNTIME_CLASS: Traits = Traits {
    unconditional_update: false,
    validate: cluster::validate_runtime_class,
    validate_update: cluster::validate_runtime_class_update,
    ..Traits::PLAIN
};

const STORAGE_CLASS: Traits = Traits {
    default: Defaults::Anywhere(storage::default_class),
    validate: storage::validate_class,
    validate_update: storage::validate_class_update,
    ..Traits::PLAIN
};

fn webhooks(kind: &'static str, plural: &'static str, default: Defaults) -> Row {
    Row::new(
        "admissionregistration.k8s.io",
        "admissionregistration",
        kind,
        plural,
    )
    .cluster()
    .traits(Traits {
        generation: Generation::Content,
        unconditional_update: false,
        default,
        validate: webhook::validate,
        validate_update: |new, _| webhook::validate(new),
        ..Traits::PLAIN
    })
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        Row::new("coordination.k8s.io", "coordination", "Lease", "leases").traits(Traits {
            create_on_update: true,
            unconditional_update: false,
            metadata: Traits::FOREIGN,
            validate: cluster::validate_lease,
            validate_update: |new, _| cluster::validate_lease(new),
            ..Traits::PLAIN
        }),
        Row::new("policy", "policy", "PodDisruptionBudget", "poddisruptionbudgets")
            .short(&["pdb"])
            .sub(&[Status])
            .traits(BUDGET),
        Row::new("batch", "batch", "Job", "jobs")
            .all()
            .sub(&[Status])
            .traits(JOB),
        Row::new(
            "autoscaling",
            "autoscaling",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
        )
        .versions(&["v2", "v1"])
        .short(&["hpa"])
        .all()
        .sub(&[Status])
        .traits(AUTOSCALER),
        Row::new(
            "scheduling.k8s.io",
            "scheduling",
            "PriorityClass",
            "priorityclasses",
        )
        .short(&["pc"])
        .cluster(),
        Row::new("node.k8s.io", "node", "RuntimeClass", "runtimeclasses")
            .cluster()
            .traits(RUNTIME_CLASS),
        Row::new("storage.k8s.io", "storage", "StorageClass", "storageclasses")
            .short(&["sc"])
            .cluster()
            .traits(STORAGE_CLASS),
        Row::new("discovery.k8s.io", "discovery", "EndpointSlice", "endpointslices").traits(Traits {
            generation: Generation::ContentAndLabels,
            metadata: MetadataRules {
                repeats_create: 1,
                ..Traits::GENERIC
            },
            ..Traits::PLAIN
        }),
        Row::new("rbac.authorization.k8s.io", "rbac", "Role", "roles").traits(ROLE),
        Row::new("rbac.authorization.k8s.io", "rbac", "RoleBinding", "rolebindings").traits(UPSERT),
        Row::new("rbac.authorization.k8s.io", "rbac", "ClusterRole", "clusterroles")
            .cluster()
            .traits(ROLE),
        Row::new(
            "rbac.authorization.k8s.io",
            "rbac",
            "ClusterRoleBinding",
            "clusterrolebindings",
        )
        .cluster(),
        webhooks(
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
            Defaults::Anywhere(webhook::default_mutating),
        ),
        webhooks(
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
            Defaults::Anywhere(webhook::default_validating),
        ),
        Row::new(
            "apiextensions.k8s.io",
            "apiextensions",
            "CustomResourceDefinition",
            "customresourcedefinitions",
        )
        .short(&["crd", "crds"])
        .cluster()
        .sub(&[Status])
        .traits(Traits {
            generation: Generation::Spec,
            unconditional_update: false,
            metadata: Traits::FOREIGN,
            default: Defaults::Anywhere(crate::crd::default),
            prepare_create: crate::crd::prepare_create,
            prepare_update: cluster::keep_status,
            validate: crate::crd::validate,
            validate_update: crate::crd::validate_update,
            without_effect: crate::crd::without_effect,
            ..Traits::PLAIN
        }),
    ]
}
