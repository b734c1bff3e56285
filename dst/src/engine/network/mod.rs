//! The network between the manager processes and the API server.

mod answer;
pub mod link;
mod waiting;
mod watch;
