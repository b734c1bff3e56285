//! Scenarios of the production manager.

mod cases;
mod image_pulls;
mod injected_bugs;
mod oracles;
mod scenarios;
