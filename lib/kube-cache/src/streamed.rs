//! A list that the server streams as the initial events of a watch (`sendInitialEvents`).
//!
//! The initial events come in no order of their versions, and changes follow them until a bookmark says that the
//! state is complete. Each object has its changes in order, so the last event of a name is its state.

use std::collections::BTreeMap;

use crate::{Cached, Failure, Input, ObjectKey, Version, WatchInput};

/// One line of a watch with initial events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamedLine<T> {
    /// An initial event or a change. Bookmarks before the end have no meaning.
    Event(WatchInput<T>),
    /// The bookmark after the initial events: all objects have been sent as they are at this version.
    End(Version),
    /// An `ERROR` event.
    Failed(Failure),
}

impl<T> StreamedLine<T> {
    /// The same line with another object.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> StreamedLine<U> {
        match self {
            Self::Event(event) => StreamedLine::Event(event.map(change)),
            Self::End(version) => StreamedLine::End(version),
            Self::Failed(failure) => StreamedLine::Failed(failure),
        }
    }
}

/// The line of a watch without initial events: an end has no meaning there.
impl<T> From<StreamedLine<T>> for Input<T> {
    fn from(line: StreamedLine<T>) -> Self {
        match line {
            StreamedLine::Event(event) => Self::Watch(event),
            StreamedLine::End(version) => Self::Watch(WatchInput::Bookmark(version)),
            StreamedLine::Failed(failure) => Self::Failed(failure),
        }
    }
}

/// The objects of a list that is being streamed.
#[derive(Clone, Debug)]
pub struct StreamedList<T> {
    objects: BTreeMap<ObjectKey, T>,
}

impl<T: Cached> StreamedList<T> {
    /// An empty list.
    pub fn new() -> Self {
        Self {
            objects: BTreeMap::new(),
        }
    }

    /// Applies one event.
    pub fn apply(&mut self, event: WatchInput<T>) {
        match event {
            WatchInput::Added(object) | WatchInput::Modified(object) => {
                self.objects.insert(ObjectKey::of(&object), object);
            }
            WatchInput::Deleted(object) => drop(self.objects.remove(&ObjectKey::of(&object))),
            WatchInput::Bookmark(_) => {}
        }
    }

    /// The objects, in the order of their keys.
    pub fn into_items(self) -> Vec<T> {
        self.objects.into_values().collect()
    }
}

impl<T: Cached> Default for StreamedList<T> {
    fn default() -> Self {
        Self::new()
    }
}
