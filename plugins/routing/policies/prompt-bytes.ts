/**
 * The prompt of a request as bytes, found in the body without parsing it. Equal bytes mean equal prompts; the reverse
 * need not hold, since JSON can be written in several ways, but one client writes it in one.
 * @hot
 */
import type { PickRequest } from '#kernel'

/** What of a prompt is looked at: longer ones count as equal from here on. Also the bound of the work per pick. */
export const MAX_PROMPT_BYTES = 65_536

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const SPACE = 0x20
/** How far behind the prompt, and behind the bytes looked at, the native search goes. */
const SEARCH_BYTES = 1_048_576
/** Strings up to this are walked; longer ones are left to the native search. bench: micro/cache-aware */
const SHORT_STRING = 32

/** Members that hold the prompt itself, of chat, completions, generate, responses, embeddings, rerank. */
const MAIN_KEYS = ['messages', 'prompt', 'input', 'text', 'input_ids', 'query'].map((key) => Buffer.from(key))
/** Members that engines put in front of the prompt, of messages and responses. */
const LEAD_KEYS = ['system', 'instructions'].map((key) => Buffer.from(key))
const LEAD_PATTERNS = ['"system":', '"instructions":'].map((pattern) => Buffer.from(pattern))
/** `text` of a responses request is an object of settings, not the prompt. */
const TEXT_KEY = 3

/** The copy of the prompt under way: what leads first, then the prompt. One per thread, since picks are synchronous. */
const copy = Buffer.from(new ArrayBuffer(MAX_PROMPT_BYTES + 8))
/** The copy as little-endian words; bytes behind `promptBytes` up to the next word are zero. */
export const promptWords = new Int32Array(copy.buffer)
/** Bytes in the copy. */
export let promptBytes = 0
/** Bytes of the whole prompt; exact up to MAX_PROMPT_BYTES, beyond that an upper bound. */
export let wholePromptBytes = 0

/** Of the scan: where the value found starts and ends. */
let leadStart = 0
let leadEnd = 0
let mainStart = 0
let mainEnd = 0
/** Of skipString and skipNested: they stop behind this position at the latest. */
let stopAt = 0

/** Copies the prompt to `promptWords`. @returns its bytes there, 0 when there is none */
export function readPrompt(request: PickRequest): number {
  const { tokenIds } = request
  if (tokenIds !== null) return readTokens(tokenIds)
  promptBytes = 0
  wholePromptBytes = 0
  const { body } = request
  if (body === null || !findPrompt(body)) return 0
  append(body, leadStart, leadEnd)
  append(body, mainStart, mainEnd)
  // The last word is compared whole.
  for (let at = promptBytes; at < promptBytes + 4; at++) copy[at] = 0
  return promptBytes
}

/** Token ids are words already: 16 of them are 64 bytes. */
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
 * Walks the top-level members up to the prompt. The body has passed the structure check of the peek; should it not be
 * well formed after all, the walk ends early and finds less.
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
      // Cut off: what is left of the body stands for what is left of the prompt.
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
 * Looks for what leads behind the prompt, by the native search: a quote inside a string is escaped, so the pattern is
 * a key wherever it stands, at whatever depth. A deeper one of that name does no harm: it is as stable as the prompt.
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

/** Keeps a native search from running through a body of many megabytes. */
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

/** @returns the position behind the next such byte, or the body's end */
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

/** @returns the position behind the value that starts here */
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

/** @param from position of the opening quote @returns the position behind the closing one, or stopAt */
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
