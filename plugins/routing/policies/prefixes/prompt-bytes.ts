/**
 * Finds the bytes of the prompt in a request body without parsing JSON. Equal bytes mean equal prompts; equal prompts
 * have equal bytes only if the client serializes them the same way.
 * @hot
 */
import type { PickRequest } from '#kernel'

/** Maximum bytes of a prompt that are compared; bounds the work per pick. */
export const MAX_PROMPT_BYTES = 65_536

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const SPACE = 0x20
/** Maximum distance of a native search, in bytes. */
const SEARCH_BYTES = 1_048_576
/** Strings up to this length are scanned by byte, longer ones by the native search. bench: micro/cache-aware */
const SHORT_STRING = 32

/** Members that hold the prompt: chat, completions, generate, responses, embeddings, rerank. */
const MAIN_KEYS = ['messages', 'prompt', 'input', 'text', 'input_ids', 'query'].map((key) => Buffer.from(key))
/** Members that engines put before the prompt: messages and responses. */
const LEAD_KEYS = ['system', 'instructions'].map((key) => Buffer.from(key))
const LEAD_PATTERNS = ['"system":', '"instructions":'].map((pattern) => Buffer.from(pattern))
/** `text` of a responses request is an object of settings, not the prompt. */
const TEXT_KEY = 3

/** Copy of the current prompt: the leading member, then the prompt. One per thread, because picks are synchronous. */
const copy = Buffer.from(new ArrayBuffer(MAX_PROMPT_BYTES + 8))
/** The copy as little-endian words; the bytes from `promptBytes` to the end of the word are zero. */
export const promptWords = new Int32Array(copy.buffer)
/** Bytes in the copy. */
export let promptBytes = 0
/** Bytes of the whole prompt; an upper bound above MAX_PROMPT_BYTES. */
export let wholePromptBytes = 0

/** Result of the scan: start and end of the values. */
let leadStart = 0
let leadEnd = 0
let mainStart = 0
let mainEnd = 0
/** Position at which skipString and skipNested stop. */
let stopAt = 0

/** Copies the prompt to `promptWords`. @returns the bytes copied; 0 if there is no prompt */
export function readPrompt(request: PickRequest): number {
  const { tokenIds } = request
  if (tokenIds !== null) return readTokens(tokenIds)
  promptBytes = 0
  wholePromptBytes = 0
  const { body } = request
  if (body === null || !findPrompt(body)) return 0
  append(body, leadStart, leadEnd)
  append(body, mainStart, mainEnd)
  // The last word is hashed completely.
  for (let at = promptBytes; at < promptBytes + 4; at++) copy[at] = 0
  return promptBytes
}

/** Token ids are 32-bit words: 16 of them are 64 bytes. */
function readTokens(tokenIds: Uint32Array): number {
  const kept = Math.min(tokenIds.length, MAX_PROMPT_BYTES / 4)
  for (let i = 0; i < kept; i++) promptWords[i] = tokenIds[i]
  promptBytes = kept * 4
  wholePromptBytes = tokenIds.length * 4
  return promptBytes
}

function append(body: Buffer, start: number, end: number): void {
  wholePromptBytes += end - start
  const room = MAX_PROMPT_BYTES - promptBytes
  if (room <= 0 || end <= start) return
  promptBytes += body.copy(copy, promptBytes, start, Math.min(end, start + room))
}

/**
 * Scans the top-level members up to the prompt. The scan of a malformed body ends early.
 */
function findPrompt(body: Buffer): boolean {
  leadStart = 0
  leadEnd = 0
  mainStart = 0
  mainEnd = 0
  stopAt = body.length
  let at = skipTo(body, 0, OPEN_BRACE)
  while (at < body.length) {
    const keyStart = skipTo(body, at, QUOTE)
    const keyEnd = skipString(body, keyStart - 1)
    if (keyEnd >= body.length) return false
    const start = skipSpace(body, skipTo(body, keyEnd, COLON))
    const keyLength = keyEnd - 1 - keyStart
    if (isMain(body, keyStart, keyLength, start)) {
      stopAt = Math.min(body.length, start + MAX_PROMPT_BYTES)
      mainStart = start
      mainEnd = skipValue(body, start)
      if (leadEnd === 0) findLateLead(body, mainEnd)
      // The prompt was truncated: the rest of the body is the upper bound of its size.
      if (mainEnd - start >= MAX_PROMPT_BYTES) mainEnd = body.length
      return true
    }
    const end = skipValue(body, start)
    if (keyIndex(body, keyStart, keyLength, LEAD_KEYS) >= 0) {
      leadStart = start
      leadEnd = end
    }
    at = end
  }
  return false
}

