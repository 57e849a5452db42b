/**
 * Reads token usage from the bytes of a response: of a JSON body, or of a server-sent event.
 * Only the usage object is parsed. Generated text cannot match, because quotes in JSON strings are escaped. @hot
 */
import type { TokenUsage, UsageBreakdown } from '../contracts/request.ts'
import { isObject } from './is-object.ts'
import {
  CLOSE_BRACE,
  COLON,
  COMMA,
  OPEN_BRACE,
  QUOTE,
  skipSpace,
  skipString,
  skipValue,
  skipWord,
} from './json-bytes.ts'
import { eachMember } from './top-level-members.ts'

const USAGE = Buffer.from('"usage"')
const TIER = Buffer.from('"service_tier"')
/** The `g` in it. */
const LETTER_G = 0x67
const G_AT = 4
/** Letters that are looked at one by one. */
const MAX_PROBES = 16
/** Of `"prompt_tokens"` and `"completion_tokens"`. */
const PROMPT_BYTES = 15
const COMPLETION_BYTES = 19
/** Of `"total_tokens"`. */
const TOTAL_BYTES = 14
const MAX_DIGITS = 15
/** Members of this name that are looked at, from the end of a body: each may cost a walk to the end. */
const MAX_CANDIDATES = 8
/** Kinds of one usage object; further ones count as other input or output. */
const MAX_KINDS = 16
/** Of an Anthropic usage object: tokens written to the cache by their time to live. */
const CACHE_WRITE = /^ephemeral_([a-z0-9]{1,16})_input_tokens$/
/** Of an OpenAI usage object, such as `audio_tokens`. */
const MODALITY = /^([a-z]{1,16})_tokens$/
const TIER_NAME = /^[\w.-]{1,32}$/
/** Counted elsewhere, or as text. */
const COUNTED: ReadonlySet<string> = new Set(['cached', 'reasoning', 'text', 'thinking'])

/** Position of the next usage object's name; -1 if there is none. `"usage": null` does not count. bench: relay-sse */
export function findUsage(bytes: Buffer, from: number): number {
  let at = nextUsage(bytes, from)
  while (at >= 0 && bytes[valueAt(bytes, at + USAGE.length)] !== OPEN_BRACE)
    at = nextUsage(bytes, at + USAGE.length)
  return at
}

/** Like `indexOf`, in a fifth of the time for a chunk of a stream: `g` is rare in it, quotes are not. */
function nextUsage(bytes: Buffer, from: number): number {
  let g = from
  for (let found = 0; found < MAX_PROBES; found++) {
    g = bytes.indexOf(LETTER_G, g)
    if (g < 0) return -1
    if (g - G_AT >= from && skipWord(bytes, g - G_AT, '"usage"') > 0) return g - G_AT
    g++
  }
  return bytes.indexOf(USAGE, Math.max(from, g - G_AT))
}

/** Usage of a JSON body. @param body the whole body @returns null if it has no member `usage` at the top level */
export function usageOfBody(body: Buffer): TokenUsage | null {
  let at = body.lastIndexOf(USAGE)
  for (let candidate = 0; at >= 0 && candidate < MAX_CANDIDATES; candidate++) {
    const start = valueAt(body, at + USAGE.length)
    const plain = plainUsage(body, start)
    if (plain !== null) return plain
    const end = body[start] === OPEN_BRACE ? skipValue(body, start) : -1
    if (end >= 0 && closesBody(body, end)) {
      const usage = toTokenUsage(parse(body.toString('utf8', start, end)))
      return usage === null ? null : withTier(usage, tierOf(body))
    }
    if (at === 0) return null
    at = body.lastIndexOf(USAGE, at - 1)
  }
  return null
}

/**
 * Usage of an object of numbers at the very end of a body, as most engines send it. bench: relay-json
 * @returns null for any other form
 */
