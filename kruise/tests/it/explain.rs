//! `kruise explain`: whose namespace it means.

use crate::api_server::ApiServer;
use crate::command::Folder;
use crate::start::old_definition;

#[test]
fn explain_follows_the_namespace_of_the_context_unless_a_flag_names_another() {
    for (flags, namespace) in [(&[][..], "shop"), (&["--namespace", "other"], "other")] {
        let server = ApiServer::start(old_definition);
        let folder = Folder::new();
        let kubeconfig = folder.kubeconfig_in(server.address(), "shop");
        let ended = folder.kruise(&[&["explain", "clone/web", &kubeconfig], flags].concat());
        ended.assert(1, &[&format!("cannot read CloneSet {namespace}/web")]);
        let path = format!("/apis/apps.kruise.io/v1alpha1/namespaces/{namespace}/clonesets/web");
        assert!(server.paths().contains(&path), "{:?}", server.paths());
    }
}
