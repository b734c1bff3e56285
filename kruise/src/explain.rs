//! `kruise explain`: the object of a command line is explained by its kind.

use std::{path::PathBuf, time::Duration};

use anyhow::{anyhow, bail};
use clap::Args;
use kruise_api::definition::Kind;
use kruise_frame::{
    command,
    explain::{Request, SettingsSource},
    gates::Gates,
    leader::LEASE,
};
use kruise_kinds::{self as controllers, explainer, explainers};
use kruise_runtime::{Client, client::Source};

/// What to explain.
#[derive(Args, Debug)]
pub struct Options {
    /// `clone/NAME`, `sts/NAME`, `daemon/NAME`, `bcj/NAME`, `sidecarset/NAME`, `pub/NAME`, `acj/NAME`, `ejob/NAME`, `imagepulljob/NAME`, `imagelistpulljob/NAME`, `distributor/NAME`, `persistentpodstate/NAME`, `podprobemarker/NAME`, `crr/NAME`, `ud/NAME` or `ws/NAME`.
    target: String,
    /// Only this pod; of a DaemonSet or a BroadcastJob, a pod or a node; of an ImagePullJob a node; of a ResourceDistribution a namespace; of a SidecarSet, `NAMESPACE/NAME` where the name alone is not enough.
    pod: Option<String>,
    /// Namespace of the object; without it that of the kubeconfig's context.
    #[arg(short, long)]
    namespace: Option<String>,
    /// Kubeconfig; without it `KUBECONFIG`, then the cluster's own.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Namespace of the manager, where its lease and the revisions of SidecarSets are.
    #[arg(long, default_value = "kruise-system")]
    manager_namespace: String,
    /// Name of the manager's lease, on which it tells how it decides.
    #[arg(long, default_value = LEASE)]
    manager_lease: String,
    /// Feature gates to decide by, as the manager's own flag takes them, whatever it runs with.
    #[arg(long)]
    feature_gates: Option<String>,
}

/// Plans the object that the options name, and writes nothing.
pub fn run(options: &Options) -> anyhow::Result<String> {
    let (kind, name) = options
        .target
        .split_once('/')
        .ok_or_else(|| anyhow!("write the target as clone/NAME, not {:?}", options.target))?;
    let Some(explain) = explainer(kind) else {
        let targets: Vec<String> = explainers()
            .map(|(kind, _)| format!("{}/NAME", shortest_name(kind)))
            .collect();
        bail!(
            "{kind:?} cannot be explained; this build explains {}; for one pod of a workload, add its name, as in clone/NAME POD",
            enumeration(&targets)
        );
    };
    let settings = match &options.feature_gates {
        Some(gates) => SettingsSource::Gates(Gates::parse(gates, "")?),
        None => SettingsSource::Leader {
            namespace: options.manager_namespace.clone(),
            lease: options.manager_lease.clone(),
        },
    };
    let source = options.kubeconfig.clone().map_or(Source::Inferred, Source::File);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let client = connect(&source).await?;
        let namespace = options.namespace.as_deref();
        explain(&Request {
            client: &client,
            namespace: namespace.unwrap_or_else(|| client.default_namespace()),
            name,
            pod: options.pod.as_deref(),
            manager_namespace: &options.manager_namespace,
            settings: &settings,
            registrations: &controllers::ALL,
        })
        .await
    })
}

/// The shortest name of a kind.
fn shortest_name(kind: &Kind) -> String {
    let short = kind.short_names.first().map(|name| (*name).to_owned());
    short.unwrap_or_else(|| kind.kind.to_lowercase())
}

/// `a, b and c`.
fn enumeration(items: &[String]) -> String {
    match items {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => items.concat(),
    }
}

/// A client of the cluster.
pub(crate) async fn connect(source: &Source) -> anyhow::Result<Client> {
    command::connect("explain", source, Duration::from_secs(30)).await
}

#[cfg(test)]
mod tests {
    use kruise_frame::explain::has_name;
    use kruise_kinds::explainers;

    #[test]
    fn kinds_that_can_be_explained_follow_from_the_registrations() {
        let targets: Vec<String> = explainers().map(|(kind, _)| super::shortest_name(kind)).collect();
        assert_eq!(
            super::enumeration(&targets),
            "clone, sts, daemon, bcj, sidecarset, pub, acj, ejob, imagepulljob, imagelistpulljob, distributor, persistentpodstate, podprobemarker, crr, ud and ws"
        );
        let has_name = |name: &str| explainers().any(|(kind, _)| has_name(kind, name));
        assert!(
            [
                "clone",
                "cloneset",
                "clonesets",
                "asts",
                "statefulset",
                "daemonset",
                "ads",
                "sidecarsets",
                "pub",
                "bcj",
                "broadcastjob",
                "ws",
                "workloadspread"
            ]
            .into_iter()
            .all(has_name)
        );
        assert!(!has_name("nodeimage"));
    }
}
