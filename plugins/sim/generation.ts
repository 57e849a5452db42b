/** A generated answer in any format: a JSON body, or events with their times. */
import type { SimConfig } from './config.ts'
import { type Draft, draftGiven, draftProse, type Limits } from './draft.ts'
import { simErrors } from './errors.ts'
import { type PromptText, tokensOf } from './prompt.ts'
import { Random, seedOf } from './random.ts'
import type { ScriptedAnswer } from './wire.ts'

export interface StreamEvent {
  /** 0 leaves with the first token, 1 with the second, and so on. */
  readonly tick: number
  /** Tokens that this event brings. */
  readonly tokens: number
  /** Framing and all. */
  readonly data: string | Buffer
}

export interface Generation {
  readonly prompts: readonly PromptText[]
  readonly promptTokens: number
  readonly completionTokens: number
  /** Tokens of the longest of its answers. */
  readonly steps: number
  readonly cache: CachedTokens
  /** JSON text of the whole answer. */
  body(): string | Buffer
  /** The last event is `[DONE]`. */
  events(): IterableIterator<StreamEvent>
}

/** Prompt tokens found in the cache, set when the request is admitted. */
interface CachedTokens {
  /** Null without a cache. */
  tokens: number | null
}

/** Everything besides the request that determines an answer. */
export interface Setting {
  readonly seed: number
  readonly model: string
  /** Id of the answer. */
  readonly id: string
  readonly createdSec: number
  /** `performance.now()` at arrival, milliseconds. */
  readonly startedAtMs: number
  /** Length of an answer without a limit, tokens. */
  readonly tokens: number
  readonly maxModelLen: number
  /** Upper limit of every answer, tokens. */
  readonly mostTokens: number
  readonly cache: CachedTokens
  readonly script: ScriptedAnswer | null
}

export const DONE_EVENT = 'data: [DONE]\n\n'

/** 0 for an empty list. Not Math.max, whose number of arguments is limited. */
export function largest(values: readonly number[]): number {
  return values.reduce((most, value) => Math.max(most, value), 0)
}

/** The random numbers of one choice: a function of seed, model, prompt and position. */
export function randomFor(setting: Setting, prompt: PromptText, index: number): Random {
  return new Random(seedOf(setting.seed, setting.model, index, prompt.text))
}

/** @throws context_length_exceeded (400) if the prompt leaves no room for one token */
export function roomFor(setting: Setting, promptTokens: number): number {
  if (promptTokens >= setting.maxModelLen) {
    throw simErrors.context_length_exceeded(promptTokens, setting.maxModelLen)
  }
  return Math.min(setting.maxModelLen - promptTokens, setting.mostTokens)
}

/** The scripted text if there is one, else prose. */
export function draftAnswer(setting: Setting, prompt: PromptText, index: number, limits: Limits): Draft {
  const room = roomFor(setting, prompt.tokens)
  const given = setting.script?.text
  if (given !== undefined) return draftGiven(given, room, limits)
  return draftProse(randomFor(setting, prompt, index), setting.tokens, room, limits)
}

/** Reads limits of the OpenAI formats. */
export function limitsOf(
  request: {
    min_tokens?: number | null
    ignore_eos?: boolean | null
    no_stop_trim?: boolean | null
    stop?: string | string[] | null
  },
  maxTokens: number | null | undefined,
): Limits {
  return {
    maxTokens: maxTokens ?? null,
    minTokens: request.min_tokens ?? 0,
    ignoreEos: request.ignore_eos ?? false,
    stop: typeof request.stop === 'string' ? [request.stop] : (request.stop ?? []),
    keepStop: request.no_stop_trim ?? false,
  }
}

export interface Usage {
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly total_tokens: number
  readonly prompt_tokens_details?: { readonly cached_tokens: number }
}

/** @param cache null without a cache, such as for embeddings */
export function usageOf(
  promptTokens: number,
  completionTokens: number,
  cache: CachedTokens | null = null,
): Usage {
  const cached = cache?.tokens ?? null
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    ...(cached !== null && { prompt_tokens_details: { cached_tokens: cached } }),
  }
}

/**
 * An answer of several choices.
 * @param tokens of each choice
 * @param form of the answer
 */
export function generationOf(
  { cache }: Setting,
  prompts: readonly PromptText[],
  tokens: readonly number[],
  form: Pick<Generation, 'body' | 'events'>,
): Generation {
  const completionTokens = tokens.reduce((sum, count) => sum + count, 0)
  return {
    prompts,
    promptTokens: tokensOf(prompts),
    completionTokens,
    steps: largest(tokens),
    cache,
    ...form,
  }
}

/** A response whose body is scripted. */
export function scriptedBody(body: unknown): Generation {
  const events = Array.isArray(body) ? body : [body]
  return {
    prompts: [],
    promptTokens: 0,
    completionTokens: 0,
    steps: events.length,
    cache: { tokens: null },
    body: () => JSON.stringify(body),
    *events() {
      for (const [tick, event] of events.entries()) {
        yield { tick, tokens: 0, data: `data: ${JSON.stringify(event)}\n\n` }
      }
      yield { tick: events.length - 1, tokens: 0, data: DONE_EVENT }
    },
  }
}

/** A response that is never streamed, such as embeddings. */
export function wholeOnly(prompts: readonly PromptText[], value: unknown): Generation {
  const body = JSON.stringify(value)
  return {
    prompts,
    promptTokens: tokensOf(prompts),
    completionTokens: 0,
    steps: 0,
    cache: { tokens: null },
    body: () => body,
    events: () => [{ tick: 0, tokens: 0, data: `data: ${body}\n\n` }].values(),
  }
}

/** Cached models per route, since clients can invent names. */
const KEPT_MODELS = 64

/**
 * Answers prepared once per route and model and sent without reading the prompt, for load tests.
 * @param prepare generates the answer that is then cached
 * @returns the answer of a model; null for the engine's first
 */
export function fixedResponses({ models }: SimConfig, prepare: (model: string) => Generation) {
  const byModel = new Map<string, Generation>()
  return (model: string | null): Generation => {
    const name = model ?? models[0]
    const known = byModel.get(name)
    if (known !== undefined) return known
    const made = freeze(prepare(name))
    if (byModel.size < KEPT_MODELS) byModel.set(name, made)
    return made
  }
}

/** The same answer with all its bytes encoded. */
function freeze(generation: Generation): Generation {
  const body = Buffer.from(generation.body())
  const events = Array.from(generation.events(), (event) => ({ ...event, data: Buffer.from(event.data) }))
  return { ...generation, body: () => body, events: () => events.values() }
}
