use std::sync::Arc;

use kruise_api::names::{REVISION_HASH, statefulset::POD_NAME};
use kruise_plan_kit::{
    Body, Intent, ObjectWrites, Part, Patch, Phase, Plan, Precondition, ResourceId, Step, Target, Write,
};
use kruise_views::PodView;
use serde_json::{Value, json};

use super::{
    acts::{Fate, Seen, Wish, seen, wishes},
    claims::GRACE,
    matcher::{Before, FirstStep, Matcher, Namespace},
    owner::Owner,
    report::{Report, Tally},
    *,
};

mod coming;
mod ends;
mod sidecars;
mod used_up;

const NAME: &str = "cloneset-controller";

/// What changed in a pod: label, image, and whether it is being deleted.
fn pod(name: &str, revision: &str, image: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "shop", "uid": name, "resourceVersion": "50",
                        "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {REVISION_HASH: revision}},
           "spec": {"containers": [{"name": "main", "image": image}]},
           "status": {"conditions": [{"type": "Ready", "status": "True"}]}})
}

fn with(mut pod: Value, pointer: &str, value: Value) -> Value {
    let (parent, member) = pointer.rsplit_once('/').unwrap();
    pod.pointer_mut(parent).unwrap()[member.replace("~1", "/")] = value;
    pod
}

fn deleting(pod: Value) -> Value {
    with(pod, "/metadata/deletionTimestamp", "2026-01-01T01:00:00Z".into())
}

fn view(pod: &Value) -> PodView {
    serde_json::from_value(pod.clone()).unwrap()
}

/// What becomes of a pod by an event that leads from `old` to `new`.
fn act(old: Option<&Value>, new: &Value) -> Option<Seen> {
    let (old, new) = (old.map(view), view(new));
    seen(old.as_ref(), &new, false)
}

fn target(name: &str) -> Target {
    Target {
        resource: ResourceId::PODS,
        namespace: "shop".into(),
        name: name.into(),
    }
}

fn creates(name: &str, revision: &str) -> Write {
    let base = json!({"metadata": {"labels": {"app": "web"}}});
    Write::Create {
        intent: Intent::CREATE_POD,
        target: target(name),
        body: Body {
            base: Arc::new(base),
            set: vec![("/metadata/labels/controller-revision-hash", revision.into())],
        },
        owner_uid: Some("owner".into()),
    }
}

fn creates_ordinal(name: &str, revision: &str) -> Write {
    let labels = json!({POD_NAME: name, REVISION_HASH: revision});
    Write::Create {
        intent: Intent::CREATE_POD,
        target: target(name),
        body: json!({"metadata": {"labels": labels}}).into(),
        owner_uid: Some("owner".into()),
    }
}

fn deletes(name: &str) -> Write {
    Write::Delete {
        intent: Intent::DELETE_POD,
        target: target(name),
        precondition: Precondition::Uid(name.into()),
    }
}

fn updates(name: &str, revision: &str, image: &str) -> Write {
    let body = json!({"metadata": {"labels": {REVISION_HASH: revision}},
                      "spec": {"containers": [{"name": "main", "image": image}]}});
    Write::Patch {
        intent: Intent::UPDATE_IN_PLACE,
        target: target(name),
        part: Part::Main,
        patch: Patch::Strategic(body.into()),
        precondition: Precondition::Uid(name.into()),
    }
}

fn plan(writes: Vec<Write>) -> Plan {
    let writes = writes.into_iter().map(|write| {
        let steps = vec![Step::new(write, "so it is")];
        ObjectWrites::new(Phase::Pods, steps)
    });
    Plan {
        writes: writes.collect(),
        ..Plan::default()
    }
}

/// What a plan with these writes would do, if these pods are in the cache.
fn wanted(pods: &[&Value], writes: Vec<Write>) -> Vec<Wish> {
    let pods: Vec<PodView> = pods.iter().map(|pod| view(pod)).collect();
    wishes(&plan(writes), |_, name| {
        let pod = pods.iter().find(|pod| &*pod.name == name)?;
        Some(Traits::of(pod))
    })
}

/// A rehearsal of one object.
struct Scene {
    matcher: Matcher,
    owner: Owner,
    second: u64,
}

