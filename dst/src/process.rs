//! Managers: started, killed, told to stop, and started again, as a kubelet does it.

use std::{sync::Arc, time::Duration};

use go_compat::flags::FlagSet;
use kruise::manager::{Config, FLAGS, Host, Routes, Wishes, process};
use kruise_admission::manifests;
use kruise_runtime::{Client, Clock, client, metrics::Metrics};
use kruise_server::configuration::{ConditionalWebhook, DesiredCondition, Endpoint, webhooks};
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::{sync::watch, task::JoinSet, time::sleep};

use crate::{
    cluster::Cluster,
    network::{self, PATIENCE, Process, ProcessId},
    random::{Purpose, Random},
};

/// The leader must renew its lease within this time or stop.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(20);

/// Flags of all managers. The lease is longer than by default only to save requests that show nothing.
const LINE: &[&str] = &[
    "--leader-election-lease-duration=25s",
    "--leader-election-renew-deadline=20s",
    "--leader-election-retry-period=10s",
];

/// Starts a manager in a slot again and again, for ever.
pub async fn supervise(cluster: Arc<Cluster>, slot: u8, config: Arc<Config>) {
    let mut random = Random::new(cluster.look(|state| state.random.draw()), Purpose::Managers);
    loop {
        let id = cluster.look(|state| {
            let id = ProcessId(state.processes.len() as u32);
            state.processes.insert(id, Process::new());
            state.slots.insert(slot, id);
            id
        });
        run(&cluster, id, config.clone()).await;
        sleep(Duration::from_millis(random.between(200, 4_000))).await;
    }
}

/// Gates of all managers, and of those that bring pods back when the partition grows.
const GATES: [&str; 2] = [
    "--feature-gates=InPlaceWorkloadVerticalScaling=true",
    "--feature-gates=InPlaceWorkloadVerticalScaling=true,CloneSetPartitionRollback=true",
];

/// Flags as they are on a command line.
pub fn config(goes_back: bool) -> anyhow::Result<Arc<Config>> {
    let gates = GATES[usize::from(goes_back)];
    let values = FlagSet::new(&FLAGS)
        .parse(LINE.iter().copied().chain([gates]))
        .map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(Arc::new(Config::new(&values, &|_| None)?))
}

/// Runs one process until it ends or dies.
async fn run(cluster: &Arc<Cluster>, id: ProcessId, config: Arc<Config>) {
    let (stop, stopped) = watch::channel(false);
    let mut death = cluster.look(|state| {
        state.stops.insert(id, stop);
        state.processes.get(&id).map(Process::death)
    });
    let host = host(cluster, id, stopped);
    let doors = cluster.clone();
    let life = tokio::spawn(async move {
        let client = host.client.named("kruise-manager/webhook-controller");
        let open = |routes, wishes, closing: watch::Receiver<bool>| {
            let mut tasks = open(doors.clone(), id, routes, closing.clone());
            if doors.look(|state| state.sidecars.is_some()) {
                tasks.spawn(async move {
                    let mut closing = closing;
                    tokio::select! {
                        biased;
                        _ = closing.wait_for(|closing| *closing) => {}
                        () = register(doors, id, client, wishes) => {}
                    }
                });
            }
            std::future::ready(Ok(tasks))
        };
        process(&config, host, open).await
    });
    let abort = life.abort_handle();
    let died = async {
        if let Some(death) = &mut death {
            let _ = death.wait_for(|dead| *dead).await;
        }
    };
    let ended = tokio::select! {
        biased;
        () = died => "died".to_owned(),
        ended = life => match ended {
            Ok(Ok(())) => "ended".to_owned(),
            Ok(Err(error)) => format!("ended: {error:#}"),
            Err(error) => format!("ended: {error}"),
        },
    };
    abort.abort();
    cluster.look(|state| {
        let at = cluster.start.elapsed();
        state.trace.note(at, &format!("{id} {ended}"));
        state.stops.remove(&id);
        state.kill(id);
    });
}

fn host(cluster: &Arc<Cluster>, id: ProcessId, stop: watch::Receiver<bool>) -> Host {
    let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default(), &[]);
    let settings = client::Settings {
        user_agent: "kruise-manager".into(),
        timeout: PATIENCE,
        rate: None,
        host: "sim".into(),
        observer: Some(Arc::new(metrics.clone())),
        clock: Clock::starting_at(cluster.look(|state| state.now())),
    };
    let seed = cluster.look(|state| state.random.draw());
    let random = std::sync::Mutex::new(Random::new(seed, Purpose::Manager));
    let jitter = move || {
        random
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .draw()
    };
    Host {
        client: Client::new(network::client(cluster, id), settings),
        metrics,
        identity: format!("manager-{}", id.0),
        jitter: Arc::new(jitter),
        ready: None,
        stop,
    }
}

/// Opens the doors: the webhooks are answered as long as the process lives.
fn open(
    cluster: Arc<Cluster>,
    id: ProcessId,
    routes: Routes,
    mut closing: watch::Receiver<bool>,
) -> JoinSet<()> {
    cluster.look(|state| state.routes.insert(id, routes));
    let mut doors = JoinSet::new();
    doors.spawn(async move {
        // The sender goes with the process.
        let _ = closing.wait_for(|closing| *closing).await;
        cluster.look(|state| state.routes.remove(&id));
    });
    doors
}

/// How soon a registration that failed is tried again.
const AGAIN: Duration = Duration::from_secs(2);

/// Registers the webhook for pods that SidecarSets are injected into, whenever the leader wishes it otherwise.
async fn register(cluster: Arc<Cluster>, id: ProcessId, client: Client, mut wishes: Wishes) {
    loop {
        let wish = wishes.borrow_and_update().clone();
        let routes = cluster.look(|state| state.routes.get(&id).cloned());
        let Some(routes) = routes else {
            return std::future::pending().await;
        };
        let written = match &wish {
            DesiredCondition::Unmanaged => Ok(()),
            wish => write_configuration(&client, &routes, wish).await,
        };
        let changed = async {
            if wishes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        if written.is_ok() {
            changed.await;
        } else {
            // Either is a reason to look again.
            let _ = tokio::time::timeout(AGAIN, changed).await;
        }
    }
}

async fn write_configuration(
    client: &Client,
    routes: &Routes,
    wish: &DesiredCondition,
) -> anyhow::Result<()> {
    let path = format!(
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{}",
        manifests::MUTATING
    );
    let current: Value = client.get(&path).await?;
    let pods_of_sets = ConditionalWebhook {
        name: manifests::PODS_OF_SETS.into(),
        path: manifests::MUTATE_POD.into(),
        condition: "matches-a-sidecarset".into(),
    };
    let endpoint = Endpoint::Service {
        namespace: "kruise-system".into(),
        name: manifests::SERVICE.into(),
    };
    let served = |path: &str| routes.contains_key(path);
    let wanted = webhooks(&current, b"ca", &endpoint, served, Some((&pods_of_sets, wish)))?;
    if let Some(patch) = wanted.patch {
        client
            .patch::<IgnoredAny>(&path, "application/merge-patch+json", &patch)
            .await?;
    }
    Ok(())
}
