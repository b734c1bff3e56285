//! Three managers behind one address while clients create: no creation is refused when their certificates are
//! replaced, when the manifests are applied again, and when other managers take their place.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use kruise_e2e::kubectl::Kubectl;
use kruise_e2e::manager::{LOG, LONG_LEASE, Launch, Manager};
use kruise_e2e::wait;
use kruise_plan_test_kit::Balancer;
use serde_json::{Value, json};

use crate::cluster::{LEASE, LIMIT, Stopped, scenario_alone, variable, web};
use crate::installation;

const NAMESPACE: &str = "replicas";
const SECRET: &str = "kruise-webhook-certs";
const MANAGERS: usize = 3;
/// Creations of each kind that are waited for while nothing happens.
const AT_REST: usize = 20;

/// A client that creates and deletes objects of one kind all the time.
struct Client {
    stop: Arc<AtomicBool>,
    created: Arc<AtomicUsize>,
    works: JoinHandle<Vec<String>>,
}

impl Client {
    /// `object` is given a name each time. `wrong` says what is wrong with what was stored.
    fn start(
        kubectl: &Kubectl,
        (api, resource): (&'static str, &'static str),
        object: Value,
        wrong: fn(&Value) -> bool,
    ) -> Self {
        let (stop, created) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (stops, counted) = (Arc::clone(&stop), Arc::clone(&created));
        let kubectl = kubectl.in_namespace(NAMESPACE);
        let works = std::thread::spawn(move || {
            let mut failures = Vec::new();
            for number in 0.. {
                if stops.load(Ordering::SeqCst) {
                    break;
                }
                let mut object = object.clone();
                let name = format!("{}-{number}", object["metadata"]["name"].as_str().unwrap());
                object["metadata"]["name"] = json!(name);
                match kubectl.create(&object) {
                    Err(error) => failures.push(format!("{name}: {error:#}")),
                    Ok(stored) if wrong(&stored) => failures.push(format!("{name}: {stored}")),
                    Ok(_) => {}
                }
                let path = format!("/{api}/namespaces/{NAMESPACE}/{resource}/{name}");
                let now = json!({"gracePeriodSeconds": 0});
                match kubectl.raw("DELETE", &path, Some(("application/json", &now))) {
                    Ok((200 | 202, _)) => {}
                    other => failures.push(format!("deletion of {name}: {other:?}")),
                }
                counted.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(20));
            }
            failures
        });
        Self { stop, created, works }
    }
}

/// Clients that create plain pods, pods that get a sidecar, and CloneSets of both versions.
struct Clients(Vec<Client>);

impl Clients {
    /// Starts them in the namespace [`NAMESPACE`], once pods get their sidecar there.
    fn start(kubectl: &Kubectl) -> Self {
        kubectl.apply(&sidecars()).unwrap();
        until_injected(kubectl);
        let pod = |name: &str| {
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {NAMESPACE: name}},
                   "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}})
        };
        // Converted when it is stored, and back for the answer.
        let mut older = web(0);
        older["metadata"]["name"] = json!("older");
        let mut newer = older.clone();
        newer["metadata"]["name"] = json!("newer");
        newer["apiVersion"] = json!("apps.kruise.io/v1beta1");
        newer["spec"].as_object_mut().unwrap().remove("updateStrategy");
        let has_no_default = |set: &Value| set["spec"]["revisionHistoryLimit"] != 10;
        Self(vec![
            Client::start(kubectl, ("api/v1", "pods"), pod("plain"), is_injected),
            Client::start(kubectl, ("api/v1", "pods"), pod("injected"), |pod| {
                !is_injected(pod)
            }),
            Client::start(
                kubectl,
                ("apis/apps.kruise.io/v1alpha1", "clonesets"),
                older,
                has_no_default,
            ),
            Client::start(
                kubectl,
                ("apis/apps.kruise.io/v1beta1", "clonesets"),
                newer,
                has_no_default,
            ),
        ])
    }

    /// Waits until each has created so many more.
    fn go_on(&self, more: usize) {
        let counted = || -> Vec<usize> {
            let all = self.0.iter();
            all.map(|client| client.created.load(Ordering::SeqCst)).collect()
        };
        let before = counted();
        wait::until_true("all clients create", Duration::from_mins(5), || {
            Ok(counted()
                .iter()
                .zip(&before)
                .all(|(now, before)| *now >= before + more))
        })
        .unwrap();
    }

    /// What was refused, or stored in another way than it should.
    fn finish(self) -> Vec<String> {
        for client in &self.0 {
            client.stop.store(true, Ordering::SeqCst);
        }
        let all = self.0.into_iter();
        all.flat_map(|client| client.works.join().unwrap()).collect()
    }
}

/// The managers, each with a folder of its own.
struct Managers {
    kubeconfig: PathBuf,
    balancer: Balancer,
    running: Vec<Manager>,
    started: usize,
}

