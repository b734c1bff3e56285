//! What an idle playground costs, and starts of one that are interrupted at any time.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::life::{create, ready};
use crate::process::{LIMIT, Playground, Scratch, ends_within, send, wait_for_exit};

#[test]
#[ignore = "a measurement: cargo test -p kruise --test it -- --ignored measurements::"]
fn an_idle_playground_uses_little_cpu() {
    let scratch = Scratch::new("idle");
    let playground = Playground::start(&scratch, &["--fast"]);
    create(&playground, "web", 3);
    playground.until("three pods are ready", |all| ready(all, 3));
    let spent = |time| {
        let before = playground.cpu();
        std::thread::sleep(time);
        playground.cpu().checked_sub(before).unwrap()
    };
    let start = Instant::now();
    while spent(Duration::from_secs(1)) > Duration::from_millis(200) {
        assert!(start.elapsed() < LIMIT, "its CPU use stays high");
    }
    // A busy loop would use all of it. Slow machines use several times the CPU of fast ones.
    let used = spent(Duration::from_secs(3));
    assert!(used <= Duration::from_secs(1), "{used:?} in three seconds");
}

#[test]
#[ignore = "a measurement: cargo test -p kruise --test it -- --ignored measurements::"]
fn an_interrupted_start_leaves_nothing() {
    let scratch = Scratch::new("interrupted-start");
    let whole = Instant::now();
    let playground = Playground::start(&scratch, &["--fast"]);
    let whole = whole.elapsed();
    playground.end("INT");
    for part in 0..16 {
        let mut child = scratch
            .kruise(&["playground", "--fast"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // The test needs an interrupt at an arbitrary time, so there is no condition to wait for.
        std::thread::sleep(whole * part / 16);
        send(child.id(), "INT");
        if !ends_within(&mut child, Duration::from_secs(30)) {
            // An interrupt is lost while its handler is being installed. If the first was handled, this second one
            // ends the process with a failure.
            send(child.id(), "INT");
        }
        let code = wait_for_exit(&mut child);
        // `None`: the signal ended the process before there was anything to clean up.
        assert!(matches!(code, None | Some(0)), "{code:?} after {part}/16");
        assert_eq!(scratch.left(), [""; 0], "after {part}/16 of {whole:?}");
    }
}
