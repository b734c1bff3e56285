//! `kruise migrate` against a server that answers by path.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api_server::ApiServer;
use crate::command::{Ended, Folder};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const NAME: &str = "clonesets.apps.kruise.io";

fn definition(stored: &[&str]) -> Value {
    let version = |name: &str| json!({"name": name, "served": true, "storage": name == "v1beta1"});
    json!({
        "metadata": {"name": NAME, "uid": "u", "resourceVersion": "7", "generation": 3},
        "spec": {"group": "apps.kruise.io", "names": {"plural": "clonesets", "kind": "CloneSet"},
                 "versions": [version("v1alpha1"), version("v1beta1")]},
        "status": {"storedVersions": stored},
    })
}

/// A cluster in which three CloneSets may be stored in an older version.
fn answers(path: &str) -> Option<(u16, Value)> {
    let old = definition(&["v1alpha1", "v1beta1"]);
    let set = |name: &str| json!({"metadata": {"namespace": "shop", "name": name}});
    match path.strip_prefix(DEFINITIONS) {
        Some("") => {
            let mut foreign = old.clone();
            foreign["spec"]["group"] = json!("example.com");
            return Some((200, json!({"items": [old, foreign]})));
        }
        Some("/clonesets.apps.kruise.io" | "/clonesets.apps.kruise.io/status") => return Some((200, old)),
        _ => {}
    }
    match path.strip_prefix("/apis/apps.kruise.io/v1beta1")? {
        "/clonesets" => Some((
            200,
            json!({"metadata": {}, "items": [set("a"), set("b"), set("c")]}),
        )),
        "/namespaces/shop/clonesets/a" | "/namespaces/shop/clonesets/c" => Some((200, json!({}))),
        _ => None,
    }
}

/// As [`answers`], but one CloneSet cannot be written.
fn with_a_refusal(path: &str) -> Option<(u16, Value)> {
    if path.ends_with("/clonesets/b") {
        return Some((
            422,
            json!({"kind": "Status", "code": 422, "message": "spec.replicas is wrong"}),
        ));
    }
    answers(path)
}

/// As [`answers`], after a migration.
fn settled(path: &str) -> Option<(u16, Value)> {
    let object = definition(&["v1beta1"]);
    match path.strip_prefix(DEFINITIONS)? {
        "" => Some((200, json!({"items": [object]}))),
        _ => Some((200, object)),
    }
}

fn migrate(folder: &Folder, server: &ApiServer, more: &[&str]) -> Ended {
    let kubeconfig = folder.kubeconfig(server.address());
    let mut line = vec!["migrate", "storage", "--rate=1000", &kubeconfig];
    line.extend(more);
    folder.kruise(&line)
}

/// Names of the CloneSets that were written, and whether the status of the definition was.
fn written(server: &ApiServer) -> (Vec<String>, bool) {
    let paths = server.paths();
    let sets = paths
        .iter()
        .filter_map(|path| path.strip_prefix("/apis/apps.kruise.io/v1beta1/namespaces/shop/clonesets/"));
    let status = format!("{DEFINITIONS}/{NAME}/status");
    (sets.map(str::to_owned).collect(), paths.contains(&status))
}

#[test]
fn every_object_is_written_once_before_older_stored_versions_are_dropped() {
    let (folder, server) = (Folder::new(), ApiServer::start(answers));
    let ended = migrate(&folder, &server, &[]);
    // One of the three is deleted meanwhile.
    ended.assert(
        0,
        &[
            "clonesets.apps.kruise.io: 2 of 2 rewritten as v1beta1",
            "2 objects rewritten",
            "all are stored as v1beta1",
        ],
    );
    assert_eq!(
        written(&server),
        (["a", "b", "c"].map(str::to_owned).into(), true)
    );
}

#[test]
fn an_interrupted_migration_resumes() {
    let (folder, server) = (Folder::new(), ApiServer::start(answers));
    let file = folder.path().join("progress");
    let place = json!({NAME: {"uid": "u", "storage": "v1beta1", "generation": 3, "after": "shop/b"}});
    std::fs::write(&file, place.to_string()).unwrap();
    let flag = format!("--progress={}", file.display());
    migrate(&folder, &server, &[&flag]).assert(0, &["1 objects rewritten, 2 by a run before"]);
    assert_eq!(written(&server), (vec!["c".to_owned()], true));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{}");
}

