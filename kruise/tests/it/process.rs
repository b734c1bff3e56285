//! A playground as a process: its output, and its API over plain HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Time limit of waits, for busy machines.
pub(crate) const LIMIT: Duration = Duration::from_mins(5);

/// A folder for the temporary files of one test. It is empty at the end if the executable removes its files.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kruise-it-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Names of the files in it, sorted.
    pub(crate) fn left(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// A command line of the executable, with this folder for temporary files.
    pub(crate) fn kruise(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kruise"));
        command
            .args(arguments)
            .env("TMPDIR", &self.0)
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        self.kruise(arguments).output().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running playground. It is killed when it is dropped.
pub(crate) struct Playground {
    child: Child,
    pub(crate) api: SocketAddr,
    pub(crate) kubeconfig: PathBuf,
}

impl Playground {
    /// Starts a playground with these options, and waits until it prints that it is up.
    pub(crate) fn start(scratch: &Scratch, options: &[&str]) -> Self {
        let arguments = [&["playground"], options].concat();
        let mut child = scratch.kruise(&arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut printed = String::new();
        while !printed.contains("stays up until Ctrl-C") {
            let line = lines.next().expect("it prints that it is up").unwrap();
            printed.push_str(&line);
            printed.push('\n');
        }
        // The rest of the output is read, so that the process never blocks on a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let word_after = |name: &str| {
            let line = printed.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().split([',', ' ']).next().unwrap().to_owned()
        };
        let api = word_after("API ")
            .strip_prefix("http://")
            .unwrap()
            .parse()
            .unwrap();
        let kubeconfig = word_after("kubeconfig ").into();
        Self {
            child,
            api,
            kubeconfig,
        }
    }

    /// Starts a playground with these options, and waits only until it has written its kubeconfig.
    pub(crate) fn start_until_written(scratch: &Scratch, kubeconfig: PathBuf, options: &[&str]) -> Self {
        let arguments = [&["playground", "--kubeconfig", text(&kubeconfig)], options].concat();
        let child = scratch.kruise(&arguments).stdout(Stdio::null()).spawn().unwrap();
        let mut playground = Self {
            child,
            api: SocketAddr::from(([127, 0, 0, 1], 0)),
            kubeconfig,
        };
        playground.api = playground.until("the kubeconfig", |playground| {
            let written = std::fs::read_to_string(&playground.kubeconfig).ok()?;
            let (_, after) = written.split_once("server: http://")?;
            after.lines().next()?.parse().ok()
        });
        playground
    }

    /// Sends a signal and waits for the end; returns the exit code.
    pub(crate) fn end(mut self, signal: &str) -> Option<i32> {
        send(self.child.id(), signal);
        wait_for_exit(&mut self.child)
    }

    /// A request; returns code and body.
    pub(crate) fn request(&self, method: &str, path: &str, media: &str, body: &str) -> (u16, Value) {
        let (head, body) = self.exchange(method, path, media, body);
        let code = head.split(' ').nth(1).unwrap().parse().unwrap();
        (code, body)
    }

    /// A request; returns the lines before the body, and the body.
    pub(crate) fn exchange(&self, method: &str, path: &str, media: &str, body: &str) -> (String, Value) {
        let (head, body) = exchange(self.api, method, path, (media, body));
        (head, serde_json::from_str(&body).unwrap_or_default())
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let (code, value) = self.request("GET", path, "application/json", "");
        assert_eq!(code, 200, "{path}: {value}");
        value
    }

    /// Polls until `poll` returns something.
    pub(crate) fn until<T>(&self, what: &str, poll: impl Fn(&Self) -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            if let Some(found) = poll(self) {
                return found;
            }
            assert!(start.elapsed() < LIMIT, "not in time: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Resident memory in bytes: the present value (`VmRSS`) or the peak (`VmHWM`).
    pub(crate) fn resident(&self, which: &str) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(which)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
    }

    /// Resets the peak. Where the machine does not permit it, the peak since the start remains, which is never lower.
    pub(crate) fn forget_peak(&self) {
        let _kept = std::fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5");
    }

    /// CPU time of the process.
    pub(crate) fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let after_name = stat.rsplit_once(") ").unwrap().1;
        let ticks: u64 = after_name
            .split(' ')
            .skip(11)
            .take(2)
            .map(|ticks| ticks.parse::<u64>().unwrap())
            .sum();
        // Linux has a hundred ticks a second.
        Duration::from_millis(ticks * 10)
    }
}

impl Drop for Playground {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// A request over plain HTTP; returns the lines before the body, and the body.
pub(crate) fn exchange(
    server: SocketAddr,
    method: &str,
    path: &str,
    content: (&str, &str),
) -> (String, String) {
    exchange_in("HTTP/1.1", server, method, path, content)
}

/// As [`exchange`], in this version of HTTP. In `HTTP/1.0` servers do not send chunks.
pub(crate) fn exchange_in(
    version: &str,
    server: SocketAddr,
    method: &str,
    path: &str,
    (media, body): (&str, &str),
) -> (String, String) {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    write!(
        stream,
        "{method} {path} {version}\r\nHost: {server}\r\nContent-Type: {media}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

pub(crate) fn send(process: u32, signal: &str) {
    let line = format!("kill -{signal} {process}");
    assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success());
}

pub(crate) fn wait_for_exit(child: &mut Child) -> Option<i32> {
    if !ends_within(child, LIMIT) {
        child.kill().unwrap();
        panic!("it does not end");
    }
    child.wait().unwrap().code()
}

pub(crate) fn ends_within(child: &mut Child, limit: Duration) -> bool {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// True if nothing listens at the address.
pub(crate) fn is_closed(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_err()
}

/// The text of a path.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
