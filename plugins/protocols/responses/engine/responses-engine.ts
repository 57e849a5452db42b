/** The engine adapter of HTTP workers that take responses, and the readers of their answers. @hot */
import {
  type EngineAdapter,
  type EngineAttempt,
  type EngineSink,
  isObject,
  type JsonObject,
  workerMessage,
} from '#kernel'
import {
  type AnswerLimits,
  type JsonAnswer,
  jsonAnswerReader,
  PARTS_OF_TEXT,
  readAnswerObject,
} from '#shared'
import { DeltaForm } from '../worker-delta.ts'
import { membersOfEvent, toAnswerError } from './answer-values.ts'
import { ENGINE, ResponseAnswer } from './response-answer.ts'
import { ignoredByResponses, toResponsesBody } from './to-responses-body.ts'

/** Lower than engines of other formats; Responses requests select this engine by name. */
const RANK = -2

export interface ResponsesEngineSettings extends AnswerLimits {
  /** Types of tools that are sent to workers; null sends all. */
  readonly toolTypes: readonly string[] | null
}

export function responsesEngine({ maxAnswerBytes, toolTypes }: ResponsesEngineSettings): EngineAdapter {
  const sentTypes = toolTypes === null ? null : new Set(toolTypes)
  return {
    name: ENGINE,
    rank: RANK,
    promptKinds: ['chat'],
    takesFileUrls: true,
    accepts: (worker) => worker.apis.includes('responses'),
    requestFor: (attempt) => ({
      method: 'POST',
      path: '/v1/responses',
      body: toResponsesBody(attempt, sentTypes),
    }),
    ignored: ignoredByResponses,
    read: (attempt, sink) => jsonAnswerReader(new ResponseJson(attempt, sink), sink, maxAnswerBytes),
  }
}

/** The JSON of a response, streamed or whole. */
export class ResponseJson implements JsonAnswer {
  readonly toError = toAnswerError
  readonly #sink: EngineSink
  readonly #answer: ResponseAnswer
  readonly #isNative: boolean
  /** Of the part that the last delta belongs to; null before one, and if its events have none. */
  #form: DeltaForm | null = null
  #formOf: JsonObject | null = null
  /** Further ones of the form. */
  #members: JsonObject | undefined

  constructor(attempt: EngineAttempt, sink: EngineSink) {
    this.#sink = sink
    this.#answer = new ResponseAnswer(attempt, sink)
    this.#isNative = attempt.request.native?.engine === ENGINE
  }

  /** @throws as `readAnswerObject` */
  addWhole(text: string): void {
    this.#answer.finish(readAnswerObject(text))
  }

  /** A delta in the form of the last one. */
  addKnown(text: string): boolean | null {
    const form = this.#form
    const delta = form?.read(text) ?? null
    if (form === null || delta === null) return null
    this.#answer.beginDelta(delta, this.#members)
    this.#addDelta(form.event, form.event.output_index, delta.delta)
    return this.#answer.isOver
  }

  /** A stream without a final event was cut. */
  addEvent(data: JsonObject, text: string): boolean {
    const answer = this.#answer
    const { output_index: index = answer.placeOf(data), delta } = data
    if (answer.isNative(index) && data.type !== 'response.output_item.done') {
      answer.event(index, data)
      return false
    }
    answer.beginEvent(data)
    if (this.#addDelta(data, index, delta)) {
      if (this.#isNative) this.#learn(data, text)
      return answer.isOver
    }
    switch (data.type) {
      case 'response.output_text.annotation.added':
        answer.annotation(index, data.annotation)
        break
      case 'response.content_part.added':
      case 'response.content_part.done':
        if (!hasKnownPart(data)) answer.event(index, data)
        if (data.type === 'response.content_part.done') answer.closePart(index, data.content_index, data.part)
        return answer.isOver
      case 'response.output_item.added':
        answer.openItem(index, data.item)
        break
      case 'response.output_item.done':
        answer.closeItem(index, data.item)
        return answer.isOver
      case 'response.created':
      case 'response.in_progress':
        answer.start(data.response)
        break
      case 'response.completed':
      case 'response.incomplete':
        answer.finish(data.response)
        return true
      // Some services put the error beside the response.
      case 'response.failed':
        this.#sink.fail(toAnswerError(workerMessage(data.response) ?? workerMessage(data.error)))
        return true
      default:
        if (!REPEATED.has(data.type)) answer.event(index, data)
    }
    return false
  }

  /** @returns false for an event of another type */
  #addDelta(
    { type, content_index, summary_index, logprobs }: JsonObject,
    index: unknown,
    delta: unknown,
  ): boolean {
    const answer = this.#answer
    switch (type) {
      case 'response.output_text.delta':
        answer.text(index, delta, logprobs, content_index)
        return true
      case 'response.function_call_arguments.delta':
        answer.arguments(index, delta)
        return true
      case 'response.reasoning_text.delta':
      case 'response.reasoning.delta':
        answer.reasoning(index, 'text', delta, content_index)
        return true
      case 'response.reasoning_summary_text.delta':
        answer.reasoning(index, 'summary', delta, summary_index)
        return true
      case 'response.refusal.delta':
        answer.refusal(index, delta, content_index)
        return true
      default:
        return false
    }
  }

  /** The form of a part is taken from its first delta, also if that has none. */
  #learn(event: JsonObject, text: string): void {
    if (this.#formOf !== null && PART.every((name) => this.#formOf?.[name] === event[name])) return
    this.#formOf = event
    this.#form = DeltaForm.of(event, text)
    this.#members = membersOfEvent(event)
  }
}

/** Members that name the part of a delta. */
const PART = ['type', 'output_index', 'content_index', 'summary_index', 'item_id']

/** Events that repeat others, which the gateway writes again from those. */
const REPEATED: ReadonlySet<unknown> = new Set([
  'response.queued',
  'response.output_text.done',
  'response.refusal.done',
  'response.function_call_arguments.done',
  'response.reasoning_part.added',
  'response.reasoning_part.done',
  'response.reasoning_text.done',
  'response.reasoning.done',
  'response.reasoning_summary_part.added',
  'response.reasoning_summary_part.done',
  'response.reasoning_summary_text.done',
])

function hasKnownPart({ part }: JsonObject): boolean {
  return isObject(part) && PARTS_OF_TEXT.has(part.type)
}
