//! Every state of some objects while something happens, in the order in which the server stored them.
//!
//! Looking from time to time would miss what lasts for a moment; a watch does not.

use std::io::Read;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::kubectl::Kubectl;
use crate::reads;
use crate::wait::{self, Patience};

/// A watch that runs until it is stopped or dropped.
#[derive(Debug)]
pub struct Watch {
    child: Child,
    reader: Option<JoinHandle<std::io::Result<()>>>,
    /// What kubectl printed so far.
    printed: Arc<Mutex<Vec<u8>>>,
}

impl Watch {
    /// Watches the objects of a resource in kubectl's namespace that match a label selector.
    pub fn start(kubectl: &Kubectl, resource: &str, selector: &str) -> Result<Self> {
        Self::begin(
            kubectl,
            resource,
            selector,
            &["--output-watch-events", "-o", "json"],
        )
    }

    /// As [`Watch::start`], for many objects: a line for each state, made by a Go template. See [`Watch::text`].
    pub fn start_lines(kubectl: &Kubectl, resource: &str, selector: &str, template: &str) -> Result<Self> {
        let output = format!("go-template={template}{{{{\"\\n\"}}}}");
        Self::begin(kubectl, resource, selector, &["-o", &output])
    }

    fn begin(kubectl: &Kubectl, resource: &str, selector: &str, output: &[&str]) -> Result<Self> {
        // In pages, kubectl shows the first of what is there only, and watches from there on.
        let mut args = vec!["get", resource, "-l", selector, "--watch", "--chunk-size=0"];
        args.extend(output);
        let mut command = kubectl.command(&args);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start kubectl")?;
        let mut stdout = child.stdout.take().context("no standard output")?;
        let printed = Arc::new(Mutex::new(Vec::new()));
        let so_far = Arc::clone(&printed);
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 8192];
            loop {
                let count = stdout.read(&mut bytes)?;
                if count == 0 {
                    return Ok(());
                }
                let mut so_far = so_far.lock().unwrap_or_else(PoisonError::into_inner);
                so_far.extend(bytes.iter().take(count));
            }
        });
        let reader = Some(reader);
        Ok(Self {
            child,
            reader,
            printed,
        })
    }

    /// Waits until so many events have come: with what was there before, the watch is established.
    pub fn until_shown(&self, count: usize, patience: impl Into<Patience>) -> Result<()> {
        wait::until_true(&format!("the watch shows {count}"), patience, || {
            Ok(self.shown().len() >= count)
        })
    }

    /// The events so far.
    pub fn shown(&self) -> Vec<Value> {
        events(&self.text())
    }

    /// What was printed so far. Its last line may be cut off.
    pub fn text(&self) -> String {
        let printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        reads::note(&printed.len());
        String::from_utf8_lossy(&printed).into_owned()
    }

    /// Ends the watch and returns its events, `{"type": …, "object": …}`, the first ones being what was there before.
    pub fn stop(mut self) -> Result<Vec<Value>> {
        self.child.kill()?;
        let reader = self.reader.take().context("stopped before")?;
        reader.join().ok().context("the reader panicked")??;
        Ok(events(&self.text()))
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