impl Scene {
    /// The cache has the owner at version 10.
    fn new() -> Self {
        let mut scene = Self {
            matcher: Matcher::default(),
            owner: Owner {
                controller: NAME,
                key: ObjectKey::new("shop", "web"),
            },
            second: 0,
        };
        scene.changed(10, 1, true);
        scene
    }

    /// The cache gets the owner at another version.
    fn changed(&mut self, version: u64, generation: i64, stays: bool) {
        let state = ObjectState {
            version: Some(Version::new(version)),
            generation: Some(generation),
            stays,
        };
        self.matcher.changed(&self.owner, state);
    }

    fn now(&self) -> Duration {
        Duration::from_secs(self.second)
    }

    /// A first step leads to this version of a pod.
    fn begins(&mut self, pod: &str, version: u64, wishes: Vec<Wish>) {
        let version = Some(Version::new(version));
        let (step, now) = (FirstStep { pod, version }, self.now());
        self.matcher.begins(&self.owner, step, wishes, now);
    }

    fn planned(&mut self, wishes: Vec<Wish>) {
        let now = self.now();
        self.matcher.planned(&self.owner, "CloneSet", &wishes, now);
    }

    /// The event of a pod, whose version is 50, while the cache has the owner at a version.
    fn seen_at(&mut self, owner: u64, before: Option<&[Wish]>, seen: Option<Seen>) {
        let before = Before {
            kind: "CloneSet",
            version: Some(Version::new(owner)),
            wishes: before,
        };
        let now = self.now();
        self.matcher.seen(&self.owner, &before, seen.unwrap(), now);
    }

    fn seen(&mut self, before: &[Wish], seen: Option<Seen>) {
        self.seen_at(10, Some(before), seen);
    }

    fn report(&self) -> Report {
        self.matcher.report(self.now())
    }

    fn tally(&self) -> Tally {
        self.report().kinds.get("CloneSet").cloned().unwrap_or_default()
    }

    /// The differences, as they are printed.
    fn differences(&self) -> Vec<String> {
        let differences = self.report().differences.into_iter();
        differences
            .map(|difference| format!("{}: {}", difference.about, difference.text))
            .collect()
    }
}

#[test]
fn only_creation_deletion_and_another_image_or_revision_decide_what_becomes_of_a_pod() {
    let old = pod("web-a", "1", "web:1");
    let is = |new: &Value| act(Some(&old), new).map(|seen| seen.fate);
    assert_eq!(act(None, &old).map(|seen| seen.fate), Some(Fate::Created));
    assert_eq!(is(&old), None);
    assert_eq!(is(&with(old.clone(), "/metadata/labels/app", "web".into())), None);
    assert_eq!(is(&with(old.clone(), "/status/phase", "Failed".into())), None);
    assert_eq!(is(&pod("web-a", "1", "web:2")), Some(Fate::Updated));
    assert_eq!(is(&pod("web-a", "2", "web:1")), Some(Fate::Updated));
    assert_eq!(is(&deleting(old.clone())), Some(Fate::Deleted));

    let removed = seen(Some(&view(&old)), &view(&old), true);
    assert_eq!(
        removed.map(|seen| seen.fate),
        Some(Fate::Deleted),
        "without a grace period"
    );
    let gone = deleting(old);
    assert_eq!(act(Some(&gone), &gone), None);
    assert_eq!(
        seen(Some(&view(&gone)), &view(&gone), true),
        None,
        "it was told before"
    );
}

#[test]
fn what_the_plan_of_the_state_before_has_agrees() {
    let old = pod("web-a", "1", "web:1");
    let mut scene = Scene::new();
    let created = act(None, &pod("web-xyz", "2", "web:2"));
    scene.seen(&wanted(&[], vec![creates("web-abc", "2")]), created);
    let deleted = act(Some(&old), &deleting(old.clone()));
    scene.seen(&wanted(&[&old], vec![deletes("web-a")]), deleted);
    let updated = act(Some(&old), &pod("web-a", "2", "web:2"));
    scene.seen(&wanted(&[&old], vec![updates("web-a", "2", "web:2")]), updated);
    let tally = scene.tally();
    assert_eq!((tally.created, tally.updated, tally.deleted), (1, 1, 1));
    assert_eq!(scene.differences(), [""; 0]);
}

