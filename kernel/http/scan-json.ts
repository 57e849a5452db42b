/**
 * Walks the bytes of a JSON object once, checks the structure of everything outside strings, and notes the
 * top-level `model` and `stream`. What looks odd is left to a full parse. @hot
 */
import type { RoutingPeek } from '../contracts/request.ts'
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipScalar,
  skipSpace,
  skipString,
  skipWord,
} from '../wire/json-bytes.ts'

const MAX_DEPTH = 512

/** What the scan expects next. */
const VALUE = 0
const KEY_OR_CLOSE = 1
const COLON_NEXT = 2
const COMMA_OR_CLOSE = 3
const KEY = 4
const VALUE_OR_CLOSE = 5

/** Byte offset at which the last scan stopped. */
let doubtAt = 0

/** One bit per depth: 1 inside an object, 0 inside an array. */
const isObjectAt = new Uint8Array(MAX_DEPTH + 1)

/** Finds model and stream. @returns null when in doubt; then `doubtPosition` says where */
export function scanRouting(body: Buffer): RoutingPeek | null {
  const end = body.length
  let at = skipSpace(body, 0)
  doubtAt = at
  if (at >= end || body[at] !== OPEN_BRACE) return null
  let depth = 1
  isObjectAt[1] = 1
  let expects = KEY_OR_CLOSE
  let model: string | null = null
  let modelStart = -1
  let modelEnd = -1
  let stream = false
  /** 0: another key, 1: model, 2: stream; only looked at on depth 1. */
  let key = 0
  at++
  while (true) {
    at = skipSpace(body, at)
    doubtAt = at
    if (at >= end) return null
    const byte = body[at]
    if (expects === COMMA_OR_CLOSE) {
      if (byte === COMMA) {
        expects = isObjectAt[depth] === 1 ? KEY : VALUE
        at++
      } else if (byte === (isObjectAt[depth] === 1 ? CLOSE_BRACE : CLOSE_BRACKET)) {
        at++
        if (--depth === 0) break
      } else return null
    } else if (expects === KEY || expects === KEY_OR_CLOSE) {
      if (byte === QUOTE) {
        const after = skipString(body, at)
        if (after < 0) return null
        if (depth === 1) {
          key = keyAt(body, at, after)
          if (key < 0) return null
        }
        at = after
        expects = COLON_NEXT
      } else if (byte === CLOSE_BRACE && expects === KEY_OR_CLOSE) {
        at++
        if (--depth === 0) break
        expects = COMMA_OR_CLOSE
      } else return null
    } else if (expects === COLON_NEXT) {
      if (byte !== COLON) return null
      at++
      expects = VALUE
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      if (depth === 1 && key !== 0) return null
      if (++depth > MAX_DEPTH) return null
      isObjectAt[depth] = byte === OPEN_BRACE ? 1 : 0
      expects = byte === OPEN_BRACE ? KEY_OR_CLOSE : VALUE_OR_CLOSE
      at++
    } else if (byte === CLOSE_BRACKET && expects === VALUE_OR_CLOSE) {
      at++
      depth--
      expects = COMMA_OR_CLOSE
    } else {
      const after = byte === QUOTE ? skipString(body, at) : skipScalar(body, at)
      if (after < 0) return null
      if (depth === 1 && key === 1) {
        if (byte === QUOTE) {
          model = plainString(body, at + 1, after - 1)
          if (model === null) return null
          modelStart = at
          modelEnd = after
        } else if (byte === 0x6e) {
          model = null
          modelStart = -1
          modelEnd = -1
        } else return null
      } else if (depth === 1 && key === 2) {
        if (byte === 0x74) stream = true
        else if (byte === 0x66 || byte === 0x6e) stream = false
        else return null
      }
      at = after
      expects = COMMA_OR_CLOSE
    }
  }
  doubtAt = skipSpace(body, at)
  if (doubtAt !== end) return null
  return { model, stream, modelStart, modelEnd }
}

/** Byte offset of the fault that the last scan found. */
export function doubtPosition(): number {
  return doubtAt
}

/** @returns 1 for "model", 2 for "stream", 0 for another key, -1 when escapes make it doubtful */
function keyAt(body: Buffer, from: number, after: number): number {
  const length = after - from - 2
  if (length === 5 && skipWord(body, from + 1, 'model') > 0) return 1
  if (length === 6 && skipWord(body, from + 1, 'stream') > 0) return 2
  if (length > 36) return 0
  for (let at = from + 1; at < after - 1; at++) if (body[at] === BACKSLASH) return -1
  return 0
}

/** The text between two positions when it needs no decoding; null when it has escapes, control or non-ASCII bytes. */
function plainString(body: Buffer, from: number, to: number): string | null {
  for (let at = from; at < to; at++) {
    const byte = body[at]
    if (byte < 0x20 || byte > 0x7e || byte === BACKSLASH) return null
  }
  return body.toString('latin1', from, to)
}
