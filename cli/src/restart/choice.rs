//! Which pods are restarted, and what they are like now.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use anyhow::bail;
use jiff::Timestamp;
use kruise_plan_kit::{availability::service, injected::is_injected};
use kruise_views::PodView;

use super::rollout::Pod;

/// UIDs of the pods that are restarted, by name, and names of those whose containers have not started yet.
/// Fails if a pod has no container of such a name.
pub(super) fn to_restart<'p>(
    pods: &'p [Arc<PodView>],
    containers: &[String],
) -> anyhow::Result<(BTreeMap<String, String>, Vec<&'p str>)> {
    let (mut chosen, mut left_out) = (BTreeMap::new(), Vec::new());
    for pod in pods {
        let regular = pod.containers.iter().map(|container| &*container.name);
        let sidecars = pod.sidecars.iter().map(|sidecar| &*sidecar.name);
        let names: Vec<&str> = regular.chain(sidecars).collect();
        if let Some(absent) = containers.iter().find(|name| !names.contains(&name.as_str())) {
            bail!(
                "pod {} has no container {absent}; it has {}",
                pod.name,
                names.join(", ")
            );
        }
        let has_started = |name: &String| {
            let status = pod.lasting_status_of(name);
            status.is_some_and(|status| !status.container_id.is_empty())
        };
        if containers.iter().all(has_started) {
            chosen.insert(pod.name.to_string(), pod.uid.to_string());
        } else {
            left_out.push(&*pod.name);
        }
    }
    Ok((chosen, left_out))
}

/// The pods at this instant. `asked` are UIDs or names of those for which others have open requests.
pub(super) fn pods_now(
    pods: &[Arc<PodView>],
    asked: &BTreeSet<String>,
    min_ready_seconds: i32,
    now: Timestamp,
) -> Vec<Pod> {
    let is_asked = |pod: &PodView| asked.contains(&*pod.uid) || asked.contains(&*pod.name);
    let pod = |pod: &Arc<PodView>| Pod {
        name: pod.name.to_string(),
        uid: pod.uid.to_string(),
        is_available: service(pod, min_ready_seconds, now).is_available(),
        is_asked: is_asked(pod) && !is_injected("OpenRequestsIgnored"),
    };
    pods.iter().map(pod).collect()
}

/// Why nothing changes.
pub(super) fn stuck(wanted: i32, pods: &[Pod], seconds: u32) -> String {
    let named = |is_meant: &dyn Fn(&&Pod) -> bool| {
        let names: Vec<&str> = pods
            .iter()
            .filter(is_meant)
            .map(|pod| pod.name.as_str())
            .collect();
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    };
    let out = named(&|pod| !pod.is_available);
    let asked = named(&|pod| pod.is_asked);
    let found = i32::try_from(pods.len()).unwrap_or(i32::MAX);
    let absent = wanted.saturating_sub(found).max(0);
    format!(
        "nothing has changed for {seconds} s; pods that are not available: {out}; pods with an open request that this run did not \
         create: {asked}; pods that the workload lacks: {absent}"
    )
}

#[cfg(test)]
mod tests {
    use kruise_views::{ContainerStatusView, ContainerView};

    use super::*;

    fn pod(name: &str, id: &str) -> Arc<PodView> {
        let container = ContainerView {
            name: "app".into(),
            ..ContainerView::default()
        };
        let status = ContainerStatusView {
            name: "app".into(),
            container_id: id.into(),
            ..ContainerStatusView::default()
        };
        Arc::new(PodView {
            name: name.into(),
            uid: format!("uid-{name}").into(),
            containers: [container].into(),
            statuses: [status].into(),
            ..PodView::default()
        })
    }

    #[test]
    fn pods_whose_containers_have_not_started_are_left_out() {
        let pods = [pod("web-0", "containerd://a"), pod("web-1", "")];
        let (chosen, left_out) = to_restart(&pods, &["app".into()]).unwrap();
        assert_eq!(chosen, BTreeMap::from([("web-0".into(), "uid-web-0".into())]));
        assert_eq!(left_out, ["web-1"]);
    }

    #[test]
    fn a_container_that_a_pod_does_not_have_is_named_with_those_that_it_has() {
        let error = to_restart(&[pod("web-0", "containerd://a")], &["ap".into()]).unwrap_err();
        assert_eq!(error.to_string(), "pod web-0 has no container ap; it has app");
    }

    #[test]
    fn a_pod_is_found_by_its_uid_or_by_its_name_among_those_that_others_restart() {
        let pods = ["web-0", "web-1", "web-2"].map(|name| pod(name, "containerd://a"));
        let asked = ["uid-web-1", "web-2"].map(str::to_owned).into();
        let pods = pods_now(&pods, &asked, 0, Timestamp::UNIX_EPOCH);
        assert_eq!(
            pods.iter().map(|pod| pod.is_asked).collect::<Vec<_>>(),
            [false, true, true]
        );
        let said = stuck(4, &pods, 9);
        assert!(
            said.contains("did not create: web-1, web-2; pods that the workload lacks: 1"),
            "{said}"
        );
    }
}