#[test]
fn an_update_in_two_parts_agrees_with_one_in_one() {
    let [old, labelled, new] = [("1", "web:1"), ("2", "web:1"), ("2", "web:2")]
        .map(|(revision, image)| pod("web-a", revision, image));
    let mut scene = Scene::new();
    let planned = wanted(&[&old], vec![updates("web-a", "2", "web:2")]);
    scene.seen(&planned, act(Some(&old), &labelled));
    scene.seen(&planned, act(Some(&labelled), &new));
    assert_eq!(scene.tally().updated, 2);
    assert_eq!(scene.differences(), [""; 0]);
}

#[test]
fn which_of_equal_pods_comes_first_is_no_difference_and_which_of_unequal_ones_is() {
    let [one, other] = ["web-a", "web-b"].map(|name| pod(name, "1", "web:1"));
    let unready = with(other.clone(), "/status/conditions", json!([]));
    let older = with(
        other.clone(),
        "/metadata/creationTimestamp",
        "2025-01-01T00:00:00Z".into(),
    );
    let newer = pod("web-b", "2", "web:2");
    for (other, differs) in [(&other, false), (&unready, true), (&older, true), (&newer, true)] {
        let mut scene = Scene::new();
        let planned = wanted(&[&one, other], vec![deletes("web-a")]);
        scene.seen(&planned, act(Some(other), &deleting(other.clone())));
        assert_eq!(!scene.differences().is_empty(), differs, "{other}");
        let mut scene = Scene::new();
        let planned = wanted(&[&one, other], vec![updates("web-a", "3", "web:3")]);
        scene.seen(
            &planned,
            act(
                Some(other),
                &with(pod("web-b", "3", "web:3"), "/status", json!({})),
            ),
        );
        assert_eq!(!scene.differences().is_empty(), differs, "{other}");
    }
}

#[test]
fn a_deletion_in_place_of_an_update_is_a_difference_with_what_would_have_been_done() {
    let old = pod("web-a", "1", "web:1");
    let mut scene = Scene::new();
    let planned = wanted(&[&old], vec![updates("web-a", "2", "web:2")]);
    scene.planned(planned.clone());
    scene.seen(&planned, act(Some(&old), &deleting(old.clone())));
    assert_eq!(
        scene.differences(),
        [
            "CloneSet shop/web: pod web-a was deleted: not planned by this build, and who did it is not known; it \
             would update-in-place pods/web-a: so it is"
        ]
    );
}

#[test]
fn an_update_in_place_of_a_deletion_is_a_difference() {
    let old = pod("web-a", "1", "web:1");
    let mut scene = Scene::new();
    let planned = wanted(&[&old], vec![deletes("web-a")]);
    scene.seen(&planned, act(Some(&old), &pod("web-a", "2", "web:2")));
    assert_eq!(
        scene.differences(),
        [
            "CloneSet shop/web: pod web-a was updated in place, revision 2, image of main web:2: not planned by this \
             build, and who did it is not known; it would delete-pod pods/web-a: so it is"
        ]
    );
}

#[test]
fn another_image_or_revision_than_planned_is_a_difference() {
    let old = pod("web-a", "1", "web:1");
    for (revision, image, differs) in [
        ("2", "web:2", false),
        ("2", "web:x", true),
        ("x", "web:2", true),
        ("1", "web:x", true),
    ] {
        let mut scene = Scene::new();
        let planned = wanted(&[&old], vec![updates("web-a", "2", "web:2")]);
        scene.seen(&planned, act(Some(&old), &pod("web-a", revision, image)));
        assert_eq!(
            scene.differences().len(),
            usize::from(differs),
            "{revision} {image}"
        );
    }
    let mut scene = Scene::new();
    let planned = wanted(&[], vec![creates("web-b", "2")]);
    scene.seen(&planned, act(None, &pod("web-c", "1", "web:1")));
    assert_eq!(
        scene.differences(),
        [
            "CloneSet shop/web: pod web-c was created, revision 1: not planned by this build, and who did it is not \
             known; it would create-pod pods/web-b: so it is"
        ]
    );
}

