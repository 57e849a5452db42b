/** POST /v1/responses of an engine that stores nothing, generated like chat completions. */
import { type Choice, makeChoice } from './chat.ts'
import { simErrors } from './errors.ts'
import {
  DONE_EVENT,
  type Generation,
  generationOf,
  type Setting,
  type StreamEvent,
  usageOf,
} from './generation.ts'
import { chatPrompt } from './prompt.ts'
import { splitTokens } from './tokens.ts'
import type { ChatMessage, ChatRequest, ResponsesRequest } from './wire.ts'

type Json = Record<string, unknown>

/** @throws response_not_kept (400) for a previous response, context_length_exceeded (400) */
export function generateResponse(request: ResponsesRequest, setting: Setting): Generation {
  if (request.previous_response_id != null) throw simErrors.response_not_kept(request.previous_response_id)
  const chat = toChat(request)
  const prompt = chatPrompt(chat.messages)
  const choice = makeChoice(chat, setting, prompt, 0)
  const answer = new Answer(request, setting, choice, prompt.tokens)
  return generationOf(setting, [prompt], [choice.tokens], {
    body: () => JSON.stringify(answer.response(answer.status, answer.items())),
    events: () => answer.events(),
  })
}

function toChat({ instructions, input, tools, tool_choice, text, ...rest }: ResponsesRequest): ChatRequest {
  const said =
    typeof input === 'string' ? [{ role: 'user', content: input }] : (input as Json[]).flatMap(toMessage)
  const format = text?.format
  return {
    model: rest.model,
    messages: instructions == null ? said : [{ role: 'system', content: instructions }, ...said],
    max_completion_tokens: rest.max_output_tokens,
    tools: tools
      ?.filter(({ type }) => type === 'function')
      .map((tool) => ({ type: 'function', function: tool as never })),
    tool_choice,
    response_format:
      format == null
        ? undefined
        : ({ type: format.type, json_schema: format } as ChatRequest['response_format']),
  }
}

/** Ignores items of other types. */
function toMessage(item: Json): ChatMessage[] {
  const { type, role, content, output, name, arguments: args } = item
  if (type === 'function_call')
    return [
      { role: 'assistant', tool_calls: [{ function: { name: String(name), arguments: String(args) } }] },
    ]
  if (type === 'function_call_output') return [{ role: 'tool', content: contentOf(output) }]
  return role === undefined ? [] : [{ role: String(role), content: contentOf(content) }]
}

function contentOf(content: unknown): ChatMessage['content'] {
  return Array.isArray(content) ? content : String(content ?? '')
}

class Answer {
  readonly #request: ResponsesRequest
  readonly #setting: Setting
  readonly #choice: Choice
  readonly #promptTokens: number
  #number = 0

  constructor(request: ResponsesRequest, setting: Setting, choice: Choice, promptTokens: number) {
    this.#request = request
    this.#setting = setting
    this.#choice = choice
    this.#promptTokens = promptTokens
  }

  get status(): string {
    return this.#choice.finishReason === 'length' || this.#choice.finishReason === 'content_filter'
      ? 'incomplete'
      : 'completed'
  }

  response(status: string, output: readonly Json[]): Json {
    const { id, createdSec, model, cache } = this.#setting
    const {
      prompt_tokens: input,
      completion_tokens: made,
      total_tokens: total,
    } = usageOf(this.#promptTokens, this.#choice.tokens)
    const reason = this.#choice.finishReason === 'length' ? 'max_output_tokens' : 'content_filter'
    return {
      id,
      object: 'response',
      created_at: createdSec,
      status,
      model,
      output,
      error: null,
      incomplete_details: status === 'incomplete' ? { reason } : null,
      store: false,
      metadata: {},
      tools: this.#request.tools ?? [],
      usage:
        status === 'in_progress'
          ? null
          : {
              input_tokens: input,
              input_tokens_details: { cached_tokens: cache.tokens ?? 0 },
              output_tokens: made,
              output_tokens_details: { reasoning_tokens: 0 },
              total_tokens: total,
              ...this.#setting.script?.usage,
            },
    }
  }

  items(): Json[] {
    const { reasoning, draft, refusal, calls } = this.#choice
    const items: Json[] = []
    const add = (type: string, prefix: string, members: Json) =>
      items.push({
        id: `${prefix}_${this.#setting.id}_${items.length}`,
        type,
        status: 'completed',
        ...members,
      })
    if (reasoning !== '')
      add('reasoning', 'rs', { summary: [], content: [{ type: 'reasoning_text', text: reasoning }] })
    const parts: Json[] = []
    if (draft !== null) parts.push({ type: 'output_text', text: draft.text, annotations: [], logprobs: [] })
    if (refusal !== '') parts.push({ type: 'refusal', refusal })
    if (parts.length > 0) add('message', 'msg', { role: 'assistant', content: parts })
    for (const call of calls)
      add('function_call', 'fc', { call_id: call.id, name: call.name, arguments: call.arguments })
    return items
  }

  *events(): Generator<StreamEvent> {
    let tick = 0
    const event = (type: string, members: Json, tokens = 0): StreamEvent => {
      const data = JSON.stringify({ type, sequence_number: this.#number++, ...members })
      return {
        tick: tokens > 0 ? tick++ : Math.max(0, tick - 1),
        tokens,
        data: `event: ${type}\ndata: ${data}\n\n`,
      }
    }
    const begun = this.response('in_progress', [])
    yield event('response.created', { response: begun })
    yield event('response.in_progress', { response: begun })
    const items = this.items()
    for (const [index, item] of items.entries()) {
      const where = { item_id: item.id, output_index: index }
      yield event('response.output_item.added', { output_index: index, item: opened(item) })
      for (const [type, delta] of this.#deltas(item)) {
        const logprobs = type.includes('output_text') ? { logprobs: [] } : {}
        yield event(type, { ...where, content_index: 0, delta, ...logprobs }, 1)
      }
      yield event('response.output_item.done', { output_index: index, item })
    }
    const { status } = this
    yield event(`response.${status}`, { response: this.response(status, items) })
    yield { tick: Math.max(0, tick - 1), tokens: 0, data: DONE_EVENT }
  }

  *#deltas({ type, call_id: callId }: Json): Generator<[type: string, delta: string]> {
    const { reasoning, draft, refusal, calls } = this.#choice
    if (type === 'reasoning')
      for (const piece of splitTokens(reasoning)) yield ['response.reasoning_text.delta', piece]
    else if (type === 'message') {
      for (const piece of draft?.pieces ?? []) yield ['response.output_text.delta', piece]
      for (const piece of splitTokens(refusal)) yield ['response.refusal.delta', piece]
    } else {
      const call = calls.find(({ id }) => id === callId)
      if (call !== undefined)
        for (const piece of splitTokens(call.arguments))
          yield ['response.function_call_arguments.delta', piece]
    }
  }
}

function opened(item: Json): Json {
  const begun = { ...item, status: 'in_progress' }
  if (item.type === 'message') return { ...begun, content: [] }
  return item.type === 'reasoning' ? { ...begun, content: [] } : { ...begun, arguments: '' }
}
