//! `kubectl-kruise explain`: what would be done with objects, what would not yet, and which limit decides it.
//!
//! An object of Kruise is explained by its kind. A pod leads to the object of Kruise that owns it. What
//! Kruise does not own leads to what guards its pods or puts something into them.

mod holders;

use anyhow::{anyhow, bail, ensure};
use clap::Args;
use kruise_frame::{
    explain::{Request, SettingsSource},
    gates::Gates,
    leader::LEASE,
};
use kruise_kinds::{self as controllers, explainers};
use kruise_runtime::Client;

use crate::{
    cluster::{Cluster, is_absent},
    connection::Connection,
    report::Report,
    resources::Resource,
    run,
    target::{Selection, Wanted},
};

/// Examples of its command line.
pub const EXAMPLES: &[(&str, &str)] = &[
    ("A CloneSet", "kubectl kruise explain clone/web"),
    ("One of its pods", "kubectl kruise explain clone/web web-x7x7v"),
    (
        "What holds a pod or a Deployment",
        "kubectl kruise explain pod/web-x7x7v deployment/api",
    ),
    (
        "All StatefulSets of Kruise with a label, in all namespaces",
        "kubectl kruise explain asts -A -l app=db",
    ),
    (
        "As somebody else sees it",
        "kubectl kruise explain clone/web -n shop --as bob",
    ),
];

/// What to explain.
#[derive(Args, Clone, Debug)]
pub struct Options {
    #[command(flatten)]
    selection: Selection,
    /// Only this pod, as a second argument after TYPE/NAME says it too; of a DaemonSet or a BroadcastJob, a
    /// pod or a node; of an ImagePullJob a node; of a ResourceDistribution a namespace; of a SidecarSet,
    /// NAMESPACE/NAME where the name is not enough.
    #[arg(long, value_name = "POD")]
    pod: Option<String>,
    /// Namespace of the manager, where its lease and the revisions of SidecarSets are.
    #[arg(long, default_value = "kruise-system", value_name = "NAMESPACE")]
    manager_namespace: String,
    /// Name of the manager's lease, on which it tells how it decides.
    #[arg(long, default_value = LEASE, value_name = "NAME")]
    manager_lease: String,
    /// Feature gates to decide by, as the manager's own flag takes them, whatever it runs with.
    #[arg(long, value_name = "GATES")]
    feature_gates: Option<String>,
}

/// Plans the objects that the options name, and writes nothing.
///
/// # Errors
/// If the command line names nothing that can be explained, or the cluster cannot be asked.
pub fn run(connection: &Connection, options: &Options) -> anyhow::Result<Report> {
    let (wanted, with) = options.selection.wanted("explained", can_be_explained)?;
    let pod = options.pod.as_ref().or(with.as_ref());
    ensure!(
        pod.is_none() || matches!(wanted.as_slice(), [Wanted::One(..)]),
        "a pod can be chosen of one object only"
    );
    let settings = match &options.feature_gates {
        Some(gates) => SettingsSource::Gates(Gates::parse(gates, "")?),
        None => SettingsSource::Leader {
            namespace: options.manager_namespace.clone(),
            lease: options.manager_lease.clone(),
        },
    };
    run::to_end(async {
        let client = connection.connect("explain").await?;
        let explaining = Explaining {
            cluster: Cluster::discover(&client).await?,
            client: &client,
            namespace: connection.namespace(&client),
            pod: pod.map(String::as_str),
            options,
            settings: &settings,
        };
        explaining.all(&wanted).await
    })
}

/// True for what is explained, and for what leads to it.
fn can_be_explained(resource: &Resource) -> bool {
    !resource.is_ours || explainers().any(|(kind, _)| Resource::of(kind) == *resource)
}

/// How objects are explained.
struct Explaining<'e> {
    cluster: Cluster<'e>,
    client: &'e Client,
    namespace: &'e str,
    pod: Option<&'e str>,
    options: &'e Options,
    settings: &'e SettingsSource,
}

impl Explaining<'_> {
    async fn all(&self, wanted: &[Wanted]) -> anyhow::Result<Report> {
        let mut report = Report::default();
        for wanted in wanted {
            match wanted {
                Wanted::One(resources, name) => {
                    report.add(self.one(resources, self.namespace, name, self.pod).await);
                }
                Wanted::All(resource) => {
                    let selection = &self.options.selection;
                    let names = self.cluster.names(resource, self.namespace, selection).await?;
                    if names.is_empty() {
                        report.add(Ok(self.none(resource)));
                    }
                    for (namespace, name) in names {
                        report.add(self.one(&[*resource], &namespace, &name, None).await);
                    }
                }
            }
        }
        Ok(report)
    }

    fn none(&self, resource: &Resource) -> String {
        let place = if resource.is_namespaced && !self.options.selection.all_namespaces {
            format!(" in namespace {}", self.namespace)
        } else {
            String::new()
        };
        format!("There are no {}{place}.\n", resource.full_name())
    }

    /// The object of the first of these resources that has one of this name.
    async fn one(
        &self,
        resources: &[Resource],
        namespace: &str,
        name: &str,
        pod: Option<&str>,
    ) -> anyhow::Result<String> {
        let mut first = None;
        for resource in resources {
            let explained = if resource.is_ours {
                self.ours(resource, namespace, name, pod).await
            } else {
                self.of_kubernetes(resource, namespace, name).await
            };
            match explained {
                Err(error) if is_absent(&error) => first = first.or(Some((resource, error))),
                explained => return explained,
            }
        }
        let Some((resource, error)) = first else {
            bail!("{name} is of no resource type");
        };
        let meant = self.cluster.did_you_mean(resource, namespace, name).await;
        if meant.is_empty() {
            return Err(error);
        }
        Err(anyhow!("{error:#}{meant}"))
    }

    /// An object of Kruise.
    async fn ours(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        pod: Option<&str>,
    ) -> anyhow::Result<String> {
        let mut known = explainers();
        let Some((_, explain)) = known.find(|(kind, _)| Resource::of(kind) == *resource) else {
            bail!("a {} cannot be explained", resource.kind);
        };
        explain(&Request {
            client: self.client,
            namespace,
            name,
            pod,
            manager_namespace: &self.options.manager_namespace,
            settings: self.settings,
            registrations: controllers::ALL,
        })
        .await
    }
}
