//! Interruptions of the watch, and namespaces that are being deleted.

use super::*;

#[test]
fn an_interruption_of_the_watch_does_not_count_as_time_in_which_nothing_was_done() {
    let old = pod("web-a", "1", "web:1");
    let wishes = wanted(&[&old], vec![deletes("web-a")]);
    for interrupted in [false, true] {
        let mut scene = Scene::new();
        stands(&mut scene, &wishes, 40);
        if interrupted {
            scene.matcher.interrupted(scene.now());
        }
        assert_eq!(scene.differences().is_empty(), interrupted, "it is wanted");
        scene.planned(Vec::new());
        assert_eq!(
            scene.differences().is_empty(),
            interrupted,
            "the list shows that it is done"
        );
    }
    let mut scene = Scene::new();
    stands(&mut scene, &wishes, 40);
    scene.matcher.interrupted(scene.now());
    let until = scene.second + GRACE.as_secs();
    stands(&mut scene, &wishes, until);
    assert_eq!(scene.differences().len(), 1, "time counts again");
}

/// The namespace is in this state since this version.
fn namespace(scene: &mut Scene, state: Namespace, version: u64) {
    let now = scene.now();
    let version = Some(Version::new(version));
    scene.matcher.namespace("shop", state, version, now);
}

#[test]
fn what_becomes_of_pods_in_a_namespace_that_is_being_deleted_is_no_difference() {
    let old = pod("web-a", "1", "web:1");
    let deleted = || act(Some(&old), &deleting(old.clone()));
    let updated = || act(Some(&old), &pod("web-a", "2", "web:2"));
    let mut scene = Scene::new();
    namespace(&mut scene, Namespace::Ends, 20);
    scene.seen(&[], deleted());
    scene.seen(&[], updated());
    let tally = scene.tally();
    assert_eq!(
        (tally.others, tally.not_compared, scene.differences()),
        (1, 1, Vec::new())
    );

    namespace(&mut scene, Namespace::Gone, 70);
    scene.seen(&[], deleted());
    assert_eq!(
        (scene.tally().others, scene.differences()),
        (2, Vec::new()),
        "it arrives late"
    );

    namespace(&mut scene, Namespace::Stays, 80);
    scene.seen(&[], deleted());
    assert_eq!(scene.differences().len(), 1, "another one of this name");
}

#[test]
fn deletions_that_arrive_before_that_of_their_namespace_are_no_difference() {
    let old = pod("web-a", "1", "web:1");
    for (version, differs) in [(49, false), (51, true)] {
        let mut scene = Scene::new();
        scene.seen(&[], act(Some(&old), &deleting(old.clone())));
        namespace(&mut scene, Namespace::Ends, version);
        assert_eq!(!scene.differences().is_empty(), differs, "{version}");
        assert_eq!(scene.tally().others, usize::from(!differs), "{version}");
    }
}

#[test]
fn what_is_wanted_in_a_namespace_that_is_being_deleted_does_not_stand() {
    let wishes = wanted(&[], vec![creates("web-b", "1")]);
    let mut scene = Scene::new();
    scene.planned(wishes.clone());
    namespace(&mut scene, Namespace::Ends, 20);
    scene.second = 10;
    stands(&mut scene, &wishes, 100);
    scene.planned(Vec::new());
    assert_eq!(scene.differences(), [""; 0]);
    let mut before = Scene::new();
    stands(&mut before, &wishes, 40);
    namespace(&mut before, Namespace::Ends, 20);
    before.planned(Vec::new());
    assert_eq!(before.differences().len(), 1, "it was wanted for long before");
}
