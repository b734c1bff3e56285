//! Managers: started, killed, stopped, and started again, as a kubelet does it.

use std::{sync::Arc, time::Duration};

use go_compat::flags::FlagSet;
use kruise_frame::config::Config;
use kruise_manager::{FLAGS, Host, Routes, process};
use kruise_runtime::{Client, Clock, client, metrics::Metrics};
use tokio::{sync::watch, task::JoinSet, time::sleep};

use super::{
    cluster::Cluster,
    network::link::{self, PATIENCE},
    process::{Process, ProcessId},
    random::{Purpose, Random},
    subject::UsersOfPlay,
};

/// Flags of managers, where it is not measured how long things take. The lease is longer than by default only to
/// save requests that show nothing; its deadline is [`super::leader::RENEW_DEADLINE`].
const LINE: &[&str] = &[
    "--leader-election-lease-duration=25s",
    "--leader-election-renew-deadline=20s",
    "--leader-election-retry-period=10s",
];

/// No directory can be there, so no process writes a protection log: what managers do has no effect outside of the
/// play.
const NO_FILE: &str = "--protection-log-path=/dev/null";

/// Starts a manager in a slot again and again, for ever.
pub async fn supervise(cluster: Arc<Cluster>, users: UsersOfPlay, config: Arc<Config>) {
    let mut random = Random::new(cluster.look(|state| state.random.draw()), Purpose::RESTARTS);
    loop {
        let id = cluster.look(|state| {
            let managers = state.processes.keys().filter(|id| id.is_manager());
            let id = ProcessId(managers.count() as u32);
            state.processes.insert(id, Process::new());
            id
        });
        run(&cluster, id, &users, config.clone()).await;
        sleep(Duration::from_millis(random.between(200, 4_000))).await;
    }
}

/// Flags as they are on a command line, with these feature gates on. `measured`: with no others that matter, as
/// users have them.
pub fn config(gates: &[&str], measured: bool) -> anyhow::Result<Arc<Config>> {
    let on: Vec<String> = gates.iter().map(|gate| format!("{gate}=true")).collect();
    let gates = format!("--feature-gates={}", on.join(","));
    let line = LINE.iter().filter(|_| !measured).copied();
    let values = FlagSet::new(&FLAGS)
        .parse(line.chain([NO_FILE, gates.as_str()]))
        .map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(Arc::new(Config::new(
        &values,
        kruise_kinds::limits(),
        kruise_kinds::kinds(),
        &|_| None,
    )?))
}

/// Runs one process until it ends or dies.
async fn run(cluster: &Arc<Cluster>, id: ProcessId, users: &UsersOfPlay, config: Arc<Config>) {
    let (stop, stopped) = watch::channel(false);
    let mut death = cluster.look(|state| {
        state.stops.insert(id, stop);
        state.processes.get(&id).map(Process::death)
    });
    let host = host(cluster, id, stopped);
    let (listeners, users) = (cluster.clone(), users.clone());
    let life = tokio::spawn(async move {
        let client = host.client.named("kruise-manager/webhook-controller");
        let open = |routes, desired: kruise_manager::MatchConditions, closing: watch::Receiver<bool>| {
            let mut tasks = listen(listeners.clone(), id, routes, closing.clone());
            for user in users.values() {
                let beside = user.beside_manager(&listeners, id, client.clone(), desired.clone());
                let Some(beside) = beside else { continue };
                let mut closing = closing.clone();
                tasks.spawn(async move {
                    tokio::select! {
                        biased;
                        _ = closing.wait_for(|closing| *closing) => {}
                        () = beside => {}
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
        clock: Clock::starting_at(cluster.look(|state| state.clock_of(id))),
    };
    let seed = cluster.look(|state| state.random.draw());
    let random = std::sync::Mutex::new(Random::new(seed, Purpose::MANAGER));
    let jitter = move || {
        random
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .draw()
    };
    Host {
        client: Client::new(link::client(cluster, id), settings),
        served: None,
        metrics,
        identity: format!("manager-{}", id.0),
        jitter: Arc::new(jitter),
        ready: None,
        dry_run: None,
        rehearsal: None,
        stop,
    }
}

/// Has webhooks answered as long as the process lives.
fn listen(
    cluster: Arc<Cluster>,
    id: ProcessId,
    routes: Routes,
    mut closing: watch::Receiver<bool>,
) -> JoinSet<()> {
    cluster.look(|state| state.routes.insert(id, routes));
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        // The sender is dropped with the process.
        let _ = closing.wait_for(|closing| *closing).await;
        cluster.look(|state| state.routes.remove(&id));
    });
    tasks
}
