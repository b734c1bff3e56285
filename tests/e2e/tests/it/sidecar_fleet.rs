//! Many sets over many pods, each pod of three of them: how many pods are on their way at once, and what an upgrade
//! costs.
//!
//! Small by default. `KRUISE_E2E_SETS` sets have `KRUISE_E2E_PODS_OF_A_SET` pods each, all of them other ones; two sets
//! more are for all pods.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use kruise_e2e::audit::{AuditLog, Class, Counts, Entry, MANAGER};
use kruise_e2e::manager::pid_file;
use kruise_e2e::process;
use kruise_e2e::wait::{self, Patience};
use kruise_e2e::watch::Watch;
use serde_json::{Value, json};

use crate::cluster::{LIMIT, Scenario, scenario, variable};

/// Of the scenario's namespace, and on whatever belongs to it.
const NAME: &str = "sidecar-fleet";

/// Requests for the upgrade of one pod by one set, in hundredths.
const FIRST: u64 = 205;
const LATER: u64 = 105;

/// A pod's name; name and image of its containers; name, image and readiness of those that run.
const TEMPLATE: &str = "{{.metadata.name}};{{range .spec.containers}}{{.name}}={{.image}},{{end}};\
                        {{range .status.containerStatuses}}{{.name}}={{.image}}={{.ready}},{{end}}";

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// One of the sets.
struct Set {
    name: String,
    /// Its pods have these.
    labels: Value,
    pods: u64,
}

impl Set {
    /// A tenth of its pods may be out of service.
    fn most(&self) -> u64 {
        self.pods.div_ceil(10)
    }

    fn agent(&self) -> String {
        format!("{}-agent", self.name)
    }

    fn object(&self, image: &str) -> Value {
        json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "SidecarSet",
            "metadata": {"name": self.name, "labels": {"fleet": NAME}},
            "spec": {
                "selector": {"matchLabels": self.labels},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAME}},
                "updateStrategy": {"maxUnavailable": self.most()},
                "containers": [{"name": self.agent(), "image": image}],
            },
        })
    }
}

struct Fleet {
    scenario: Scenario,
    limit: Patience,
    /// Sets of which each has pods of its own.
    parts: Vec<Set>,
    /// Sets for all pods.
    alls: Vec<Set>,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // The scenario may have failed already.
        let selector = format!("fleet={NAME}");
        let delete = ["delete", "sidecarsets", "-l", &selector, "--wait=false"];
        let _ = self.scenario.kubectl.run(&delete);
    }
}

impl Fleet {
    fn new(scenario: Scenario) -> Self {
        let (sets, pods) = (
            number("KRUISE_E2E_SETS", 5),
            number("KRUISE_E2E_PODS_OF_A_SET", 12),
        );
        let part = |index| Set {
            name: format!("fleet-part-{index:02}"),
            labels: json!({"fleet": NAME, "part": format!("{index:02}")}),
            pods,
        };
        let all = |index| Set {
            name: format!("fleet-all-{index}"),
            labels: json!({"fleet": NAME}),
            pods: sets * pods,
        };
        Self {
            scenario,
            limit: LIMIT + Duration::from_secs(sets * pods / 4),
            parts: (0..sets).map(part).collect(),
            alls: (0..2).map(all).collect(),
        }
    }

    fn pods(&self) -> u64 {
        self.parts.iter().map(|set| set.pods).sum()
    }

    /// From one look at many objects to the next, so that looking is not what takes the time.
    fn pause(&self) {
        wait::observe_for(Duration::from_millis(self.pods() / 4));
    }

    /// Gives sets an image, and makes those that are not there.
    fn apply(&self, sets: &[&Set], image: &str) {
        let objects: Vec<Value> = sets.iter().map(|set| set.object(image)).collect();
        self.scenario.kubectl.apply_all(&objects).unwrap();
    }

