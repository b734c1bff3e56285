//! Pods that do not end by themselves: a warning says why, once.

use serde_json::json;

use super::bench::{Bench, FIRST, IGNORE, IMAGE, WHEN, sidecar};
use super::{ignored, normal};

/// The warnings of a pod whose main container has ended, after several plans.
fn warnings(bench: &mut Bench) -> Vec<String> {
    for _ in 0..3 {
        bench.settle();
        bench.pass(60);
    }
    let warnings = bench
        .events
        .iter()
        .filter_map(|event| event.strip_prefix("SidecarNotTerminated "));
    warnings.map(str::to_owned).collect()
}

#[test]
fn e9_3_a_sidecar_whose_variable_does_not_go_with_its_node_is_told_once() {
    let mut real = Bench::new("Never", &[sidecar("log", &[IMAGE])]);
    real.end("main", 0);
    let told = warnings(&mut real);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("[log]") && told[0].contains(WHEN), "{told:?}");
    assert!(real.written.is_empty());
    for variables in [&[WHEN][..], &[WHEN, IGNORE]] {
        let mut bench = Bench::new("Never", &[sidecar("log", variables)]).on_virtual_node();
        bench.end("main", 0);
        let told = warnings(&mut bench);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("[log]") && told[0].contains(IMAGE), "{told:?}");
        assert!(bench.written.is_empty());
    }
}

#[test]
fn e9_3_the_other_sidecars_are_terminated_all_the_same() {
    let mut bench = Bench::new("Never", &[sidecar("log", &[IMAGE]), normal("web")]);
    bench.end("main", 0);
    assert_eq!(warnings(&mut bench).len(), 1);
    assert_eq!(bench.targets(FIRST), ["web"]);
}

#[test]
fn e9_3_a_pod_that_is_ended_takes_such_a_sidecar_with_it() {
    let mut bench = Bench::new("Never", &[sidecar("log", &[IMAGE]), ignored("web")]);
    bench.end("main", 0);
    assert!(warnings(&mut bench).is_empty());
    assert_eq!(bench.pod["status"]["phase"], "Succeeded");
}

#[test]
fn e9_6_a_pod_of_sidecars_only_is_left_alone_and_told_once() {
    let mut bench = Bench::of("Never", &[normal("log"), ignored("web")]);
    let told = warnings(&mut bench);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("no main container"), "{told:?}");
    assert!(bench.written.is_empty());
}

#[test]
fn a_sidecar_that_has_not_started_does_not_keep_the_others_and_is_terminated_when_it_has() {
    let mut bench = Bench::new("Never", &[normal("log"), normal("web")]);
    bench.hold("web");
    bench.end("main", 0);
    let told = warnings(&mut bench);
    assert_eq!(bench.targets(FIRST), ["log"]);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("[web] has not started"), "{told:?}");
    bench.killed(FIRST);
    bench.end("log", 0);
    bench.complete(FIRST);
    bench.settle();
    assert_eq!(bench.names(), [FIRST]);
    bench.restart("web");
    bench.settle();
    let second = format!("{FIRST}-2");
    assert_eq!(
        (bench.open(), bench.targets(&second)),
        (vec![second.clone()], vec!["web".to_owned()])
    );
}

#[test]
fn a_pod_whose_sidecar_never_started_ends_if_its_exit_code_does_not_count() {
    let mut bench = Bench::new("Never", &[ignored("web")]);
    bench.hold("web");
    bench.end("main", 1);
    assert!(warnings(&mut bench).is_empty());
    assert_eq!(bench.written, ["end-pod report"]);
    assert_eq!(bench.pod["status"]["phase"], json!("Failed"));
}
