/**
 * An engine adapter for Gemini's own API: requests of every client format become `generateContent`, and the answers become
 * events. Connections, retries, limits and balancing are those of HTTP workers.
 * @source https://ai.google.dev/api/generate-content
 */
import { randomUUID } from 'node:crypto'
import {
  AnswerReader,
  defineErrors,
  definePlugin,
  type EngineAdapter,
  type EngineAttempt,
  type EngineSink,
  EventAnswerReader,
  errorOfEvent,
  type FinishReason,
  Generations,
  isObject,
  readAnswerObject,
  Type,
  WholeAnswerReader,
} from 'weir-gateway'
import { type Json, toGeminiBody } from './gemini-request.ts'

/** In `apis` of the workers that this adapter serves. */
const API = 'gemini'
const MAX_ANSWER_BYTES = 67_108_864

const geminiErrors = defineErrors('gemini-engine', {
  gemini_failed: {
    kind: 'bad_gateway',
    source: 'worker',
    retry: 'before-first-byte',
    text: (message: string) => `Gemini failed: ${message}`,
  },
})

const FILTERED: ReadonlySet<unknown> = new Set([
  'SAFETY',
  'RECITATION',
  'LANGUAGE',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'IMAGE_SAFETY',
])
const FAILED: ReadonlySet<unknown> = new Set(['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL'])

interface Candidate {
  calls: number
  reason: FinishReason | null
  /** Of the text. */
  signature: unknown
}

/** Turns responses, whole or one chunk each, into events. */
class GeminiAnswer {
  readonly #attempt: EngineAttempt
  readonly #sink: EngineSink
  readonly #candidates = new Map<number, Candidate>()
  #hasStarted = false
  #usage: Json = {}

  constructor(attempt: EngineAttempt, sink: EngineSink) {
    this.#attempt = attempt
    this.#sink = sink
  }

  /** @returns true if the answer has failed */
  add(response: Json): boolean {
    if (isObject(response.usageMetadata)) this.#usage = response.usageMetadata
    if (!this.#hasStarted) this.#start(response)
    const { candidates, promptFeedback } = response
    if (isObject(promptFeedback) && promptFeedback.blockReason !== undefined)
      this.#of(0).reason = 'content_filter'
    for (const one of Array.isArray(candidates) ? candidates : []) {
      if (!isObject(one)) continue
      if (FAILED.has(one.finishReason)) {
        this.#sink.fail(geminiErrors.gemini_failed(String(one.finishMessage ?? one.finishReason)))
        return true
      }
      this.#addTo(typeof one.index === 'number' ? one.index : 0, one)
    }
    return false
  }

  /** True if every candidate has a finish reason. */
  get isWhole(): boolean {
    return this.#candidates.size > 0 && [...this.#candidates.values()].every(({ reason }) => reason !== null)
  }

  finish(): void {
    for (const [choice, { calls, reason, signature }] of this.#candidates)
      this.#sink.emit({
        type: 'choice_done',
        choice,
        reason: reason === 'stop' && calls > 0 ? 'tool_calls' : (reason ?? 'stop'),
        matchedStop: null,
        ...signed(signature),
      })
    const count = (name: string) => (typeof this.#usage[name] === 'number' ? this.#usage[name] : 0)
    const reasoningTokens = count('thoughtsTokenCount')
    this.#sink.emit({
      type: 'finished',
      usage: {
        inputTokens: count('promptTokenCount') + count('toolUsePromptTokenCount'),
        outputTokens: count('candidatesTokenCount') + reasoningTokens,
        cachedTokens: count('cachedContentTokenCount'),
        cacheWriteTokens: 0,
        reasoningTokens,
      },
    })
  }

  #start({ responseId, modelVersion }: Json): void {
    this.#hasStarted = true
    const { promptTokenCount } = this.#usage
    this.#sink.emit({
      type: 'started',
      id: typeof responseId === 'string' ? responseId : null,
      model: typeof modelVersion === 'string' ? modelVersion : this.#attempt.model,
      createdAtSec: Math.floor(Date.now() / 1000),
      inputTokens: typeof promptTokenCount === 'number' ? promptTokenCount : null,
      systemFingerprint: null,
      worker: this.#attempt.worker,
    })
  }

  #of(choice: number): Candidate {
    const known = this.#candidates.get(choice) ?? { calls: 0, reason: null, signature: undefined }
    this.#candidates.set(choice, known)
    return known
  }

  #addTo(choice: number, { content, finishReason }: Json): void {
    const candidate = this.#of(choice)
    const parts = isObject(content) && Array.isArray(content.parts) ? content.parts : []
    for (const part of parts) if (isObject(part)) this.#part(choice, candidate, part)
    if (finishReason === 'MAX_TOKENS') candidate.reason = 'length'
    else if (FILTERED.has(finishReason)) candidate.reason = 'content_filter'
    else if (typeof finishReason === 'string') candidate.reason = 'stop'
  }

  #part(choice: number, candidate: Candidate, part: Json): void {
    const { text, thought, functionCall } = part
    if (isObject(functionCall)) {
      this.#call(choice, candidate, functionCall, part.thoughtSignature)
      return
    }
    // The last part of a stream may have a signature and no text.
    candidate.signature = part.thoughtSignature ?? candidate.signature
    if (typeof text !== 'string' || text === '') return
    else if (thought === true) this.#sink.emit({ type: 'reasoning', choice, delta: text, form: 'summary' })
    else this.#sink.emit({ type: 'text', choice, delta: text })
  }

  #call(choice: number, candidate: Candidate, { id, name, args }: Json, signature: unknown): void {
    const index = candidate.calls++
    this.#sink.emit({
      type: 'tool_call',
      choice,
      index,
      id: typeof id === 'string' && id !== '' ? id : `call_${randomUUID().replaceAll('-', '')}`,
      name: String(name),
      ...signed(signature),
    })
    this.#sink.emit({ type: 'tool_arguments', choice, index, delta: JSON.stringify(args ?? {}) })
    this.#sink.emit({ type: 'tool_call_done', choice, index })
  }
}

