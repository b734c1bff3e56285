//! Reads of the cluster that go on whatever is refused: what could not be read is listed.

use kruise_frame::pages::{self, Page};
use kruise_runtime::{ApiError, Client, client::Form};
use serde_json::Value;

/// Pages of one list, at most.
const MOST_PAGES: usize = 200;

/// The cluster, with what could not be read of it.
pub(super) struct Reader<'c> {
    pub(super) client: &'c Client,
    /// Objects of one list that are kept, at most.
    most: usize,
    /// What is missing, each with the reason.
    missing: Vec<String>,
    /// Was an object, a list or a text read?
    has_read: bool,
}

impl<'c> Reader<'c> {
    pub(super) fn new(client: &'c Client, most: usize) -> Self {
        Self {
            client,
            most,
            missing: Vec::new(),
            has_read: false,
        }
    }

    /// Objects of one list that are kept, at most.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Was an object, a list or a text read?
    pub(super) fn has_read(&self) -> bool {
        self.has_read
    }

    /// What is missing, a line each.
    pub(super) fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Notes that something is missing.
    pub(super) fn note(&mut self, what: &str, why: impl std::fmt::Display) {
        let why = why.to_string();
        self.missing.push(format!("{what}: {}", why.replace('\n', " ")));
    }

    /// An object; `None` if there is none, or if it cannot be read.
    pub(super) async fn object(&mut self, path: &str) -> Option<Value> {
        match self.client.get(path).await {
            Ok(object) => {
                self.has_read = true;
                Some(object)
            }
            Err(error) => {
                self.refused(path, &error);
                None
            }
        }
    }

    /// A text, such as a log; `None` if it cannot be read.
    pub(super) async fn text(&mut self, path: &str) -> Option<Vec<u8>> {
        match self.client.get_bytes(path, Form::Whole).await {
            Ok(bytes) => {
                self.has_read = true;
                Some(bytes.to_vec())
            }
            Err(error) => {
                self.note(path, error);
                None
            }
        }
    }

    /// What `keep` makes of the objects of a list, a page at a time, up to the limits.
    pub(super) async fn list<T>(
        &mut self,
        path: &str,
        form: Form,
        mut keep: impl FnMut(Value) -> Option<T>,
    ) -> Vec<T> {
        let most = self.most;
        let (mut kept, mut next) = (Vec::new(), String::new());
        for _ in 0..MOST_PAGES {
            let page = pages::path(path, &next);
            let read: Result<Page<Value>, ApiError> = match form {
                Form::Whole => self.client.get(&page).await,
                Form::Metadata => self.client.get_metadata(&page).await,
            };
            let page = match read {
                Ok(page) => {
                    self.has_read = true;
                    page
                }
                Err(error) => {
                    self.refused(path, &error);
                    return kept;
                }
            };
            kept.extend(page.items.into_iter().filter_map(&mut keep));
            next = page.metadata.next;
            if kept.len() > most || (kept.len() == most && !next.is_empty()) {
                kept.truncate(most);
                self.note(
                    path,
                    format_args!("only the first {most} are here: --max-objects"),
                );
                return kept;
            }
            if next.is_empty() {
                return kept;
            }
        }
        self.note(path, format_args!("only the first {MOST_PAGES} pages were read"));
        kept
    }

    /// Notes why a path cannot be read, unless nothing is there.
    fn refused(&mut self, path: &str, error: &ApiError) {
        if !error.is_not_found() {
            self.note(path, error);
        }
    }
}
