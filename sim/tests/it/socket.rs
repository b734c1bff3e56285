//! A world with fast timings on a socket, for clients that are programs.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use jiff::Timestamp;
use kruise_sim::{Config, Options, Timings, World, http};

/// Serves until the runtime is dropped.
pub fn serve() -> (tokio::runtime::Runtime, SocketAddr) {
    let (runtime, address, _) = serve_shared();
    (runtime, address)
}

/// As [`serve`], with a hand on the world.
pub fn serve_shared() -> (tokio::runtime::Runtime, SocketAddr, Arc<http::Live>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = runtime.block_on(tokio::net::TcpListener::bind(local)).unwrap();
    let address = listener.local_addr().unwrap();
    let options = Options {
        timings: Timings::fast(),
        ..Options::default()
    };
    let config = Config {
        managed_fields: true,
        ..Config::default()
    };
    let world = World::new(&config, &options, Timestamp::now()).unwrap();
    let live = http::Live::new(world);
    runtime.spawn(http::serve(listener, live.clone()));
    (runtime, address, live)
}
