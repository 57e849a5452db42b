/** Converts a worker's response, streamed or whole, into generation events. */
import {
  type EngineAttempt,
  type EngineSink,
  type FinishReason,
  type GenerationUsage,
  isObject,
  type TokenLogprob,
} from '#kernel'
import { memberName } from '#shared'
import { isText, type Json } from '../json.ts'
import { toAnswerError } from './answer-error.ts'

const CHOICE = 0

/** An item that has not ended. */
interface OpenItem {
  readonly type: unknown
  /** Whether deltas were emitted, which the end must not repeat. */
  hasDelta: boolean
  /** Of a call. */
  readonly call: number
  /** Source of its reasoning: a worker may send both the text and a summary. */
  thoughts: 'text' | 'summary' | null
  /** Index of the part of the reasoning that the last delta belongs to. */
  part: number
}

export class ResponseAnswer {
  readonly #attempt: EngineAttempt
  readonly #sink: EngineSink
  /** By the worker's index; null once it has ended. */
  readonly #items = new Map<unknown, OpenItem | null>()
  #callCount = 0
  #hasStarted = false

  constructor(attempt: EngineAttempt, sink: EngineSink) {
    this.#attempt = attempt
    this.#sink = sink
  }

  start(response: unknown): void {
    if (this.#hasStarted) return
    this.#hasStarted = true
    const { id, model, created_at: createdAt } = isObject(response) ? response : {}
    this.#sink.emit({
      type: 'started',
      id: isText(id) ? id : null,
      model: isText(model) ? model : this.#attempt.model,
      createdAtSec:
        typeof createdAt === 'number' && createdAt > 0 ? createdAt : Math.floor(Date.now() / 1000),
      inputTokens: null,
      systemFingerprint: null,
      worker: this.#attempt.worker,
    })
  }

  openItem(index: unknown, item: unknown): void {
    if (!isObject(item) || this.#items.has(index)) return
    const isCall = item.type === 'function_call'
    const open: OpenItem = {
      type: item.type,
      hasDelta: false,
      call: isCall ? this.#callCount++ : -1,
      thoughts: null,
      part: 0,
    }
    this.#items.set(index, open)
    if (!isCall) return
    const id = isText(item.call_id) ? item.call_id : `call_${open.call}`
    // Named as the function that stands for it, from which the client's format is written.
    const name = isText(item.namespace) ? memberName(item.namespace, String(item.name)) : String(item.name)
    this.#sink.emit({ type: 'tool_call', choice: CHOICE, index: open.call, id, name })
  }

  text(index: unknown, delta: unknown, logprobs: unknown): void {
    if (!isText(delta)) return
    this.#markDelta(index)
    this.#sink.emit({ type: 'text', choice: CHOICE, delta, logprobs: readLogprobs(logprobs) })
  }

  refusal(index: unknown, delta: unknown): void {
    if (!isText(delta)) return
    this.#markDelta(index)
    this.#sink.emit({ type: 'refusal', choice: CHOICE, delta })
  }

  annotation(annotation: unknown): void {
    if (isObject(annotation)) this.#sink.emit({ type: 'annotation', choice: CHOICE, annotation })
  }

  /** @param part index of the part within the item */
  reasoning(index: unknown, from: 'text' | 'summary', delta: unknown, part: unknown): void {
    const open = this.#items.get(index)
    if (!isText(delta) || (open?.thoughts ?? from) !== from) return
    if (open) {
      open.thoughts = from
      const place = typeof part === 'number' ? part : 0
      if (open.hasDelta && place !== open.part)
        this.#sink.emit({ type: 'reasoning', choice: CHOICE, delta: '\n\n', isBreak: true })
      open.part = place
    }
    this.#markDelta(index)
    this.#sink.emit({ type: 'reasoning', choice: CHOICE, delta })
  }

  arguments(index: unknown, delta: unknown): void {
    const open = this.#items.get(index)
    if (!open || open.call < 0 || !isText(delta)) return
    open.hasDelta = true
    this.#sink.emit({ type: 'tool_arguments', choice: CHOICE, index: open.call, delta })
  }

  /** Emits content without deltas: some workers send whole items only. */
  closeItem(index: unknown, item: unknown): void {
    if (!isObject(item)) return
    this.openItem(index, item)
    const open = this.#items.get(index)
    if (!open) return
    if (item.type === 'message') {
      if (!open.hasDelta) this.#wholeMessage(index, item.content)
    } else if (item.type === 'reasoning') this.#endReasoning(index, open, item)
    else if (item.type === 'function_call') {
      if (!open.hasDelta) this.arguments(index, item.arguments)
      this.#sink.emit({ type: 'tool_call_done', choice: CHOICE, index: open.call })
    } else if (typeof item.type === 'string' && !item.type.startsWith('_'))
      this.#sink.emit({ type: 'native_item', choice: CHOICE, engine: 'responses', item })
    this.#items.set(index, null)
  }

  #wholeMessage(index: unknown, content: unknown): void {
    for (const part of Array.isArray(content) ? content : []) {
      if (!isObject(part)) continue
      this.text(index, part.text, part.logprobs)
      this.refusal(index, part.refusal)
      if (Array.isArray(part.annotations)) for (const one of part.annotations) this.annotation(one)
    }
  }

  #endReasoning(index: unknown, open: OpenItem, { content, summary, encrypted_content: sealed }: Json): void {
    if (!open.hasDelta) {
      for (const [part, text] of textsOf(content).entries()) this.reasoning(index, 'text', text, part)
      for (const [part, text] of textsOf(summary).entries()) this.reasoning(index, 'summary', text, part)
    }
    if (isText(sealed)) this.#sink.emit({ type: 'reasoning_signature', choice: CHOICE, signature: sealed })
  }

  #markDelta(index: unknown): void {
    const open = this.#items.get(index)
    if (open) open.hasDelta = true
  }

  /** @param response the final response; content without events is emitted first */
  finish(response: unknown): void {
    const { output, status, error, usage, incomplete_details: cut } = isObject(response) ? response : {}
    if (status === 'failed') {
      this.#sink.fail(toAnswerError(error))
      return
    }
    this.start(response)
    const items: readonly unknown[] = Array.isArray(output) ? output : []
    for (const [index, item] of items.entries()) this.closeItem(index, item)
    this.#sink.emit({
      type: 'choice_done',
      choice: CHOICE,
      reason: this.#reason(status, cut),
      matchedStop: null,
    })
    this.#sink.emit({ type: 'finished', usage: readUsage(usage) })
  }

  #reason(status: unknown, cut: unknown): FinishReason {
    if (status === 'incomplete' && isObject(cut)) {
      if (cut.reason === 'max_output_tokens') return 'length'
      if (cut.reason === 'content_filter') return 'content_filter'
    }
    if (status !== 'completed') return 'abort'
    return this.#callCount > 0 ? 'tool_calls' : 'stop'
  }
}

