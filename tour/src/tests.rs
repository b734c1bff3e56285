use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::act::{Act, PatchKind};
use crate::pods::{Pod, Ready};
use crate::run::{costs, run};
use crate::screen::Screen;
use crate::stage::{Requests, Stage, View};
use crate::story::steps;
use crate::subject::{API, DB, FLEET, Subject, TOKEN, WEB};

mod db;
mod fleet;
mod token;
mod zones;

/// What the miniature does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// An update in place makes new pods under the old names and addresses.
    Recreates,
    /// An update in place restarts containers twice.
    RestartsTwice,
    /// A recreation changes pods in place.
    Keeps,
    /// Every pod is updated, whatever the partition is.
    IgnoresPartition,
    /// Explains a held pod with something else.
    ExplainsWrongly,
    /// Another pod than the chosen one is deleted.
    DeletesAnother,
    /// A request is not removed when it is done.
    KeepsNameInSpec,
    /// Pods of a StatefulSet are created side by side.
    CreatesAtOnce,
    /// Pods of a StatefulSet share a claim.
    SharesDisk,
    /// A StatefulSet is updated from the first pod up.
    UpdatesFirst,
    /// The claim of a pod that is scaled away is deleted.
    DeletesDisk,
    /// A pod that comes back has the old image.
    ReturnsOld,
    /// A budget counts nothing.
    AllowsAll,
    /// All pods of a node are evicted at once.
    EvictsAtOnce,
    /// The next pod is evicted before the new one is in service.
    EvictsTooSoon,
    /// One pod stays on the node.
    LeavesOne,
    /// A pod of another node is evicted, too.
    EvictsMore,
    /// Every pod is debugged.
    DebugsAll,
    /// A pod that is debugged restarts.
    DebugRestarts,
    /// The job says that one pod failed.
    DebugFails,
    /// All pods are in the second zone.
    FillsSecondZone,
    /// Pods of the other zone are replaced, too, when one fails.
    MovesAll,
    /// The subset of the failed zone stays open.
    LeavesOpen,
    /// Pods move back when the zone is back.
    MovesBack,
    /// Workloads of two zones are in the wrong ones.
    MixesZones,
    /// A workload belongs to somebody else.
    DisownsChild,
    /// Another zone is updated.
    UpdatesOtherZone,
    /// Says of every subset that it is held.
    HoldsAll,
    /// The excluded namespace has a copy.
    CopiesToSandbox,
    /// Copies are deleted and created.
    CopiesAnew,
    /// Copies stay as they were.
    KeepsOldCopies,
    /// Says of a namespace that it has no copy.
    MissesCopy,
}

/// A CloneSet and a StatefulSet in miniature: what the tour's commands do to them, at once, without a cluster.
struct Miniature {
    fault: Fault,
    set: Value,
    budget: Value,
    job: Value,
    with_debugger: Vec<String>,
    pods: Vec<Pod>,
    born: u32,
    db: db::Numbered,
    zones: zones::Zones,
    fleet: fleet::Fleet,
    token: token::Token,
}

impl Miniature {
    fn new(fault: Fault) -> Self {
        Self {
            fault,
            set: Value::Null,
            budget: Value::Null,
            job: Value::Null,
            with_debugger: Vec::new(),
            pods: Vec::new(),
            born: 0,
            db: db::Numbered::default(),
            zones: zones::Zones::default(),
            fleet: fleet::Fleet::default(),
            token: token::Token::default(),
        }
    }

    fn spec(&self, pointer: &str) -> Value {
        self.set
            .pointer(&format!("/spec{pointer}"))
            .cloned()
            .unwrap_or_default()
    }

    fn image(&self) -> String {
        self.spec("/template/spec/containers/0/image")
            .as_str()
            .unwrap()
            .to_owned()
    }

    fn born(&mut self) -> Pod {
        self.born += 1;
        Pod {
            name: format!("web-{:03}", self.born),
            uid: format!("uid-{}", self.born),
            address: format!("10.1.0.{}", self.born),
            node: format!("kwok-{}", self.born % 3),
            restarts: 0,
            image: self.image(),
            ready: Ready::Yes,
            times: Default::default(),
            disks: Vec::new(),
        }
    }