#[test]
fn objects_are_written_no_faster_than_the_rate() {
    let (folder, server) = (Folder::new(), ApiServer::start(answers));
    let kubeconfig = folder.kubeconfig(server.address());
    let since = Instant::now();
    folder
        .kruise(&["migrate", "storage", "--rate=0.5", &kubeconfig])
        .assert(0, &["2 objects rewritten"]);
    assert_eq!(written(&server).0.len(), 3);
    // There are two pauses between three writes.
    assert!(since.elapsed() >= Duration::from_secs(4), "{:?}", since.elapsed());
}

#[test]
fn an_object_that_cannot_be_written_keeps_its_version_listed_and_is_tried_again() {
    let (folder, server) = (Folder::new(), ApiServer::start(with_a_refusal));
    let file = folder.path().join("progress");
    let flag = format!("--progress={}", file.display());
    for _ in 0..2 {
        let ended = migrate(&folder, &server, &[&flag]);
        ended.assert(
            1,
            &[
                "shop/b: spec.replicas is wrong",
                "1 objects could not be rewritten",
            ],
        );
    }
    let (sets, status) = written(&server);
    assert!(!status, "the definition was trimmed");
    assert_eq!(sets.iter().filter(|name| *name == "b").count(), 2);
}

#[test]
fn objects_stored_in_one_version_are_not_written() {
    let (folder, server) = (Folder::new(), ApiServer::start(settled));
    migrate(&folder, &server, &[]).assert(0, &["all objects are stored as v1beta1"]);
    assert_eq!(written(&server), (Vec::new(), false));
}

#[test]
fn an_unknown_name_or_version_is_an_error() {
    let (folder, server) = (Folder::new(), ApiServer::start(answers));
    migrate(&folder, &server, &["widgets.apps.kruise.io"]).assert(
        1,
        &[
            "no definition widgets.apps.kruise.io",
            "clonesets.apps.kruise.io: clone, cloneset",
        ],
    );
    migrate(&folder, &server, &[NAME, "--to=v2"]).assert(1, &["has no version v2, only v1alpha1, v1beta1"]);
    assert_eq!(written(&server), (Vec::new(), false));
}

#[test]
fn a_dry_run_counts_the_objects_and_writes_nothing() {
    let (folder, server) = (Folder::new(), ApiServer::start(answers));
    let all = "clonesets.apps.kruise.io: 3 objects would be rewritten as v1beta1; v1alpha1 would be dropped from \
               status.storedVersions\nthis command would rewrite them\n";
    for kinds in [&["--dry-run"][..], &["--dry-run", "clone"]] {
        let ended = migrate(&folder, &server, kinds);
        assert_eq!((ended.code, ended.output.as_str()), (Some(0), all));
    }
    migrate(&folder, &server, &["--dry-run", "CloneSet", "--to=v1alpha1"]).assert(
        0,
        &[
            "v1alpha1 would be stored from then on",
            "3 objects would be rewritten as v1alpha1; v1beta1 would be dropped",
        ],
    );
    let file = folder.path().join("progress");
    let place = json!({NAME: {"uid": "u", "storage": "v1beta1", "generation": 3, "after": "shop/b"}});
    std::fs::write(&file, place.to_string()).unwrap();
    let flag = format!("--progress={}", file.display());
    migrate(&folder, &server, &["--dry-run", &flag]).assert(
        0,
        &["1 objects would be rewritten as v1beta1, 2 were by a run before"],
    );
    let writes: Vec<String> = server.requests();
    assert!(
        writes.iter().all(|request| request.starts_with("GET ")),
        "{writes:?}"
    );

    let server = ApiServer::start(settled);
    let ended = migrate(&folder, &server, &["--dry-run"]);
    assert_eq!(
        ended.output,
        "clonesets.apps.kruise.io: all objects are stored as v1beta1, nothing would be written\n"
    );
}

const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1/storageversionmigrations";

/// As [`answers`], with migrations by the cluster, which end at once with this condition.
fn with_migrations(path: &str, condition: &str) -> Option<(u16, Value)> {
    match path.strip_prefix("/apis/storagemigration.k8s.io") {
        Some("") => {
            let versions = ["v1beta1", "v1"].map(|version| json!({"version": version}));
            Some((200, json!({"versions": versions})))
        }
        Some(_) if condition == "Forbidden" => Some((
            403,
            json!({"kind": "Status", "code": 403, "message": "not yours"}),
        )),
        Some(_) => {
            let condition = json!({"type": condition, "status": "True", "message": "why"});
            Some((
                200,
                json!({"metadata": {"uid": "m"}, "status": {"conditions": [condition]}}),
            ))
        }
        None => answers(path),
    }
}

