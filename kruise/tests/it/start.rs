//! Errors that prevent a manager from starting are reported with a command that helps. The exit code is 2 for a bad
//! command line, and 1 for other errors.

use serde_json::json;

use crate::api_server::{ApiServer, clonesets, definition};
use crate::command::{Folder, free_address};

const INSTALL: &str = "kruise manifests | kubectl apply -f -";

#[test]
fn a_bad_command_line_names_the_flag_and_ends_with_2() {
    for (flag, text) in [
        ("--no-such-flag", "--no-such-flag"),
        ("--cloneset-workers=many", "--cloneset-workers"),
        ("--expectation-timeout=0s", "--expectation-timeout"),
        ("--feature-gates=Nope=true", "--feature-gates"),
        ("--health-probe-addr=here", "--health-probe-addr"),
        ("--logging-format=tape", "--logging-format"),
        ("--leader-election-resource-lock=endpoints", "leases"),
    ] {
        Folder::new().manager(&[flag]).assert(2, &[text]);
    }
}

#[test]
fn a_kubeconfig_that_does_not_exist_is_named() {
    let folder = Folder::new();
    let path = folder.path().join("none");
    let flag = format!("--kubeconfig={}", path.display());
    folder
        .manager(&[&flag])
        .assert(1, &[&flag, "No such file", "kubectl --kubeconfig="]);
}

#[test]
fn a_kubeconfig_of_garbage_is_named() {
    let folder = Folder::new();
    let path = folder.path().join("garbage");
    std::fs::write(&path, [0xff, 0xfe, 0, b'{']).unwrap();
    let flag = format!("--kubeconfig={}", path.display());
    folder.manager(&[&flag]).assert(1, &[&flag]);
}

#[test]
fn without_any_configuration_the_ways_to_give_one_are_listed() {
    Folder::new()
        .manager(&[])
        .assert(1, &["--kubeconfig=FILE", "KUBECONFIG", "service account"]);
}

#[test]
fn an_unreachable_server_is_named_with_the_reason() {
    let folder = Folder::new();
    let server = free_address();
    folder.manager(&[&folder.kubeconfig(server)]).assert(
        1,
        &[
            &server.to_string(),
            "Connection refused",
            "kubectl get --raw /readyz",
        ],
    );
}

#[test]
fn without_a_definition_its_controller_is_off_and_the_command_that_installs_it_is_logged() {
    let server = ApiServer::start(|_| None);
    let folder = Folder::new();
    // It continues until it finds that there is no webhook configuration.
    let ended = folder.manager(&[
        &folder.kubeconfig(server.address()),
        "--webhook-initialize-timeout=1s",
    ]);
    ended.assert(
        1,
        &["cloneset-controller is off", "clonesets.apps.kruise.io", INSTALL],
    );
    // They are asked for at the same time.
    let mut first = server.paths()[..4].to_vec();
    first.sort_unstable();
    assert_eq!(
        first,
        [
            "/apis/apps.kruise.io/v1alpha1",
            "/apis/apps.kruise.io/v1beta1",
            "/apis/policy.kruise.io/v1alpha1",
            "/apis/policy.kruise.io/v1beta1"
        ]
    );
}

#[test]
fn a_group_that_serves_other_kinds_only_is_no_definition() {
    let server = ApiServer::start(|path| {
        let other = json!({"resources": [{"name": "sidecarsets"}]});
        (path == "/apis/apps.kruise.io/v1beta1").then_some((200, other))
    });
    let folder = Folder::new();
    let ended = folder.manager(&[
        &folder.kubeconfig(server.address()),
        "--webhook-initialize-timeout=1s",
    ]);
    ended.assert(
        1,
        &["cloneset-controller is off", "sidecarset-controller (v1beta1)"],
    );
}

#[test]
fn refused_credentials_are_reported_with_the_command_that_checks_them() {
    for code in [401, 403] {
        let answers = match code {
            401 => |_: &str| Some((401, json!({"message": "Unauthorized"}))),
            _ => |_: &str| Some((403, json!({"message": "User \"x\" cannot get path"}))),
        };
        let server = ApiServer::start(answers);
        let folder = Folder::new();
        folder
            .manager(&[&folder.kubeconfig(server.address())])
            .assert(1, &["kubectl auth whoami", INSTALL]);
    }
}

#[test]
fn a_server_that_is_not_ready_is_not_mistaken_for_refusing() {
    let server = ApiServer::start(|_| Some((503, json!({"message": "starting"}))));
    let folder = Folder::new();
    folder
        .manager(&[&folder.kubeconfig(server.address())])
        .assert(1, &["starting", "kubectl get --raw /readyz"]);
}

#[test]
fn a_kind_in_two_versions_that_nobody_converts_has_no_controller() {
    let server = ApiServer::start(|path| match path {
        "/apis/apps.kruise.io/v1beta1" | "/apis/apps.kruise.io/v1alpha1" => Some(clonesets()),
        path if path.ends_with("/clonesets.apps.kruise.io") => {
            Some(definition(&["v1alpha1", "v1beta1"], "None"))
        }
        _ => None,
    });
    let folder = Folder::new();
    let ended = folder.manager(&[
        &folder.kubeconfig(server.address()),
        "--webhook-initialize-timeout=1s",
    ]);
    ended.assert(
        1,
        &[
            "without a conversion webhook",
            INSTALL,
            "cloneset-controller is off",
        ],
    );
}

/// The API server of a published chart, before any webhook configuration.
pub(crate) fn old_definition(path: &str) -> Option<(u16, serde_json::Value)> {
    match path {
        "/apis/apps.kruise.io/v1alpha1" => Some(clonesets()),
        path if path.ends_with("/clonesets.apps.kruise.io") => Some(definition(&["v1alpha1"], "None")),
        _ => None,
    }
}

#[test]
fn every_kind_has_a_controller_and_the_readme_names_it() {
    let server = ApiServer::start(old_definition);
    let folder = Folder::new();
    let ended = folder.manager(&[
        &folder.kubeconfig(server.address()),
        "--webhook-initialize-timeout=10s",
    ]);
    assert!(ended.output.contains("controllers: "), "{}", ended.output);
    assert!(
        !ended.output.contains("nothing acts on the other kinds"),
        "{}",
        ended.output
    );
    let readme = include_str!("../../../README.md");
    for kind in kruise_kinds::kinds().iter().copied() {
        assert!(
            is_word_of(kind.kind, readme),
            "the README does not name {}",
            kind.kind
        );
    }
}

fn is_word_of(word: &str, text: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric())
        .any(|found| found == word)
}

#[test]
fn missing_webhook_configurations_are_reported_with_the_command_that_installs_them() {
    let server = ApiServer::start(old_definition);
    let folder = Folder::new();
    let ended = folder.manager(&[
        &folder.kubeconfig(server.address()),
        "--webhook-initialize-timeout=10s",
    ]);
    ended.assert(
        1,
        &[
            "cloneset-controller (v1alpha1)",
            "statefulset-controller is off",
            "kruise-mutating-webhook-configuration",
            INSTALL,
        ],
    );
}
