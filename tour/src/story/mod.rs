//! The story: which acts, in which order, and what must be true after each.
//!
//! A step is data: an act made from the pods that are there, a condition that ends the wait, and claims about what
//! became of the pods. The claims are what the tour is for; one that does not hold ends it with an error.

mod db;
mod debug;
mod fleet;
mod guard;
mod step;
mod token;
mod web;
mod zones;

pub use step::{Claim, Costs, Outcome, Step};

/// The whole story.
pub fn steps() -> Vec<Step> {
    let of_web = web::STEPS.into_iter().chain(guard::STEPS);
    let of_pods = of_web.chain(db::STEPS).chain(debug::STEPS);
    of_pods
        .chain(zones::STEPS)
        .chain(fleet::STEPS)
        .chain(token::STEPS)
        .collect()
}
