//! New pods are tried before the first old one is deleted for them, whatever the kind.

use kruise_plan_kit::{
    Explain, Intent, Need, Plan,
    trial::{Answer, PodTrial, Role, Trials},
};
use kruise_plan_test_kit::Cluster;
use serde_json::{Value, json};

use crate::{
    daemonset::world::World as DaemonSets, statefulset::world::World as StatefulSets,
    world::World as CloneSets,
};

/// A model cluster with one workload of any kind.
trait Workload {
    fn plan(&self) -> Plan;
    fn cluster(&mut self) -> &mut Cluster;
    /// Nodes do their work on all pods.
    fn work(&mut self);
}

impl Workload for CloneSets {
    fn plan(&self) -> Plan {
        self.plan_of(&self.pod_views(), Explain::Yes)
    }

    fn cluster(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    fn work(&mut self) {
        let names: Vec<String> = self.pods.keys().cloned().collect();
        for name in names {
            self.bind(&name, "a1");
            self.kubelet(&name);
            self.terminate(&name);
        }
    }
}

impl Workload for StatefulSets {
    fn plan(&self) -> Plan {
        StatefulSets::plan(self, Explain::Yes)
    }

    fn cluster(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    fn work(&mut self) {
        let names: Vec<String> = self.pods.keys().cloned().collect();
        self.nodes(names.iter());
    }
}

impl Workload for DaemonSets {
    fn plan(&self) -> Plan {
        DaemonSets::plan(self, Explain::Yes)
    }

