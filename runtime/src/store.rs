//! Objects on their way from the decoder to their informer, of whatever type.
//!
//! One piece of code follows the collections of all types. Only what decodes an object and what stores it is
//! compiled for each type.

use std::any::Any;

use kube_cache::{
    Cached, Delta, Error, Event, Input, SharedInformer, StreamedLine,
    wire::{self, DecodeError, TooDeep},
};
use serde::de::DeserializeOwned;

/// A type of objects that can be followed.
pub trait Followable: Cached + DeserializeOwned + Send + Sync + 'static {}

impl<T: Cached + DeserializeOwned + Send + Sync + 'static> Followable for T {}

/// An object whose type only its [`Store`] knows.
pub(crate) struct Object(Box<dyn Erased>);

trait Erased: Cached + Send {
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<T: Followable> Erased for T {
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl Object {
    fn new<T: Followable>(object: T) -> Self {
        Self(Box::new(object))
    }

    fn typed<T: Followable>(self) -> Option<T> {
        let object = self.0.into_any().downcast().ok()?;
        Some(*object)
    }
}

impl Cached for Object {
    fn namespace(&self) -> &str {
        self.0.namespace()
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn uid(&self) -> &str {
        self.0.uid()
    }

    fn resource_version(&self) -> &str {
        self.0.resource_version()
    }

    fn is_terminating(&self) -> bool {
        self.0.is_terminating()
    }

    fn generation(&self) -> Option<i64> {
        self.0.generation()
    }
}

/// Decodes and stores the objects of one type.
pub(crate) trait Store: Send {
    /// Decodes a page of a list.
    fn page(&mut self, body: &[u8], skipped: &mut dyn FnMut(TooDeep)) -> Result<Input<Object>, DecodeError>;

    /// Decodes a line of a watch.
    fn line(
        &mut self,
        line: &[u8],
        skipped: &mut dyn FnMut(TooDeep),
    ) -> Result<StreamedLine<Object>, DecodeError>;

    /// Applies an event to the informer, and hands the changes on.
    fn apply(&mut self, event: Event<Object>) -> Result<(), Error>;

    /// [`SharedInformer::forget_history`].
    fn forget_history(&mut self);
}

/// An informer, and what receives its changes.
pub(crate) struct Typed<'i, T, D> {
    pub(crate) informer: &'i SharedInformer<T>,
    pub(crate) on_delta: D,
}

impl<T: Followable, D: FnMut(Delta<T>) + Send> Store for Typed<'_, T, D> {
    fn page(&mut self, body: &[u8], skipped: &mut dyn FnMut(TooDeep)) -> Result<Input<Object>, DecodeError> {
        Ok(wire::decode_page(body, skipped)?.map(Object::new::<T>))
    }

    fn line(
        &mut self,
        line: &[u8],
        skipped: &mut dyn FnMut(TooDeep),
    ) -> Result<StreamedLine<Object>, DecodeError> {
        Ok(wire::decode_streamed_line(line, skipped)?.map(Object::new::<T>))
    }

    fn apply(&mut self, event: Event<Object>) -> Result<(), Error> {
        // An object that this store has decoded is of its type.
        let Some(event) = typed(event) else {
            return Ok(());
        };
        let deltas = self.informer.apply(event)?;
        deltas.into_iter().for_each(&mut self.on_delta);
        Ok(())
    }

    fn forget_history(&mut self) {
        self.informer.forget_history();
    }
}

/// The event with objects of their type; `None` if they are of another one.
fn typed<T: Followable>(event: Event<Object>) -> Option<Event<T>> {
    Some(match event {
        Event::ListStarted => Event::ListStarted,
        Event::Page(items) => Event::Page(items.into_iter().map(Object::typed).collect::<Option<_>>()?),
        Event::ListDone { version } => Event::ListDone { version },
        Event::Added(object) => Event::Added(object.typed()?),
        Event::Modified(object) => Event::Modified(object.typed()?),
        Event::Deleted(object) => Event::Deleted(object.typed()?),
        Event::Bookmark(version) => Event::Bookmark(version),
    })
}
