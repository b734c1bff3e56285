//! Files and options that a playground refuses, and the advice in its messages.

use std::net::TcpListener;
use std::process::Output;

use crate::process::{Playground, Scratch, text};

/// Asserts that it failed with these words, and that only these files are left.
fn refused(scratch: &Scratch, output: &Output, words: &[&str], left: &[&str]) {
    let error = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(!output.status.success(), "{error}");
    for word in words {
        assert!(error.contains(word), "{word}: {error}");
    }
    assert!(!error.contains("panicked"), "{error}");
    assert_eq!(scratch.left(), left);
}

#[test]
fn a_foreign_kubeconfig_is_not_overwritten() {
    let scratch = Scratch::new("kubeconfig");
    let path = scratch.file("config");
    std::fs::write(&path, "apiVersion: v1\n").unwrap();
    let output = scratch.output(&["playground", "--fast", "--kubeconfig", text(&path)]);
    refused(
        &scratch,
        &output,
        &["stays as it is", "--kubeconfig"],
        &["config"],
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "apiVersion: v1\n");
}

#[test]
fn a_kubeconfig_of_its_own_is_written_where_it_is_wanted_and_removed() {
    let scratch = Scratch::new("own-kubeconfig");
    let path = scratch.file("config");
    let playground = Playground::start(&scratch, &["--fast", "--kubeconfig", text(&path)]);
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(
        written.contains(&format!("server: http://{}\n", playground.api)),
        "{written}"
    );
    assert_eq!(playground.kubeconfig, path);
    assert_eq!(playground.end("INT"), Some(0));
    assert_eq!(scratch.left(), [""; 0]);
}

#[test]
fn a_kubeconfig_of_a_running_playground_is_neither_overwritten_nor_removed() {
    let scratch = Scratch::new("shared-kubeconfig");
    let path = scratch.file("config");
    let first = Playground::start(&scratch, &["--fast", "--kubeconfig", text(&path)]);
    let written = std::fs::read_to_string(&path).unwrap();
    let before = scratch.left();
    let before: Vec<&str> = before.iter().map(String::as_str).collect();
    for options in [&["--fast"][..], &["--bare"]] {
        let arguments = [&["playground", "--kubeconfig", text(&path)], options].concat();
        let output = scratch.output(&arguments);
        let words = [text(&path), "running", "stays as it is", "--kubeconfig"];
        refused(&scratch, &output, &words, &before);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), written);
    }
    first.get("/api/v1/nodes");
    assert_eq!(first.end("KILL"), None);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), written);
    let next = Playground::start(&scratch, &["--fast", "--kubeconfig", text(&path)]);
    assert_ne!(
        std::fs::read_to_string(&path).unwrap(),
        written,
        "a file that was left behind is replaced"
    );
    assert_eq!(next.end("INT"), Some(0));
    assert!(!path.exists());
}

#[test]
fn a_port_in_use_is_named_with_a_way_out() {
    let scratch = Scratch::new("port");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = scratch.output(&["playground", "--port", &port]);
    refused(&scratch, &output, &[&port, "--port", "free one"], &[]);
}

#[test]
fn files_that_cannot_be_used_are_refused_at_the_start() {
    let scratch = Scratch::new("files");
    let notes = scratch.file("notes");
    std::fs::write(&notes, "my notes\n").unwrap();
    let missing = scratch.file("missing").join("file");
    for (option, file, words) in [
        ("--load", text(&notes), ["--load", "not a snapshot"]),
        ("--load", text(&missing), ["--load", "cannot be read"]),
        ("--save", text(&notes), ["--save", "stays as it is"]),
        ("--save", text(&missing), ["--save", "cannot be written"]),
        ("--audit-log", text(&notes), ["--audit-log", "stays as it is"]),
        (
            "--audit-log",
            text(&missing),
            ["--audit-log", "cannot be written"],
        ),
        ("--stages", text(&missing), ["--stages", "cannot be read"]),
        ("--stages", text(&notes), ["--stages", ""]),
        (
            "--kubeconfig",
            text(&missing),
            ["--kubeconfig", "cannot be written"],
        ),
    ] {
        for mode in [&["playground"][..], &["playground", "--bare"]] {
            let output = scratch.output(&[mode, &[option, file]].concat());
            refused(&scratch, &output, &words, &["notes"]);
        }
    }
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "my notes\n");
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let scratch = Scratch::new("options");
    for (options, words) in [
        (&["--nodes=0"][..], ["--nodes", "1..=5000"]),
        (&["--exit"], ["--demo", ""]),
        (&["--image-pull=5"], ["--image-pull", "5"]),
        (&["--image-pull=-5s"], ["--image-pull", "negative"]),
        (&["--demo", "--load=x"], ["--demo", "--load"]),
        (&["--demo", "--exit", "--nodes=1"], ["--demo", "--nodes 3"]),
        (&["--demo", "--exit", "--nodes=2"], ["--demo", "--nodes 3"]),
        (&["--nodes=2", "--load=x"], ["--nodes", "--load"]),
    ] {
        let arguments = [&["playground"], options].concat();
        let output = scratch.output(&arguments);
        refused(&scratch, &output, &words, &[]);
        assert_eq!(output.status.code(), Some(2), "{options:?}");
    }
}
