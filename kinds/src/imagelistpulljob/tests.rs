use std::sync::Arc;

use kube_cache::Delta;
use serde_json::json;

use super::{JOBS_BY_LIST, lists_of};
use crate::images::CachedPullJob;

fn job(kind: &str, list: &str) -> Arc<CachedPullJob> {
    let job = json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob",
        "metadata": {"name": "warm-1", "namespace": "shop", "uid": "j", "ownerReferences": [
            {"apiVersion": "apps.kruise.io/v1alpha1", "kind": kind, "name": list, "uid": format!("uid-{list}"),
             "controller": true}]},
        "spec": {"image": "app:1"},
    });
    Arc::new(serde_json::from_str(&job.to_string()).unwrap())
}

#[test]
fn a_job_enqueues_the_list_that_controls_it_before_or_after_the_change() {
    let lists = |old: Option<Arc<CachedPullJob>>, new: Option<Arc<CachedPullJob>>| {
        let keys = lists_of(&Delta { old, new });
        keys.iter().map(|key| key.name.to_string()).collect::<Vec<_>>()
    };
    let of = |list: &str| Some(job("ImageListPullJob", list));
    assert_eq!(lists(None, of("warm")), ["warm"]);
    assert_eq!(lists(of("warm"), of("warm")), ["warm"]);
    assert_eq!(lists(of("warm"), of("cold")), ["warm", "cold"]);
    assert_eq!(lists(Some(job("CloneSet", "web")), None), [""; 0]);
}

#[test]
fn jobs_are_indexed_by_the_list_that_controls_them() {
    assert_eq!(
        JOBS_BY_LIST.keys_of(&job("ImageListPullJob", "warm")),
        ["uid-warm".into()]
    );
    assert!(JOBS_BY_LIST.keys_of(&job("CloneSet", "web")).is_empty());
}
