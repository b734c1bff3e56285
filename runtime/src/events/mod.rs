//! Events for people, as client-go's recorder writes them: repeated ones are counted, floods of similar ones become
//! one, and nothing ever waits for them.

mod correlator;
mod sink;

pub use correlator::{Correlator, Decision, Occurrence};
pub use sink::{EventSink, ObjectRef};
