//! The API as clients see it.

mod crud;
mod differential;
mod server;