function plainUsage(body: Buffer, start: number): TokenUsage | null {
  let input = -1
  let output = -1
  let at = start
  while (body[at] === (at === start ? OPEN_BRACE : COMMA)) {
    const name = at + 1
    let end = name + 1
    while (end < body.length && body[end] !== QUOTE) end++
    at = end + 1
    if (body[name] !== QUOTE || body[at++] !== COLON) return null
    const value = at
    let count = 0
    while (body[at] >= 0x30 && body[at] <= 0x39) count = count * 10 + body[at++] - 0x30
    if (at === value || at - value > MAX_DIGITS) return null
    const length = end + 1 - name
    if (length === PROMPT_BYTES && skipWord(body, name, '"prompt_tokens"') > 0) input = count
    else if (length === COMPLETION_BYTES && skipWord(body, name, '"completion_tokens"') > 0) output = count
    else if (length !== TOTAL_BYTES || skipWord(body, name, '"total_tokens"') < 0) return null
  }
  const isLast = body[at] === CLOSE_BRACE && body[at + 1] === CLOSE_BRACE && at + 2 === body.length
  return isLast && input >= 0 && output >= 0 ? { input, output, cached: 0, reasoning: 0 } : null
}

/** True if only members of the top-level object follow; those of inner objects are content that a model may choose. */
function closesBody(body: Buffer, from: number): boolean {
  let at = skipSpace(body, from)
  while (body[at] === COMMA) {
    at = skipSpace(body, at + 1)
    if (body[at] !== QUOTE) return false
    at = skipString(body, at)
    if (at < 0) return false
    at = skipSpace(body, at)
    if (body[at] !== COLON) return false
    at = skipValue(body, skipSpace(body, at + 1))
    if (at < 0) return false
    at = skipSpace(body, at)
  }
  return body[at] === CLOSE_BRACE && skipSpace(body, at + 1) === body.length
}

/** The service tier in the top-level object; those of inner objects are content that a client or a model may choose. */
function tierOf(body: Buffer): string | null {
  if (!body.includes(TIER)) return null
  for (const { name, valueStart: start, valueEnd: end } of eachMember(body))
    if (name === 'service_tier' && body[start] === QUOTE) return body.toString('latin1', start + 1, end - 1)
  return null
}

/** JSON of an event: the data of its only `data` line. Null if it is not an object. */
export function jsonOfEvent(event: Buffer): Record<string, unknown> | null {
  const start = event.indexOf(OPEN_BRACE)
  if (start < 0) return null
  const value = parse(event.toString('utf8', start, event.lastIndexOf(CLOSE_BRACE) + 1))
  return isObject(value) ? value : null
}

/** Usage of an event, in the formats of chat and completions, Responses, and Messages. */
export function usageOfEvent(event: Record<string, unknown>): TokenUsage | null {
  const { usage, response, message } = event
  if (isObject(usage)) return toTokenUsage(usage, event.service_tier)
  if (isObject(response)) return toTokenUsage(response.usage, response.service_tier)
  return isObject(message) ? toTokenUsage(message.usage) : null
}

/** Usage of the text of a usage object. */
export function usageOfJson(text: string, tier: string | null): TokenUsage | null {
  return toTokenUsage(parse(text), tier)
}

export function sumOfUsage(a: TokenUsage, b: TokenUsage): TokenUsage {
  return {
    input: a.input + b.input,
    output: a.output + b.output,
    cached: a.cached + b.cached,
    reasoning: a.reasoning + b.reasoning,
    breakdown: sumOfBreakdowns(a.breakdown, b.breakdown),
    ...((a.isEstimated || b.isEstimated) && { isEstimated: true }),
  }
}

/** Counts of a stream are cumulative; an event may leave out those of an earlier one. */
export function largestUsage(a: TokenUsage, b: TokenUsage): TokenUsage {
  return {
    input: Math.max(a.input, b.input),
    output: Math.max(a.output, b.output),
    cached: Math.max(a.cached, b.cached),
    reasoning: Math.max(a.reasoning, b.reasoning),
    breakdown: largestBreakdown(a.breakdown, b.breakdown),
  }
}

/** @param total with the estimate, which the usage replaces */
export function correctedUsage(total: TokenUsage, estimate: TokenUsage, usage: TokenUsage): TokenUsage {
  return {
    input: total.input - estimate.input + usage.input,
    output: total.output - estimate.output + usage.output,
    cached: total.cached - estimate.cached + usage.cached,
    reasoning: total.reasoning - estimate.reasoning + usage.reasoning,
    breakdown: total.breakdown,
    ...(usage.isEstimated && { isEstimated: true }),
  }
}

