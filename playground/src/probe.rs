//! Pages of the manager's plain HTTP servers.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest time for one page.
const LIMIT: Duration = Duration::from_secs(5);

/// Asks for a page; returns it if the answer is 200.
pub(super) async fn page(address: SocketAddr, path: &str) -> anyhow::Result<Option<String>> {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = tokio::time::timeout(LIMIT, exchange)
        .await
        .with_context(|| format!("{address}{path} does not answer"))?
        .with_context(|| format!("{address}{path} cannot be read"))?;
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .with_context(|| format!("{address}{path} answered with half a page"))?;
    let is_ok = head.split(' ').nth(1) == Some("200");
    Ok(is_ok.then(|| body.to_owned()))
}