    /// Makes all sets, waits until pods would get their containers, and makes the pods.
    fn begin(&self) {
        let all: Vec<&Set> = self.parts.iter().chain(&self.alls).collect();
        self.apply(&all, "agent:1");
        for set in &self.parts {
            wait::until_true(
                &format!("{} and those for all are injected", set.name),
                LIMIT,
                || {
                    let made = self.probed(set)?;
                    let containers = made["spec"]["containers"].as_array().map_or(0, Vec::len);
                    Ok(containers == 2 + self.alls.len())
                },
            )
            .unwrap();
        }
        for set in &self.parts {
            let deployment = json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": set.name},
                "spec": {"replicas": set.pods, "selector": {"matchLabels": set.labels},
                    "template": {"metadata": {"labels": set.labels}, "spec": containers()}},
            });
            self.scenario.kubectl.apply(&deployment).unwrap();
        }
        self.until_done(&all);
    }

    /// A new pod of a set, as the server would store it.
    fn probed(&self, set: &Set) -> anyhow::Result<Value> {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "labels": set.labels},
            "spec": containers()});
        let dry_run = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
        let made = self.scenario.kubectl.run_with_input(&dry_run, &pod.to_string())?;
        Ok(serde_json::from_str(&made)?)
    }

    /// Waits until all pods of these sets are up to date and available, by their status.
    fn until_done(&self, sets: &[&Set]) {
        wait::until_true("all pods are up to date and in service", self.limit, || {
            self.pause();
            let shown = self
                .scenario
                .kubectl
                .list("sidecarsets", &format!("fleet={NAME}"))?;
            let done = |set: &&Set| {
                shown.iter().any(|one| {
                    let status = &one["status"];
                    let counts = ["matchedPods", "updatedPods", "readyPods", "updatedReadyPods"];
                    one["metadata"]["name"] == *set.name
                        && status["observedGeneration"] == one["metadata"]["generation"]
                        && counts.iter().all(|count| status[count] == set.pods)
                })
            };
            Ok(sets.iter().all(done))
        })
        .unwrap();
    }

    /// How many pods of each set were out of service at most, and how many may be; never more than that.
    fn used(&self, what: &str, pods: &Pods<'_>) -> String {
        let used = self.parts.iter().chain(&self.alls).map(|set| {
            let most = pods.most.get(&set.agent()).copied().unwrap_or(0);
            assert!(
                most <= set.most(),
                "{what}: {most} pods of {} were out of service at once, {} may be",
                set.name,
                set.most()
            );
            format!("{most}/{}", set.most())
        });
        used.collect::<Vec<_>>().join(" ")
    }

    /// Gives sets another image. Holds the limits of all sets meanwhile, and that an upgrade costs no more than `bar`.
    fn upgrade(&self, log: &mut AuditLog, what: &str, sets: &[&Set], image: &str, bar: u64) {
        let start = Instant::now();
        let upgrades: u64 = sets.iter().map(|set| set.pods).sum();
        let selector = format!("fleet={NAME}");
        let watch = Watch::start_lines(&self.scenario.kubectl, "pods", &selector, TEMPLATE).unwrap();
        wait::until_true("the watch shows all pods", self.limit, || {
            Ok(States::of(&watch.text()).count() as u64 >= self.pods())
        })
        .unwrap();
        log.read_new(MANAGER).unwrap();
        self.apply(sets, image);
        self.until_done(sets);
        wait::until_true("the watch shows all pods with the new image", self.limit, || {
            self.pause();
            let text = watch.text();
            let mut last = Pods::default();
            States::of(&text).for_each(|state| last.see(&state));
            Ok(sets
                .iter()
                .all(|set| last.arrived(&set.agent(), image) == set.pods))
        })
        .unwrap();
        let text = watch.text();
        let mut pods = Pods::default();
        for state in States::of(&text) {
            pods.see(&state);
        }
        let used = self.used(what, &pods);
        let requests = log.read_new(MANAGER).unwrap();
        let of_pods: Vec<&Entry> = requests
            .iter()
            .filter(|entry| entry.resource.starts_with("pods"))
            .collect();
        let counts = Counts::of(of_pods.iter().copied());
        // The status of a kubelet may come between a read and a write, which is then refused and repeated.
        let conflicts = of_pods.iter().filter(|entry| entry.code == 409).count() as u64;
        println!(
            "{what}: {upgrades} upgrades in {:.0} s, {} requests ({counts}), {conflicts} conflicts; \
             out of service at most, of those that may be: {}",
            start.elapsed().as_secs_f64(),
            counts.total(Class::Counted),
            used,
        );
        assert!(
            (counts.total(Class::Counted) - conflicts) * 100 <= bar * upgrades && conflicts <= upgrades,
            "{what}: {counts}"
        );
    }
}

fn containers() -> Value {
    json!({"containers": [{"name": "main", "image": "nginx:1"}]})
}

/// The values of a line of [`TEMPLATE`].
struct State<'a> {
    pod: &'a str,
    /// Image wanted by container.
    wanted: BTreeMap<&'a str, &'a str>,
    /// Image by container, of those that are ready.
    ready: BTreeMap<&'a str, &'a str>,
}

