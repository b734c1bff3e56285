//! An event recorder like client-go's: repeated events are counted, many similar events are combined into one, and no
//! caller waits for a write.

mod correlator;
mod sink;

pub use correlator::{Correlator, Decision, Occurrence};
pub use sink::{EventSink, ObjectRef};