impl Managers {
    /// Starts one more, and has it called when it is ready.
    fn start(&mut self) {
        let host = format!("WEBHOOK_HOST=127.0.0.1:{}", self.balancer.port());
        let command = [
            "env",
            "WEBHOOK_CERT_WRITER=secret",
            &host,
            &variable("KRUISE_E2E_BIN"),
            "manager",
        ];
        let launch = Launch {
            command: command.map(String::from).to_vec(),
            kubeconfig: self.kubeconfig.clone(),
            dir: folder(self.started),
            flags: LONG_LEASE.iter().map(ToString::to_string).collect(),
            webhook_port: None,
        };
        let mut manager = launch.start().unwrap();
        manager.wait_ready(LIMIT).unwrap();
        self.balancer.add(manager.webhook_port());
        self.running.push(manager);
        self.started += 1;
    }

    /// Ends the oldest one, which is not called any more once it is told to end.
    fn end_oldest(&mut self) {
        let manager = self.running.remove(0);
        self.balancer.remove(manager.webhook_port());
        assert!(manager.terminate(LIMIT).unwrap().success());
    }

    /// How many certificates each of those that run has served.
    fn served(&self) -> Vec<usize> {
        let running = self.started - self.running.len()..self.started;
        let logs = running.map(|number| std::fs::read_to_string(folder(number).join(LOG)).unwrap());
        logs.map(|log| log.matches("serving a new certificate").count())
            .collect()
    }

    /// Waits until each serves one more than `before`.
    fn until_rotated(&self, before: &[usize]) {
        wait::until_true(
            "each manager serves a new certificate",
            Duration::from_mins(5),
            || Ok(self.served().iter().zip(before).all(|(now, before)| now > before)),
        )
        .unwrap();
    }
}

fn folder(number: usize) -> PathBuf {
    Path::new(&variable("KRUISE_E2E_DIR")).join(format!("{NAMESPACE}-{number}"))
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn nothing_is_refused_while_certificates_manifests_and_managers_are_replaced() {
    let scenario = scenario_alone(NAMESPACE);
    let kubectl = &scenario.kubectl;
    let system = kubectl.in_namespace("kruise-system");
    let shared = Stopped::shared(system.kubeconfig());
    for (resource, name) in [("lease", LEASE), ("secret", SECRET)] {
        system
            .run(&["delete", resource, name, "--ignore-not-found"])
            .unwrap();
    }
    for number in 0..2 * MANAGERS {
        let _absent = std::fs::remove_dir_all(folder(number));
    }
    let mut managers = Managers {
        kubeconfig: system.kubeconfig().into(),
        balancer: Balancer::start().unwrap(),
        running: Vec::new(),
        started: 0,
    };
    for _ in 0..MANAGERS {
        managers.start();
    }
    let clients = Clients::start(kubectl);
    clients.go_on(AT_REST);

    let before = managers.served();
    system.run(&["delete", "secret", SECRET]).unwrap();
    managers.until_rotated(&before);
    clients.go_on(AT_REST);
    let before = managers.served();
    let nothing = json!({"data": null});
    system.patch("secrets", SECRET, &nothing).unwrap();
    managers.until_rotated(&before);
    clients.go_on(AT_REST);

    let url = format!("https://127.0.0.1:{}", managers.balancer.port());
    let printed = installation::manifests(&["--webhook-url", &url]);
    system.run_with_input(&["apply", "-f", "-"], &printed).unwrap();
    for _ in 0..MANAGERS {
        managers.start();
        managers.end_oldest();
        clients.go_on(1);
    }
    clients.go_on(AT_REST);
    let failures = clients.finish();
    kubectl.run(&["delete", "sidecarset", NAMESPACE]).unwrap();
    drop(managers);
    drop(shared);
    assert!(failures.is_empty(), "{}: {failures:#?}", failures.len());
}

fn sidecars() -> Value {
    json!({"apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet", "metadata": {"name": NAMESPACE}, "spec": {
        "selector": {"matchLabels": {NAMESPACE: "injected"}},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
        "updateStrategy": {"type": "NotUpdate"},
        "containers": [{"name": "agent", "image": "agent:1"}],
    }})
}

fn is_injected(pod: &Value) -> bool {
    pod["spec"]["containers"].as_array().map(Vec::len) == Some(2)
}

/// Waits until pods get their sidecar.
fn until_injected(kubectl: &Kubectl) {
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "trial", "labels": {NAMESPACE: "injected"}},
        "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}});
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All");
    wait::until_true("pods get their sidecar", LIMIT, || {
        let (_, stored) = kubectl.raw("POST", &path, Some(("application/json", &pod)))?;
        Ok(is_injected(&stored))
    })
    .unwrap();
}
