//! The API as clients see it.

mod crud;
mod server;