    fn debug(&mut self) {
        let many = if self.fault == Fault::DebugsAll {
            self.pods.len()
        } else {
            2
        };
        let pods = self.pods.iter().take(many);
        self.with_debugger = pods.map(|pod| pod.name.clone()).collect();
        if self.fault == Fault::DebugRestarts {
            self.pods[0].restarts += 1;
        }
        let failed = u32::from(self.fault == Fault::DebugFails);
        let phase = if failed == 0 { "Succeeded" } else { "Failed" };
        self.job = json!({"status": {"phase": phase, "match": 2, "succeeded": 2 - failed, "failed": failed,
            "completionTime": "2026-01-01T00:00:00Z"}});
    }

    fn reconcile(&mut self) {
        self.delete();
        while (self.pods.len() as u64) < self.spec("/replicas").as_u64().unwrap() {
            let pod = self.born();
            self.pods.push(pod);
        }
        self.update();
    }

    fn delete(&mut self) {
        let Some(name) = self
            .spec("/scaleStrategy/podsToDelete/0")
            .as_str()
            .map(String::from)
        else {
            return;
        };
        match self.fault {
            Fault::DeletesAnother => drop(self.pods.pop()),
            _ => self.pods.retain(|pod| pod.name != name),
        }
        if self.fault != Fault::KeepsNameInSpec {
            self.set["spec"]["scaleStrategy"] = json!({});
        }
    }

    fn update(&mut self) {
        let image = self.image();
        let partition = match self.fault {
            Fault::IgnoresPartition => 0,
            _ => self
                .spec("/updateStrategy/rollingUpdate/partition")
                .as_u64()
                .unwrap_or_default() as usize,
        };
        let policy = self.spec("/updateStrategy/rollingUpdate/podUpdatePolicy");
        let in_place = policy == "InPlaceIfPossible" || self.fault == Fault::Keeps;
        let old: Vec<usize> = (0..self.pods.len())
            .filter(|index| self.pods[*index].image != image)
            .collect();
        for index in old.into_iter().skip(partition) {
            let new = self.born();
            let pod = &mut self.pods[index];
            if in_place {
                pod.image = image.clone();
                pod.restarts += if self.fault == Fault::RestartsTwice { 2 } else { 1 };
                if self.fault == Fault::Recreates {
                    (pod.uid, pod.restarts) = (new.uid, 0);
                }
            } else {
                *pod = new;
            }
        }
    }

    /// Two seconds after a pod was evicted the one in its place is in service.
    fn drain(&mut self, node: &str) {
        let mut evicted: Vec<usize> = (0..self.pods.len())
            .filter(|index| self.pods[*index].node == node)
            .collect();
        assert!(evicted.len() > 1, "it shows nothing otherwise: {evicted:?}");
        match self.fault {
            Fault::LeavesOne => drop(evicted.pop()),
            Fault::EvictsMore => evicted = (0..self.pods.len()).collect(),
            _ => {}
        }
        let mut clock = 10;
        for index in evicted {
            let mut pod = self.born();
            while pod.node == node {
                pod = self.born();
            }
            pod.times = [clock, clock + 2].map(|second| format!("2026-01-01T00:00:{second:02}Z"));
            clock += match self.fault {
                Fault::EvictsAtOnce => 0,
                Fault::EvictsTooSoon => 1,
                _ => 2,
            };
            self.pods[index] = pod;
        }
    }

    fn explain(&self) -> String {
        let reason = match self.fault {
            Fault::ExplainsWrongly => "is up to date and in service",
            _ => "stays on its revision: the partition holds it",
        };
        let held = self.pods.iter().filter(|pod| pod.image != self.image());
        let lines: Vec<String> = held.map(|pod| format!("  pods/{}: {reason}", pod.name)).collect();
        lines.join("\n")
    }
}

