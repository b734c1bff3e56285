//! *"No claim of a live pod is deleted."* Nor is it given away. What is true decides, not what its sender knew:
//! where it cannot know, it needs a lookup.

use crate::rules::prelude::*;

/// Judges a write to a claim.
pub fn judge(write: &Write<'_>, mirror: &Mirror) -> Option<Violation> {
    if write.resource != "persistentvolumeclaims" || write.method == Method::Post {
        return None;
    }
    let user = mirror
        .of(PODS)
        .now()
        .find(|pod| pod.is_active() && mounts(pod).any(|claim| claim == write.name))?;
    write.breaks(
        "claims of live pods stay",
        format!(
            "{:?} claim {}, which pod {} mounts: {}",
            write.method, write.name, user.name, write.body
        ),
    )
}

/// Names of the claims that a pod mounts.
pub fn mounts(pod: &Object) -> impl Iterator<Item = &str> {
    let names = items(&pod.spec()["volumes"]);
    names.filter_map(|volume: &Value| volume["persistentVolumeClaim"]["claimName"].as_str())
}

/// What of the claims is not as it should be once all is over: each pod has one of its own for each template that
/// it was made with, and where claims are not reused there is none without a pod.
pub fn unfinished(set: &Object, pods: &[&&std::sync::Arc<Object>], mirror: &Mirror) -> Result<(), String> {
    let claims = mirror.of(CLAIMS);
    let mut mounted = std::collections::BTreeSet::new();
    for pod in pods {
        for name in mounts(pod) {
            let claim = claims.named(name).filter(|claim| !claim.is_going());
            claim.ok_or_else(|| format!("pod {} has no claim {name}", pod.name))?;
            wrong!(!mounted.insert(name.to_owned()) => "claim {name} is mounted twice");
        }
    }
    if set.spec()["scaleStrategy"]["enablePVCReuse"] == true {
        return Ok(());
    }
    let all_pods = mirror.of(PODS);
    let left = claims.now().find(|claim| {
        let pod = claim.name.strip_prefix("data-").unwrap_or_default();
        claim.owner() == &*set.uid && !mounted.contains(&*claim.name) && all_pods.named(pod).is_none()
    });
    left.map_or(Ok(()), |claim| {
        Err(format!("claim {} was left behind", claim.name))
    })
}
