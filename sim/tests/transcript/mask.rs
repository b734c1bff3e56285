//! Hides what must differ between two servers.

use serde_json::Value;

use super::step::{Answer, Memory};

const HIDDEN: &[&str] = &["uid", "resourceVersion", "continue", "clusterIP"];

pub fn answer(raw: &Answer, memory: &Memory) -> Answer {
    let mut body = raw.body.clone();
    if let Value::Array(events) = &mut body {
        events.retain(|event| !is_progress(event));
    }
    mask(&mut body, memory);
    Answer { code: raw.code, body }
}

/// Bookmarks but the one that ends the initial events come by a timer.
fn is_progress(event: &Value) -> bool {
    let annotated = event.pointer("/object/metadata/annotations").is_some();
    let in_row = event
        .pointer("/object/rows/0/object/metadata/annotations")
        .is_some();
    event["type"] == "BOOKMARK" && !annotated && !in_row
}

fn mask(value: &mut Value, memory: &Memory) {
    match value {
        Value::Object(members) => {
            members.remove("managedFields");
            let generated = members.contains_key("generateName");
            for (name, member) in members.iter_mut() {
                let hidden = HIDDEN.contains(&name.as_str()) || (generated && name == "name");
                if name == "cells"
                    && let Value::Array(cells) = member
                {
                    cells.iter_mut().for_each(hide_cell);
                }
                if name == "clusterIPs" {
                    *member = "<addresses>".into();
                } else if let (true, Value::String(text)) = (hidden, &*member) {
                    // `None` is a choice, not an address
                    if text != "None" {
                        *member = format!("<{name}>").into();
                    }
                } else {
                    mask(member, memory);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, memory)),
        Value::String(text) => *text = hide(&without_patch(text), &memory.namespace),
        _ => {}
    }
}

/// Ages in tables are times; services have addresses.
fn hide_cell(cell: &mut Value) {
    if cell
        .as_str()
        .is_some_and(|text| text.parse::<std::net::Ipv4Addr>().is_ok())
    {
        *cell = "<address>".into();
    }
    let is_age = |text: &str| {
        let digits = text.strip_suffix('s').unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    if cell.as_str().is_some_and(is_age) {
        *cell = "<age>".into();
    }
}

/// A refused patch is quoted whole, with uids and managed fields in it: only what is wrong with it is compared.
fn without_patch(text: &str) -> String {
    const START: &str = "Invalid value: \"{";
    match (text.find(START), text.rfind("}\": ")) {
        (Some(from), Some(to)) if from < to => {
            format!("{}<object>{}", &text[..from + START.len() - 1], &text[to + 1..])
        }
        _ => text.to_owned(),
    }
}

/// Times, uids, and versions in messages.
fn hide(text: &str, _namespace: &str) -> String {
    if text.len() >= 20 && text.ends_with('Z') && text.as_bytes()[4] == b'-' && text.as_bytes()[10] == b'T' {
        return "<time>".into();
    }
    let mut out = String::with_capacity(text.len());
    for word in text.split_inclusive([' ', '"', ',', '(', ')', ':', '[', ']']) {
        let trimmed = word.trim_end_matches([' ', '"', ',', '(', ')', ':', '.', '[', ']']);
        let is_uid = trimmed.len() == 36 && trimmed.bytes().filter(|b| *b == b'-').count() == 4;
        let version = text.to_lowercase().contains("resource version") || text.contains("esourceVersion");
        let is_version = version && !trimmed.is_empty() && trimmed.bytes().all(|b| b.is_ascii_digit());
        if is_uid || is_version {
            out.push_str(&word.replace(trimmed, if is_uid { "<uid>" } else { "<version>" }));
        } else {
            out.push_str(word);
        }
    }
    out
}
