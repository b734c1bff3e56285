//! Copies of the pull secrets of jobs.

use kruise_plan_kit::{Patch, ResourceId, Write};
use serde_json::{Value, json};

use crate::world::{AGENT, World, tags, world};

const JOBS: ResourceId = kruise_api::imagepulljob::RESOURCE;
const SECRETS: ResourceId = ResourceId::SECRETS;

#[test]
fn the_copy_of_a_pull_secret_is_shared_follows_its_original_and_goes_with_the_last_job() {
    let mut world = world(&["n1"]);
    world.secret("shop", "reg", "a");
    let last_applied = json!({"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "old", "x": "y"}}});
    world.edit(SECRETS, "shop", "reg", &last_applied);
    let spec = json!({"pullSecrets": ["reg"], "completionPolicy": {"type": "Never"}});
    world.job("one", &spec);
    world.job("two", &spec);
    world.settle();
    let copies = |world: &World| -> Vec<Value> {
        let all = world
            .all(SECRETS)
            .filter(|secret| secret["metadata"]["namespace"] == AGENT);
        all.cloned().collect()
    };
    let [copy] = copies(&world).try_into().unwrap();
    assert_eq!(
        copy["metadata"]["annotations"],
        json!({"x": "y", "imagepulljobs.kruise.io/source-key": "shop/reg",
            "imagepulljobs.kruise.io/references": "shop/one,shop/two", "imagepulljobs.kruise.io/mode": "batch"})
    );
    assert_eq!(copy["metadata"]["labels"], json!({"team": "shop"}));
    assert_eq!(
        (&copy["type"], &copy["data"][".dockerconfigjson"]),
        (&json!("kubernetes.io/dockerconfigjson"), &json!("a"))
    );
    let name = copy["metadata"]["name"].as_str().unwrap();
    let digits = name.strip_prefix("reg-").unwrap();
    assert!(
        digits.len() == 6 && digits.chars().all(|digit| digit.is_ascii_hexdigit()),
        "{name}"
    );
    let named = &world.image("n1")["spec"]["images"]["app"]["pullSecrets"];
    assert_eq!(
        *named,
        json!([{"namespace": AGENT, "name": name, "mode": "batch"}])
    );
    world.edit(
        SECRETS,
        "shop",
        "reg",
        &json!({"data": {".dockerconfigjson": null, ".other": "b"}}),
    );
    world.settle();
    assert_eq!(copies(&world)[0]["data"], json!({".other": "b"}));
    world.delete(JOBS, "shop", "one");
    world.settle();
    assert_eq!(
        copies(&world)[0]["metadata"]["annotations"]["imagepulljobs.kruise.io/references"],
        "shop/two"
    );
    world.delete(JOBS, "shop", "two");
    world.settle();
    assert!(copies(&world).is_empty() && world.names(JOBS).is_empty());
}

#[test]
fn an_ended_job_keeps_its_copy_until_it_is_deleted() {
    let mut world = world(&["n1"]);
    world.secret("shop", "reg", "a");
    world.job("warm", &json!({"pullSecrets": ["reg"]}));
    world.settle();
    world.report("n1", "app:1", "Succeeded");
    world.settle();
    assert!(world.the_job("warm")["status"]["completionTime"].is_string());
    let copy = |world: &World| {
        let mut all = world.all(SECRETS);
        all.find(|secret| secret["metadata"]["namespace"] == AGENT)
            .cloned()
    };
    assert_eq!(copy(&world).unwrap()["data"][".dockerconfigjson"], "a");
    // It follows its original, and is there for the next job.
    world.edit(
        SECRETS,
        "shop",
        "reg",
        &json!({"data": {".dockerconfigjson": "b"}}),
    );
    world.settle();
    assert_eq!(copy(&world).unwrap()["data"][".dockerconfigjson"], "b");
    world.job("next", &json!({"pullSecrets": ["reg"], "image": "app:2"}));
    world.settle();
    world.delete(JOBS, "shop", "warm");
    world.settle();
    let listed =
        copy(&world).unwrap()["metadata"]["annotations"]["imagepulljobs.kruise.io/references"].clone();
    assert_eq!(listed, "shop/next");
    world.delete(JOBS, "shop", "next");
    world.settle();
    assert!(copy(&world).is_none() && world.names(JOBS).is_empty());
}

#[test]
fn a_job_that_openkruise_ended_gets_no_copy() {
    let mut world = world(&["n1"]);
    world.secret("shop", "reg", "a");
    world.job("warm", &json!({"pullSecrets": ["reg"]}));
    let ended =
        json!({"status": {"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:00Z"}});
    world.edit(JOBS, "shop", "warm", &ended);
    world.settle();
    assert_eq!(world.names(SECRETS), ["reg"]);
}

#[test]
fn a_reference_that_another_job_adds_meanwhile_is_not_lost() {
    let mut world = world(&["n1"]);
    world.secret("shop", "reg", "a");
    let spec = json!({"pullSecrets": ["reg"], "completionPolicy": {"type": "Never"}});
    world.job("one", &spec);
    world.settle();
    world.job("two", &spec);
    world.delete(JOBS, "shop", "one");
    let release = world.plan_job("one");
    world.settle_job("two");
    let late = &release.writes[0].steps[0].write;
    assert!(matches!(late, Write::Delete { .. }));
    assert!(
        world.apply(late, &mut None).is_err(),
        "the copy has another owner now"
    );
    world.settle();
    assert_eq!(world.names(JOBS), ["two"]);
    assert_eq!(world.names(SECRETS).len(), 2);
}

#[test]
fn a_missing_pull_secret_is_reported_and_the_job_goes_on() {
    let mut world = world(&["n1"]);
    world.secret("shop", "reg", "a");
    world.job("warm", &json!({"pullSecrets": ["reg", "lost"]}));
    world.settle();
    assert_eq!(
        world.events,
        [
            "PullSecretMissing: pull secret lost does not exist, or holds no credentials of images; nodes pull without it"
        ]
    );
    let named = world.image("n1")["spec"]["images"]["app"]["pullSecrets"].clone();
    assert_eq!(named.as_array().unwrap().len(), 1);
    // It appears while the node pulls.
    world.secret("shop", "lost", "b");
    world.settle();
    let named = world.image("n1")["spec"]["images"]["app"]["pullSecrets"].clone();
    assert_eq!(named.as_array().unwrap().len(), 2);
    assert_eq!(
        tags(&world, "n1", "app")[0].get("version"),
        None,
        "the round stays as it is"
    );
}

/// Gives a secret another type, as somebody does who creates it anew.
fn retype(world: &mut World, namespace: &str, name: &str, kind: &str) {
    world.edit(SECRETS, namespace, name, &json!({"type": kind}));
}

#[test]
fn a_secret_without_credentials_of_images_is_not_copied_and_that_is_said() {
    for kind in [
        "Opaque",
        "kubernetes.io/tls",
        "kubernetes.io/service-account-token",
        "kubernetes.io/basic-auth",
    ] {
        let mut world = world(&["n1"]);
        for name in ["reg", "old", "key"] {
            world.secret("shop", name, name);
        }
        retype(&mut world, "shop", "old", "kubernetes.io/dockercfg");
        retype(&mut world, "shop", "key", kind);
        world.job("warm", &json!({"pullSecrets": ["reg", "key", "old"]}));
        world.settle();
        assert_eq!(
            world.events,
            [format!(
                "PullSecretRefused: pull secret key has the type {kind}, not kubernetes.io/dockerconfigjson or \
                 kubernetes.io/dockercfg; nodes cannot pull with it, and it is not copied"
            )]
        );
        let copies = world
            .all(SECRETS)
            .filter(|secret| secret["metadata"]["namespace"] == AGENT);
        let sources: Vec<&Value> = copies
            .map(|copy| &copy["metadata"]["annotations"]["imagepulljobs.kruise.io/source-key"])
            .collect();
        assert_eq!(sources, ["shop/old", "shop/reg"]);
        let named = &world.image("n1")["spec"]["images"]["app"]["pullSecrets"];
        assert_eq!(named.as_array().unwrap().len(), 2, "{named}");
        assert_eq!(world.active("warm"), ["n1"], "the job goes on");
    }
}

#[test]
fn a_copy_of_a_secret_without_credentials_that_openkruise_made_is_released() {
    let mut world = world(&["n1"]);
    world.secret("shop", "key", "a");
    world.job(
        "warm",
        &json!({"pullSecrets": ["key"], "completionPolicy": {"type": "Never"}}),
    );
    world.settle();
    let copy = |world: &World| world.names(SECRETS).into_iter().find(|name| name != "key");
    let made = copy(&world).unwrap();
    for (namespace, name) in [("shop", "key"), (AGENT, &*made)] {
        retype(&mut world, namespace, name, "Opaque");
    }
    world.settle();
    assert_eq!(copy(&world), None);
    assert_eq!(world.names(SECRETS), ["key"]);
}

#[test]
fn jobs_in_the_namespace_of_the_agents_use_their_secrets_themselves() {
    let mut world = world(&["n1"]);
    world.secret(AGENT, "reg", "a");
    world.job("warm", &json!({"pullSecrets": ["reg"]}));
    let mut job = world.the_job("warm").clone();
    job["metadata"]["namespace"] = json!(AGENT);
    let job = kruise_api::imagepulljob::ImagePullJob::from_value(job).unwrap();
    let plan = world.plan_of(&job);
    let Write::Patch {
        patch: Patch::Merge(patch),
        ..
    } = &plan.writes[0].steps[0].write
    else {
        panic!("{plan:#?}")
    };
    let secrets = &patch["spec"]["images"]["app"]["pullSecrets"];
    assert_eq!(*secrets, json!([{"namespace": AGENT, "name": "reg"}]));
}

#[test]
fn a_manager_that_does_not_see_copies_reports_that_and_nodes_pull_without_secrets() {
    let mut world = world(&["n1"]);
    world.sees_copies = false;
    world.secret("shop", "reg", "a");
    world.job("warm", &json!({"pullSecrets": ["reg"]}));
    world.settle();
    assert_eq!(world.active("warm"), ["n1"]);
    assert_eq!(world.names(SECRETS), ["reg"]);
    assert!(world.the_job("warm")["metadata"]["finalizers"].is_null());
    let [event] = &world.events[..] else {
        panic!("{:?}", world.events)
    };
    assert!(
        event.starts_with("FailedCopyPullSecret: pull secret reg is not copied"),
        "{event}"
    );
}

#[test]
fn a_deleted_job_goes_although_the_namespace_of_the_copies_is_gone() {
    let mut world = world(&["n1"]);
    world.secret("shop", "reg", "a");
    world.job(
        "warm",
        &json!({"pullSecrets": ["reg"], "completionPolicy": {"type": "Never"}}),
    );
    world.settle();
    let copy = world.names(SECRETS).remove(0);
    world.delete(SECRETS, AGENT, &copy);
    world.delete(JOBS, "shop", "warm");
    assert_eq!(world.names(JOBS), ["warm"], "its finalizer holds it");
    world.settle();
    assert!(world.names(JOBS).is_empty());
}
