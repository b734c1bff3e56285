//! What clients read: conditions and events, and the numbers of a plan.

use kruise_plan_kit::{Batching, Explain, Intent, Plan, Step};
use serde_json::{Value, json};

use super::world::World;

fn world(change: Value) -> World {
    let mut spec = json!({
        "replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "serviceName": "web",
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {
            "podUpdatePolicy": "ReCreate", "partition": 0, "maxUnavailable": 1}},
        "template": {"metadata": {"labels": {"app": "web"}},
                     "spec": {"containers": [{"name": "main", "image": "web:1"}],
                              "readinessGates": [{"conditionType": "InPlaceUpdateReady"}]}},
    });
    kruise_plan_test_kit::merge(&mut spec, &change);
    World::new(spec, "2026-01-01T00:00:00Z".parse().unwrap())
}

/// Plans and executes once.
fn step(world: &mut World) -> Plan {
    let plan = world.plan(Explain::No);
    for object in &plan.writes {
        let mut previous = None;
        for step in &object.steps {
            world.apply(&step.write, &mut previous).unwrap();
        }
    }
    world.report(&plan);
    plan
}

fn condition(world: &World, kind: &str) -> Option<Value> {
    let conditions = world.set["status"]["conditions"].as_array()?;
    conditions
        .iter()
        .find(|condition| condition["type"] == kind)
        .cloned()
}

/// The reasons of `Progressing` until the set comes to rest, without repetitions.
fn reasons(world: &mut World) -> Vec<String> {
    let mut seen = Vec::new();
    let mut quiet = 0;
    while quiet < 3 {
        let before = world.pods.clone();
        step(world);
        let names: Vec<String> = world.pods.keys().cloned().collect();
        world.nodes(names.iter());
        world.pass(1);
        let progressing = condition(world, "Progressing").unwrap_or_default();
        seen.push(progressing["reason"].as_str().unwrap_or_default().to_owned());
        quiet = if before == world.pods { quiet + 1 } else { 0 };
        assert!(seen.len() < 100, "no rest: {seen:?}");
    }
    seen.dedup();
    seen
}

fn image(world: &mut World, image: &str) {
    world.edit(|spec| spec["template"]["spec"]["containers"][0]["image"] = json!(image));
}

#[test]
fn progressing_tells_how_far_a_rollout_is_and_never_of_a_deadline() {
    let mut world = world(json!({}));
    assert_eq!(reasons(&mut world), ["Updated", "Available"]);
    world.edit(|spec| spec["updateStrategy"]["rollingUpdate"]["partition"] = json!(1));
    image(&mut world, "web:2");
    assert_eq!(reasons(&mut world), ["Updated", "PartitionAvailable"]);
    world.edit(|spec| {
        spec["updateStrategy"]["rollingUpdate"]["paused"] = json!(true);
        spec["updateStrategy"]["rollingUpdate"]["partition"] = json!(0);
    });
    assert_eq!(reasons(&mut world), ["Paused"]);
    world.edit(|spec| spec["updateStrategy"]["rollingUpdate"]["paused"] = json!(false));
    assert_eq!(reasons(&mut world), ["Updated", "Available"]);
}

#[test]
fn a_rollout_that_does_not_move_is_stalled_and_says_what_holds_it() {
    let mut world = world(json!({}));
    reasons(&mut world);
    world.broken_image = Some("web:2".into());
    image(&mut world, "web:2");
    reasons(&mut world);
    assert_eq!(condition(&world, "Stalled"), None);
    world.pass(3600);
    let plan = step(&mut world);
    assert_eq!(plan.writes, []);
    let stalled = condition(&world, "Stalled").unwrap();
    assert_eq!(stalled["status"], "True");
    let progressing = condition(&world, "Progressing").unwrap();
    assert_ne!(progressing["reason"], "ProgressDeadlineExceeded");
    // A pod that breaks in a set at rest is no rollout.
    let mut world = self::world(json!({}));
    reasons(&mut world);
    world.pass(100);
    world.crash("web-1");
    world.pass(3600);
    step(&mut world);
    assert_eq!(condition(&world, "Stalled"), None);
}

#[test]
fn a_failed_attempt_is_a_condition_until_one_succeeds() {
    let mut world = world(json!({}));
    reasons(&mut world);
    for (kind, verb) in [("FailedCreatePod", "create"), ("FailedUpdatePod", "update")] {
        let error = Some("no room".to_owned());
        if verb == "create" {
            world.memory.create_error.clone_from(&error);
        } else {
            world.memory.update_error.clone_from(&error);
        }
        assert!(step(&mut world).status.is_some());
        let found = condition(&world, kind).unwrap();
        let message = format!("StatefulPodControl failed to {verb} Pod error: no room");
        assert_eq!(found["message"], *message);
        assert_eq!(
            (&found["status"], &found["reason"]),
            (&json!("True"), &Value::Null)
        );
        assert!(found.get("lastUpdateTime").is_none(), "{found}");
        // It is kept, and not written again.
        assert_eq!(step(&mut world).status, None);
        world.memory.create_error = None;
        world.memory.update_error = None;
        step(&mut world);
        assert_eq!(condition(&world, kind), None);
    }
}