fn patched(set: &mut Value, kind: PatchKind, patch: &Value) {
    match kind {
        PatchKind::Json => {
            for operation in patch.as_array().unwrap() {
                let path = operation["path"].as_str().unwrap();
                let (parent, key) = path.rsplit_once('/').unwrap();
                set.pointer_mut(parent).unwrap()[key] = operation["value"].clone();
            }
        }
        PatchKind::Merge => {
            for (key, value) in patch["spec"].as_object().unwrap() {
                set["spec"][key] = value.clone();
            }
        }
    }
}

impl Stage for Miniature {
    const PAUSE: Duration = Duration::ZERO;

    fn manifest(&self, of: &Subject) -> String {
        of.file.to_owned()
    }

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn run(&mut self, of: &Subject, act: &Act) -> Result<String> {
        match *of {
            DB => return Ok(self.db.run(self.fault, act)),
            API => return Ok(self.zones.run(self.fault, act)),
            FLEET => return Ok(self.fleet.run(self.fault, act)),
            TOKEN => return Ok(self.token.run(self.fault, act)),
            _ => {}
        }
        match act {
            Act::Apply => {
                self.set = json!({"spec": {
                    "replicas": 5,
                    "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible"}},
                    "template": {"spec": {"containers": [{"image": "nginx:1"}]}},
                }});
                self.reconcile();
            }
            Act::Patch { kind, body } => {
                patched(&mut self.set, *kind, body);
                self.reconcile();
            }
            Act::Label { pod, key, .. } => {
                assert_eq!(*key, "apps.kruise.io/specified-delete");
                self.pods.retain(|one| one.name != *pod);
                self.reconcile();
            }
            Act::Add(what) if what.file == "web-debug.yaml" => self.debug(),
            Act::Add(what) => {
                assert_eq!(what.file, "web-budget.yaml");
                let pods = self.pods.len();
                let allowed = if self.fault == Fault::AllowsAll { pods } else { 1 };
                self.budget = json!({"status": {"totalReplicas": pods, "currentAvailable": pods,
                    "desiredAvailable": pods - allowed, "unavailableAllowed": allowed}});
            }
            Act::Drain { node, .. } => self.drain(node),
            Act::Uncordon => {}
            Act::Explain => return Ok(self.explain()),
            Act::FailZone(_) | Act::RepairZone(_) => panic!("not of this one: {act:?}"),
        }
        Ok(String::new())
    }

    fn view(&mut self, of: &Subject) -> Result<View> {
        match *of {
            DB => return Ok(self.db.view()),
            API => return Ok(self.zones.view()),
            FLEET => return Ok(self.fleet.view()),
            TOKEN => return Ok(self.token.view()),
            _ => {}
        }
        let mut set = self.set.clone();
        if set.is_object() {
            let replicas = self.pods.len();
            // A wrong status would only be waited for; what is wrong here is what the status does not show.
            let updated = match self.spec("/updateStrategy/rollingUpdate/partition").as_u64() {
                Some(partition) => replicas - partition as usize,
                None => replicas,
            };
            set["status"] =
                json!({"replicas": replicas, "readyReplicas": replicas, "updatedReadyReplicas": updated});
        }
        self.pods.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(View {
            set,
            budget: self.budget.clone(),
            job: self.job.clone(),
            with_debugger: self.with_debugger.clone(),
            pods: self.pods.clone(),
            ..View::default()
        })
    }

    fn requests(&mut self) -> Result<Requests> {
        Ok(Requests::default())
    }
}

fn run_with(fault: Fault) -> (Result<usize>, String) {
    let mut text = Vec::new();
    let records = run(
        &mut Miniature::new(fault),
        &mut Screen::plain(&mut text),
        &steps(),
    );
    (
        records.map(|records| records.len()),
        String::from_utf8(text).unwrap(),
    )
}

