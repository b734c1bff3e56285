//! Bad neighbours: connections that are kept and misused, and fresh ones for nothing.

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

/// Connections that are kept.
const KEPT: usize = 32;
/// From one fresh handshake to the next: fifty a second.
const KNOCK: Duration = Duration::from_millis(20);
const PAUSE: Duration = Duration::from_millis(100);

/// Goes on until what it returns is dropped.
pub fn throw(runtime: &Runtime, server: &Server) -> JoinSet<()> {
    let mut garbage = JoinSet::new();
    for number in 0..KEPT {
        garbage.spawn_on(keep(server.target(), number), runtime.handle());
    }
    garbage.spawn_on(knock(server.target()), runtime.handle());
    garbage
}

/// Keeps one connection and misuses it in the way its number says.
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
        sleep(KNOCK).await;
    }
}

/// Fresh handshakes, each followed by garbage.
async fn knock(target: Target) {
    let mut ticks = interval(KNOCK);
    let mut knocks = JoinSet::new();
    loop {
        ticks.tick().await;
        let target = target.clone();
        knocks.spawn(async move {
            if let Ok(mut stream) = target.connect().await {
                let _ = stream.write_all(&[0xff; 512]).await;
            }
        });
        while knocks.try_join_next().is_some() {}
    }
}
