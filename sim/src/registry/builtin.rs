//! The built-in resources.

mod others;

use kube_schema::table::Table;

use super::resource::Subresource::{
    self, Absent, Binding, EphemeralContainers, Eviction, Finalize, Log, Resize, Scale, Status,
};
use super::{
    Conversion, Defaults, FieldSelector, Generation, Grace, Metadata, MetadataRules, Propagation, Resource,
    Schema, Scope, Traits, Version, Writes,
};
use crate::kinds::{cluster, config, ephemeral, pod, resize, service, workload};
use crate::store::ResourceId;
use crate::validation;

/// A row, short enough to read as one.
struct Row {
    group: &'static str,
    kind: &'static str,
    /// The package of the Go type.
    package: &'static str,
    plural: &'static str,
    /// The first one is that of the store.
    versions: &'static [&'static str],
    short: &'static [&'static str],
    scope: Scope,
    subresources: &'static [Subresource],
    all: bool,
    traits: Traits,
}

impl Row {
    const fn new(
        group: &'static str,
        package: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self {
            group,
            kind,
            package,
            plural,
            versions: &["v1"],
            short: &[],
            scope: Scope::Namespaced,
            subresources: &[],
            all: false,
            traits: Traits::PLAIN,
        }
    }

    const fn short(mut self, short: &'static [&'static str]) -> Self {
        self.short = short;
        self
    }

    const fn versions(mut self, versions: &'static [&'static str]) -> Self {
        self.versions = versions;
        self
    }

    const fn cluster(mut self) -> Self {
        self.scope = Scope::Cluster;
        self
    }

    const fn sub(mut self, subresources: &'static [Subresource]) -> Self {
        self.subresources = subresources;
        self
    }

    /// In the category `all`.
    const fn all(mut self) -> Self {
        self.all = true;
        self
    }

    const fn traits(mut self, traits: Traits) -> Self {
        self.traits = traits;
        self
    }

    fn resource(self) -> Option<Resource> {
        let kind = self.kind;
        let version = |name: &&str| {
            Some(Version {
                name: (*name).to_owned(),
                schema: Schema::Typed(Table::builtin().find(&format!("{}/{name}.{kind}", self.package))?),
                rules: std::sync::Arc::default(),
            })
        };
        let versions: Vec<Version> = self.versions.iter().map(version).collect::<Option<_>>()?;
        Some(Resource {
            id: ResourceId {
                group: self.group.into(),
                plural: self.plural.into(),
            },
            kind: kind.into(),
            singular: kind.to_lowercase(),
            short_names: self.short.iter().map(|name| (*name).to_owned()).collect(),
            categories: if self.all { vec!["all".into()] } else { Vec::new() },
            scope: self.scope,
            storage: versions.first()?.name.clone(),
            versions,
            conversion: Conversion::None,
            subresources: self.subresources.to_vec(),
            writes: if kind == "Namespace" {
                Writes::NoDeleteCollection
            } else {
                Writes::All
            },
            traits: self.traits,
        })
    }
}

pub(super) fn resources() -> Vec<Resource> {
    let rows = core()
        .into_iter()
        .chain(config())
        .chain(apps())
        .chain(others::rows());
    rows.filter_map(Row::resource).collect()
}

const fn field(name: &'static str, pointer: &'static str) -> FieldSelector {
    FieldSelector { name, pointer }
}

