//! A guided tour of what workloads, their budget and their zones do, and a ResourceDistribution, on any cluster.
//!
//! Everything that is shown happened: what is printed was done, tables are what the API server answers, seconds and
//! requests are measured. Every step ends in claims about the pods; one that does not hold fails the tour. A
//! [`Stage`] connects the tour to a cluster.
//!
//! | module | what |
//! |---|---|
//! | [`subject`] | the workloads |
//! | [`story`] | the steps: acts and claims |
//! | [`act`] | one act, and how a reader repeats it with kubectl |
//! | [`run`](mod@run) | runs them |
//! | [`stage`] | what a tour needs of a cluster |
//! | [`pods`] | pods, and what became of them |
//! | [`screen`], [`table`] | what the reader sees |

#![allow(clippy::disallowed_methods, reason = "a tour is followed in real time")]

pub mod act;
pub mod pods;
pub mod run;
pub mod screen;
pub mod stage;
pub mod story;
pub mod subject;
pub mod table;
#[cfg(test)]
mod tests;

pub use act::Act;
pub use run::{Record, costs, run};
pub use screen::Screen;
pub use stage::{Requests, Stage, View};
pub use subject::Subject;
