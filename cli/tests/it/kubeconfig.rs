//! Which cluster a command means: kubectl's rules.

use crate::api_server::ApiServer;
use crate::command::{Folder, kubeconfig};
use crate::explain::old_definition;

#[test]
fn a_list_may_name_files_that_are_missing_and_a_context_of_any_file_can_be_chosen() {
    let (one, two) = (ApiServer::start(old_definition), ApiServer::start(old_definition));
    let folder = Folder::new();
    let first = folder.file("one", &kubeconfig("one", one.address(), "shop").to_string());
    let second = folder.file("two", &kubeconfig("two", two.address(), "games").to_string());
    let list = format!("/nowhere/config:{first}:{second}");
    let variables = [("KUBECONFIG", list.as_str())];
    for (flags, server, namespace) in [
        (&[][..], &one, "shop"),
        (&["--context", "two"], &two, "games"),
        (&["--context=two", "-n", "other"], &two, "other"),
        (&["--cluster=two"], &two, "shop"),
    ] {
        folder.with(&variables, &[flags, &["explain", "clone/web"]].concat());
        let path = format!("/apis/apps.kruise.io/v1alpha1/namespaces/{namespace}/clonesets/web");
        assert!(server.paths().contains(&path), "{flags:?}: {:?}", server.paths());
    }
}

#[test]
fn what_cannot_be_chosen_is_said_in_one_line() {
    let server = ApiServer::start(old_definition);
    let folder = Folder::new();
    let file = folder.kubeconfig(server.address());
    let ended = folder.kruise(&["explain", "clone/web", &file, "--context=prod"]);
    ended.assert_error("context \"prod\" does not exist; there are: it");
    let home = folder.path().join(".kube/config");
    folder.kruise(&["explain", "clone/web"]).assert_error(&format!(
        "no cluster: {} does not exist, and this is no pod; pass --kubeconfig=FILE or export KUBECONFIG",
        home.display()
    ));
}