/// Whole lines, in the order in which the server stored their states.
struct States;

impl States {
    fn of(text: &str) -> impl Iterator<Item = State<'_>> {
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().filter(|line| !line.is_empty()).map(|line| {
            let mut parts = line.split(';');
            let mut next = || parts.next().unwrap_or_default();
            let (pod, wanted, running) = (next(), next(), next());
            let ready = running.split(',').filter_map(|one| one.strip_suffix("=true"));
            State {
                pod,
                wanted: wanted.split(',').filter_map(|one| one.split_once('=')).collect(),
                ready: ready.filter_map(|one| one.split_once('=')).collect(),
            }
        })
    }
}

/// The pods as they were last seen, and how many were out of service at once.
#[derive(Default)]
struct Pods<'a> {
    /// By container and pod: the image wanted, and whether it runs and is ready.
    seen: BTreeMap<String, BTreeMap<&'a str, (&'a str, bool)>>,
    /// By container: pods on their way.
    away: BTreeMap<String, u64>,
    /// By container: as many as there were at once.
    most: BTreeMap<String, u64>,
}

impl<'a> Pods<'a> {
    fn see(&mut self, state: &State<'a>) {
        for (container, wanted) in &state.wanted {
            let arrived = state.ready.get(container) == Some(wanted);
            let of_container = self.seen.entry((*container).to_owned()).or_default();
            let before = of_container.insert(state.pod, (wanted, arrived));
            let away = self.away.entry((*container).to_owned()).or_default();
            *away += u64::from(!arrived);
            *away -= u64::from(before.is_some_and(|(_, arrived)| !arrived));
            let most = self.most.entry((*container).to_owned()).or_default();
            *most = (*most).max(*away);
        }
    }

    /// Pods whose container runs this image.
    fn arrived(&self, container: &str, image: &str) -> u64 {
        let pods = self.seen.get(container).into_iter().flat_map(BTreeMap::values);
        pods.filter(|seen| **seen == (image, true)).count() as u64
    }
}

#[test]
#[ignore = "needs a cluster: cargo xtask e2e"]
fn many_sets_keep_their_limits_and_cost_no_more_requests_than_the_bars() {
    let scenario = scenario(NAME);
    let fleet = Fleet::new(scenario);
    let start = Instant::now();
    fleet.begin();
    println!(
        "{} pods of {} sets and {} for all, injected and in service after {:.0} s",
        fleet.pods(),
        fleet.parts.len(),
        fleet.alls.len(),
        start.elapsed().as_secs_f64()
    );
    let (parts, alls) = (fleet.parts.iter(), fleet.alls.iter());
    let all: Vec<&Set> = parts.clone().chain(alls.clone()).collect();
    let (parts, alls): (Vec<&Set>, Vec<&Set>) = (parts.collect(), alls.collect());
    let mut log = fleet.scenario.audit_log();
    fleet.upgrade(
        &mut log,
        "first, sets with pods of their own",
        &parts,
        "agent:2",
        FIRST,
    );
    fleet.upgrade(&mut log, "first, sets for all pods", &alls, "agent:2", FIRST);
    fleet.upgrade(&mut log, "later, all sets at once", &all, "agent:3", LATER);
    let manager = process::read_pid_file(&pid_file(Path::new(&variable("KRUISE_E2E_DIR"))));
    let manager = manager.unwrap().unwrap();
    println!(
        "the manager: {:.1} s of CPU in all, {} MiB of memory at most",
        process::cpu_seconds(manager).unwrap(),
        process::peak_memory_kib(manager).unwrap() / 1024
    );
}

#[test]
fn pods_on_their_way_are_counted_by_set() {
    let text = "p;a=x:1,b=y:1,;a=x:1=true,b=y:1=true,\nq;a=x:1,;a=x:1=true,\np;a=x:2,b=y:1,;a=x:1=true,b=y:1=true,\n\
                q;a=x:2,;a=x:2=false,\np;a=x:2,b=y:1,;a=x:2=true,b=y:1=true,\nq;a=x:2,;a=x";
    let mut pods = Pods::default();
    States::of(text).for_each(|state| pods.see(&state));
    assert_eq!(pods.most, [("a".to_owned(), 2), ("b".to_owned(), 0)].into());
    assert_eq!((pods.arrived("a", "x:2"), pods.arrived("b", "y:1")), (1, 1));
}