fn that_succeed(path: &str) -> Option<(u16, Value)> {
    with_migrations(path, "Succeeded")
}

fn that_fail(path: &str) -> Option<(u16, Value)> {
    with_migrations(path, "Failed")
}

fn that_are_forbidden(path: &str) -> Option<(u16, Value)> {
    with_migrations(path, "Forbidden")
}

/// Whether migrations are served, nobody is told.
fn that_are_not_told_of(path: &str) -> Option<(u16, Value)> {
    let status = json!({"kind": "Status", "code": 503, "message": "not now"});
    match path {
        "/apis/storagemigration.k8s.io" => Some((503, status)),
        _ => answers(path),
    }
}

/// A migration can be created, and not read.
fn that_cannot_be_read(path: &str) -> Option<(u16, Value)> {
    match path {
        MIGRATIONS => Some((201, json!({"metadata": {"uid": "m"}}))),
        _ if path.starts_with(MIGRATIONS) => with_migrations(path, "Forbidden"),
        _ => with_migrations(path, "Running"),
    }
}

/// `kruise migrate storage` without a rate.
fn migrate_by_any(folder: &Folder, server: &ApiServer, more: &[&str]) -> Ended {
    let kubeconfig = folder.kubeconfig(server.address());
    let mut line = vec!["migrate", "storage", &kubeconfig];
    line.extend(more);
    folder.kruise(&line)
}

#[test]
fn a_cluster_that_can_migrates_by_itself_and_the_definition_is_trimmed_afterwards() {
    let (folder, server) = (Folder::new(), ApiServer::start(that_succeed));
    migrate_by_any(&folder, &server, &["--dry-run"]).assert(
        0,
        &["the cluster would rewrite them, by a StorageVersionMigration of storagemigration.k8s.io/v1"],
    );
    migrate_by_any(&folder, &server, &[]).assert(0, &["rewritten by the cluster; all are stored as v1beta1"]);
    assert_eq!(written(&server), (Vec::new(), true));
    let writes: Vec<String> = server
        .requests()
        .into_iter()
        .filter(|one| !one.starts_with("GET "))
        .collect();
    assert_eq!(
        writes,
        [
            format!("POST {MIGRATIONS}"),
            format!("DELETE {MIGRATIONS}/kruise-clonesets-3-u"),
            format!("PATCH {DEFINITIONS}/{NAME}/status"),
        ]
    );
}

#[test]
fn this_command_rewrites_what_the_cluster_does_not() {
    for (answers, why) in [
        (that_fail as fn(&str) -> _, "it failed: why"),
        (that_are_forbidden, "cannot be created: not yours"),
        (
            that_cannot_be_read,
            "kruise-clonesets-3-u cannot be read: not yours",
        ),
    ] {
        let (folder, server) = (Folder::new(), ApiServer::start(answers));
        migrate_by_any(&folder, &server, &["--by=cluster"]).assert(
            1,
            &[
                "the cluster does not rewrite the objects of clonesets.apps.kruise.io",
                why,
            ],
        );
        assert_eq!(written(&server), (Vec::new(), false));
        migrate_by_any(&folder, &server, &[])
            .assert(0, &[why, "2 objects rewritten", "all are stored as v1beta1"]);
        assert_eq!(written(&server).0.len(), 3);
    }
}

#[test]
fn a_cluster_that_does_not_say_whether_it_can_is_not_waited_for() {
    let (folder, server) = (Folder::new(), ApiServer::start(that_are_not_told_of));
    migrate_by_any(&folder, &server, &["--by=cluster"]).assert(
        1,
        &[
            "cannot find out whether the cluster serves StorageVersionMigrations",
            "not now",
        ],
    );
    let why = "the cluster is not asked to rewrite the objects: it does not say whether it serves StorageVersionMigrations: not now";
    let dry_run = migrate_by_any(&folder, &server, &["--dry-run"]);
    dry_run.assert(0, &[why, "this command would rewrite them"]);
    assert_eq!(written(&server), (Vec::new(), false));
    migrate_by_any(&folder, &server, &[])
        .assert(0, &[why, "2 objects rewritten", "all are stored as v1beta1"]);
    assert_eq!(written(&server).0.len(), 3);
}

