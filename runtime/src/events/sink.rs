//! Writes events in a separate task.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use jiff::Timestamp;
use kruise_api::{names::events::Reason, path::segment};
use kruise_plan_kit::{EventNote, Involved};
use kube_cache::Cached;
use serde::{Serialize, de::IgnoredAny};
use serde_json::json;
use tokio::{sync::mpsc, task::JoinHandle, time::Instant};

use super::correlator::{Correlator, Decision, Occurrence};
use crate::Client;

/// Length of the queue. Further events are dropped and counted.
const WAITING: usize = 1000;
/// Longest message, in bytes; the API refuses longer ones.
const LONGEST: usize = 1024;

/// The object of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace, also of the event. Empty for a cluster-scoped object, whose events are in `default`.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// UID.
    pub uid: String,
    /// Version of the object that was reconciled.
    pub resource_version: String,
    /// A part of the object, such as `spec.containers{main}`; empty for all of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field_path: String,
}

impl ObjectRef {
    /// An object of this kind, in the version that was reconciled.
    pub fn of(object: &impl Cached, api_version: String, kind: &str) -> Self {
        Self {
            api_version,
            kind: kind.to_owned(),
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
            uid: object.uid().to_owned(),
            resource_version: object.resource_version().to_owned(),
            field_path: String::new(),
        }
    }

    /// The object that an event names.
    pub fn of_involved(object: &Involved) -> Self {
        Self {
            api_version: object.api_version.to_string(),
            kind: object.kind.to_string(),
            namespace: object.namespace.to_string(),
            name: object.name.to_string(),
            uid: object.uid.to_string(),
            resource_version: object.resource_version.to_string(),
            field_path: String::new(),
        }
    }
}

/// A handle to emit events without blocking.
#[derive(Clone)]
pub struct EventSink {
    sender: mpsc::Sender<(ObjectRef, EventNote)>,
    dropped: Arc<AtomicU64>,
    /// Reasons that its events may have; any if there are none.
    declared: Arc<[&'static Reason]>,
}

impl EventSink {
    /// Starts the task. `component` is the source of the events. The task ends when all handles are dropped.
    pub fn spawn(client: Client, component: impl Into<String>) -> (Self, JoinHandle<()>) {
        Self::spawn_on(client, component, String::new())
    }

    /// As [`spawn`](Self::spawn), for a component of this node.
    pub fn spawn_on(
        client: Client,
        component: impl Into<String>,
        host: impl Into<String>,
    ) -> (Self, JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        let writer = Writer {
            client,
            source: Source {
                component: component.into(),
                host: host.into(),
            },
            correlator: Correlator::default(),
            started: Instant::now(),
            next: 0,
        };
        (
            Self {
                sender,
                dropped: Arc::default(),
                declared: Arc::default(),
            },
            tokio::spawn(writer.run(receiver)),
        )
    }

    /// The same handle, whose events have these reasons only. Others panic, in builds with assertions.
    #[must_use]
    pub fn declaring(self, reasons: impl Iterator<Item = &'static Reason>) -> Self {
        Self {
            declared: reasons.collect(),
            ..self
        }
    }

    /// Queues an event.
    pub fn emit(&self, object: ObjectRef, note: EventNote) {
        debug_assert!(
            self.declared.is_empty() || self.declared.contains(&note.reason),
            "the registration does not declare {:?}",
            note.reason
        );
        if self.sender.try_send((object, note)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Number of events dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// Who events are from.
#[derive(Serialize)]
struct Source {
    component: String,
    /// Empty for a component that belongs to no node.
    #[serde(skip_serializing_if = "String::is_empty")]
    host: String,
}

struct Writer {
    client: Client,
    source: Source,
    correlator: Correlator,
    started: Instant,
    next: u64,
}

impl Writer {
    async fn run(mut self, mut receiver: mpsc::Receiver<(ObjectRef, EventNote)>) {
        while let Some((object, note)) = receiver.recv().await {
            match self.correlator.take(&object.uid, &note, self.started.elapsed()) {
                Decision::Drop => {}
                Decision::Create(occurrence) => self.create(&object, &note, occurrence).await,
                Decision::Repeat(occurrence) => self.repeat(&object, &note, occurrence).await,
            }
        }
    }

    async fn create(&mut self, object: &ObjectRef, note: &EventNote, occurrence: Occurrence) {
        self.next += 1;
        let name = format!(
            "{}.{:x}{:04x}",
            object.name,
            self.client.now().as_microsecond(),
            self.next & 0xffff
        );
        let time = whole_seconds(self.client.now());
        let event = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": name, "namespace": namespace(object)},
            "involvedObject": object,
            "reason": note.reason.name, "message": cut(&occurrence.message), "type": note.reason.kind.as_str(),
            "count": occurrence.count, "firstTimestamp": time, "lastTimestamp": time,
            "source": self.source, "reportingComponent": self.source.component, "reportingInstance": self.source.host,
        });
        match self.client.create::<IgnoredAny>(&path(object, ""), &event).await {
            Ok(_) => self.correlator.stored(occurrence, name, self.started.elapsed()),
            Err(error) => tracing::debug!(object = object.name, %error, "event not written"),
        }
    }

    async fn repeat(&mut self, object: &ObjectRef, note: &EventNote, occurrence: Occurrence) {
        let patch = json!({
            "count": occurrence.count, "message": cut(&occurrence.message),
            "lastTimestamp": whole_seconds(self.client.now()),
        });
        let path = path(object, &occurrence.name);
        match self
            .client
            .patch::<IgnoredAny>(&path, "application/merge-patch+json", &patch)
            .await
        {
            Ok(_) => {}
            // The server deletes events after an hour. A later repetition is a new event.
            Err(error) if error.is_not_found() => {
                self.correlator.lost(&occurrence);
                let fresh = Occurrence {
                    count: 1,
                    ..occurrence
                };
                self.create(object, note, fresh).await;
            }
            Err(error) => tracing::debug!(object = object.name, %error, "event not written"),
        }
    }
}

fn whole_seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The namespace of an object's events.
fn namespace(object: &ObjectRef) -> &str {
    if object.namespace.is_empty() {
        "default"
    } else {
        &object.namespace
    }
}

fn path(object: &ObjectRef, name: &str) -> String {
    let collection = format!("/api/v1/namespaces/{}/events", segment(namespace(object)));
    if name.is_empty() {
        collection
    } else {
        format!("{collection}/{}", segment(name))
    }
}

/// The longest prefix that the API takes and that ends between characters.
fn cut(message: &str) -> &str {
    let end = (0..=LONGEST.min(message.len()))
        .rev()
        .find(|end| message.is_char_boundary(*end))
        .unwrap_or(0);
    message.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{ObjectRef, cut, path};

    #[test]
    fn events_of_cluster_scoped_objects_are_in_the_default_namespace() {
        let mut object = ObjectRef::default();
        assert_eq!(path(&object, "a"), "/api/v1/namespaces/default/events/a");
        object.namespace = "shop".into();
        assert_eq!(path(&object, ""), "/api/v1/namespaces/shop/events");
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        assert_eq!(cut("short"), "short");
        let long = "ä".repeat(1000);
        assert_eq!(cut(&long).len(), 1024);
        let odd = format!("x{long}");
        assert_eq!(cut(&odd).len(), 1023);
    }
}
