/** Questions of modules to models: a fetch of `model:NAME` is a generation for the request of the module. */
import {
  type ChatMessage,
  defineValidator,
  GatewayError,
  type GeneratedAnswer,
  type GenerationRequest,
  Generations,
  type Host,
  parseBoundedJson,
  type RequestContext,
  type Static,
  Type,
} from '#kernel'
import type { AttachPoint } from '../../../wasm-sdk/abi.ts'
import type { WasmConfig } from '../config.ts'
import { fits } from '../hooks/active-modules.ts'
import { type FetchOrder, type FetchResult, failedFetch } from './fetch-order.ts'

const SCHEME = 'model:'

const QuestionSchema = Type.Object(
  {
    messages: Type.Array(
      Type.Object(
        { role: Type.Enum(['system', 'user', 'assistant']), content: Type.String() },
        { additionalProperties: false },
      ),
      { minItems: 1, maxItems: 256 },
    ),
    max_tokens: Type.Optional(Type.Integer({ minimum: 1 })),
    temperature: Type.Optional(Type.Number({ minimum: 0, maximum: 2 })),
  },
  { additionalProperties: false },
)
type Question = Static<typeof QuestionSchema>
const validator = defineValidator(QuestionSchema)

export function isQuestion({ url }: Pick<FetchOrder, 'url'>): boolean {
  return url.startsWith(SCHEME)
}

interface Asker {
  /** Null for a phase without a request. */
  readonly ctx: RequestContext | null
  readonly point: AttachPoint
}

export class ModelQuestions {
  readonly #host: Pick<Host, 'find'>
  readonly #config: Pick<WasmConfig, 'ask' | 'fetch'>
  /** Number of open questions by request. */
  readonly #open = new WeakMap<RequestContext, number>()

  constructor(host: Pick<Host, 'find'>, config: Pick<WasmConfig, 'ask' | 'fetch'>) {
    this.#host = host
    this.#config = config
  }

  isOpen(ctx: RequestContext): boolean {
    return (this.#open.get(ctx) ?? 0) > 0
  }

  /**
   * The token usage counts for the request of the module, and so for its tenant.
   *
   * @param timeoutMs null for the longest
   * @returns the text of the answer with status 200, or the message of a gateway error with its status. Never rejects.
   */
  async ask(
    { url, body, timeoutMs }: Pick<FetchOrder, 'url' | 'body' | 'timeoutMs'>,
    { ctx, point }: Asker,
  ): Promise<FetchResult> {
    const { ask, fetch } = this.#config
    const model = url.slice(SCHEME.length)
    const generations = this.#host.find(Generations)
    const isListed = ask.models.some((pattern) => fits(pattern, model))
    if (generations === undefined || ctx === null || !isListed) return failedFetch('not_allowed')
    // Prompt and answer of a question pass through the modules too, which could ask without end.
    if (point === 'OnStreamEvent' || point === 'OnText') return failedFetch('not_allowed')
    if (point === 'OnPromptText' && this.isOpen(ctx)) return failedFetch('not_allowed')
    if (body.length > fetch.maxRequestBytes) return failedFetch('too_large')
    const question = readQuestion(body)
    if (question === null) return failedFetch('invalid')
    this.#open.set(ctx, (this.#open.get(ctx) ?? 0) + 1)
    try {
      const limitMs = Math.min(timeoutMs ?? ask.timeoutMs, ask.timeoutMs)
      const answer = await collect(generations, ctx, toRequest(model, question, ask.maxTokens), limitMs)
      if (answer === null) return failedFetch('timeout')
      const text = Buffer.from(answer.choices[0]?.text ?? '')
      return text.length > fetch.maxResponseBytes ? failedFetch('too_large') : toResult(200, text)
    } catch (error) {
      if (error instanceof GatewayError) return toResult(error.status, Buffer.from(error.message))
      return failedFetch('unreachable')
    } finally {
      this.#open.set(ctx, (this.#open.get(ctx) ?? 1) - 1)
    }
  }
}

/** @returns null after the time limit, which aborts the generation */
function collect(
  generations: Generations,
  ctx: RequestContext,
  request: GenerationRequest,
  limitMs: number,
): Promise<GeneratedAnswer | null> {
  return new Promise((resolve, reject) => {
    const gathered = generations.gather()
    const generation = generations.open(ctx, request, {
      stream: false,
      listener: {
        onEvent: (event) => {
          try {
            gathered.add(event)
            if (event.type !== 'finished') return
            clearTimeout(timer)
            resolve(gathered.answer())
          } catch (error) {
            clearTimeout(timer)
            reject(error)
          }
        },
      },
    })
    const timer = setTimeout(() => {
      generation.abort()
      resolve(null)
    }, limitMs)
    ctx.onCancel(() => {
      clearTimeout(timer)
      reject(new Error('the request ended before the answer'))
    })
  })
}

function readQuestion(body: Uint8Array): Question | null {
  try {
    const value = parseBoundedJson(Buffer.from(body))
    return validator.problem(value) === null ? (value as Question) : null
  } catch {
    return null
  }
}

function toRequest(model: string, question: Question, maxTokens: number): GenerationRequest {
  const { messages, max_tokens = maxTokens, temperature } = question
  return {
    model,
    prompt: { kind: 'chat', messages: messages satisfies readonly ChatMessage[] },
    tools: [],
    toolChoice: null,
    constraint: null,
    sampling: {
      maxTokens: Math.min(max_tokens, maxTokens),
      ...(temperature !== undefined && { temperature }),
    },
    reasoning: null,
    choices: 1,
    topLogprobs: null,
  }
}

function toResult(status: number, body: Uint8Array): FetchResult {
  const headers = [['content-type', 'text/plain; charset=utf-8']] as const
  return { head: { error: null, status, headers, body_bytes: body.length }, body: new Uint8Array(body) }
}