#[test]
fn another_ordinal_than_planned_is_a_difference() {
    for (name, differs) in [("web-1", false), ("web-2", true)] {
        let mut scene = Scene::new();
        let planned = wanted(&[], vec![creates_ordinal("web-1", "2")]);
        scene.seen(&planned, act(None, &pod(name, "2", "web:2")));
        assert_eq!(scene.differences().len(), usize::from(differs), "{name}");
    }
}

#[test]
fn what_is_done_at_rest_is_a_difference() {
    let old = pod("web-a", "1", "web:1");
    let mut scene = Scene::new();
    scene.planned(Vec::new());
    scene.seen(&[], act(Some(&old), &deleting(old.clone())));
    assert_eq!(
        scene.differences(),
        [
            "CloneSet shop/web: pod web-a was deleted: not planned by this build, and who did it is not known; it \
             would do nothing to the pods"
        ]
    );
}

#[test]
fn what_a_plan_wanted_shortly_before_agrees_and_what_one_wanted_long_before_does_not() {
    let old = pod("web-a", "1", "web:1");
    let planned = wanted(&[&old], vec![updates("web-a", "2", "web:2")]);
    for (pause, differs) in [(GRACE, false), (GRACE + Duration::from_secs(1), true)] {
        let mut scene = Scene::new();
        scene.planned(planned.clone());
        // The template changes once more, and the manager has not seen that.
        scene.planned(wanted(&[&old], vec![updates("web-a", "3", "web:3")]));
        scene.second = pause.as_secs();
        let newest = wanted(&[&old], vec![updates("web-a", "3", "web:3")]);
        scene.planned(newest.clone());
        scene.seen(&newest, act(Some(&old), &pod("web-a", "2", "web:2")));
        assert_eq!(!scene.differences().is_empty(), differs, "{pause:?}");
    }
}

#[test]
fn what_was_decided_before_the_first_of_several_writes_agrees() {
    let ready = |is: &str| {
        let conditions = json!([{"type": "InPlaceUpdateReady", "status": is}]);
        with(pod("web-a", "1", "web:1"), "/status/conditions", conditions)
    };
    let labelled = with(
        ready("True"),
        "/metadata/labels/lifecycle.apps.kruise.io~1state",
        "PreparingDelete".into(),
    );
    let first = |old: &Value, new: &Value| is_first_step(&view(old), &view(new));
    assert!(first(&ready("True"), &ready("False")) && first(&ready("True"), &labelled));
    assert!(!first(&ready("True"), &ready("True")) && !first(&ready("False"), &ready("True")));
    let unready = ready("False");
    let mut scene = Scene::new();
    let wishes = wanted(&[&ready("True")], vec![updates("web-a", "2", "web:2")]);
    scene.begins("web-a", 40, wishes);
    // A plan of the state between puts the pod back into service first.
    scene.seen(&[], act(Some(&unready), &pod("web-a", "2", "web:2")));
    assert_eq!((scene.tally().updated, scene.differences()), (1, Vec::new()));
}

#[test]
fn what_goes_on_from_a_first_step_is_not_compared_if_its_specification_arrives_in_between() {
    let old = pod("web-a", "1", "web:1");
    for (begun, differs) in [("web-a", false), ("web-b", true)] {
        for (specified, differs) in [(39, differs), (41, true)] {
            let mut scene = Scene::new();
            scene.begins(begun, 40, Vec::new());
            scene.changed(specified, 2, true);
            scene.seen_at(specified, Some(&[]), act(Some(&old), &pod("web-a", "2", "web:2")));
            assert_eq!(!scene.differences().is_empty(), differs, "{begun} {specified}");
            scene.seen_at(specified, Some(&[]), act(Some(&old), &pod("web-a", "3", "web:3")));
            assert_eq!(
                scene.differences().len(),
                1 + usize::from(differs),
                "the next one is compared"
            );
        }
    }
}

