//! Request paths.

use kruise_plan_kit::{Part, Resource, Target};

/// The path of a collection (`name` empty) or object; `clonesets` is the served version of `apps.kruise.io`, such as
/// `v1alpha1`.
pub fn path_of(target: &Target, part: Part, clonesets: &str) -> String {
    let prefix = match target.resource {
        Resource::Pods | Resource::Claims => "/api/v1".to_owned(),
        Resource::Revisions => "/apis/apps/v1".to_owned(),
        Resource::CloneSets => format!("/apis/apps.kruise.io/{clonesets}"),
    };
    let mut path = format!(
        "{prefix}/namespaces/{}/{}",
        target.namespace,
        target.resource.plural()
    );
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
