//! What a long list of images takes.
//!
//! The client runs in a process of its own, which is this test once more: the server has the list in its memory, too.

use std::process::Command;
use std::time::Duration;

use cri::{Client, Endpoint, Image, Limits};

use super::server::{Answer, Folder, Server};

/// Name the folders of two sockets to the process that lists: of a short list, and of a long one.
const FOLDERS: [&str; 2] = ["CRI_SHORT_LIST", "CRI_LONG_LIST"];
const IMAGES: usize = 300;

/// Of 10 MiB, keeping the ids alone takes next to nothing, and keeping all of it takes what it is.
#[tokio::test]
#[ignore = "a measurement: cargo test -p cri --test it -- --ignored measurements::"]
async fn a_list_of_10_mib_takes_what_is_kept_of_it() {
    if let [Ok(short), Ok(long)] = FOLDERS.map(std::env::var) {
        return list(&short, &long).await;
    }
    let message = message(IMAGES);
    assert!((10 << 20..11 << 20).contains(&message.len()), "{}", message.len());
    let folders = [Folder::new(), Folder::new()];
    let _short = Server::start(&folders[0], Answer::Message(self::message(1)));
    let _long = Server::start(&folders[1], Answer::Message(message));
    let name = "measurements::a_list_of_10_mib_takes_what_is_kept_of_it";
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", name, "--ignored", "--nocapture"])
        .envs(FOLDERS.into_iter().zip(folders.iter().map(Folder::path)));
    let status = tokio::task::spawn_blocking(move || child.status().unwrap());
    assert!(status.await.unwrap().success());
}

async fn list(short: &str, long: &str) {
    let limits = Limits {
        images: Duration::from_mins(1),
        ..Limits::default()
    };
    let client = |folder: &str| Client::with_limits(Endpoint::under(folder.as_ref(), "cri.sock"), limits);
    // What the code and a connection take is not what a list takes.
    client(short).images().await.unwrap();
    let before = peak();
    let client = client(long);
    let ids = client
        .fold_images(Vec::new(), |ids, image: Image| ids.push(image.id))
        .await
        .unwrap();
    let lean = peak() - before;
    assert_eq!(ids.len(), IMAGES);
    let all = client.images().await.unwrap();
    let full = peak() - before;
    assert_eq!(all.len(), IMAGES);
    println!("peak of a list of 10 MiB: {lean} KiB for its ids, {full} KiB for all of it");
    assert!(lean < 1 << 10, "{lean} KiB");
    assert!(full < 24 << 10, "{full} KiB");
}

/// The most this process had in memory, in KiB.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let words = line.unwrap().split_whitespace().next();
    words.unwrap().parse().unwrap()
}

/// A `ListImagesResponse`: each image has an id and very many tags.
fn message(images: usize) -> Vec<u8> {
    let tag = [b"\x12\x80\x01", &[b'a'; 128][..]].concat();
    let image = [&b"\x0a\x02id"[..], &tag.repeat(273)].concat();
    let mut length = Vec::new();
    let mut rest = image.len();
    while rest > 0x7f {
        length.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    length.push(rest as u8);
    [&b"\x0a"[..], &length, &image].concat().repeat(images)
}