#[test]
fn what_the_plan_of_another_object_wants_for_this_very_pod_agrees() {
    let [one, other] = ["web-a", "web-b"].map(|name| pod(name, "1", "web:1"));
    let wishes = wanted(&[&one], vec![updates("web-a", "1", "web:2")]);
    for (pod_before, differs) in [(&one, false), (&other, true)] {
        let mut scene = Scene::new();
        let of_sidecars = Owner {
            controller: "sidecarset-controller",
            key: ObjectKey::new("", "logs"),
        };
        scene
            .matcher
            .planned(&of_sidecars, "SidecarSet", &wishes, Duration::ZERO);
        let new = with(
            pod_before.clone(),
            "/spec/containers",
            json!([{"name": "main", "image": "web:2"}]),
        );
        scene.seen(&[], act(Some(pod_before), &new));
        assert_eq!(!scene.differences().is_empty(), differs, "{pod_before}");
    }
}

#[test]
fn a_write_that_is_older_than_the_specification_in_the_cache_is_not_compared() {
    let old = pod("web-a", "1", "web:1");
    let updated = || act(Some(&old), &pod("web-a", "2", "web:2"));
    let newer = wanted(&[&old], vec![updates("web-a", "3", "web:3")]);
    for (version, generation, differs) in [(51, 2, false), (49, 2, true), (51, 1, true)] {
        let mut scene = Scene::new();
        scene.changed(version, generation, true);
        scene.seen_at(version, Some(&newer), updated());
        assert_eq!(!scene.differences().is_empty(), differs, "{version} {generation}");
        assert_eq!(
            scene.tally().not_compared,
            usize::from(!differs),
            "{version} {generation}"
        );
    }
    let mut scene = Scene::new();
    scene.seen_at(51, Some(&newer), updated());
    assert_eq!(
        scene.differences(),
        [""; 0],
        "a version that was not told of may be another specification"
    );
    scene.changed(51, 2, true);
    let planned = wanted(&[&old], vec![updates("web-a", "2", "web:2")]);
    scene.seen_at(51, Some(&planned), updated());
    assert_eq!(
        scene.tally().updated,
        1,
        "an agreement is one whatever the versions are"
    );
}

#[test]
fn a_write_whose_specification_arrives_later_is_not_compared() {
    let old = pod("web-a", "1", "web:1");
    for (version, generation, differs) in [(49, 2, false), (51, 2, true), (49, 1, true)] {
        let mut scene = Scene::new();
        scene.seen(&[], act(Some(&old), &pod("web-a", "2", "web:2")));
        scene.changed(version, generation, true);
        assert_eq!(!scene.differences().is_empty(), differs, "{version} {generation}");
        assert_eq!(
            scene.tally().not_compared,
            usize::from(!differs),
            "{version} {generation}"
        );
    }
}

#[test]
fn a_write_without_a_plan_is_not_compared() {
    let mut scene = Scene::new();
    scene.seen_at(10, None, act(None, &pod("web-a", "1", "web:1")));
    assert_eq!((scene.tally().not_compared, scene.differences().len()), (1, 0));
}

#[test]
fn deletions_that_follow_that_of_the_owner_are_no_difference_in_either_order() {
    let old = pod("web-a", "1", "web:1");
    let deleted = || act(Some(&old), &deleting(old.clone()));
    let mut first = Scene::new();
    first.changed(40, 2, false);
    first.seen(&[], deleted());
    let mut after = Scene::new();
    after.seen(&[], deleted());
    assert_eq!(after.differences().len(), 1, "until it is known");
    after.changed(40, 1, false);
    after.matcher.gone(&after.owner.clone());
    after.matcher.seen_without_owner("CloneSet", &deleted().unwrap());
    for (scene, others) in [(first, 1), (after, 2)] {
        assert_eq!((scene.tally().others, scene.differences()), (others, Vec::new()));
    }
}

