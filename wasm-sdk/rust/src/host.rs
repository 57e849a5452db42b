//! Everything the host lends to a module: settings, values, counters, log, time, randomness, hashes, metrics.

use crate::{kernel, Result};
use serde::Serialize;

mod sys {
    #[link(wasm_import_module = "extism:host/user")]
    extern "C" {
        pub fn kv_get(key: u64) -> u64;
        pub fn kv_set(key: u64, value: u64, ttl_ms: i64) -> i64;
        pub fn kv_delete(key: u64) -> i64;
        pub fn kv_incr(key: u64, delta: i64, ttl_ms: i64) -> i64;
        pub fn now_ms() -> i64;
        pub fn random_bytes(count: i64) -> u64;
        pub fn sha256(data: u64) -> u64;
        pub fn hmac_sha256(key: u64, data: u64) -> u64;
        pub fn metric_inc(name: u64, delta: i64) -> i64;
        pub fn metric_observe(name: u64, value: i64) -> i64;
        pub fn metric_set(name: u64, value: i64) -> i64;
    }
}

/// A block of host memory of exactly these bytes; given back when it goes out of scope.
struct Block(u64);

impl Block {
    fn new(bytes: &[u8]) -> Self {
        Self(to_block(bytes))
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        unsafe { kernel::free(self.0) }
    }
}

fn to_block(bytes: &[u8]) -> u64 {
    let offset = unsafe { kernel::alloc(bytes.len() as u64) };
    let chunks = bytes.chunks_exact(8);
    let rest = chunks.remainder();
    let mut at = offset;
    for chunk in chunks {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        unsafe { kernel::store_u64(at, u64::from_le_bytes(word)) };
        at += 8;
    }
    for byte in rest {
        unsafe { kernel::store_u8(at, *byte) };
        at += 1;
    }
    offset
}

/// The bytes of a host block, which is given back; None for offset 0.
fn take_block(offset: u64) -> Option<Vec<u8>> {
    if offset == 0 {
        return None;
    }
    let length = unsafe { kernel::length(offset) } as usize;
    let words = length - length % 8;
    let mut bytes = Vec::with_capacity(length);
    for at in (0..words).step_by(8) {
        bytes.extend_from_slice(&unsafe { kernel::load_u64(offset + at as u64) }.to_le_bytes());
    }
    bytes.extend((words..length).map(|at| unsafe { kernel::load_u8(offset + at as u64) }));
    unsafe { kernel::free(offset) };
    Some(bytes)
}

pub(crate) fn output_bytes(bytes: &[u8]) {
    unsafe { kernel::output_set(to_block(bytes), bytes.len() as u64) }
}

/// Most heads are shorter, bytes.
const HEAD_CAPACITY: usize = 256;

pub(crate) fn output_frame(head: &impl Serialize, body: &[u8]) -> Result<()> {
    let mut frame = Vec::with_capacity(HEAD_CAPACITY + body.len());
    frame.extend_from_slice(&[0; 4]);
    serde_json::to_writer(&mut frame, head)?;
    let length = frame.len() as u32 - 4;
    frame[..4].copy_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(body);
    output_bytes(&frame);
    Ok(())
}

pub(crate) fn fail(message: &str) {
    unsafe { kernel::error_set(to_block(message.as_bytes())) }
}

/// Milliseconds since 1970, now; `request.now_ms()` is when the call began and costs nothing.
pub fn now_ms() -> i64 {
    unsafe { sys::now_ms() }
}

/// The settings that the operator gave the module.
pub mod config {
    use super::*;

    /// None when the name is not set.
    pub fn get(name: &str) -> Option<String> {
        let key = Block::new(name.as_bytes());
        let value = take_block(unsafe { kernel::config_get(key.0) })?;
        Some(String::from_utf8_lossy(&value).into_owned())
    }

    /// An error when the setting is there and is no such value: a typing error must not become a default.
    pub fn parse<T: std::str::FromStr>(name: &str, fallback: T) -> Result<T> {
        match get(name) {
            None => Ok(fallback),
            Some(text) => {
                text.trim().parse().map_err(|_| crate::Error::msg(format!("setting {name} is not valid")))
            }
        }
    }