const POD_FIELDS: &[FieldSelector] = &[
    field("spec.nodeName", "/spec/nodeName"),
    field("status.phase", "/status/phase"),
    field("spec.restartPolicy", "/spec/restartPolicy"),
    field("spec.schedulerName", "/spec/schedulerName"),
    field("spec.serviceAccountName", "/spec/serviceAccountName"),
    field("spec.hostNetwork", "/spec/hostNetwork"),
    field("status.podIP", "/status/podIP"),
    field("status.nominatedNodeName", "/status/nominatedNodeName"),
];
const EVENT_FIELDS: &[FieldSelector] = &[
    field("involvedObject.kind", "/involvedObject/kind"),
    field("involvedObject.namespace", "/involvedObject/namespace"),
    field("involvedObject.name", "/involvedObject/name"),
    field("involvedObject.uid", "/involvedObject/uid"),
    field("involvedObject.apiVersion", "/involvedObject/apiVersion"),
    field(
        "involvedObject.resourceVersion",
        "/involvedObject/resourceVersion",
    ),
    field("involvedObject.fieldPath", "/involvedObject/fieldPath"),
    field("reason", "/reason"),
    field("reportingComponent", "/reportingComponent"),
    field("source", "/source/component"),
    field("type", "/type"),
];
const NAMESPACE_FIELDS: &[FieldSelector] = &[
    field("status.phase", "/status/phase"),
    field("name", "/metadata/name"),
];
const NODE_FIELDS: &[FieldSelector] = &[field("spec.unschedulable", "/spec/unschedulable")];
const SERVICE_FIELDS: &[FieldSelector] = &[
    field("spec.clusterIP", "/spec/clusterIP"),
    field("spec.type", "/spec/type"),
];
const SECRET_FIELDS: &[FieldSelector] = &[field("type", "/type")];
/// PUT creates what is absent.
const UPSERT: Traits = Traits {
    create_on_update: true,
    ..Traits::PLAIN
};
fn core() -> Vec<Row> {
    let row = |kind, plural| Row::new("", "core", kind, plural);
    vec![
        row("Pod", "pods")
            .short(&["po"])
            .all()
            .sub(&[
                Status,
                Binding,
                Eviction,
                EphemeralContainers,
                Resize,
                Log,
                Absent("exec"),
                Absent("attach"),
                Absent("portforward"),
                Absent("proxy"),
            ])
            .traits(Traits {
                generation: Generation::Spec,
                grace: Grace::Pod,
                metadata: Traits::REPEATED,
                status_metadata: Metadata::NoOwners,
                fields: POD_FIELDS,
                default: Defaults::Within(&["spec"], pod::default),
                prepare_create: pod::prepare_create,
                prepare_update: pod::prepare_update,
                prepare_status: pod::prepare_status,
                prepare_resize: resize::prepare,
                validate_resize: resize::validate,
                prepare_ephemeral: ephemeral::prepare,
                validate_ephemeral: ephemeral::validate,
                validate: pod::validate,
                validate_update: pod::validate_update,
                ..Traits::PLAIN
            }),
        row("Namespace", "namespaces")
            .short(&["ns"])
            .cluster()
            .sub(&[Status, Finalize])
            .traits(Traits {
                name: validation::label,
                fields: NAMESPACE_FIELDS,
                default: Defaults::Anywhere(cluster::default_namespace),
                prepare_create: cluster::prepare_namespace,
                prepare_update: cluster::keep_namespace,
                validate_status: cluster::validate_namespace_status,
                ..Traits::PLAIN
            }),
        row("Node", "nodes")
            .short(&["no"])
            .cluster()
            .sub(&[Status, Absent("proxy")])
            .traits(Traits {
                fields: NODE_FIELDS,
                default: Defaults::Anywhere(cluster::default_node),
                prepare_create: cluster::prepare_node,
                prepare_update: cluster::keep_status,
                ..Traits::PLAIN
            }),
        row("Service", "services")
            .short(&["svc"])
            .all()
            .sub(&[Status, Absent("proxy")])
            .traits(Traits {
                name: validation::label_1035,
                create_on_update: true,
                fields: SERVICE_FIELDS,
                default: Defaults::Anywhere(service::default),
                prepare_create: service::prepare_create,
                prepare_update: service::prepare_update,
                validate: service::validate,
                validate_update: service::validate_update,
                ..Traits::PLAIN
            }),
        row("Endpoints", "endpoints").short(&["ep"]).traits(Traits {
            default: Defaults::Anywhere(service::default_endpoints),
            metadata: Traits::REPEATED,
            ..UPSERT
        }),
        row("Event", "events").short(&["ev"]).traits(Traits {
            propagation: Propagation::Unsupported,
            create_on_update: true,
            fields: EVENT_FIELDS,
            validate: cluster::validate_event,
            ..Traits::PLAIN
        }),
    ]
}

