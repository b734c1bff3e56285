//! Asks a real server, over a proxy without encryption.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::transcript::step::{Answer, Memory, Step};

/// How long the background may take, and how often it is read.
const PATIENCE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(1500);
const POLL: Duration = Duration::from_millis(100);

pub fn answer(address: &str, step: &Step, memory: &Memory) -> Answer {
    match step.method.as_str() {
        "PAUSE" => {
            std::thread::sleep(PAUSE);
            Answer::none()
        }
        "WAIT" => {
            let wanted = step.body.as_u64();
            let read = Step::new("GET", &step.target, Value::Null);
            let start = Instant::now();
            loop {
                let found = send(address, &read, memory);
                if Some(u64::from(found.code)) == wanted {
                    return found;
                }
                assert!(start.elapsed() < PATIENCE, "{} stays {}", step.target, found.code);
                std::thread::sleep(POLL);
            }
        }
        _ => send(address, step, memory),
    }
}

fn send(address: &str, step: &Step, memory: &Memory) -> Answer {
    let body = step.bytes(memory);
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "{} {} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nUser-Agent: differential\r\nAccept: {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n",
        step.method,
        memory.fill(&step.target),
        step.accept,
        step.content_type,
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&body).unwrap();
    let mut raw = Vec::new();
    // a server that refuses early closes before it has read the body
    if let Err(error) = stream.read_to_end(&mut raw) {
        assert!(!raw.is_empty(), "{} {}: {error}", step.method, step.target);
    }
    let at = raw
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .unwrap_or_else(|| {
            panic!(
                "no headers: {} {}: {}",
                step.method,
                step.target,
                String::from_utf8_lossy(&raw)
            )
        });
    let head = String::from_utf8_lossy(&raw[..at]).to_lowercase();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut body = raw[at + 4..].to_vec();
    if head.contains("transfer-encoding: chunked") {
        body = unchunk(&body);
    }
    let body = if step.is_watch() && code == 200 {
        let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines
            .map(|line| serde_json::from_slice::<Value>(line).unwrap())
            .collect()
    } else {
        serde_json::from_slice(&body).unwrap_or(Value::Null)
    };
    Answer { code, body }
}

fn unchunk(mut body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(at) = body.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(String::from_utf8_lossy(&body[..at]).trim(), 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        out.extend_from_slice(&body[at + 2..at + 2 + size]);
        body = &body[at + 2 + size + 2..];
    }
    out
}
