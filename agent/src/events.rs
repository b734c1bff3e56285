//! Emits the events of the agent.

use kruise_agent_core::{About, EventNote};
use kruise_api::names::agent::{CONTAINER_META, CONTAINER_RECREATE, IMAGE_PULLER, POD_PROBE};
use kruise_api::nodeimage::KIND;
use kruise_plan_kit::EventNote as Note;
use kruise_runtime::Client;
use kruise_runtime::events::{EventSink, ObjectRef};
use tokio::task::JoinHandle;

use crate::served::Versions;
use crate::watches::NODE_IMAGES;

/// Sinks of the components of the agent.
pub(crate) struct Events {
    sinks: [(&'static str, EventSink); 4],
    writers: [JoinHandle<()>; 4],
    served: Versions,
}

impl Events {
    /// Starts the writers. `client` is that of a component.
    pub(crate) fn spawn(client: impl Fn(&str) -> Client, node: &str, served: Versions) -> Self {
        let spawn = |component| EventSink::spawn_on(client(component), component, node);
        let (images, of_images) = spawn(IMAGE_PULLER);
        let (containers, of_containers) = spawn(CONTAINER_META);
        let (requests, of_requests) = spawn(CONTAINER_RECREATE);
        let (probes, of_probes) = spawn(POD_PROBE);
        Self {
            sinks: [
                (IMAGE_PULLER, images),
                (CONTAINER_META, containers),
                (CONTAINER_RECREATE, requests),
                (POD_PROBE, probes),
            ],
            writers: [of_images, of_containers, of_requests, of_probes],
            served,
        }
    }

    pub(crate) fn emit(&self, note: EventNote) {
        let object = self.object(note.about);
        let mut sinks = self.sinks.iter();
        if let Some((_, sink)) = sinks.find(|(component, _)| *component == note.component) {
            sink.emit(object, Note::new(note.reason, note.message));
        }
    }

    /// Waits until all events are written that were emitted.
    pub(crate) async fn written(self) {
        drop(self.sinks);
        for writer in self.writers {
            // A panic of a writer loses its events and nothing else.
            let _lost = writer.await;
        }
    }

    fn object(&self, about: About) -> ObjectRef {
        match about {
            About::NodeImage { name, uid } => {
                let version = self.served.get().api_version(NODE_IMAGES);
                ObjectRef {
                    api_version: version.unwrap_or_default(),
                    kind: KIND.kind.to_owned(),
                    name: name.into(),
                    uid: uid.into(),
                    ..ObjectRef::default()
                }
            }
            About::Object(of) => ObjectRef {
                api_version: of.api_version.into(),
                kind: of.kind.into(),
                namespace: of.namespace.into(),
                name: of.name.into(),
                uid: of.uid.into(),
                ..ObjectRef::default()
            },
            About::Pod { namespace, name, uid } => pod(namespace, name, uid),
            About::Container {
                namespace,
                pod: name,
                uid,
                container,
            } => ObjectRef {
                field_path: format!("spec.containers{{{container}}}"),
                ..pod(namespace, name, uid)
            },
        }
    }
}

fn pod(namespace: Box<str>, name: Box<str>, uid: Box<str>) -> ObjectRef {
    ObjectRef {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        namespace: namespace.into(),
        name: name.into(),
        uid: uid.into(),
        ..ObjectRef::default()
    }
}