#[test]
fn a_cluster_that_does_everything_right_is_told_to_the_end() {
    let (count, text) = run_with(Fault::None);
    assert_eq!(count.unwrap(), steps().len());
    assert!(!text.contains("DOES NOT HOLD"), "{text}");
    assert!(
        text.contains(" s a pod, +5 addresses lost, +0 new images, +0.00 requests a pod."),
        "{text}"
    );
    for step in steps() {
        assert!(text.contains(step.title), "{}", step.title);
    }
    assert_eq!(
        text.matches("\n$ kubectl").count(),
        steps().len() + 1,
        "every change is printed, and that nodes take pods again: {text}"
    );
}

#[test]
fn whatever_goes_wrong_fails_the_step_that_shows_it() {
    let wrong = [
        (Fault::Recreates, "step 2: Update in place", "the same pods"),
        (Fault::RestartsTwice, "step 2: Update in place", "exactly once"),
        (
            Fault::Keeps,
            "step 3: The same by recreation",
            "none of the old pods",
        ),
        (
            Fault::IgnoresPartition,
            "step 4: A canary",
            "3 pods were not touched",
        ),
        (
            Fault::ExplainsWrongly,
            "step 4: A canary",
            "explain names the partition",
        ),
        (
            Fault::DeletesAnother,
            "step 6: Scale down",
            "the others were not touched",
        ),
        (
            Fault::KeepsNameInSpec,
            "step 6: Scale down",
            "out of podsToDelete",
        ),
        (Fault::AllowsAll, "step 8: A budget", "one may go"),
        (
            Fault::EvictsAtOnce,
            "step 9: Drain a node",
            "in place of the one before",
        ),
        (
            Fault::EvictsTooSoon,
            "step 9: Drain a node",
            "in place of the one before",
        ),
        (
            Fault::EvictsMore,
            "step 9: Drain a node",
            "other nodes were not touched",
        ),
        (
            Fault::CreatesAtOnce,
            "step 10: Pods with names and disks",
            "each was created after",
        ),
        (Fault::SharesDisk, "step 10: Pods with names", "of its name"),
        (
            Fault::UpdatesFirst,
            "step 11: Update in place, from the last one down",
            "db-2 runs nginx:4",
        ),
        (Fault::DeletesDisk, "step 12: Scale a name away", "the same ones"),
        (
            Fault::ReturnsOld,
            "step 13: And back",
            "db-2 is back with nginx:4",
        ),
        (Fault::DebugsAll, "step 14: Debug two pods", "no other pod has"),
        (
            Fault::DebugRestarts,
            "step 14: Debug two pods",
            "no pod was touched",
        ),
        (
            Fault::DebugFails,
            "step 14: Debug two pods",
            "ended well in two pods",
        ),
    ];
    all_fail(&wrong);
}

#[test]
fn whatever_goes_wrong_with_zones_and_copies_fails_the_step_that_shows_it() {
    all_fail(&[
        (
            Fault::FillsSecondZone,
            "step 15: Two zones",
            "2 pods run in zone-a",
        ),
        (
            Fault::MovesAll,
            "step 16: A zone fails",
            "zone-b had were not touched",
        ),
        (
            Fault::LeavesOpen,
            "step 16: A zone fails",
            "takes no new pods because",
        ),
        (
            Fault::MovesBack,
            "step 17: The zone is back",
            "no pod was touched",
        ),
        (
            Fault::MixesZones,
            "step 18: One workload for each zone",
            "in the zones of their subsets",
        ),
        (
            Fault::DisownsChild,
            "step 18: One workload for each zone",
            "the UnitedDeployment owns it",
        ),
        (
            Fault::UpdatesOtherZone,
            "step 19: A canary in one zone",
            "the pod in zone-a runs",
        ),
        (
            Fault::HoldsAll,
            "step 19: A canary in one zone",
            "all subsets but zone-a",
        ),
        (
            Fault::CopiesToSandbox,
            "step 20: A Secret in many namespaces",
            "tour-sandbox has none",
        ),
        (
            Fault::CopiesAnew,
            "step 21: Rotate it",
            "the copies are the same ones",
        ),
        (
            Fault::KeepsOldCopies,
            "step 21: Rotate it",
            "have the Secret as it is now",
        ),
        (Fault::MissesCopy, "step 21: Rotate it", "names the namespaces"),
    ]);
}

