/** Requests and answers as an engine with quirks reads and writes them. */
import { isObject } from '#kernel'
import { DONE_EVENT, type Generation, type StreamEvent } from './generation.ts'
import type { Personality, Refusal } from './personality.ts'
import { countTokens } from './tokens.ts'

type Json = Record<string, unknown>

/** Why the engine rejects a request; null if it does not. */
export function refusalOf(
  { image, noTokens, otherModel }: Personality,
  request: object,
  models: readonly string[],
): Refusal | null {
  const { model, max_tokens: maxTokens, messages }: Json = { ...request }
  if (otherModel !== undefined && typeof model === 'string' && !isServed(model, models))
    return otherModel(model)
  if (maxTokens === 0 && noTokens !== 'one_token')
    return noTokens ?? { status: 400, message: 'max_tokens must be at least 1' }
  return image !== undefined && hasImage(messages) ? image : null
}

/** The name of MLX for the model that it was started with is the same for all models. */
function isServed(model: string, models: readonly string[]): boolean {
  return models.includes(model) || model === 'default_model'
}

function hasImage(messages: unknown): boolean {
  const parts = list(messages).flatMap(({ content }) => list(content))
  return parts.some(({ type }) => type === 'image_url')
}

/** The members as the engine understands them. */
export function understood<T extends object>(personality: Personality, request: T): T {
  const read = { ...request } as Json
  if (read.max_tokens === 0) read.max_tokens = 1
  if (personality.hasOneChoice === true) read.n = 1
  if (personality.ignoresTools === true) delete read.tools
  if (personality.stop === 'kept') read.no_stop_trim = true
  if (personality.stop === 'removed') delete read.stop
  if (personality.streamsResponses === true && 'input' in read) read.stream ??= true
  return read as T
}

/** @param given the request as it arrived */
export function personalAnswer(personality: Personality, given: object, made: Generation): Generation {
  if (personality.errorBody === undefined) return made
  const request: Json = { ...given }
  const stops = personality.stop === 'removed' ? [request.stop ?? []].flat().map(String) : []
  const prefill = personality.repeatsPrefill === true ? prefillOf(request.messages) : ''
  return {
    ...made,
    body: () => personalBody(personality, JSON.parse(String(made.body())), stops, prefill),
    events: () => personalEvents(personality, made, stops),
  }
}

function personalBody(
  { countsEachChoice }: Personality,
  answer: Json,
  stops: readonly string[],
  prefill: string,
): string {
  const choices = list(answer.choices)
  const { usage } = answer
  if (countsEachChoice === true && isObject(usage) && choices.length > 1)
    answer.usage = toUsage(usage.prompt_tokens, countTokens(textOf(choices[0])))
  for (const choice of choices) {
    changeText(choice, (text) => without(text, stops))
    if ('message' in choice) changeText(choice, (text) => prefill + text)
  }
  return JSON.stringify(answer)
}

function* personalEvents(
  { firstComment, countsEachChoice, endsWithUsage, lacksDone }: Personality,
  { promptTokens, events }: Generation,
  stops: readonly string[],
): Generator<StreamEvent> {
  if (firstComment !== undefined) yield { tick: 0, tokens: 0, data: firstComment }
  /** Tokens by choice. */
  const counts = new Map<unknown, number>()
  for (const event of events()) {
    const chunk = chunkOf(String(event.data))
    if (chunk === null) {
      if (lacksDone !== true || event.data !== DONE_EVENT) yield event
      continue
    }
    const [choice] = list(chunk.choices)
    const usages = choice === undefined && countsEachChoice === true ? [...counts.values()] : []
    if (choice !== undefined) {
      counts.set(choice.index, (counts.get(choice.index) ?? 0) + event.tokens)
      changeText(choice, (text) => without(text, stops))
      if (endsWithUsage === true && choice.finish_reason !== null)
        chunk.usage = toUsage(promptTokens, counts.get(choice.index))
    }
    for (const count of usages) yield written(event, { ...chunk, usage: toUsage(promptTokens, count) })
    const isReplaced = usages.length > 0 || (choice === undefined && endsWithUsage === true)
    if (!isReplaced) yield written(event, chunk)
  }
}

const DATA = 'data: '

/** Null for the end of the stream, and for events without choices. */
function chunkOf(event: string): Json | null {
  if (!event.startsWith(`${DATA}{`)) return null
  const chunk: unknown = JSON.parse(event.slice(DATA.length))
  return isObject(chunk) && Array.isArray(chunk.choices) ? chunk : null
}

function written(event: StreamEvent, chunk: Json): StreamEvent {
  return { ...event, data: `${DATA}${JSON.stringify(chunk)}\n\n` }
}

function toUsage(promptTokens: unknown, completionTokens: number | undefined): Json {
  const [input, output] = [Number(promptTokens), completionTokens ?? 0]
  return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
}

/** The text of a choice: of its message, of its delta, or of a completion. */
function textOf({ message, delta, text }: Json): string {
  const holder = isObject(message) ? message : delta
  const found = isObject(holder) ? holder.content : text
  return typeof found === 'string' ? found : ''
}

function changeText(choice: Json, change: (text: string) => string): void {
  const text = textOf(choice)
  const { message, delta } = choice
  if (isObject(message)) message.content = change(text)
  else if (isObject(delta)) {
    if (typeof delta.content === 'string') delta.content = change(text)
  } else choice.text = change(text)
}

function without(text: string, stops: readonly string[]): string {
  return stops.reduce((rest, stop) => rest.replaceAll(stop, ''), text)
}

function prefillOf(messages: unknown): string {
  const last = list(messages).at(-1)
  return last?.role === 'assistant' && typeof last.content === 'string' ? last.content : ''
}

function list(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}
