//! Against what Go programs wrote: OpenKruise in a real cluster, and the encoder itself.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may panic"
)]

mod stored;
mod written_by_go;
