//! A registry on loopback, and how images get into it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::super::daemon::Daemon;
use super::tool;
use crate::interrupt;
use crate::oci::{MANIFEST, digest};

const CONFIG: &str = include_str!("../../../assets/nodes/registry.yaml");
const NAME: &str = "docker-registry";

/// The registry of one cluster: a process with a folder of its own.
#[derive(Debug)]
pub(super) struct Registry<'a> {
    pub(super) dir: &'a Path,
    pub(super) port: u16,
}

impl Registry<'_> {
    /// Starts it without an image and waits until it answers.
    pub(super) fn start(&self) -> Result<()> {
        std::fs::create_dir_all(self.dir)?;
        let data = self.dir.join("data").display().to_string();
        let values = [("data", data.as_str()), ("port", &self.port.to_string())];
        let config = self.dir.join("registry.yaml");
        std::fs::write(&config, tool::fill(CONFIG, &values)?)?;
        let program = tool::find(NAME).context("docker-registry is not installed")?;
        let arguments = ["serve".into(), config.display().to_string()];
        let daemon = daemon(self.dir);
        daemon.start(&program, &arguments)?;
        interrupt::wait_until_true("the registry answers", Duration::from_mins(1), || {
            Ok(self.request("GET", "/v2/", "", b"")?.status == 200)
        })
        .with_context(|| format!("its log is {}", daemon.log().display()))
    }

    /// Where containerd finds it.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Pushes one blob and returns its digest.
    pub(super) fn push_blob(&self, name: &str, bytes: &[u8]) -> Result<String> {
        let digest = digest(bytes);
        let begun = self.request("POST", &format!("/v2/{name}/blobs/uploads/"), "", b"")?;
        let place = begun
            .location
            .context("the registry offers no place for a blob")?;
        let separator = if place.contains('?') { '&' } else { '?' };
        let target = format!("{place}{separator}digest={digest}");
        let answer = self.request("PUT", &target, "application/octet-stream", bytes)?;
        created(&answer, &digest)?;
        Ok(digest)
    }

    /// Gives an image its name.
    pub(super) fn push_manifest(&self, name: &str, tag: &str, manifest: &str) -> Result<()> {
        let path = format!("/v2/{name}/manifests/{tag}");
        created(&self.request("PUT", &path, MANIFEST, manifest.as_bytes())?, &path)
    }

    fn request(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> Result<Answer> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        let limit = Some(Duration::from_mins(1));
        stream.set_read_timeout(limit)?;
        stream.set_write_timeout(limit)?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Type: {kind}\r\n\
             Content-Length: {}\r\n\r\n",
            self.port,
            body.len()
        )?;
        stream.write_all(body)?;
        let mut text = Vec::new();
        stream.read_to_end(&mut text)?;
        answer(&String::from_utf8_lossy(&text))
    }
}

/// Stops the registry of a folder and drops its data; the log stays.
pub(super) fn stop(dir: &Path) -> Result<()> {
    daemon(dir).kill()?;
    super::mounts::remove(&dir.join("data"))
}

fn daemon(dir: &Path) -> Daemon<'_> {
    Daemon { name: NAME, dir }
}

/// What is looked at of an answer.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    /// The path, without scheme and host.
    location: Option<String>,
    body: String,
}

fn answer(text: &str) -> Result<Answer> {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    let headers = head.lines().filter_map(|line| line.split_once(": "));
    let location = headers
        .filter(|(name, _)| name.eq_ignore_ascii_case("location"))
        .map(|(_, value)| match value.split_once("://") {
            Some((_, rest)) => rest
                .find('/')
                .map_or(String::new(), |at| rest.split_at(at).1.into()),
            None => value.to_owned(),
        })
        .next();
    Ok(Answer {
        status: status.with_context(|| format!("not HTTP: {head}"))?,
        location,
        body: body.into(),
    })
}

fn created(answer: &Answer, what: &str) -> Result<()> {
    if answer.status != 201 {
        bail!(
            "the registry does not take {what}: {} {}",
            answer.status,
            answer.body.trim()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_gives_its_status_and_the_path_where_to_go_on() {
        let text = "HTTP/1.1 202 Accepted\r\nLocation: http://127.0.0.1:5000/v2/a/uploads/u?_state=s\r\n\r\n";
        let read = answer(text).unwrap();
        assert_eq!(read.status, 202);
        assert_eq!(read.location.as_deref(), Some("/v2/a/uploads/u?_state=s"));
        let read = answer("HTTP/1.1 404 Not Found\r\nlocation: /x\r\n\r\nno\n").unwrap();
        assert_eq!(read.location.as_deref(), Some("/x"));
        assert!(
            created(&read, "it")
                .unwrap_err()
                .to_string()
                .contains("it: 404 no")
        );
        assert!(answer("garbage").is_err());
    }
}
