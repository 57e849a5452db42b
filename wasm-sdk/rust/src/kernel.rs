//! What the host gives to every module: the input, blocks of its memory, settings and log lines.
//!
//! Addresses and lengths are of the host's own memory, in bytes.

#[link(wasm_import_module = "extism:host/env")]
extern "C" {
    pub fn input_length() -> u64;
    pub fn input_load_u8(at: u64) -> u8;
    pub fn input_load_u64(at: u64) -> u64;
    pub fn output_set(block: u64, length: u64);
    pub fn error_set(text: u64);
    pub fn alloc(length: u64) -> u64;
    pub fn free(block: u64);
    /// 0 of what is no block.
    pub fn length(block: u64) -> u64;
    pub fn load_u8(at: u64) -> u8;
    pub fn load_u64(at: u64) -> u64;
    pub fn store_u8(at: u64, byte: u8);
    pub fn store_u64(at: u64, word: u64);
    /// 0 when the setting is not there.
    pub fn config_get(name: u64) -> u64;
    pub fn log_debug(text: u64);
    pub fn log_info(text: u64);
    pub fn log_warn(text: u64);
    pub fn log_error(text: u64);
}