#[test]
fn new_pods_of_a_parallel_set_start_in_growing_batches_the_lowest_first() {
    let plan = world(json!({"replicas": 20})).plan(Explain::No);
    let created = plan
        .writes
        .iter()
        .filter(|object| object.steps[0].write.intent() == Intent::CREATE_POD);
    let (names, batching): (Vec<String>, Vec<Batching>) = created
        .map(|object| (object.steps[0].write.target().name.clone(), object.batching))
        .unzip();
    let wanted: Vec<String> = (0..20).map(|ordinal| format!("web-{ordinal}")).collect();
    assert_eq!(names, wanted);
    assert!(batching.iter().all(|batching| *batching == Batching::SlowStart));
}

#[test]
fn two_billion_replicas_are_created_five_thousand_at_a_time() {
    for reserved in [json!([]), json!(["10-1000000000", 3])] {
        let spec = json!({"replicas": 1_000_000_000, "reserveOrdinals": reserved});
        let plan = world(spec).plan(Explain::Yes);
        let steps = plan.writes.iter().flat_map(|object| &object.steps);
        let created = steps.filter(|step| step.write.intent() == Intent::CREATE_POD);
        assert_eq!(created.count(), 5000);
    }
}

/// What is said after a step, done or failed.
fn described(step: &Step) -> [String; 4] {
    let (done, failed) = (step.done.as_ref().unwrap(), step.failed.as_ref().unwrap());
    [
        done.reason.name.to_owned(),
        done.message.clone(),
        failed.reason.name.to_owned(),
        failed.prefix.clone() + &failed.suffix,
    ]
}

#[test]
fn events_are_those_that_clients_know() {
    let claim =
        json!({"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}});
    let mut world = world(json!({"replicas": 1, "volumeClaimTemplates": [claim]}));
    let mut all = Vec::new();
    let mut collect = |plan: Plan| {
        let steps = plan.writes.into_iter().flat_map(|object| object.steps);
        let steps = steps.filter(|step| step.done.is_some());
        all.extend(steps.map(|step| described(&step)));
    };
    collect(step(&mut world));
    reasons(&mut world);
    world.edit(|spec| spec["replicas"] = json!(0));
    collect(step(&mut world));
    let expected = [
        [
            "SuccessfulCreate",
            "create Claim data-web-0 Pod web-0 in StatefulSet web success",
            "FailedCreate",
            "create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: ",
        ],
        [
            "SuccessfulCreate",
            "create Pod web-0 in StatefulSet web successful",
            "FailedCreate",
            "create Pod web-0 in StatefulSet web failed error: ",
        ],
        [
            "SuccessfulDelete",
            "delete Pod web-0 in StatefulSet web successful",
            "FailedDelete",
            "delete Pod web-0 in StatefulSet web failed error: ",
        ],
    ];
    assert_eq!(all, expected);
}

#[test]
fn a_pod_in_place_is_told_of_with_its_revision() {
    let policy = json!({"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible"}});
    let mut world = world(json!({"replicas": 1, "updateStrategy": policy}));
    reasons(&mut world);
    image(&mut world, "web:2");
    let plan = step(&mut world);
    let revision = world.set["status"]["updateRevision"].as_str().unwrap();
    let mut steps = plan.writes.iter().flat_map(|object| &object.steps);
    let update = steps
        .find(|step| step.write.intent() == Intent::UPDATE_IN_PLACE)
        .unwrap();
    let expected = [
        "SuccessfulUpdatePodInPlace".to_owned(),
        format!("successfully update pod web-0 in-place(revision {revision})"),
        "FailedUpdatePodInPlace".to_owned(),
        format!("failed to update pod web-0 in-place(revision {revision}): "),
    ];
    assert_eq!(described(update), expected);
}

/// The job that pulls the image of a rollout ahead, with these fields and annotations of the set.
fn pull_job(fields: Value, annotations: Value) -> Value {
    let mut rolling = json!({"podUpdatePolicy": "InPlaceIfPossible", "partition": 0});
    rolling["inPlaceUpdateStrategy"] = fields;
    let mut world = world(json!({"replicas": 5, "updateStrategy": {"rollingUpdate": rolling}}));
    reasons(&mut world);
    world.options.images_ahead = true;
    world.set["metadata"]["annotations"] = annotations;
    world.edit(|spec| spec["updateStrategy"]["rollingUpdate"]["partition"] = json!(5));
    image(&mut world, "web:2");
    // The revision comes first.
    step(&mut world);
    step(&mut world);
    let job = world.jobs.values().next().unwrap();
    json!([
        job["spec"]["parallelism"],
        job["spec"]["pullPolicy"]["timeoutSeconds"]
    ])
}

#[test]
fn fields_about_images_pulled_ahead_come_before_the_annotations() {
    let annotations = json!({"apps.kruise.io/image-predownload-parallelism": "7",
                             "apps.kruise.io/image-predownload-timeout-seconds": "77"});
    let fields = json!({"imagePreDownloadParallelism": 3, "imagePreDownloadTimeoutSeconds": 33});
    assert_eq!(pull_job(fields.clone(), json!({})), json!([3, 33]));
    assert_eq!(pull_job(fields, annotations.clone()), json!([3, 33]));
    assert_eq!(pull_job(json!({}), annotations), json!([7, 77]));
    assert_eq!(pull_job(json!({}), json!({})), json!([1, 300]));
}
