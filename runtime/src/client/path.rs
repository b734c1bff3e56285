//! Request paths.

use kruise_plan_kit::{Part, Resource, Target};

/// The path of a collection (`name` empty) or object; without a namespace, that of all namespaces or of an object in
/// none. `clonesets` is the version in which the kind of `apps.kruise.io` that is meant is served, such as `v1alpha1`.
pub fn path_of(target: &Target, part: Part, clonesets: &str) -> String {
    let prefix = match target.resource {
        Resource::Pods | Resource::Claims | Resource::Barriers => "/api/v1".to_owned(),
        Resource::Revisions => "/apis/apps/v1".to_owned(),
        Resource::CloneSets | Resource::SidecarSets | Resource::PullJobs => {
            format!("/apis/apps.kruise.io/{clonesets}")
        }
    };
    let plural = target.resource.plural();
    let mut path = if target.namespace.is_empty() {
        format!("{prefix}/{plural}")
    } else {
        format!("{prefix}/namespaces/{}/{plural}", target.namespace)
    };
    if !target.name.is_empty() {
        path.push('/');
        path.push_str(&target.name);
    }
    path.push_str(match part {
        Part::Main => "",
        Part::Status => "/status",
        Part::Resize => "/resize",
    });
    path
}