#[test]
fn evictions_are_no_difference() {
    let old = pod("web-a", "1", "web:1");
    let evicted = with(
        deleting(old.clone()),
        "/status/conditions",
        json!([{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]),
    );
    let mut scene = Scene::new();
    scene.seen(&[], act(Some(&old), &evicted));
    assert_eq!((scene.tally().others, scene.differences()), (1, Vec::new()));
}

#[test]
fn images_of_pods_with_injected_sidecars_may_be_those_of_sidecars() {
    let old = pod("web-a", "1", "web:1");
    let injected = |pod: Value| {
        let list = json!({"kruise.io/sidecarset-injected-list": "logs"});
        with(pod, "/metadata/annotations", list)
    };
    let mut scene = Scene::new();
    let new = injected(pod("web-a", "1", "web:2"));
    scene.seen(&[], act(Some(&injected(old.clone())), &new));
    assert_eq!((scene.tally().not_compared, scene.differences().len()), (1, 0));
    let new = injected(pod("web-a", "2", "web:2"));
    scene.seen(&[], act(Some(&injected(old)), &new));
    assert_eq!(scene.differences().len(), 1, "a revision is not of sidecars");
}

/// Plans every ten seconds with these writes, until this second.
fn stands(scene: &mut Scene, wishes: &[Wish], until: u64) {
    while scene.second <= until {
        scene.planned(wishes.to_vec());
        scene.second += 10;
    }
}

#[test]
fn what_is_wanted_for_longer_than_the_grace_time_and_not_done_is_a_difference() {
    let old = pod("web-a", "1", "web:1");
    let wishes = wanted(&[&old], vec![deletes("web-a")]);
    for (until, differs) in [(20, false), (30, true)] {
        let mut scene = Scene::new();
        stands(&mut scene, &wishes, until);
        assert_eq!(
            !scene.differences().is_empty(),
            differs,
            "it stands for {until} s"
        );
        scene.planned(Vec::new());
        assert_eq!(
            !scene.differences().is_empty(),
            differs,
            "it has stood for {until} s"
        );
    }
    let mut scene = Scene::new();
    stands(&mut scene, &wishes, 40);
    assert_eq!(
        scene.differences(),
        [
            "CloneSet shop/web: this build would delete-pod pods/web-a: so it is; nothing like it was done in 40 s"
        ]
    );
}

#[test]
fn a_manager_that_is_slow_agrees_once_it_has_done_it() {
    let old = pod("web-a", "1", "web:1");
    let wishes = wanted(&[&old], vec![deletes("web-a")]);
    let mut scene = Scene::new();
    stands(&mut scene, &wishes, 60);
    scene.seen(&wishes, act(Some(&old), &deleting(old.clone())));
    scene.planned(Vec::new());
    assert_eq!((scene.tally().deleted, scene.differences()), (1, Vec::new()));
}

#[test]
fn a_long_series_of_writes_of_a_sort_does_not_stand() {
    let mut scene = Scene::new();
    for round in 0..20 {
        let wishes = wanted(&[], vec![creates(&format!("web-{round}"), "2")]);
        scene.planned(wishes.clone());
        scene.seen(&wishes, act(None, &pod(&format!("web-x{round}"), "2", "web:2")));
        scene.second += 10;
    }
    scene.planned(Vec::new());
    assert_eq!((scene.tally().created, scene.differences()), (20, Vec::new()));
}

#[test]
fn time_in_which_nothing_is_planned_does_not_count() {
    let old = pod("web-a", "1", "web:1");
    let wishes = wanted(&[&old], vec![deletes("web-a")]);
    let mut scene = Scene::new();
    scene.planned(wishes);
    scene.second = 3_600;
    assert_eq!(scene.differences(), [""; 0], "the process was halted");
    scene.planned(Vec::new());
    assert_eq!(scene.differences(), [""; 0]);
}

#[test]
fn the_report_has_a_line_for_each_kind_and_each_difference() {
    let old = pod("web-a", "1", "web:1");
    let mut scene = Scene::new();
    scene.planned(Vec::new());
    scene.seen(
        &wanted(&[], vec![creates("web-b", "1")]),
        act(None, &pod("web-c", "1", "web:1")),
    );
    scene.seen_at(10, None, act(None, &pod("web-d", "1", "web:1")));
    scene.seen(&[], act(Some(&old), &deleting(old.clone())));
    scene.second = 75;
    assert_eq!(
        scene.report().to_string(),
        "rehearsal of 75 s: 1 objects planned; what became of pods: 1 agree, 1 differ, 1 not compared\n\
         CloneSet: 1 objects; as planned: 1 pods created, 0 updated in place, 0 deleted; 1 not compared\n\
         difference CloneSet shop/web: pod web-a was deleted: not planned by this build, and who did it is not known; \
         it would do nothing to the pods\n"
    );
}