function textsOf(parts: unknown): unknown[] {
  return Array.isArray(parts) ? parts.map((part: unknown) => (isObject(part) ? part.text : '')) : []
}

function readLogprobs(list: unknown): readonly TokenLogprob[] | null {
  if (!Array.isArray(list) || list.length === 0) return null
  return list.filter(isObject).map((one) => {
    const { token, logprob, bytes } = toLogprob(one)
    const top = Array.isArray(one.top_logprobs) ? one.top_logprobs.filter(isObject).map(toLogprob) : []
    return { token, logprob, bytes, top }
  })
}

function toLogprob({ token, logprob, bytes }: Json) {
  return {
    token: String(token ?? ''),
    logprob: typeof logprob === 'number' ? logprob : 0,
    bytes: Array.isArray(bytes) ? (bytes as number[]) : null,
  }
}

function readUsage(usage: unknown): GenerationUsage | null {
  if (!isObject(usage)) return null
  const input = isObject(usage.input_tokens_details) ? usage.input_tokens_details : {}
  const output = isObject(usage.output_tokens_details) ? usage.output_tokens_details : {}
  return {
    inputTokens: countOf(usage.input_tokens),
    cachedTokens: countOf(input.cached_tokens),
    cacheWriteTokens: countOf(input.cache_write_tokens),
    outputTokens: countOf(usage.output_tokens),
    reasoningTokens: countOf(output.reasoning_tokens),
  }
}

function countOf(value: unknown): number {
  return typeof value === 'number' && value >= 0 && Number.isFinite(value) ? Math.floor(value) : 0
}