/**
 * Searches for a leading member after the prompt. Quotes in strings are escaped, so the pattern only matches keys. A
 * nested key may match too, which is harmless: it is as stable as the prompt.
 */
function findLateLead(body: Buffer, from: number): void {
  const searched = within(body, from)
  for (let i = 0; i < LEAD_PATTERNS.length; i++) {
    const found = searched.indexOf(LEAD_PATTERNS[i], from)
    if (found < 0) continue
    leadStart = skipSpace(body, found + LEAD_PATTERNS[i].length)
    stopAt = Math.min(body.length, leadStart + MAX_PROMPT_BYTES)
    leadEnd = skipValue(body, leadStart)
    return
  }
}

/** Bounds the native search in a large body. */
function within(body: Buffer, from: number): Buffer {
  return body.length - from > SEARCH_BYTES ? body.subarray(0, from + SEARCH_BYTES) : body
}

function isMain(body: Buffer, start: number, length: number, valueStart: number): boolean {
  const index = keyIndex(body, start, length, MAIN_KEYS)
  // Objects under these names are settings or templates.
  return index >= 0 && body[valueStart] !== OPEN_BRACE && !(index === TEXT_KEY && body[valueStart] !== QUOTE)
}

function keyIndex(body: Buffer, start: number, length: number, keys: readonly Buffer[]): number {
  for (let i = 0; i < keys.length; i++) {
    if (keys[i].length === length && matches(body, start, keys[i])) return i
  }
  return -1
}

function matches(body: Buffer, start: number, key: Buffer): boolean {
  for (let i = 0; i < key.length; i++) if (body[start + i] !== key[i]) return false
  return true
}

/** @returns the position after the next such byte, or the end of the body */
function skipTo(body: Buffer, from: number, byte: number): number {
  let at = from
  while (at < body.length && body[at] !== byte) at++
  return at < body.length ? at + 1 : at
}

function skipSpace(body: Buffer, from: number): number {
  let at = from
  while (at < body.length && body[at] <= SPACE) at++
  return at
}

/** @returns the position after the value that starts here */
function skipValue(body: Buffer, start: number): number {
  const first = body[start]
  if (first === QUOTE) return skipString(body, start)
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return skipNested(body, start)
  let at = start
  while (at < stopAt && body[at] !== 0x2c && body[at] !== CLOSE_BRACE) at++
  return at
}

function skipNested(body: Buffer, start: number): number {
  let depth = 0
  let at = start
  while (at < stopAt) {
    const byte = body[at]
    if (byte === QUOTE) {
      at = skipString(body, at)
      continue
    }
    at++
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++
    else if ((byte === CLOSE_BRACE || byte === CLOSE_BRACKET) && --depth === 0) return at
  }
  return stopAt
}

/** @param from position of the opening quote @returns the position after the closing one, or stopAt */
function skipString(body: Buffer, from: number): number {
  const near = Math.min(stopAt, from + 1 + SHORT_STRING)
  let at = from + 1
  for (; at < near; at++) {
    const byte = body[at]
    if (byte === QUOTE) return at + 1
    if (byte === BACKSLASH) at++
  }
  while (at < stopAt) {
    const quote = within(body, stopAt).indexOf(QUOTE, at)
    if (quote < 0 || quote >= stopAt) return stopAt
    let slashes = 0
    while (quote - 1 - slashes >= at && body[quote - 1 - slashes] === BACKSLASH) slashes++
    if ((slashes & 1) === 0) return quote + 1
    at = quote + 1
  }
  return stopAt
}
