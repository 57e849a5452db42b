/*
 * Modules for the gateway in C, without a standard library: frames, answers and host functions of ABI version 1.
 * A module includes this once; clang --target=wasm32 -nostdlib -Wl,--no-entry builds it. See ../ABI.md.
 */
#ifndef WEIR_H
#define WEIR_H

#include <stddef.h>
#include <stdint.h>

#define WEIR_ABI_VERSION 1
/* Memory for input and output of one call; the next call starts with an empty arena. */
#ifndef WEIR_ARENA_BYTES
#define WEIR_ARENA_BYTES (1024 * 1024)
#endif

#define WEIR_EXPORT(name) __attribute__((export_name(#name))) int32_t name(void)
#define WEIR_HOST(module, name) __attribute__((import_module(module), import_name(#name)))
#define WEIR_ENV(name) WEIR_HOST("extism:host/env", name)
#define WEIR_USER(name) WEIR_HOST("extism:host/user", name)

WEIR_ENV(alloc) uint64_t weir_alloc(uint64_t length);
WEIR_ENV(free) void weir_free(uint64_t block);
WEIR_ENV(length) uint64_t weir_length(uint64_t block);
WEIR_ENV(load_u8) uint32_t weir_load_u8(uint64_t offset);
WEIR_ENV(store_u8) void weir_store_u8(uint64_t offset, uint32_t value);
WEIR_ENV(store_u64) void weir_store_u64(uint64_t offset, uint64_t value);
WEIR_ENV(input_length) uint64_t weir_input_length(void);
WEIR_ENV(input_load_u8) uint32_t weir_input_load_u8(uint64_t offset);
WEIR_ENV(input_load_u64) uint64_t weir_input_load_u64(uint64_t offset);
WEIR_ENV(output_set) void weir_output_set(uint64_t block, uint64_t length);
WEIR_ENV(error_set) void weir_error_set(uint64_t block);
WEIR_ENV(config_get) uint64_t weir_config_get(uint64_t key);
WEIR_ENV(log_info) void weir_log_info(uint64_t text);
WEIR_ENV(log_warn) void weir_log_warn(uint64_t text);
WEIR_ENV(log_error) void weir_log_error(uint64_t text);

WEIR_USER(kv_get) uint64_t weir_kv_get(uint64_t key);
WEIR_USER(kv_set) int64_t weir_kv_set(uint64_t key, uint64_t value, int64_t ttl_ms);
WEIR_USER(kv_delete) int64_t weir_kv_delete(uint64_t key);
WEIR_USER(kv_incr) int64_t weir_kv_incr(uint64_t key, int64_t delta, int64_t ttl_ms);
WEIR_USER(now_ms) int64_t weir_now_ms(void);
WEIR_USER(random_bytes) uint64_t weir_random_bytes(int64_t count);
WEIR_USER(sha256) uint64_t weir_sha256(uint64_t data);
WEIR_USER(hmac_sha256) uint64_t weir_hmac_sha256(uint64_t key, uint64_t data);
WEIR_USER(metric_inc) int64_t weir_metric_inc(uint64_t name, int64_t delta);
WEIR_USER(metric_observe) int64_t weir_metric_observe(uint64_t name, int64_t value);
WEIR_USER(metric_set) int64_t weir_metric_set(uint64_t name, int64_t value);

/* Bytes somewhere in the module's memory; data is null if the value is absent. */
typedef struct {
  const uint8_t *data;
  size_t length;
} weir_slice;

static uint8_t weir_arena[WEIR_ARENA_BYTES];
static size_t weir_arena_used;

static inline uint8_t *weir_take(size_t length) {
  if (length > WEIR_ARENA_BYTES - weir_arena_used) __builtin_trap();
  uint8_t *bytes = weir_arena + weir_arena_used;
  weir_arena_used += length;
  return bytes;
}

static inline weir_slice weir_text(const char *text) {
  weir_slice slice = {(const uint8_t *)text, 0};
  while (text[slice.length]) slice.length++;
  return slice;
}

/* A host block of exactly these bytes: the host reads whole blocks, whatever length it is told. */
static inline uint64_t weir_block(weir_slice bytes) {
  uint64_t block = weir_alloc(bytes.length);
  size_t at = 0;
  for (; at + 8 <= bytes.length; at += 8) {
    uint64_t word;
    __builtin_memcpy(&word, bytes.data + at, 8);
    weir_store_u64(block + at, word);
  }
  for (; at < bytes.length; at++) weir_store_u8(block + at, bytes.data[at]);
  return block;
}

/* The bytes of a host block, which is given back. */
static inline weir_slice weir_take_block(uint64_t block) {
  weir_slice slice = {0, 0};
  if (block == 0) return slice;
  slice.length = (size_t)weir_length(block);
  uint8_t *bytes = weir_take(slice.length);
  for (size_t at = 0; at < slice.length; at++) bytes[at] = (uint8_t)weir_load_u8(block + at);
  weir_free(block);
  slice.data = bytes;
  return slice;
}

static inline weir_slice weir_read(uint64_t from, uint64_t to) {
  uint8_t *bytes = weir_take((size_t)(to - from));
  uint64_t at = from;
  for (; at + 8 <= to; at += 8) {
    uint64_t word = weir_input_load_u64(at);
    __builtin_memcpy(bytes + (at - from), &word, 8);
  }
  for (; at < to; at++) bytes[at - from] = (uint8_t)weir_input_load_u8(at);
  weir_slice slice = {bytes, (size_t)(to - from)};
  return slice;
}

static inline uint64_t weir_head_end(void) {
  uint64_t length = 0;
  for (int i = 0; i < 4; i++) length |= (uint64_t)weir_input_load_u8(i) << (8 * i);
  return 4 + length;
}

/* The head of the input, JSON in UTF-8. */
static inline weir_slice weir_input_head(void) { return weir_read(4, weir_head_end()); }

/* The body of the input; empty unless `describe` says that the module needs it. */
static inline weir_slice weir_input_body(void) { return weir_read(weir_head_end(), weir_input_length()); }

/* Answers with a head, JSON in UTF-8, and a body. */
static inline void weir_answer(weir_slice head, weir_slice body) {
  uint8_t *frame = weir_take(4 + head.length + body.length);
  for (int i = 0; i < 4; i++) frame[i] = (uint8_t)(head.length >> (8 * i));
  for (size_t at = 0; at < head.length; at++) frame[4 + at] = head.data[at];
  for (size_t at = 0; at < body.length; at++) frame[4 + head.length + at] = body.data[at];
  weir_slice whole = {frame, 4 + head.length + body.length};
  weir_output_set(weir_block(whole), whole.length);
}

/* In on_tool_call: the tool does not run, and the model reads the text in place of a result. */
static inline void weir_reject_call(const char *text) {
  weir_answer(weir_text("{\"action\":\"reject\"}"), weir_text(text));
}

/* In on_tool_call: the tool runs with these arguments, a JSON object. */
static inline void weir_replace_arguments(weir_slice json) {
  weir_answer(weir_text("{\"action\":\"modify\",\"replaces_body\":true}"), json);
}

/* What `describe` answers: JSON without a frame. */
static inline void weir_describe(const char *json) {
  weir_slice text = weir_text(json);
  weir_output_set(weir_block(text), text.length);
}

#endif
