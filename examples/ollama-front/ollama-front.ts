/**
 * The API of Ollama in front of every kind of worker: POST /api/chat and /api/generate (NDJSON), GET /api/tags. Workers that
 * serve the API themselves (`apis: [ollama]`) get the request as it is.
 * @source https://docs.ollama.com/api
 */
import {
  definePlugin,
  defineValidator,
  type ErrorFormat,
  type GenerationEvent,
  type GenerationRequest,
  Generations,
  type GenerationUsage,
  type Host,
  mayUseModel,
  type RequestContext,
  type RouteDefinition,
  type StreamWriter,
  Type,
} from 'weir-gateway'
import { ollamaFormat } from './ollama-format.ts'
import { ChatBody, fromChat, fromGenerate, GenerateBody } from './ollama-request.ts'

const chatBody = defineValidator(ChatBody)
const generateBody = defineValidator(GenerateBody)

const ollamaErrors: ErrorFormat = {
  name: 'OllamaError',
  schema: Type.Object({ error: Type.String() }),
  body: ({ message }) => ({ error: message }),
  lastEvents: () => '',
}

type Route = 'chat' | 'generate'

/** The lines of one answer. A call is complete in one line, so that its arguments wait for their end. */
class AnswerLines {
  readonly #route: Route
  readonly #startedAtMs = performance.now()
  #model = ''
  #createdAt = ''
  #firstTokenAtMs = 0
  #reason = 'stop'
  readonly #calls = new Map<number, { readonly id: string; readonly name: string; text: string }>()

  constructor(route: Route) {
    this.#route = route
  }

  /** Null if the event is not part of the answer yet. */
  add(event: GenerationEvent): object | null {
    switch (event.type) {
      case 'started':
        this.#model = event.model
        this.#createdAt = new Date(event.createdAtSec * 1000).toISOString()
        return null
      case 'text':
      case 'refusal':
        return this.#part(event.delta, {})
      case 'reasoning':
        return this.#part('', { thinking: event.delta })
      case 'tool_call':
        this.#calls.set(event.index, { id: event.id, name: event.name, text: '' })
        return null
      case 'tool_arguments': {
        const call = this.#calls.get(event.index)
        if (call !== undefined) call.text += event.delta
        return null
      }
      case 'tool_call_done':
        return this.#call(event.index)
      case 'choice_done':
        this.#reason = event.reason === 'length' ? 'length' : 'stop'
        return null
      case 'finished':
        return this.#end(event.usage)
      default:
        return null
    }
  }

