//! Changes of JSON for targets that read it: most changes of single bytes are no JSON any more.

use serde_json::{Map, Value, json};

/// Small numbers that decide, drawn from a seed.
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: usize) -> usize {
        // SplitMix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % most.max(1) as u64) as usize
    }
}

/// Changes a text that is JSON into another one; `None` if it is none. `bytes` changes a text within it.
pub fn mutate(text: &[u8], seed: u32, bytes: &mut dyn FnMut(&str) -> String) -> Option<Vec<u8>> {
    let mut value: Value = serde_json::from_slice(text).ok()?;
    let mut draws = Draws(u64::from(seed));
    for _ in 0..=draws.below(3) {
        let copied = pick(&mut value, &mut draws).clone();
        let place = pick(&mut value, &mut draws);
        *place = match draws.below(8) {
            0 => copied,
            1 => plain(&mut draws),
            2 => json!([copied, place.clone()]),
            _ => changed(place.take(), copied, &mut draws, bytes),
        };
    }
    serde_json::to_vec(&value).ok()
}

/// Any value within this one.
fn pick<'v>(value: &'v mut Value, draws: &mut Draws) -> &'v mut Value {
    let count = match &*value {
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 0,
    };
    if count == 0 || draws.below(6) == 0 {
        return value;
    }
    let at = draws.below(count);
    match value {
        Value::Array(items) => pick(&mut items[at], draws),
        Value::Object(members) => pick(members.values_mut().nth(at).expect("it is counted"), draws),
        _ => unreachable!("it has parts"),
    }
}

/// Values that programs treat apart.
fn plain(draws: &mut Draws) -> Value {
    let all = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1),
        json!(i64::from(i32::MAX)),
        json!(i64::from(i32::MAX) + 1),
        json!(u64::MAX),
        json!(1.5),
        json!(""),
        json!("0%"),
        json!("100%"),
        json!("150%"),
        json!("2026-01-01T00:00:00Z"),
        json!([]),
        json!({}),
    ];
    all[draws.below(all.len())].clone()
}

/// The same value a little different.
fn changed(value: Value, other: Value, draws: &mut Draws, bytes: &mut dyn FnMut(&str) -> String) -> Value {
    match value {
        Value::Array(mut items) if !items.is_empty() => {
            let (at, to) = (draws.below(items.len()), draws.below(items.len()));
            match draws.below(3) {
                0 => drop(items.remove(at)),
                1 => items.insert(to, other),
                _ => items.swap(at, to),
            }
            items.into()
        }
        Value::Object(members) if !members.is_empty() => {
            let at = draws.below(members.len());
            let action = draws.below(3);
            let members = members
                .into_iter()
                .enumerate()
                .filter_map(|(index, (key, value))| match action {
                    _ if index != at => Some((key, value)),
                    0 => None,
                    1 => Some((bytes(&key), value)),
                    _ => Some((key, other.clone())),
                });
            members.collect::<Map<_, _>>().into()
        }
        Value::String(text) => bytes(&text).into(),
        Value::Number(number) => match number.as_i64() {
            Some(number) => json!(number.wrapping_add(draws.below(9) as i64 - 4)),
            None => plain(draws),
        },
        _ => plain(draws),
    }
}

/// What a target that reads JSON gives to libFuzzer.
#[macro_export]
macro_rules! json_mutator {
    ($before:expr) => {
        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            let plain = size <= $before || seed % 8 == 0;
            let mut bytes = |text: &str| {
                let mut buffer = [text.as_bytes(), [0; 16].as_slice()].concat();
                let length = buffer.len();
                let size = libfuzzer_sys::fuzzer_mutate(&mut buffer, text.len(), length);
                String::from_utf8_lossy(&buffer[..size]).into_owned()
            };
            let made = (!plain)
                .then(|| $crate::mutate(&data[$before..size], seed, &mut bytes))
                .flatten();
            match made.filter(|made| $before + made.len() <= max_size) {
                Some(made) => {
                    data[$before..$before + made.len()].copy_from_slice(&made);
                    $before + made.len()
                }
                None => libfuzzer_sys::fuzzer_mutate(data, size, max_size),
            }
        });
    };
}