fn all_fail(wrong: &[(Fault, &str, &str)]) {
    for (fault, step, claim) in wrong.iter().copied() {
        let (steps, text) = run_with(fault);
        let error = format!("{:#}", steps.context("the tour").unwrap_err());
        assert!(
            error.contains(step) && error.contains(claim),
            "{fault:?}: {error}"
        );
        assert!(text.contains("DOES NOT HOLD"), "{fault:?}: {text}");
    }
}

#[test]
fn a_node_is_drained_once_all_its_pods_are_elsewhere() {
    let mut miniature = Miniature::new(Fault::LeavesOne);
    miniature.run(&WEB, &Act::Apply).unwrap();
    let before = miniature.view(&WEB).unwrap().pods;
    let all = steps();
    let step = all.iter().find(|step| step.title == "Drain a node").unwrap();
    let act = (step.act)(&before);
    miniature.run(&WEB, &act).unwrap();
    assert!(!(step.settled)(&before, &miniature.view(&WEB).unwrap()).unwrap());
    miniature.fault = Fault::EvictsMore;
    let Act::Drain { node, .. } = act else {
        panic!("{act:?}")
    };
    miniature.pods.iter_mut().for_each(|pod| {
        if pod.node == node {
            pod.node = "kwok-9".into();
        }
    });
    assert!((step.settled)(&before, &miniature.view(&WEB).unwrap()).unwrap());
}

#[test]
fn the_summary_has_one_row_per_step() {
    let records = run(
        &mut Miniature::new(Fault::None),
        &mut Screen::plain(Vec::new()),
        &steps(),
    )
    .unwrap();
    let table = costs(&records).to_string();
    assert_eq!(table.lines().count(), 1 + steps().len());
    let sizes: Vec<&str> = table
        .lines()
        .skip(1)
        .map(|row| {
            row.split("   ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .nth(1)
                .unwrap()
        })
        .collect();
    assert_eq!(
        sizes,
        [
            "5", "5", "5", "2", "2", "1", "1", "0", "2", "3", "1", "1", "1", "0", "4", "2", "0", "4", "1",
            "0", "0"
        ]
    );
    let kept: Vec<&str> = table
        .lines()
        .skip(1)
        .map(|row| {
            row.split("   ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .nth(3)
                .unwrap()
        })
        .collect();
    assert_eq!(
        kept,
        [
            "0 of 0", "5 of 5", "0 of 5", "5 of 5", "5 of 5", "4 of 5", "3 of 4", "4 of 4", "2 of 4",
            "0 of 0", "3 of 3", "2 of 3", "2 of 2", "4 of 4", "0 of 0", "2 of 4", "4 of 4", "0 of 0",
            "4 of 4", "0 of 0", "0 of 0"
        ]
    );
}

#[test]
fn titles_are_distinct_and_every_step_claims_something() {
    let titles: BTreeSet<&str> = steps().iter().map(|step| step.title).collect();
    assert_eq!(titles.len(), steps().len());
}

#[test]
fn a_pod_is_replaced_once_another_is_in_service_whatever_an_older_status_says() {
    let mut miniature = Miniature::new(Fault::None);
    miniature.run(&WEB, &Act::Apply).unwrap();
    let all = steps();
    let step = all.iter().find(|step| step.title == "Replace one pod").unwrap();
    let before = miniature.view(&WEB).unwrap().pods;
    let Act::Label { pod: chosen, .. } = (step.act)(&before) else {
        panic!("it labels a pod");
    };
    let done = miniature.view(&WEB).unwrap();
    let is_settled = |now: &View| (step.settled)(&before, now).unwrap();
    assert!(!is_settled(&done), "nothing happened yet, though all is well");
    let mut now = done.clone();
    now.pods.retain(|pod| pod.name != chosen);
    assert!(!is_settled(&now), "none came");
    let mut new = miniature.born();
    new.ready = Ready::No;
    now.pods.push(new);
    assert!(!is_settled(&now), "it is not in service");
    now.pods.last_mut().unwrap().ready = Ready::Yes;
    assert!(is_settled(&now));
}
