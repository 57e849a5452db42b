/** Tokens of a usage object that may have prices of their own, and the service tier of its response. */
import type { UsageBreakdown } from '../contracts/request.ts'
import { isObject } from '../wire/is-object.ts'

/** Kinds of one usage object; further ones count as other input or output. */
const MAX_KINDS = 16
/** Of an Anthropic usage object: tokens written to the cache by their time to live. */
const CACHE_WRITE = /^ephemeral_([a-z0-9]{1,16})_input_tokens$/
/** Of an OpenAI usage object, such as `audio_tokens`. */
const MODALITY = /^([a-z]{1,16})_tokens$/
const TIER = /^[\w.-]{1,32}$/
/** Counted elsewhere, or as text. */
const COUNTED: ReadonlySet<string> = new Set(['cached', 'reasoning', 'text', 'thinking'])

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

export function withTier<Usage extends { readonly breakdown?: UsageBreakdown }>(
  usage: Usage,
  tier: unknown,
): Usage {
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
  const known = typeof tier === 'string' && TIER.test(tier) ? tier : null
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
