//! Completion by kubectl, which asks the executable under another name.

use serde_json::json;

use crate::api_server::{ApiServer, clonesets};
use crate::command::Folder;

#[test]
fn kubectl_is_told_commands_types_and_names_of_the_cluster() {
    let server = ApiServer::start(|path| match path {
        "/apis/apps.kruise.io/v1beta1" => Some(clonesets()),
        "/apis/apps.kruise.io/v1beta1/namespaces/shop/clonesets" => {
            let named = |name: &str| json!({"metadata": {"name": name, "namespace": "shop"}});
            Some((
                200,
                json!({"metadata": {}, "items": [named("web"), named("worker"), named("api")]}),
            ))
        }
        _ => None,
    });
    let folder = Folder::new();
    let kubeconfig = folder.kubeconfig_in(server.address(), "shop");
    let program = folder.path().join("kubectl_complete-kruise");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kubectl-kruise"), &program).unwrap();
    let complete = |words: &[&str]| folder.program(&program, &[], words).stdout;
    assert_eq!(complete(&["re"]), "restart\n:4\n");
    assert_eq!(complete(&["explain", "clo"]), "clone/\n:4\n");
    assert_eq!(
        complete(&["explain", &kubeconfig, "clone/w"]),
        "clone/web\nclone/worker\n:4\n"
    );
    assert_eq!(complete(&["explain", "clone/w"]), ":4\n", "there is no cluster");
}

#[test]
fn shells_get_a_script() {
    let folder = Folder::new();
    for (shell, word) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef kubectl-kruise"),
        ("fish", "complete -c kubectl-kruise"),
    ] {
        folder
            .kruise(&["completion", shell])
            .assert(0, &[word, "explain"]);
    }
}
