//! Errors as people read them: one line that says what is the matter, and exit code 1.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::api_server::{ApiServer, clonesets};
use crate::command::{Folder, free_address};

/// A command line of each command that asks a cluster.
const COMMANDS: [&[&str]; 4] = [
    &["explain", "clone/web"],
    &["restart", "clone/web", "-c", "main"],
    &["inject", "deployment/web"],
    &["bundle"],
];

#[test]
fn a_dead_server_ends_every_command_at_once() {
    let (folder, server) = (Folder::new(), free_address());
    let kubeconfig = folder.kubeconfig(server);
    for command in COMMANDS {
        let ended = folder.kruise(&[command, &[kubeconfig.as_str()]].concat());
        ended.assert_error(&format!(
            "cannot reach the API server {server}: Connection refused (os error 111)"
        ));
    }
}

#[test]
fn a_server_that_says_nothing_ends_every_command_when_its_time_is_over() {
    // The system takes connections, and nobody answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (folder, server) = (Folder::new(), silent.local_addr().unwrap());
    let kubeconfig = folder.kubeconfig(server);
    for command in COMMANDS {
        let ended = folder.kruise(&[command, &[kubeconfig.as_str(), "--request-timeout=1"]].concat());
        ended.assert_error(&format!(
            "cannot reach the API server {server}: no answer within 1s"
        ));
    }
}

const MESSAGE: &str = "clonesets.apps.kruise.io \"web\" is forbidden: User \"bob\" cannot get resource \"clonesets\" in API group \
                       \"apps.kruise.io\" in the namespace \"default\"";

#[allow(clippy::unnecessary_wraps, reason = "a server may also know no answer")]
fn forbidden(_: &str) -> Option<(u16, Value)> {
    Some((
        403,
        json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": MESSAGE}),
    ))
}

#[test]
fn who_may_not_do_what_is_said_and_nothing_of_installing_rights() {
    let server = ApiServer::start(forbidden);
    let folder = Folder::new();
    let ended = folder.kruise(&["explain", "clone/web", &folder.kubeconfig(server.address())]);
    ended.assert_error(MESSAGE);
    let server = ApiServer::start(|path| match path {
        "/apis/apps.kruise.io/v1beta1" => Some(clonesets()),
        path if path.ends_with("/clonesets/web") => forbidden(path),
        _ => None,
    });
    let ended = folder.kruise(&["explain", "clone/web", &folder.kubeconfig(server.address())]);
    ended.assert_error(&format!("cannot read CloneSet default/web: {MESSAGE}"));
}

#[test]
fn a_bundle_without_anything_in_it_is_not_made() {
    let server = ApiServer::start(forbidden);
    let folder = Folder::new();
    let kubeconfig = folder.kubeconfig(server.address());
    let ended = folder.kruise(&["bundle", "-o", "bundle.tar.gz", &kubeconfig]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert!(
        ended
            .stderr
            .starts_with("error: nothing of the cluster can be read: "),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains(MESSAGE) && ended.stderr.lines().count() == 1,
        "{}",
        ended.stderr
    );
    assert!(!folder.path().join("bundle.tar.gz").exists());
}

#[test]
fn a_command_line_that_cannot_be_read_is_answered_with_the_way_to_the_help() {
    let folder = Folder::new();
    let ended = folder.kruise(&["explian", "clone/web"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert_eq!(
        ended.stderr,
        "Error: unknown command \"explian\" for \"kubectl-kruise\"; did you mean explain?\n\
         Run 'kubectl-kruise --help' for usage.\n"
    );
    let help = folder.kruise(&[]);
    assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""));
    assert!(
        help.stdout.contains("\nSee:\n  explain     ") && help.stdout.contains("\nExamples:\n"),
        "{}",
        help.stdout
    );
    assert_eq!(folder.kruise(&["--help"]).stdout, help.stdout);
    let of_command = folder.kruise(&["restart", "-h"]);
    assert_eq!(of_command.code, Some(0));
    assert!(
        of_command
            .stdout
            .contains("Examples:\n  # One container of each pod\n"),
        "{}",
        of_command.stdout
    );
}