/** The signature goes to the client and comes back, in the same form as in Gemini's OpenAI-compatible API. */
function signed(signature: unknown) {
  return typeof signature === 'string' ? { extraContent: { google: { thought_signature: signature } } } : {}
}

/** The stream ends without a final event: the last chunk has the finish reason. */
class GeminiStreamReader extends EventAnswerReader {
  readonly #answer: GeminiAnswer

  constructor(attempt: EngineAttempt, sink: EngineSink) {
    super(sink, MAX_ANSWER_BYTES)
    this.#answer = new GeminiAnswer(attempt, sink)
  }

  protected override take(data: string, name: string | null): boolean {
    const chunk = readAnswerObject(data)
    const error = errorOfEvent(chunk, name)
    if (error === null) return this.#answer.add(chunk)
    this.sink.fail(geminiErrors.gemini_failed(error.text))
    return true
  }

  protected override ended(): void {
    if (this.#answer.isWhole) this.#answer.finish()
  }
}

const engine: EngineAdapter = {
  name: 'gemini',
  // Preferred for a worker that also takes chat completions.
  rank: 1,
  sendsCredentials: true,
  accepts: ({ apis }) => apis.includes(API),
  requestFor({ request, model, worker, stream }) {
    const method = stream ? 'streamGenerateContent?alt=sse' : 'generateContent'
    return {
      method: 'POST',
      path: `/v1beta/models/${encodeURIComponent(model)}:${method}`,
      headers: worker.apiKey === null ? [] : ['x-goog-api-key', worker.apiKey],
      body: Buffer.from(JSON.stringify(toGeminiBody(request))),
    }
  },
  read: (attempt, sink) =>
    new AnswerReader(
      () => new GeminiStreamReader(attempt, sink),
      () =>
        new WholeAnswerReader(sink, MAX_ANSWER_BYTES, (text) => {
          const answer = new GeminiAnswer(attempt, sink)
          if (!answer.add(readAnswerObject(text))) answer.finish()
        }),
    ),
}

export default definePlugin({
  manifest: {
    name: 'gemini-engine',
    version: '0.1.0',
    description: "Workers that speak Gemini's own API.",
    uses: [Generations],
    config: Type.Object({}, { additionalProperties: false }),
  },
  register(host) {
    host.use(Generations).addEngine(engine)
  },
})
