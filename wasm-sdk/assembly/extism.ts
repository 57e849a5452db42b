/** Imports of the library: functions of the Extism kernel and of the gateway. */

// @ts-ignore: decorator
@external("extism:host/env", "alloc")
export declare function alloc(length: u64): u64
// @ts-ignore: decorator
@external("extism:host/env", "free")
export declare function free(offset: u64): void
// @ts-ignore: decorator
@external("extism:host/env", "length")
export declare function length(offset: u64): u64
// @ts-ignore: decorator
@external("extism:host/env", "load_u8")
export declare function load_u8(offset: u64): u8
// @ts-ignore: decorator
@external("extism:host/env", "load_u64")
export declare function load_u64(offset: u64): u64
// @ts-ignore: decorator
@external("extism:host/env", "store_u8")
export declare function store_u8(offset: u64, value: u8): void
// @ts-ignore: decorator
@external("extism:host/env", "store_u64")
export declare function store_u64(offset: u64, value: u64): void
// @ts-ignore: decorator
@external("extism:host/env", "input_length")
export declare function input_length(): u64
// @ts-ignore: decorator
@external("extism:host/env", "input_load_u8")
export declare function input_load_u8(offset: u64): u8
// @ts-ignore: decorator
@external("extism:host/env", "input_load_u64")
export declare function input_load_u64(offset: u64): u64
// @ts-ignore: decorator
@external("extism:host/env", "output_set")
export declare function output_set(offset: u64, length: u64): void
// @ts-ignore: decorator
@external("extism:host/env", "config_get")
export declare function config_get(key: u64): u64
// @ts-ignore: decorator
@external("extism:host/env", "log_debug")
export declare function log_debug(text: u64): void
// @ts-ignore: decorator
@external("extism:host/env", "log_info")
export declare function log_info(text: u64): void
// @ts-ignore: decorator
@external("extism:host/env", "log_warn")
export declare function log_warn(text: u64): void
// @ts-ignore: decorator
@external("extism:host/env", "log_error")
export declare function log_error(text: u64): void

// @ts-ignore: decorator
@external("extism:host/user", "kv_get")
export declare function kv_get(key: u64): u64
// @ts-ignore: decorator
@external("extism:host/user", "kv_set")
export declare function kv_set(key: u64, value: u64, ttlMs: i64): i64
// @ts-ignore: decorator
@external("extism:host/user", "kv_delete")
export declare function kv_delete(key: u64): i64
// @ts-ignore: decorator
@external("extism:host/user", "kv_incr")
export declare function kv_incr(key: u64, delta: i64, ttlMs: i64): i64
// @ts-ignore: decorator
@external("extism:host/user", "now_ms")
export declare function now_ms(): i64
// @ts-ignore: decorator
@external("extism:host/user", "random_bytes")
export declare function random_bytes(count: i64): u64
// @ts-ignore: decorator
@external("extism:host/user", "sha256")
export declare function sha256(data: u64): u64
// @ts-ignore: decorator
@external("extism:host/user", "hmac_sha256")
export declare function hmac_sha256(key: u64, data: u64): u64
// @ts-ignore: decorator
@external("extism:host/user", "metric_inc")
export declare function metric_inc(name: u64, delta: i64): i64
// @ts-ignore: decorator
@external("extism:host/user", "metric_observe")
export declare function metric_observe(name: u64, value: i64): i64
// @ts-ignore: decorator
@external("extism:host/user", "metric_set")
export declare function metric_set(name: u64, value: i64): i64
