//! One pod: what is known of it, what is reported, and what remains to be done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kruise_api::container_meta::{ContainerHashes, ContainerMeta, ContainersMeta};
use kruise_views::{NodeContainerView, NodePodView};
use kube_cache::Version;

use crate::annotations;
use crate::{ContainerId, RuntimeContainer};

use super::environment;

/// A pod whose containers are reported.
#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub(super) view: Arc<NodePodView>,
    /// When its containers are to be read.
    pub(super) due: Option<Timestamp>,
    pub(super) step: Step,
    /// The last report has this version; until then, or until this time, older ones are not looked at.
    pub(super) expected: Option<(Version, Timestamp)>,
    /// Reads and writes that failed since one succeeded.
    pub(super) failures: u32,
    /// Runs of `env` that failed since one succeeded.
    pub(super) env_failures: u32,
    /// Stops of containers while the pod is updated in place: how many, and when the next one may follow. By name.
    pub(super) stops: BTreeMap<Box<str>, (u32, Timestamp)>,
    /// It was there before the agent, which has never reported on it, and is not being updated: nothing is done
    /// before it changes.
    pub(super) is_ignored: bool,
}

/// What is being done for a pod.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Idle,
    /// Its containers are being read.
    Reading,
    /// The environments of its containers are being read.
    Environments(Draft),
    /// Its report is being written.
    Writing,
}

/// A report that is being made.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) meta: ContainersMeta,
    /// The containers in it.
    pub(super) containers: Vec<RuntimeContainer>,
    /// Ids of those whose environment is not known yet.
    pub(super) awaited: BTreeSet<ContainerId>,
    pub(super) has_failed: bool,
}

impl Pod {
    pub(super) fn new(view: Arc<NodePodView>, is_ignored: bool) -> Self {
        Self {
            view,
            due: None,
            step: Step::Idle,
            expected: None,
            failures: 0,
            env_failures: 0,
            stops: BTreeMap::new(),
            is_ignored,
        }
    }

    /// Name of the runtime of its containers; none before the first one was created.
    pub(super) fn runtime(&self) -> Option<&str> {
        let mut ids = self.view.statuses.iter().map(|status| &*status.container_id);
        ids.find_map(|id| Some(id.split_once("://")?.0))
    }

    /// When its containers are read next.
    pub(super) fn next_read(&self) -> Option<Timestamp> {
        let due = self.due.filter(|_| matches!(self.step, Step::Idle))?;
        Some(self.expected.map_or(due, |(_, until)| until.max(due)))
    }

    /// Is there something to report, or to stop?
    pub(super) fn needs_read(&self, env_from_metadata: bool) -> bool {
        let meta = reported(&self.view);
        let statuses = self.view.statuses.iter();
        let mut created = statuses.filter(|status| !status.container_id.is_empty());
        meta.containers.len() != created.clone().count()
            || created.any(|status| {
                let entry = meta.entry(&status.name);
                let entry = entry.filter(|entry| entry.container_id == *status.container_id);
                entry.is_none_or(|entry| {
                    env_from_metadata
                        && status.is_running
                        && entry.hashes.extracted_env_from_metadata_hash == 0
                        && self.view.container(&status.name).is_some()
                })
            })
            || (env_from_metadata && meta.containers.iter().any(|entry| is_outdated(&self.view, entry)))
    }

    /// The report that its containers lead to, as far as it is known without their environments. Entries of
    /// containers that were reported already stay as they are.
    pub(super) fn draft(&self, runtime: &str, all: Vec<RuntimeContainer>, env_from_metadata: bool) -> Draft {
        let before = reported(&self.view);
        let mut newest: BTreeMap<Box<str>, RuntimeContainer> = BTreeMap::new();
        for container in all {
            let known = newest.get(&container.name);
            if known.is_none_or(|known| (known.created, &known.id) < (container.created, &container.id)) {
                newest.insert(container.name.clone(), container);
            }
        }
        let mut draft = Draft {
            meta: ContainersMeta::default(),
            containers: Vec::new(),
            awaited: BTreeSet::new(),
            has_failed: false,
        };
        for status in &self.view.statuses {
            let Some(container) = newest.remove(&status.name) else {
                continue;
            };
            let id = ContainerId {
                runtime: runtime.into(),
                id: container.id.clone(),
            };
            let text = id.to_string();
            let known = before
                .entry(&status.name)
                .filter(|entry| entry.container_id == text);
            let mut entry = known.cloned().unwrap_or_else(|| ContainerMeta {
                name: status.name.to_string(),
                container_id: text,
                restart_count: annotations::restart_count(&container),
                hashes: ContainerHashes {
                    plain_hash: annotations::hash(&container),
                    extracted_env_from_metadata_hash: 0,
                },
            });
            let hash = &mut entry.hashes.extracted_env_from_metadata_hash;
            if env_from_metadata && container.is_running && *hash == 0 {
                match self.view.container(&status.name) {
                    Some(view) if view.environment.is_empty() => *hash = environment::expected(view),
                    Some(_) => drop(draft.awaited.insert(id)),
                    None => {}
                }
            }
            draft.meta.containers.push(entry);
            draft.containers.push(container);
        }
        draft
    }
}

impl Draft {
    /// What `env` printed in a container is known, or why it is not.
    pub(super) fn answer(&mut self, view: &NodePodView, container: &ContainerId, printed: Option<&str>) {
        self.awaited.remove(container);
        self.has_failed |= printed.is_none();
        let id = container.to_string();
        let entry = self
            .meta
            .containers
            .iter_mut()
            .find(|entry| entry.container_id == id);
        let Some((entry, printed)) = entry.zip(printed) else {
            return;
        };
        if let Some(of) = view.container(&entry.name) {
            entry.hashes.extracted_env_from_metadata_hash = environment::current(of, printed);
        }
    }
}

/// The report that is stored; one that cannot be read is none.
pub(super) fn reported(view: &NodePodView) -> ContainersMeta {
    let stored = view
        .report
        .as_deref()
        .and_then(|report| serde_json::from_str(report).ok());
    stored.unwrap_or_default()
}

/// Must this container be stopped? Only while its pod is updated in place, and out of service for that.
pub(super) fn is_outdated(view: &NodePodView, entry: &ContainerMeta) -> bool {
    let current = entry.hashes.extracted_env_from_metadata_hash;
    let differs = |of: &NodeContainerView| environment::expected(of) != current;
    view.is_updating && current != 0 && view.container(&entry.name).is_some_and(differs)
}
