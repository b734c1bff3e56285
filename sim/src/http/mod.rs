//! A [`World`](crate::World) in real time, on a socket.
//!
//! The one part of this crate that does I/O. [`Live`] is a world that many connections share; [`serve`] answers
//! requests from it, streams its watches, and lets it play: it sleeps until something is due or somebody writes, and
//! moves the world to the time of the clock. Webhooks are called over TLS, for clients' requests and for what the world
//! itself needs.
//!
//! Whoever embeds the server reads and changes the world between two requests with [`Live::with_world`], and calls
//! the container runtimes of its nodes with [`Live::call_runtime`].

mod audit;
mod caller;
mod clock;
mod live;
mod player;
mod runtimes;
mod server;
mod stream;

pub use self::audit::AuditLog;
pub use self::live::Live;
pub use self::server::serve;
