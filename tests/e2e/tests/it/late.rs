//! Scenarios that do not begin because the time of the suite is over.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::cluster::variable;

/// Names of the tests that did not begin, a line each, in the cluster's folder: `cargo xtask e2e` reads them there.
const FILE: &str = "not-begun";

/// Ends this test, after it has written down its name, if it is later than what `cargo xtask e2e --begin-within` allows.
pub(crate) fn check() {
    let until = std::env::var("KRUISE_E2E_BEGIN_UNTIL").ok();
    let Some(until) = until.and_then(|seconds| seconds.parse().ok()) else {
        return;
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    if now.as_secs() >= until {
        let file = Path::new(&variable("KRUISE_E2E_DIR")).join(FILE);
        let mut file = OpenOptions::new().create(true).append(true).open(file).unwrap();
        let thread = std::thread::current();
        writeln!(file, "{}", thread.name().unwrap()).unwrap();
        panic!("not begun: the time of the suite is over");
    }
}
