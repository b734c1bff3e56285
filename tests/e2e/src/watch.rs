//! Every state of some objects while something happens, in the order in which the server stored them.
//!
//! Looking from time to time would miss what lasts for a moment; a watch does not.

use std::io::Read;
use std::process::{Child, Stdio};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::kubectl::Kubectl;

/// A watch that runs until it is stopped or dropped.
#[derive(Debug)]
pub struct Watch {
    child: Child,
    reader: Option<JoinHandle<std::io::Result<String>>>,
}

impl Watch {
    /// Watches the objects of a resource in kubectl's namespace that match a label selector.
    pub fn start(kubectl: &Kubectl, resource: &str, selector: &str) -> Result<Self> {
        let args = [
            "get",
            resource,
            "-l",
            selector,
            "--watch",
            "--output-watch-events",
            "-o",
            "json",
        ];
        let mut command = kubectl.command(&args);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start kubectl")?;
        let mut stdout = child.stdout.take().context("no standard output")?;
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stdout.read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        });
        let reader = Some(reader);
        Ok(Self { child, reader })
    }

    /// Ends the watch and returns its events, `{"type": …, "object": …}`, the first ones being what was there before.
    pub fn stop(mut self) -> Result<Vec<Value>> {
        self.child.kill()?;
        let reader = self.reader.take().context("stopped before")?;
        let text = reader.join().ok().context("the reader panicked")??;
        Ok(events(&text))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Both fail only if it is gone already.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Whole events; the last one may have been cut off.
fn events(text: &str) -> Vec<Value> {
    serde_json::Deserializer::from_str(text)
        .into_iter()
        .map_while(Result::ok)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_follow_one_another_and_a_cut_one_is_left_out() {
        let text = "{\"type\": \"ADDED\",\n \"object\": {}}\n{\"type\": \"DELETED\"}\n{\"type\": \"MODI";
        let expected = [json!({"type": "ADDED", "object": {}}), json!({"type": "DELETED"})];
        assert_eq!(events(text), expected);
    }
}