#[test]
fn the_pace_of_the_cluster_is_its_own() {
    let (folder, server) = (Folder::new(), ApiServer::start(that_succeed));
    migrate(&folder, &server, &[]).assert(0, &["2 objects rewritten"]);
    migrate(&folder, &server, &["--by=cluster"])
        .assert(1, &["--rate and --progress are for objects that this"]);
    migrate_by_any(&folder, &server, &["--by=command"]).assert(0, &["2 objects rewritten"]);
    assert!(
        server
            .paths()
            .iter()
            .all(|path| !path.contains("storagemigration"))
    );
    let server = ApiServer::start(answers);
    migrate_by_any(&folder, &server, &["--by=cluster"]).assert(1, &["serves no StorageVersionMigrations"]);
}

/// A cluster with StatefulSets.
fn of_stateful_sets(path: &str) -> Option<(u16, Value)> {
    let mut object = definition(&["v1alpha1", "v1beta1"]);
    object["metadata"]["name"] = json!("statefulsets.apps.kruise.io");
    (path == DEFINITIONS).then(|| (200, json!({"items": [object]})))
}

#[test]
fn the_stored_version_changes_only_for_named_definitions_and_to_versions_that_openkruise_stores() {
    let (folder, server) = (Folder::new(), ApiServer::start(of_stateful_sets));
    migrate(&folder, &server, &["--to=v1alpha1"]).assert(2, &["required arguments were not provided"]);
    assert_eq!(server.paths(), Vec::<String>::new());
    migrate(
        &folder,
        &server,
        &["statefulsets.apps.kruise.io", "--to=v1alpha1"],
    )
    .assert(1, &["statefulsets.apps.kruise.io must not be stored as v1alpha1"]);
    assert_eq!(server.paths(), [DEFINITIONS]);
}

/// As [`answers`], with two pods, one of which names a CloneSet in the newer version; jobs are not served.
fn with_pods(path: &str) -> Option<(u16, Value)> {
    let pod = |name: &str, version: &str| {
        let owner = json!({"apiVersion": format!("apps.kruise.io/{version}"), "kind": "CloneSet", "name": "a", "uid": "u"});
        json!({"metadata": {"namespace": "shop", "name": name, "ownerReferences": [owner]}})
    };
    match path {
        "/api/v1/pods" => {
            let pods = [pod("a-1", "v1alpha1"), pod("a-2", "v1beta1")];
            Some((200, json!({"metadata": {}, "items": pods})))
        }
        "/api/v1/persistentvolumeclaims" | "/apis/apps/v1/controllerrevisions" => {
            Some((200, json!({"metadata": {}, "items": []})))
        }
        "/api/v1/namespaces/shop/pods/a-2" => Some((200, json!({}))),
        _ => answers(path),
    }
}

fn migrate_owners(folder: &Folder, server: &ApiServer, more: &[&str]) -> Ended {
    let kubeconfig = folder.kubeconfig(server.address());
    let mut line = vec!["migrate", "owners", "--rate=1000", &kubeconfig];
    line.extend(more);
    folder.kruise(&line)
}

#[test]
fn dependents_name_their_owners_in_the_version_that_stays() {
    let (folder, server) = (Folder::new(), ApiServer::start(with_pods));
    migrate_owners(&folder, &server, &["--to=v1alpha1", NAME])
        .assert(0, &["pods: 1 name their owners as v1alpha1"]);
    let changed = |path: &&String| path.contains("/namespaces/");
    let changed: Vec<String> = server.paths().iter().filter(changed).cloned().collect();
    assert_eq!(changed, ["/api/v1/namespaces/shop/pods/a-2"]);
}

#[test]
fn owners_are_named_by_definitions_and_versions_that_exist() {
    let (folder, server) = (Folder::new(), ApiServer::start(with_pods));
    migrate_owners(&folder, &server, &["--to=v2", NAME])
        .assert(1, &["has no version v2, only v1alpha1, v1beta1"]);
    migrate_owners(&folder, &server, &["--to=v1alpha1", "widgets.apps.kruise.io"])
        .assert(1, &["the cluster has no definition widgets.apps.kruise.io"]);
    migrate_owners(&folder, &server, &["--to=v1alpha1"]).assert(2, &["required arguments were not provided"]);
}
