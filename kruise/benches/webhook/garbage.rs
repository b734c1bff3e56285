//! Clients that misbehave: connections that are kept open and misused, and new ones that send garbage.

use std::time::Duration;

use http::StatusCode;
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpStream,
    runtime::Runtime,
    task::JoinSet,
    time::{interval, sleep},
};

use crate::client::{Server, Target, request};

/// Number of connections that are kept open.
const KEPT: usize = 32;
/// Interval between new handshakes: fifty a second.
const HANDSHAKE_INTERVAL: Duration = Duration::from_millis(20);
const PAUSE: Duration = Duration::from_millis(100);

/// Starts the clients. They run until the result is dropped.
pub fn start(runtime: &Runtime, server: &Server) -> JoinSet<()> {
    let mut garbage = JoinSet::new();
    for number in 0..KEPT {
        garbage.spawn_on(keep(server.target(), number), runtime.handle());
    }
    garbage.spawn_on(new_connections(server.target()), runtime.handle());
    garbage
}

/// Keeps one connection open and misuses it; the number selects how.
async fn keep(target: Target, number: usize) {
    loop {
        match number % 4 {
            0 => {
                if let Some(mut client) = target.client().await {
                    while let Ok(answer) = client.send_request(request("garbage".into())).await {
                        assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
                        sleep(PAUSE).await;
                    }
                }
            }
            1 => {
                if let Ok(mut slow) = target.connect().await {
                    while slow.write_all(b"x").await.is_ok() {
                        sleep(PAUSE).await;
                    }
                }
            }
            2 => {
                if let Ok(mut stalled) = TcpStream::connect(target.address).await {
                    while stalled.write_all(&[0x16, 3, 1, 0x20, 0]).await.is_ok() {
                        sleep(PAUSE).await;
                    }
                }
            }
            _ => {
                let silent = target.connect().await;
                sleep(PAUSE * 30).await;
                drop(silent);
            }
        }
        sleep(HANDSHAKE_INTERVAL).await;
    }
}

/// Opens new connections; each sends garbage after the handshake.
async fn new_connections(target: Target) {
    let mut ticks = interval(HANDSHAKE_INTERVAL);
    let mut connections = JoinSet::new();
    loop {
        ticks.tick().await;
        let target = target.clone();
        connections.spawn(async move {
            if let Ok(mut stream) = target.connect().await {
                let _ = stream.write_all(&[0xff; 512]).await;
            }
        });
        while connections.try_join_next().is_some() {}
    }
}