  #part(text: string, members: object): object {
    if (this.#firstTokenAtMs === 0) this.#firstTokenAtMs = performance.now()
    const base = { model: this.#model, created_at: this.#createdAt }
    if (this.#route === 'generate') return { ...base, response: text, ...members, done: false }
    return { ...base, message: { role: 'assistant', content: text, ...members }, done: false }
  }

  #call(index: number): object | null {
    const call = this.#calls.get(index)
    if (call === undefined) return null
    this.#calls.delete(index)
    const { id, name, text } = call
    return this.#part('', { tool_calls: [{ id, function: { name, arguments: readArguments(text) } }] })
  }

  #end(usage: GenerationUsage | null): object {
    const now = performance.now()
    const firstAtMs = this.#firstTokenAtMs || now
    const { message, response } = this.#part('', {}) as { message?: object; response?: string }
    return {
      model: this.#model,
      created_at: this.#createdAt,
      ...(message === undefined ? { response } : { message }),
      done: true,
      done_reason: this.#reason,
      total_duration: toNs(now - this.#startedAtMs),
      load_duration: 0,
      prompt_eval_count: usage?.inputTokens ?? 0,
      prompt_eval_duration: toNs(firstAtMs - this.#startedAtMs),
      eval_count: usage?.outputTokens ?? 0,
      eval_duration: toNs(now - firstAtMs),
    }
  }
}

/** Empty for a text that is no JSON object: models make mistakes. */
function readArguments(text: string): unknown {
  try {
    return JSON.parse(text === '' ? '{}' : text)
  } catch {
    return {}
  }
}

function toNs(ms: number): number {
  return Math.round(ms * 1_000_000)
}

function streamAnswer(host: Host, ctx: RequestContext, route: Route, request: GenerationRequest): void {
  const lines = new AnswerLines(route)
  let writer: StreamWriter | null = null
  const open = () =>
    ctx.stream(200, ['content-type', 'application/x-ndjson'], {
      encodeError: ({ message }) => `${JSON.stringify({ error: message })}\n`,
    })
  const onEvent = (event: GenerationEvent) => {
    if (event.type === 'failed') return ctx.fail(event.error)
    const line = lines.add(event)
    if (line === null) return
    // The head is sent with the first line, so that an earlier failure can set the status.
    writer ??= open()
    const text = `${JSON.stringify(line)}\n`
    if (event.type === 'finished') writer.end(text)
    else writer.write(text)
  }
  host.use(Generations).open(ctx, request, { stream: true, listener: { onEvent } })
}

/** One object: the last line with all texts and calls in it. */
async function answerWhole(host: Host, ctx: RequestContext, route: Route, request: GenerationRequest) {
  const lines = new AnswerLines(route)
  let last: object = {}
  const onEvent = (event: GenerationEvent) => {
    const line = lines.add(event)
    if (event.type === 'finished' && line !== null) last = line
  }
  const { choices } = await host.use(Generations).collect(ctx, request, { listener: { onEvent } })
  const [{ text, refusal, reasoning, toolCalls }] = choices
  const said = text + refusal
  const thinking = reasoning === '' ? {} : { thinking: reasoning }
  if (route === 'generate') return ctx.json(200, { ...last, response: said, ...thinking })
  const calls = toolCalls.map(({ id, name, arguments: args }) => ({
    id,
    function: { name, arguments: readArguments(args) },
  }))
  const message = {
    role: 'assistant',
    content: said,
    ...thinking,
    ...(calls.length > 0 && { tool_calls: calls }),
  }
  ctx.json(200, { ...last, message })
}

function tags(host: Host, ctx: RequestContext): void {
  const ids = new Set(host.balance.workers.flatMap(({ models }) => models.map(({ id }) => id)))
  const models = [...ids]
    .filter((id) => mayUseModel(ctx.identity, id))
    .map((id) => ({
      name: id,
      model: id,
      modified_at: new Date(0).toISOString(),
      size: 0,
      digest: '',
      details: {
        parent_model: '',
        format: '',
        family: '',
        families: null,
        parameter_size: '',
        quantization_level: '',
      },
    }))
  ctx.json(200, { models })
}

/** @param toRequest throws invalid_field (400) */
function answerRoute(
  host: Host,
  route: Route,
  body: RouteDefinition['docs']['body'],
  toRequest: (ctx: RequestContext) => { request: GenerationRequest; stream: boolean },
): RouteDefinition {
  return {
    method: 'POST',
    path: `/api/${route}`,
    access: 'api',
    errors: ollamaErrors,
    endpoint: 'ollama',
    docs: {
      summary: `Ollama's ${route}`,
      tag: 'Ollama',
      body,
      responses: {
        200: {
          description: 'Lines of JSON; one object with `stream: false`.',
          contentType: 'application/x-ndjson',
        },
      },
    },
    handler: (ctx) => {
      const { request, stream } = toRequest(ctx)
      const { model } = ctx.peek()
      const workers = host.balance.workersOf(host.balance.canonicalModel(model ?? ''))
      if (workers.length > 0 && workers.every(({ apis }) => apis.includes('ollama')))
        return host.upstream.relay(ctx, { model, stream, path: `/api/${route}`, format: ollamaFormat })
      return stream ? streamAnswer(host, ctx, route, request) : answerWhole(host, ctx, route, request)
    },
  }
}

export default definePlugin({
  manifest: {
    name: 'ollama-front',
    version: '0.1.0',
    description: 'The API of Ollama for clients.',
    uses: [Generations],
    config: Type.Object({}, { additionalProperties: false }),
  },
  register(host) {
    host.route(
      answerRoute(host, 'chat', ChatBody, (ctx) => {
        const body = ctx.body(chatBody)
        return { request: fromChat(body), stream: body.stream ?? true }
      }),
    )
    host.route(
      answerRoute(host, 'generate', GenerateBody, (ctx) => {
        const body = ctx.body(generateBody)
        return { request: fromGenerate(body), stream: body.stream ?? true }
      }),
    )
    host.route({
      method: 'GET',
      path: '/api/tags',
      access: 'api',
      errors: ollamaErrors,
      docs: {
        summary: "Ollama's list of models",
        tag: 'Ollama',
        responses: { 200: { description: 'Models.' } },
      },
      handler: (ctx) => tags(host, ctx),
    })
  },
})