    fn cluster(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    fn work(&mut self) {
        let names: Vec<String> = self.pods.keys().cloned().collect();
        DaemonSets::work(self, &names);
    }
}

fn spec(policy: &Value) -> Value {
    json!({
        "replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "serviceName": "web",
        "podManagementPolicy": "Parallel", "burstReplicas": 250,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": policy},
        "template": {"metadata": {"labels": {"app": "web"}},
                     "spec": {"containers": [{"name": "main", "image": "web:1"}]}},
    })
}

/// Each kind at rest, with three pods of the first template; updates recreate pods.
fn kinds() -> [(&'static str, Box<dyn Workload>); 3] {
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let recreate = json!({"podUpdatePolicy": "ReCreate", "partition": 0, "maxUnavailable": 1});
    let standard = json!({"rollingUpdateType": "Standard", "maxUnavailable": 1, "maxSurge": 0});
    let claim =
        json!([{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}]);
    let mut of_stateful = spec(&recreate);
    of_stateful["volumeClaimTemplates"] = claim.clone();
    let mut of_clones = spec(&recreate);
    of_clones["volumeClaimTemplates"] = claim;
    let mut daemons = DaemonSets::new(spec(&standard), now);
    for node in ["n1", "n2", "n3"] {
        daemons.join(node, json!({}), json!([]));
    }
    let mut all: [(&'static str, Box<dyn Workload>); 3] = [
        ("CloneSet", Box::new(CloneSets::new(of_clones, now))),
        ("StatefulSet", Box::new(StatefulSets::new(of_stateful, now))),
        ("DaemonSet", Box::new(daemons)),
    ];
    for (kind, world) in &mut all {
        world.cluster().memory.trials = Trials::made();
        settle(&mut **world);
        assert_eq!(world.cluster().pods.len(), 3, "{kind}");
    }
    all
}

/// Executes a plan.
fn execute(world: &mut dyn Workload, plan: &Plan) {
    for object in &plan.writes {
        let mut previous = None;
        for step in &object.steps {
            world.cluster().apply(&step.write, &mut previous).unwrap();
        }
    }
    world.cluster().report(plan);
}

/// Plans and executes until nothing changes. Nothing is to be tried meanwhile.
fn settle(world: &mut dyn Workload) {
    for _ in 0..60 {
        let before = world.cluster().pods.clone();
        let plan = world.plan();
        assert!(plan.needs.is_empty(), "{:?}", plan.needs);
        execute(world, &plan);
        world.work();
        world.cluster().pass(1);
        if before == world.cluster().pods && plan.writes.is_empty() {
            return;
        }
    }
    panic!("no rest");
}

fn image(world: &mut dyn Workload, image: &str) {
    world
        .cluster()
        .edit(|spec| spec["template"]["spec"]["containers"][0]["image"] = json!(image));
}

/// The trial that a plan asks for. It does nothing else.
#[track_caller]
fn asked(plan: &Plan) -> PodTrial {
    let [Need::Trial(trial)] = plan.needs.as_slice() else {
        panic!("{:?}", plan.needs);
    };
    assert!(plan.writes.is_empty() && plan.status.is_none());
    (**trial).clone()
}

fn deletions(plan: &Plan) -> usize {
    let writes = plan.writes.iter().flat_map(|object| &object.steps);
    writes
        .filter(|step| step.write.intent() == Intent::DELETE_POD)
        .count()
}

/// The revision exists, and the workload asks for a trial of its pod.
fn updated(world: &mut dyn Workload) -> PodTrial {
    image(world, "web:2");
    asked(&world.plan())
}

fn refused(code: u16) -> Answer {
    Answer::Refused {
        code,
        message: "no such priority class".into(),
    }
}

/// Answers the trials of an update: refused, and whether the control is accepted.
fn refuse(world: &mut dyn Workload, control: Answer) {
    let trial = updated(world);
    let now = world.cluster().now;
    world.cluster().memory.trials.note(&trial, refused(403), now);
    let trial = asked(&world.plan());
    assert_eq!(trial.role, Role::Control);
    world.cluster().memory.trials.note(&trial, control, now);
}

fn stalled(world: &mut dyn Workload) -> Option<Value> {
    let conditions = world.cluster().set["status"]["conditions"].as_array().cloned();
    let mut conditions = conditions.into_iter().flatten();
    conditions.find(|condition| condition["type"] == "Stalled")
}

#[test]
fn a_pod_of_the_new_revision_is_tried_once_before_the_first_deletion() {
    for (kind, mut world) in kinds() {
        let trial = updated(&mut *world);
        assert_eq!(
            (trial.role, trial.namespace.as_str()),
            (Role::Update, "shop"),
            "{kind}"
        );
        let pod: Value = serde_json::from_str(&trial.pod).unwrap();
        assert_eq!(pod["metadata"].get("name"), None, "{kind}: the name is generated");
        assert!(
            pod["metadata"]["generateName"]
                .as_str()
                .is_some_and(|name| name.ends_with('-'))
        );
        assert_eq!(pod["spec"]["containers"][0]["image"], "web:2", "{kind}");
        let volumes = pod["spec"]["volumes"].as_array().map_or(0, Vec::len);
        assert_eq!(
            volumes,
            usize::from(kind != "DaemonSet"),
            "{kind}: claims are volumes"
        );
        let labels = pod["metadata"]["labels"].as_object().unwrap();
        assert!(labels.values().all(Value::is_string), "{kind}: {labels:?}");
        let now = world.cluster().now;
        world.cluster().memory.trials.note(&trial, Answer::Accepted, now);
        let plan = world.plan();
        assert_eq!((deletions(&plan), plan.needs.len()), (1, 0), "{kind}");
        execute(&mut *world, &plan);
        settle(&mut *world);
        let pods = world.cluster().pods.values();
        let images: Vec<&Value> = pods.map(|pod| &pod["spec"]["containers"][0]["image"]).collect();
        assert_eq!(images, ["web:2"; 3], "{kind}: and never again");
    }
}

#[test]
fn a_rollout_whose_pods_are_refused_is_held_and_says_why() {
    for (kind, mut world) in kinds() {
        refuse(&mut *world, Answer::Accepted);
        let plan = world.plan();
        assert_eq!((deletions(&plan), plan.needs.len()), (0, 0), "{kind}");
        assert!(
            plan.requeue.is_some_and(|after| after.as_secs() <= 10),
            "{kind}: {:?}",
            plan.requeue
        );
        assert!(
            plan.events.iter().any(|event| event.reason.name == "Stalled"),
            "{kind}"
        );
        assert!(
            plan.why
                .iter()
                .any(|why| why.text.contains("no such priority class")),
            "{kind}"
        );
        execute(&mut *world, &plan);
        let condition = stalled(&mut *world).unwrap();
        assert_eq!(
            (&condition["status"], &condition["reason"]),
            (&json!("True"), &json!("PodsRefused"))
        );
        let message = condition["message"].as_str().unwrap();
        assert!(message.contains("no such priority class"), "{message}");
        let again = world.plan();
        assert!(
            again.events.is_empty() && again.status.is_none(),
            "{kind}: it is said once"
        );

        world.cluster().pass(10);
        let trial = asked(&world.plan());
        assert_eq!(trial.role, Role::Update, "{kind}: it is tried again");
        let now = world.cluster().now;
        world.cluster().memory.trials.note(&trial, Answer::Accepted, now);
        let plan = world.plan();
        assert_eq!(deletions(&plan), 1, "{kind}");
        execute(&mut *world, &plan);
        settle(&mut *world);
        assert_eq!(stalled(&mut *world), None, "{kind}");
    }
}

#[test]
fn what_is_refused_for_old_pods_too_holds_nothing() {
    for (kind, mut world) in kinds() {
        refuse(&mut *world, refused(403));
        assert_eq!(deletions(&world.plan()), 1, "{kind}: a full quota");
    }
    for (kind, mut world) in kinds() {
        let trial = updated(&mut *world);
        let now = world.cluster().now;
        world.cluster().memory.trials.note(&trial, Answer::Unclear, now);
        assert_eq!(deletions(&world.plan()), 1, "{kind}: a server that is too busy");
    }
}

#[test]
fn a_held_rollout_can_be_undone_paused_and_scaled() {
    for (kind, mut world) in kinds() {
        refuse(&mut *world, Answer::Accepted);
        let plan = world.plan();
        execute(&mut *world, &plan);
        world
            .cluster()
            .edit(|spec| spec["updateStrategy"]["rollingUpdate"]["paused"] = json!(true));
        let plan = world.plan();
        assert!(plan.needs.is_empty(), "{kind}");
        execute(&mut *world, &plan);
        assert_eq!(stalled(&mut *world), None, "{kind}: somebody holds it on purpose");
        world
            .cluster()
            .edit(|spec| spec["updateStrategy"]["rollingUpdate"]["paused"] = json!(false));
        if kind != "DaemonSet" {
            world.cluster().edit(|spec| spec["replicas"] = json!(2));
            let plan = world.plan();
            assert_eq!(deletions(&plan), 1, "{kind}");
            execute(&mut *world, &plan);
            world.work();
        }
        image(&mut *world, "web:1");
        settle(&mut *world);
        assert_eq!(stalled(&mut *world), None, "{kind}");
        let pods = world.cluster().pods.values();
        assert!(
            pods.into_iter()
                .all(|pod| pod["spec"]["containers"][0]["image"] == "web:1")
        );
    }
}

#[test]
fn updates_in_place_are_not_tried() {
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let in_place = json!({"podUpdatePolicy": "InPlaceIfPossible", "partition": 0, "maxUnavailable": 1});
    let mut stateful = spec(&in_place);
    stateful["template"]["spec"]["readinessGates"] = json!([{"conditionType": "InPlaceUpdateReady"}]);
    let worlds: [Box<dyn Workload>; 2] = [
        Box::new(CloneSets::new(spec(&in_place), now)),
        Box::new(StatefulSets::new(stateful, now)),
    ];
    for mut world in worlds {
        world.cluster().memory.trials = Trials::made();
        settle(&mut *world);
        image(&mut *world, "web:2");
        settle(&mut *world);
        let pods = world.cluster().pods.values();
        assert!(
            pods.into_iter()
                .all(|pod| pod["spec"]["containers"][0]["image"] == "web:2")
        );
    }
}
