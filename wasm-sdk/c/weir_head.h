/*
 * Heads as values: reads the head of an input and writes actions, without a standard library.
 * It includes weir.h. Values point into the arena of the call, and need no release.
 */
#ifndef WEIR_HEAD_H
#define WEIR_HEAD_H

#include <stdbool.h>

#include "weir.h"

/* Longest head of an output, bytes; a longer one traps. */
#ifndef WEIR_HEAD_BYTES
#define WEIR_HEAD_BYTES (64 * 1024)
#endif

/* ---- Reading ---- */

/* A value inside a JSON text; at is null if the value is absent. end is the end of the text. */
typedef struct {
  const uint8_t *at;
  const uint8_t *end;
} weir_json;

static inline const uint8_t *weir_skip_space(const uint8_t *at, const uint8_t *end) {
  while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) at++;
  return at;
}

static inline const uint8_t *weir_skip_string(const uint8_t *at, const uint8_t *end) {
  for (at++; at < end && *at != '"'; at++)
    if (*at == '\\') at++;
  return at < end ? at + 1 : end;
}

/* End of the value at this place. */
static inline const uint8_t *weir_skip_value(const uint8_t *at, const uint8_t *end) {
  size_t depth = 0;
  while (at < end) {
    if (*at == '"') {
      at = weir_skip_string(at, end);
      if (depth == 0) return at;
    } else if (*at == '{' || *at == '[') {
      depth++;
      at++;
    } else if (*at == '}' || *at == ']') {
      if (depth == 0) return at;
      at++;
      if (--depth == 0) return at;
    } else if (depth == 0 && (*at == ',' || *at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) {
      return at;
    } else {
      at++;
    }
  }
  return end;
}

static inline weir_json weir_no_value(void) {
  weir_json none = {0, 0};
  return none;
}

static inline weir_json weir_value_at(const uint8_t *at, const uint8_t *end) {
  at = weir_skip_space(at, end);
  weir_json value = {at, end};
  return at < end ? value : weir_no_value();
}

static inline weir_json weir_parse(weir_slice text) {
  return text.length == 0 ? weir_no_value() : weir_value_at(text.data, text.data + text.length);
}

/* The head of the input of this call. */
static inline weir_json weir_head(void) { return weir_parse(weir_input_head()); }

static inline bool weir_is(weir_json value, char first) {
  return value.at != 0 && value.at < value.end && *value.at == (uint8_t)first;
}

static inline bool weir_is_string(weir_json value) { return weir_is(value, '"'); }
static inline bool weir_is_true(weir_json value) { return weir_is(value, 't'); }
static inline bool weir_is_null(weir_json value) { return value.at == 0 || weir_is(value, 'n'); }

/* The JSON text of a value; empty if it is absent. */
static inline weir_slice weir_raw(weir_json value) {
  weir_slice raw = {value.at, 0};
  if (value.at != 0) raw.length = (size_t)(weir_skip_value(value.at, value.end) - value.at);
  return raw;
}

static inline uint32_t weir_hex(const uint8_t *at) {
  uint32_t code = 0;
  for (int i = 0; i < 4; i++) {
    uint8_t c = at[i];
    code = code * 16 + (c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
  }
  return code;
}

static inline size_t weir_put_utf8(uint8_t *out, uint32_t code) {
  if (code < 0x80) {
    out[0] = (uint8_t)code;
    return 1;
  }
  size_t more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  static const uint8_t firsts[4] = {0, 0xc0, 0xe0, 0xf0};
  out[0] = (uint8_t)(firsts[more] | (code >> (6 * more)));
  for (size_t i = 1; i <= more; i++) out[i] = (uint8_t)(0x80 | ((code >> (6 * (more - i))) & 0x3f));
  return more + 1;
}

/* The text of a string, UTF-8 without escapes; empty with null data for other values. */
static inline weir_slice weir_string(weir_json value) {
  weir_slice text = {0, 0};
  if (!weir_is_string(value)) return text;
  const uint8_t *from = value.at + 1;
  const uint8_t *to = value.at + weir_raw(value).length - 1;
  text.data = from;
  text.length = (size_t)(to - from);
  bool has_escape = false;
  for (const uint8_t *at = from; at < to; at++) has_escape = has_escape || *at == '\\';
  if (!has_escape) return text;
  /* No escape is shorter than the character it stands for. */
  uint8_t *out = weir_take(text.length);
  size_t length = 0;
  for (const uint8_t *at = from; at < to; at++) {
    if (*at != '\\') {
      out[length++] = *at;
      continue;
    }
    at++;
    if (*at == 'u' && at + 4 < to + 1) {
      uint32_t code = weir_hex(at + 1);
      at += 4;
      bool is_pair = code >= 0xd800 && code < 0xdc00 && at + 6 < to + 1 && at[1] == '\\' && at[2] == 'u';
      if (is_pair) {
        code = 0x10000 + ((code - 0xd800) << 10) + (weir_hex(at + 3) - 0xdc00);
        at += 6;
      }
      length += weir_put_utf8(out + length, code);
      continue;
    }
    uint8_t c = *at;
    out[length++] = c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c == 'b' ? '\b' : c == 'f' ? '\f' : c;
  }
  text.data = out;
  text.length = length;
  return text;
}

static inline bool weir_equal(weir_slice a, weir_slice b) {
  if (a.data == 0 || b.data == 0 || a.length != b.length) return false;
  for (size_t at = 0; at < a.length; at++)
    if (a.data[at] != b.data[at]) return false;
  return true;
}

/* The integer part of a number; the fallback for other values. */
static inline int64_t weir_integer(weir_json value, int64_t fallback) {
  weir_slice raw = weir_raw(value);
  size_t at = raw.length > 0 && raw.data[0] == '-' ? 1 : 0;
  if (at >= raw.length || raw.data[at] < '0' || raw.data[at] > '9') return fallback;
  int64_t number = 0;
  for (; at < raw.length && raw.data[at] >= '0' && raw.data[at] <= '9'; at++) {
    if (number > (INT64_MAX - 9) / 10) return fallback;
    number = number * 10 + (raw.data[at] - '0');
  }
  return raw.data[0] == '-' ? -number : number;
}

/* First element of an array, or first member of an object: its name. Absent if there is none. */
static inline weir_json weir_first(weir_json list) {
  if (!weir_is(list, '[') && !weir_is(list, '{')) return weir_no_value();
  weir_json first = weir_value_at(list.at + 1, list.end);
  return weir_is(first, ']') || weir_is(first, '}') ? weir_no_value() : first;
}

/* The element after this one. */
static inline weir_json weir_next(weir_json element) {
  if (element.at == 0) return weir_no_value();
  const uint8_t *at = weir_skip_space(weir_skip_value(element.at, element.end), element.end);
  return at < element.end && *at == ',' ? weir_value_at(at + 1, element.end) : weir_no_value();
}

/* The value of a member whose name is at this place. */
static inline weir_json weir_member_value(weir_json name) {
  const uint8_t *at = weir_skip_space(weir_skip_string(name.at, name.end), name.end);
  return at < name.end && *at == ':' ? weir_value_at(at + 1, name.end) : weir_no_value();
}

/* A member of an object; absent if there is none. */
static inline weir_json weir_get(weir_json object, weir_slice name) {
  if (!weir_is(object, '{')) return weir_no_value();
  for (weir_json member = weir_first(object); weir_is_string(member);) {
    weir_json value = weir_member_value(member);
    if (weir_equal(weir_string(member), name)) return value;
    member = weir_next(value);
  }
  return weir_no_value();
}

/* A member by its path, such as weir_find(head, "request.headers"). */
static inline weir_json weir_find(weir_json object, const char *path) {
  weir_slice rest = weir_text(path);
  while (rest.length > 0) {
    weir_slice name = {rest.data, 0};
    while (name.length < rest.length && rest.data[name.length] != '.') name.length++;
    object = weir_get(object, name);
    size_t used = name.length < rest.length ? name.length + 1 : name.length;
    rest.data += used;
    rest.length -= used;
  }
  return object;
}

/* First value of a header, name in lower case; null data if it is absent. headers: weir_find(head, "request.headers") */
static inline weir_slice weir_header(weir_json headers, const char *name) {
  weir_slice wanted = weir_text(name);
  for (weir_json pair = weir_first(headers); pair.at != 0; pair = weir_next(pair)) {
    weir_slice given = weir_string(weir_first(pair));
    bool is_same = given.length == wanted.length;
    for (size_t at = 0; is_same && at < given.length; at++) {
      uint8_t c = given.data[at];
      is_same = (c >= 'A' && c <= 'Z' ? c | 32 : c) == wanted.data[at];
    }
    if (is_same) return weir_string(weir_next(weir_first(pair)));
  }
  weir_slice none = {0, 0};
  return none;
}

static inline weir_slice weir_trim(weir_slice text) {
  while (text.length > 0 && text.data[0] <= ' ') {
    text.data++;
    text.length--;
  }
  while (text.length > 0 && text.data[text.length - 1] <= ' ') text.length--;
  return text;
}

/* A setting of the module, or the fallback. */
static inline weir_slice weir_config(const char *name, const char *fallback) {
  weir_slice value = weir_take_block(weir_config_get(weir_block(weir_text(name))));
  return value.data == 0 ? weir_text(fallback) : value;
}

/* The texts one after another. */
static inline weir_slice weir_concat(weir_slice a, weir_slice b) {
  uint8_t *bytes = weir_take(a.length + b.length);
  for (size_t at = 0; at < a.length; at++) bytes[at] = a.data[at];
  for (size_t at = 0; at < b.length; at++) bytes[a.length + at] = b.data[at];
  weir_slice whole = {bytes, a.length + b.length};
  return whole;
}

/* ---- Writing ---- */

static uint8_t weir_head_bytes[WEIR_HEAD_BYTES];
static size_t weir_head_length;

static inline void weir_put_byte(uint8_t byte) {
  if (weir_head_length >= WEIR_HEAD_BYTES) __builtin_trap();
  weir_head_bytes[weir_head_length++] = byte;
}

static inline void weir_put(const char *text) {
  for (; *text; text++) weir_put_byte((uint8_t)*text);
}

static inline void weir_put_integer(int64_t number) {
  uint8_t digits[20];
  size_t count = 0;
  uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  do digits[count++] = (uint8_t)('0' + rest % 10);
  while ((rest /= 10) > 0);
  if (number < 0) weir_put_byte('-');
  while (count > 0) weir_put_byte(digits[--count]);
}

static inline void weir_put_string(weir_slice text) {
  static const char hex[] = "0123456789abcdef";
  weir_put_byte('"');
  for (size_t at = 0; at < text.length; at++) {
    uint8_t c = text.data[at];
    if (c == '"' || c == '\\') weir_put_byte('\\');
    if (c >= 0x20) {
      weir_put_byte(c);
    } else {
      weir_put("\\u00");
      weir_put_byte((uint8_t)hex[c >> 4]);
      weir_put_byte((uint8_t)hex[c & 15]);
    }
  }
  weir_put_byte('"');
}

/* A text as a JSON string, for bodies. */
static inline weir_slice weir_quote(weir_slice text) {
  weir_head_length = 0;
  weir_put_string(text);
  weir_slice quoted = {weir_head_bytes, weir_head_length};
  weir_slice none = {0, 0};
  return weir_concat(quoted, none);
}

typedef enum { WEIR_SET, WEIR_ADD, WEIR_REMOVE } weir_edit_kind;

typedef struct weir_edit {
  struct weir_edit *next;
  weir_edit_kind kind;
  weir_slice name;
  weir_slice value;
} weir_edit;

/* Decision for a request, a response or an error. */
typedef struct {
  const char *action;
  int status;
  weir_edit *first;
  weir_edit *last;
  bool has_body;
  weir_slice body;
  weir_slice method;
  weir_slice url;
  weir_slice state;
  int timeout_ms;
} weir_action;

static inline weir_action weir_new_action(const char *kind, int status) {
  weir_action action = {kind, status, 0, 0, false, {0, 0}, {0, 0}, {0, 0}, {0, 0}, 0};
  return action;
}

/* Responds at once. */
static inline weir_action weir_reject(int status) { return weir_new_action("reject", status); }
/* Continues with the changes of the functions that follow. */
static inline weir_action weir_modify(void) { return weir_new_action("modify", 0); }
/* Sends a request and calls the handler again: see `fetched` in the head. */
static inline weir_action weir_fetch(const char *method, weir_slice url) {
  weir_action action = weir_new_action("fetch", 0);
  action.method = weir_text(method);
  action.url = url;
  return action;
}

static inline void weir_edit_header(weir_action *action, weir_edit_kind kind, weir_slice name, weir_slice value) {
  weir_arena_used = (weir_arena_used + 7) & ~(size_t)7;
  weir_edit *edit = (weir_edit *)(void *)weir_take(sizeof(weir_edit));
  weir_edit content = {0, kind, name, value};
  *edit = content;
  if (action->last == 0) action->first = edit;
  else action->last->next = edit;
  action->last = edit;
}

static inline void weir_set_header(weir_action *action, const char *name, weir_slice value) {
  weir_edit_header(action, WEIR_SET, weir_text(name), value);
}
/* Adds a value to those of the name. For weir_modify. */
static inline void weir_add_header(weir_action *action, const char *name, weir_slice value) {
  weir_edit_header(action, WEIR_ADD, weir_text(name), value);
}
static inline void weir_remove_header(weir_action *action, const char *name) {
  weir_slice none = {0, 0};
  weir_edit_header(action, WEIR_REMOVE, weir_text(name), none);
}
static inline void weir_set_body(weir_action *action, weir_slice body) {
  action->body = body;
  action->has_body = true;
}

/* Asks a model; the next call has the text of the answer. The question is JSON with messages and max_tokens. */
static inline weir_action weir_ask(weir_slice model, weir_slice question) {
  weir_action action = weir_fetch("POST", weir_concat(weir_text("model:"), model));
  weir_set_body(&action, question);
  return action;
}

static inline void weir_put_edits(const weir_action *action, const char *member, weir_edit_kind kind) {
  bool is_open = false;
  for (const weir_edit *edit = action->first; edit != 0; edit = edit->next) {
    if (edit->kind != kind) continue;
    if (is_open) weir_put(",");
    else {
      weir_put(",\"");
      weir_put(member);
      weir_put("\":[");
    }
    is_open = true;
    if (kind != WEIR_REMOVE) weir_put("[");
    weir_put_string(edit->name);
    if (kind == WEIR_REMOVE) continue;
    weir_put(",");
    weir_put_string(edit->value);
    weir_put("]");
  }
  if (is_open) weir_put("]");
}

static inline void weir_put_text_member(const char *member, weir_slice value) {
  if (value.data == 0) return;
  weir_put(",\"");
  weir_put(member);
  weir_put("\":");
  weir_put_string(value);
}

static inline int32_t weir_send_head(weir_slice body) {
  weir_slice head = {weir_head_bytes, weir_head_length};
  weir_answer(head, body);
  return 0;
}

/* Outputs the action. @returns 0, the result of a handler; a handler that sends nothing returns 0 and passes */
static inline int32_t weir_send(weir_action action) {
  bool is_modify = action.action[0] == 'm';
  weir_head_length = 0;
  weir_put("{\"action\":\"");
  weir_put(action.action);
  weir_put("\"");
  if (action.status != 0) {
    weir_put(",\"status\":");
    weir_put_integer(action.status);
  }
  weir_put_text_member("method", action.method);
  weir_put_text_member("url", action.url);
  weir_put_text_member("state", action.state);
  if (action.timeout_ms > 0) {
    weir_put(",\"timeout_ms\":");
    weir_put_integer(action.timeout_ms);
  }
  weir_put_edits(&action, is_modify ? "headers_set" : "headers", WEIR_SET);
  if (is_modify) {
    weir_put_edits(&action, "headers_add", WEIR_ADD);
    weir_put_edits(&action, "headers_remove", WEIR_REMOVE);
    if (action.has_body) weir_put(",\"replaces_body\":true");
  }
  weir_put("}");
  return weir_send_head(action.body);
}

/* Decision for an event of a stream: events in its place, and a text for the next call. */
typedef struct {
  weir_edit *first;
  weir_edit *last;
  bool replaces;
  weir_slice state;
} weir_events;

/* Passes the event on unchanged. */
static inline weir_events weir_pass_event(void) {
  weir_events events = {0, 0, false, {0, 0}};
  return events;
}
/* Drops the event; weir_emit sends others in its place. */
static inline weir_events weir_drop_event(void) {
  weir_events events = weir_pass_event();
  events.replaces = true;
  return events;
}
/* Sends an event; name with null data for none. */
static inline void weir_emit(weir_events *events, weir_slice name, weir_slice data) {
  weir_action list = weir_new_action("", 0);
  list.first = events->first;
  list.last = events->last;
  weir_edit_header(&list, WEIR_ADD, name, data);
  events->first = list.first;
  events->last = list.last;
  events->replaces = true;
}

/* Outputs the events. @returns 0 */
static inline int32_t weir_send_events(weir_events events) {
  weir_slice body = {0, 0};
  weir_head_length = 0;
  weir_put("{\"abi\":1");
  if (events.replaces) {
    weir_put(",\"events\":[");
    for (const weir_edit *event = events.first; event != 0; event = event->next) {
      if (event != events.first) weir_put(",");
      weir_put("{\"data_bytes\":");
      weir_put_integer((int64_t)event->value.length);
      weir_put_text_member("name", event->name);
      weir_put("}");
      body = weir_concat(body, event->value);
    }
    weir_put("]");
  }
  weir_put_text_member("state", events.state);
  weir_put("}");
  return weir_send_head(body);
}

/* Replaces every occurrence of a word in a text. */
static inline weir_slice weir_replace(weir_slice text, weir_slice word, weir_slice replacement) {
  if (word.length == 0) return text;
  weir_slice whole = {text.data, 0};
  size_t count = 0;
  for (size_t at = 0; at + word.length <= text.length;) {
    weir_slice here = {text.data + at, word.length};
    bool is_word = weir_equal(here, word);
    count += is_word;
    at += is_word ? word.length : 1;
  }
  if (count == 0) return text;
  uint8_t *bytes = weir_take(text.length - count * word.length + count * replacement.length);
  for (size_t at = 0; at < text.length;) {
    weir_slice here = {text.data + at, word.length};
    if (at + word.length <= text.length && weir_equal(here, word)) {
      for (size_t i = 0; i < replacement.length; i++) bytes[whole.length++] = replacement.data[i];
      at += word.length;
    } else {
      bytes[whole.length++] = text.data[at++];
    }
  }
  whole.data = bytes;
  return whole;
}

/* Length of the longest end of the text that the word begins with, bytes; the whole word does not count. */
static inline size_t weir_beginning_at_end(weir_slice text, weir_slice word) {
  size_t length = word.length == 0 ? 0 : word.length - 1;
  for (length = length < text.length ? length : text.length; length > 0; length--) {
    weir_slice end = {text.data + text.length - length, length};
    weir_slice beginning = {word.data, length};
    if (weir_equal(end, beginning)) return length;
  }
  return 0;
}

/* Takes the next part of a list with commas, trimmed. @returns false if no part is left */
static inline bool weir_next_part(weir_slice *list, weir_slice *part) {
  if (list->length == 0) return false;
  size_t length = 0;
  while (length < list->length && list->data[length] != ',') length++;
  weir_slice found = {list->data, length};
  *part = weir_trim(found);
  size_t used = length < list->length ? length + 1 : length;
  list->data += used;
  list->length -= used;
  return true;
}

/*
 * In on_text: passes a text on in place of the piece's text. The last held_bytes of it, at most 64 KiB, are held back: the next
 * piece of this text begins with them. A handler that sends nothing passes the piece's text on unchanged. @returns 0
 */
static inline int32_t weir_pass_text(weir_slice text, size_t held_bytes) {
  weir_head_length = 0;
  weir_put("{\"held_bytes\":");
  weir_put_integer((int64_t)held_bytes);
  weir_put("}");
  return weir_send_head(text);
}

/* In on_pick: picks the candidate with this index; -1 for the default policy. @returns 0 */
static inline int32_t weir_choose(int64_t index) {
  weir_slice none = {0, 0};
  weir_head_length = 0;
  weir_put("{\"choice\":");
  weir_put_integer(index);
  weir_put("}");
  return weir_send_head(none);
}

#endif
