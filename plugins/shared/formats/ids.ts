/** Ids: UUIDs of version 7, which sort by time of creation, and ids of items and responses with a prefix for the type. */
import { randomBytes } from 'node:crypto'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const SEQUENCE_LIMIT = 0x1000
/** Random bytes are drawn in blocks, because a call of the random source costs more than the rest of an id. */
const POOL_BYTES = 4_096
const TAIL_DIGITS = 16
/** Two variant bits, then two random bits. @source RFC 9562 section 4.1 */
const VARIANTS = '89ab'

let lastMs = 0
let sequence = 0
let time = ''
let pool = ''
let poolAt = 0

/**
 * A version 7 UUID, greater as text than every earlier one of this process.
 *
 * @param nowMs Unix milliseconds
 * @source RFC 9562 section 5.7 and 6.2 method 1: the 12 bits after the version count within a millisecond
 */
export function uuidV7(nowMs = Date.now()): string {
  const counter = advance(nowMs)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${counter}-${tailStart()}-${tailRest()}`
}

/** The same without hyphens. */
export function uuidV7Hex(nowMs = Date.now()): string {
  const counter = advance(nowMs)
  return `${time}7${counter}${tailStart()}${tailRest()}`
}

/** Advances `time`. @returns the counter */
function advance(nowMs: number): string {
  const before = lastMs
  sequence = nowMs > lastMs ? 0 : sequence + 1
  lastMs = Math.max(nowMs, lastMs)
  if (sequence === SEQUENCE_LIMIT) {
    lastMs += 1
    sequence = 0
  }
  if (lastMs !== before || time === '') time = lastMs.toString(16).padStart(12, '0')
  return sequence.toString(16).padStart(3, '0')
}

/** The first four random digits. */
function tailStart(): string {
  if (poolAt === pool.length) {
    pool = randomBytes(POOL_BYTES).toString('hex')
    poolAt = 0
  }
  const variant = VARIANTS[Number.parseInt(pool[poolAt], 16) & 3]
  return variant + pool.slice(poolAt + 1, poolAt + 4)
}

/** The other twelve random digits. */
function tailRest(): string {
  const rest = pool.slice(poolAt + 4, poolAt + TAIL_DIGITS)
  poolAt += TAIL_DIGITS
  return rest
}

/** Any version, either case. */
export function isUuid(text: string): boolean {
  return UUID.test(text)
}

const PREFIX = new Map([
  ['message', 'msg'],
  ['reasoning', 'rs'],
  ['function_call', 'fc'],
  ['function_call_output', 'fco'],
  ['mcp_list_tools', 'mcpl'],
  ['mcp_call', 'mcp'],
  ['mcp_approval_request', 'mcpr'],
  ['mcp_approval_response', 'mcpa'],
  ['web_search_call', 'ws'],
  ['code_interpreter_call', 'ci'],
  ['file_search_call', 'fs'],
  ['compaction', 'cmp'],
  ['custom_tool_call', 'ctc'],
  ['image_generation_call', 'ig'],
  ['tool_search_call', 'tsc'],
  ['tool_search_output', 'tso'],
])

export function newItemId(type: string): string {
  return newId(PREFIX.get(type) ?? 'item')
}

export function newId(prefix: string): string {
  return `${prefix}_${uuidV7Hex()}`
}