fn config() -> Vec<Row> {
    let row = |kind, plural| Row::new("", "core", kind, plural);
    vec![
        row("ConfigMap", "configmaps").short(&["cm"]).traits(Traits {
            metadata: Traits::REPEATED,
            validate: config::validate,
            validate_update: config::validate_update,
            ..Traits::PLAIN
        }),
        row("Secret", "secrets").traits(Traits {
            fields: SECRET_FIELDS,
            default: Defaults::Anywhere(config::default_secret),
            metadata: Traits::REPEATED,
            validate: config::validate,
            validate_update: config::validate_secret_update,
            ..Traits::PLAIN
        }),
        row("ServiceAccount", "serviceaccounts")
            .short(&["sa"])
            .sub(&[Absent("token")])
            .traits(Traits {
                metadata: Traits::REPEATED,
                ..Traits::PLAIN
            }),
        row("PersistentVolumeClaim", "persistentvolumeclaims")
            .short(&["pvc"])
            .sub(&[Status])
            .traits(Traits {
                metadata: MetadataRules {
                    repeats_create: 2,
                    ..Traits::REPEATED
                },
                default: Defaults::Anywhere(config::default_claim),
                prepare_create: config::prepare_claim,
                prepare_update: config::keep_claim_status,
                validate: config::validate_claim,
                validate_update: config::validate_claim_update,
                ..Traits::PLAIN
            }),
        row("PersistentVolume", "persistentvolumes")
            .short(&["pv"])
            .cluster()
            .sub(&[Status])
            .traits(Traits {
                prepare_update: cluster::keep_status,
                ..Traits::PLAIN
            }),
        row("PodTemplate", "podtemplates").traits(Traits {
            generation: Generation::Content,
            default: Defaults::Anywhere(workload::default_pod_template),
            validate: workload::validate_pod_template,
            validate_update: |new, _| workload::validate_pod_template(new),
            ..Traits::PLAIN
        }),
        row("LimitRange", "limitranges").short(&["limits"]).traits(UPSERT),
        row("ResourceQuota", "resourcequotas")
            .short(&["quota"])
            .sub(&[Status])
            .traits(Traits {
                prepare_create: workload::reset_status,
                prepare_update: cluster::keep_status,
                without_effect: crate::quota::without_effect,
                ..Traits::PLAIN
            }),
    ]
}

fn apps() -> Vec<Row> {
    let row = |kind, plural| Row::new("apps", "apps", kind, plural);
    let workload = Traits {
        generation: Generation::Spec,
        prepare_create: workload::reset_status,
        prepare_update: workload::keep_status,
        validate: workload::validate,
        validate_update: workload::validate_update,
        ..Traits::PLAIN
    };
    vec![
        row("Deployment", "deployments")
            .short(&["deploy"])
            .all()
            .sub(&[Status, Scale])
            .traits(Traits {
                generation: Generation::SpecAndAnnotations,
                default: Defaults::Anywhere(workload::default_deployment),
                status_metadata: Metadata::NoLabels,
                ..workload
            }),
        row("ReplicaSet", "replicasets")
            .short(&["rs"])
            .all()
            .sub(&[Status, Scale])
            .traits(Traits {
                default: Defaults::Anywhere(workload::default_replica_set),
                prepare_create: workload::reset_replicas,
                ..workload
            }),
        row("StatefulSet", "statefulsets")
            .short(&["sts"])
            .all()
            .sub(&[Status, Scale])
            .traits(Traits {
                default: Defaults::Anywhere(workload::default_stateful_set),
                validate_update: workload::validate_stateful_set_update,
                prepare_create: workload::reset_replicas,
                ..workload
            }),
        row("DaemonSet", "daemonsets")
            .short(&["ds"])
            .all()
            .sub(&[Status])
            .traits(Traits {
                default: Defaults::Anywhere(workload::default_daemon_set),
                prepare_create: workload::prepare_daemon_set,
                prepare_update: workload::prepare_daemon_set_update,
                ..workload
            }),
        row("ControllerRevision", "controllerrevisions").traits(Traits {
            metadata: Traits::REPEATED,
            validate: workload::validate_revision,
            validate_update: workload::validate_revision_update,
            ..Traits::PLAIN
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::resources;

    #[test]
    fn every_row_has_a_type() {
        assert_eq!(
            resources().len(),
            super::core().len() + super::config().len() + super::apps().len() + super::others::rows().len()
        );
    }
}