/** Counts of a usage object; null if it has no count of input or output. Messages report cached input apart from other input. */
function toTokenUsage(usage: unknown, tier?: unknown): TokenUsage | null {
  if (!isObject(usage)) return null
  const input = usage.prompt_tokens ?? usage.input_tokens
  const output = usage.completion_tokens ?? usage.output_tokens
  if (typeof input !== 'number' && typeof output !== 'number') return null
  const inputDetails = usage.prompt_tokens_details ?? usage.input_tokens_details
  const outputDetails = usage.completion_tokens_details ?? usage.output_tokens_details
  const details = isObject(outputDetails) ? outputDetails : usage
  const readFromCache = countOf(usage.cache_read_input_tokens)
  return {
    input: countOf(input) + readFromCache + countOf(usage.cache_creation_input_tokens),
    output: countOf(output),
    cached: isObject(inputDetails) ? countOf(inputDetails.cached_tokens) : readFromCache,
    reasoning: countOf(details.reasoning_tokens ?? details.thinking_tokens),
    breakdown: breakdownOf(usage, tier),
  }
}

function countOf(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : 0
}

/** @param at position behind a name @returns position of its value; the length if there is none */
export function valueAt(bytes: Buffer, at: number): number {
  const colon = skipSpace(bytes, at)
  return bytes[colon] === COLON ? skipSpace(bytes, colon + 1) : bytes.length
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/**
 * @param tier of the response, if it is no member of the usage object
 * @returns undefined if no kind and no tier is reported
 */
export function breakdownOf(usage: unknown, tier?: unknown): UsageBreakdown | undefined {
  if (!isObject(usage)) return
  const kinds: Record<string, number> = {}
  const input = usage.prompt_tokens_details ?? usage.input_tokens_details
  const output = usage.completion_tokens_details ?? usage.output_tokens_details
  const written = isObject(input) ? (input.cache_write_tokens ?? input.cache_creation_tokens) : undefined
  addKind(kinds, 'cache_write', usage.cache_creation_input_tokens ?? written)
  addKinds(kinds, 'cache_write', usage.cache_creation, CACHE_WRITE)
  addKinds(kinds, 'input', input, MODALITY)
  addKinds(kinds, 'output', output, MODALITY)
  return toBreakdown(kinds, usage.service_tier ?? tier)
}

function withTier<Usage extends { readonly breakdown?: UsageBreakdown }>(usage: Usage, tier: unknown): Usage {
  const breakdown = toBreakdown(usage.breakdown?.kinds ?? {}, usage.breakdown?.tier ?? tier)
  return breakdown === undefined ? usage : { ...usage, breakdown }
}

/** Of two generations of one request; the tier is that of the later one. */
export function sumOfBreakdowns(a?: UsageBreakdown, b?: UsageBreakdown): UsageBreakdown | undefined {
  return merge(a, b, (one, other) => one + other)
}

/** Of two reports of one stream, whose counts are cumulative. */
export function largestBreakdown(a?: UsageBreakdown, b?: UsageBreakdown): UsageBreakdown | undefined {
  return merge(a, b, Math.max)
}

function merge(
  a: UsageBreakdown | undefined,
  b: UsageBreakdown | undefined,
  combine: (one: number, other: number) => number,
): UsageBreakdown | undefined {
  if (a === undefined || b === undefined) return a ?? b
  const kinds: Record<string, number> = { ...a.kinds }
  for (const [kind, tokens] of Object.entries(b.kinds)) kinds[kind] = combine(kinds[kind] ?? 0, tokens)
  return { kinds, tier: b.tier ?? a.tier }
}

function toBreakdown(kinds: Readonly<Record<string, number>>, tier: unknown): UsageBreakdown | undefined {
  const known = typeof tier === 'string' && TIER_NAME.test(tier) ? tier : null
  for (const _ in kinds) return { kinds, tier: known }
  return known === null ? undefined : { kinds, tier: known }
}

function addKinds(kinds: Record<string, number>, prefix: string, counts: unknown, pattern: RegExp): void {
  if (!isObject(counts)) return
  let left = MAX_KINDS
  for (const name in counts) {
    if (left-- === 0) return
    const kind = pattern.exec(name)?.[1]
    if (kind !== undefined && !COUNTED.has(kind)) addKind(kinds, `${prefix}_${kind}`, counts[name])
  }
}

function addKind(kinds: Record<string, number>, kind: string, tokens: unknown): void {
  if (Number.isSafeInteger(tokens) && (tokens as number) > 0) kinds[kind] = tokens as number
}
