//! The executable as its users start it.

mod demo;
mod files;
mod life;
mod process;
