//! What reviews and their caller exchange beside requests, responses and lookups. All reviews may use these types, and
//! these types use no review.

mod dependants;
mod object_name;
mod phase;
mod write;

pub use dependants::{Counted, Dependants};
pub use object_name::ObjectName;
pub use phase::Phase;
pub use write::{Charge, Count, Write};
