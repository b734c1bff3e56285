//! The guided tour in a playground, hands-free.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::process::{Scratch, send, wait_for_exit};

#[test]
fn the_tour_runs_to_its_end_and_all_its_claims_hold() {
    let scratch = Scratch::new("demo");
    let output = scratch.output(&["playground", "--demo", "--exit", "--fast"]);
    let story = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{story}{errors}");
    assert_eq!(errors, "", "only the tour is printed");
    assert!(!story.contains('\x1b'), "a file gets no control characters");
    for part in [
        "1/21  Create a CloneSet",
        "they are the same pods: uid, name, address and node did not change",
        "The difference: ",
        "stays on its revision: the partition holds it",
        "the canaries went back in place",
        "is gone, the others were not touched",
        "each was evicted only when the pod in place of the one before was in service",
        "each was created after the one before was in service",
        "db-2 is back with nginx:4, the others were not touched",
        "the job reports that the container ended well in two pods",
        "2 pods run in zone-a and 2 in zone-b",
        "all pods run in zone-b and are in service",
        "; it takes no new pods since ",
        "its pods run in the zones of their subsets: 1 in zone-a, 1 in zone-b, 2 in zone-c",
        "the pod in zone-a runs nginx:4, updated in place; the others were not touched",
        "the copies are the same ones, with new data",
        "What it took",
        "The first pod was ready ",
    ] {
        assert!(story.contains(part), "{part}: {story}");
    }
    assert_eq!(scratch.left(), [""; 0]);
}

#[test]
fn a_tour_that_is_interrupted_is_no_success_and_leaves_nothing() {
    let scratch = Scratch::new("interrupted");
    let mut child = scratch
        .kruise(&["playground", "--demo", "--exit"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("2/21")));
    std::thread::spawn(move || lines.for_each(drop));
    send(child.id(), "INT");
    assert_eq!(wait_for_exit(&mut child), Some(130));
    assert_eq!(scratch.left(), [""; 0]);
}

#[test]
fn a_closed_output_ends_the_tour_with_an_error() {
    let scratch = Scratch::new("reader");
    let mut child = scratch
        .kruise(&["playground", "--demo", "--exit", "--fast"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(wait_for_exit(&mut child), Some(1));
    assert_eq!(scratch.left(), [""; 0]);
}
