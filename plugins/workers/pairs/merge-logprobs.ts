/**
 * Merges the prompt's log probabilities of the prefill response into `meta_info.input_token_logprobs` of the decode
 * response.
 */

import { EventSplitter, type HeaderList, headerOf, isObject, isPlainEventStream } from '#kernel'
import { parseOrNull } from './errors.ts'

/** Longer events are forwarded unchanged. */
const MAX_EVENT_BYTES = 1_048_576
const NOTHING = Buffer.alloc(0)

/** Log probabilities of one prompt, in the engine's format. */
type Logprobs = readonly unknown[]
/** By index of the prompt within its batch. */
type PromptLogprobs = ReadonlyMap<number, Logprobs>

export interface LogprobMerge {
  /** True for an event stream; false for a JSON text, which is returned by `end`. */
  readonly isStream: boolean
  /** @returns bytes to forward, possibly none; the caller may keep them */
  push(chunk: Buffer): Buffer
  end(): Buffer
}

/** @returns null if there is nothing to merge or the response is encoded */
export function openMerge(
  prefill: { headers: HeaderList; body: Buffer },
  decodeHeaders: HeaderList,
): LogprobMerge | null {
  const encoding = headerOf(decodeHeaders, 'content-encoding') ?? 'identity'
  const logprobs = promptLogprobs(prefill)
  if (encoding !== 'identity' || logprobs.size === 0) return null
  return isPlainEventStream(decodeHeaders) ? new EventMerge(logprobs) : new JsonMerge(logprobs)
}

function promptLogprobs({ headers, body }: { headers: HeaderList; body: Buffer }): PromptLogprobs {
  const found = new Map<number, Logprobs>()
  const texts = isPlainEventStream(headers) ? eventTexts(body.toString('utf8')) : [body.toString('utf8')]
  for (const text of texts) {
    const value = parseOrNull(text)
    const answers = Array.isArray(value) ? value : [value]
    answers.forEach((answer: unknown, position) => {
      const logprobs = metaOf(answer)?.input_token_logprobs
      if (Array.isArray(logprobs) && logprobs.length > 0) found.set(indexOf(answer, position), logprobs)
    })
  }
  return found
}

class JsonMerge implements LogprobMerge {
  readonly isStream = false
  readonly #logprobs: PromptLogprobs
  readonly #chunks: Buffer[] = []

  constructor(logprobs: PromptLogprobs) {
    this.#logprobs = logprobs
  }

  push(chunk: Buffer): Buffer {
    this.#chunks.push(Buffer.from(chunk))
    return NOTHING
  }

  end(): Buffer {
    const body = Buffer.concat(this.#chunks)
    return Buffer.from(merged(body.toString('utf8'), this.#logprobs) ?? body)
  }
}

class EventMerge implements LogprobMerge {
  readonly isStream = true
  readonly #logprobs: PromptLogprobs
  readonly #splitter = new EventSplitter()

  constructor(logprobs: PromptLogprobs) {
    this.#logprobs = logprobs
  }

  push(chunk: Buffer): Buffer {
    const events = this.#splitter.push(chunk)
    if (events.length > 0) return this.#mergeLines(events)
    return this.#splitter.waitingBytes > MAX_EVENT_BYTES ? this.#splitter.takeRest() : NOTHING
  }

  end(): Buffer {
    return this.#mergeLines(this.#splitter.takeRest())
  }

  /** Engines send the data of an event on one line. */
  #mergeLines(bytes: Buffer): Buffer {
    if (bytes.length === 0) return NOTHING
    const lines = bytes.toString('utf8').split('\n')
    return Buffer.from(lines.map((line) => this.#mergeLine(line)).join('\n'))
  }

  #mergeLine(line: string): string {
    const text = dataOf(line)
    const changed = text === null ? null : merged(text, this.#logprobs)
    return changed === null ? line : `data: ${changed}`
  }
}

/** Null if nothing changes. */
function merged(text: string, logprobs: PromptLogprobs): string | null {
  const value = parseOrNull(text)
  const answers: unknown[] = Array.isArray(value) ? value : [value]
  let isChanged = false
  answers.forEach((answer, position) => {
    const meta = metaOf(answer)
    const prompt = meta === null ? undefined : logprobs.get(indexOf(answer, position))
    if (meta === null || prompt === undefined) return
    const own = Array.isArray(meta.input_token_logprobs) ? (meta.input_token_logprobs as unknown[]) : []
    meta.input_token_logprobs = [...prompt, ...own]
    isChanged = true
  })
  return isChanged ? JSON.stringify(value) : null
}

function metaOf(answer: unknown): Record<string, unknown> | null {
  return isObject(answer) && isObject(answer.meta_info) ? answer.meta_info : null
}

/** Index of the prompt: a member of batch events, the position in a list. */
function indexOf(answer: unknown, position: number): number {
  const { index } = answer as { index?: unknown }
  return typeof index === 'number' ? index : position
}

function eventTexts(stream: string): string[] {
  return stream.split('\n').flatMap((line) => dataOf(line) ?? [])
}

function dataOf(line: string): string | null {
  return line.startsWith('data:') ? line.slice('data:'.length).trim() : null
}