    /// Parts between commas, without the spaces around them.
    pub fn list(name: &str) -> Vec<String> {
        let text = get(name).unwrap_or_default();
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }
}

/// Small values and counters that outlive the call; they belong to the module and the tenant.
pub mod kv {
    use super::*;

    /// None when absent or expired.
    pub fn get(key: &str) -> Option<Vec<u8>> {
        let key = Block::new(key.as_bytes());
        take_block(unsafe { sys::kv_get(key.0) })
    }

    /// `ttl_ms` 0 is the longest allowed; false when it was not stored.
    pub fn set(key: &str, value: &[u8], ttl_ms: i64) -> bool {
        let (key, value) = (Block::new(key.as_bytes()), Block::new(value));
        unsafe { sys::kv_set(key.0, value.0, ttl_ms) == 1 }
    }

    /// Whether there was one.
    pub fn remove(key: &str) -> bool {
        let key = Block::new(key.as_bytes());
        unsafe { sys::kv_delete(key.0) == 1 }
    }

    /// Adds to a counter, atomic over all threads; the time to live counts from the first increment. None when the
    /// host could not count.
    pub fn increment(key: &str, delta: i64, ttl_ms: i64) -> Option<i64> {
        let key = Block::new(key.as_bytes());
        let value = unsafe { sys::kv_incr(key.0, delta, ttl_ms) };
        (value != i64::MIN).then_some(value)
    }
}

/// Randomness, hashes, and a comparison that tells an attacker nothing by the time it takes.
pub mod crypto {
    use super::*;

    /// At most 1024 bytes.
    pub fn random_bytes(count: usize) -> Result<Vec<u8>> {
        take_block(unsafe { sys::random_bytes(count as i64) })
            .ok_or_else(|| crate::Error::msg("the host gave no random bytes"))
    }

    pub fn sha256(data: &[u8]) -> Vec<u8> {
        let data = Block::new(data);
        take_block(unsafe { sys::sha256(data.0) }).unwrap_or_default()
    }

    pub fn hmac_sha256(key: &[u8], data: &[u8]) -> Vec<u8> {
        let (key, data) = (Block::new(key), Block::new(data));
        take_block(unsafe { sys::hmac_sha256(key.0, data.0) }).unwrap_or_default()
    }

    /// Takes the same time wherever two slices of one length differ.
    pub fn equals(a: &[u8], b: &[u8]) -> bool {
        let difference = a.iter().zip(b).fold(0, |sum, (x, y)| std::hint::black_box(sum | (x ^ y)));
        a.len() == b.len() && difference == 0
    }
}

/// Lines in the gateway's log, under the module's name and the request's id. Never log what a user wrote.
pub mod log {
    use super::*;

    pub fn debug(text: &str) {
        unsafe { kernel::log_debug(Block::new(text.as_bytes()).0) }
    }

    pub fn info(text: &str) {
        unsafe { kernel::log_info(Block::new(text.as_bytes()).0) }
    }

    pub fn warn(text: &str) {
        unsafe { kernel::log_warn(Block::new(text.as_bytes()).0) }
    }

    pub fn error(text: &str) {
        unsafe { kernel::log_error(Block::new(text.as_bytes()).0) }
    }
}

/// Counters and histograms of the module in the gateway's metrics. `name{value}` has the label `label`. Few names and values
/// only: none made of what a request holds.
pub mod metric {
    use super::*;

    pub fn increment(name: &str, delta: i64) -> bool {
        let name = Block::new(name.as_bytes());
        unsafe { sys::metric_inc(name.0, delta) == 1 }
    }

    /// Adds a number from 0 to a histogram of the module.
    pub fn observe(name: &str, value: i64) -> bool {
        let name = Block::new(name.as_bytes());
        unsafe { sys::metric_observe(name.0, value) == 1 }
    }

    /// Sets a gauge of the module, which has one value for all threads: the last one.
    pub fn set(name: &str, value: i64) -> bool {
        let name = Block::new(name.as_bytes());
        unsafe { sys::metric_set(name.0, value) == 1 }
    }
}
