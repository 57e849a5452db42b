/**
 * Answers a request by one generation per prompt, as one JSON body or as an event stream. All prompts use one worker, and a
 * failure aborts all.
 */
import type {
  ExtraHeaders,
  GatheredAnswer,
  GeneratedAnswer,
  GenerateOptions,
  GenerationEvent,
  GenerationRequest,
  Generations,
  GenerationUsage,
  RequestContext,
  StreamWriter,
  WorkerEntry,
} from '#kernel'
import { addUsage, answerErrors } from '#shared'
import { noteWorker } from './stream-end.ts'

/** Writes the events of a stream. */
export interface StreamEncoder {
  /**
   * @param event neither `finished` nor `failed`
   * @returns whole server-sent events, possibly none
   */
  write(event: GenerationEvent, prompt: number): string
  /** @returns the last server-sent events, once all prompts have finished */
  end(usage: GenerationUsage | null): string
}

export interface PromptsOptions extends Pick<GenerateOptions, 'passThrough'> {
  /** One per prompt, at least one. */
  readonly requests: readonly GenerationRequest[]
  /** Null for a response that is not streamed. */
  readonly encoder: StreamEncoder | null
  /** Body of a response that is not streamed. */
  toBody(answers: readonly GeneratedAnswer[], usage: GenerationUsage | null): object
  /** As `streamOpensAfterMs` of the configuration. */
  readonly opensAfterMs: number
  /** Of the response. Default: none. */
  readonly headers?: ExtraHeaders
}

/** Never throws: failures become the client's response. */
export function servePrompts(generations: Generations, ctx: RequestContext, options: PromptsOptions): void {
  new ServedPrompts(generations, ctx, options).start()
}

class ServedPrompts {
  readonly #generations: Generations
  readonly #ctx: RequestContext
  readonly #options: PromptsOptions
  /** Of a response that is not streamed. */
  readonly #answers: readonly GatheredAnswer[]
  #writer: StreamWriter | null = null
  #usage: GenerationUsage | null = null
  #left: number
  /** The worker aborted a choice. No format of a client has a word for it. */
  #hasAborted = false
  #isOver = false

  constructor(generations: Generations, ctx: RequestContext, options: PromptsOptions) {
    this.#generations = generations
    this.#ctx = ctx
    this.#options = options
    this.#answers = options.encoder === null ? options.requests.map(() => generations.gather()) : []
    this.#left = options.requests.length
  }

  start(): void {
    const { encoder, opensAfterMs, headers } = this.#options
    // The head waits for the first event, so that a failure before it has a status; not for long, since clients give up.
    if (encoder !== null) this.#ctx.openAfter(opensAfterMs, headers)
    this.#generate(0, null)
  }

  #open(): StreamWriter {
    this.#writer ??= this.#ctx.sse(200, this.#options.headers)
    return this.#writer
  }

  #generate(prompt: number, worker: WorkerEntry | null): void {
    const { requests, encoder, passThrough } = this.#options
    const onEvent = (event: GenerationEvent) => this.#onEvent(prompt, event)
    const accepts = worker === null ? undefined : (other: WorkerEntry) => other.id === worker.id
    this.#generations.open(this.#ctx, requests[prompt], {
      stream: encoder !== null,
      listener: { onEvent },
      accepts,
      passThrough,
    })
  }

  #onEvent(prompt: number, event: GenerationEvent): void {
    if (this.#isOver) return
    if (event.type === 'failed') {
      this.#isOver = true
      // Aborts the generations of the other prompts.
      this.#ctx.fail(event.error)
      return
    }
    if (event.type === 'choice_done' && event.reason === 'abort') {
      this.#hasAborted = true
      return
    }
    const { requests, encoder } = this.#options
    if (event.type === 'finished') {
      this.#usage = addUsage(this.#usage, event.usage)
      if (--this.#left === 0) this.#end()
      return
    }
    // The other prompts go to the worker of the first.
    if (event.type === 'started' && prompt === 0)
      for (let next = 1; next < requests.length; next++) this.#generate(next, event.worker)
    if (encoder === null) this.#answers[prompt].add(event)
    else this.#write(encoder, event, prompt)
  }

  #write(encoder: StreamEncoder, event: GenerationEvent, prompt: number): void {
    noteWorker(this.#ctx, event)
    const writer = this.#open()
    const text = encoder.write(event, prompt)
    if (text !== '') writer.write(text)
  }

  #end(): void {
    const { encoder, toBody, headers } = this.#options
    if (this.#hasAborted) this.#ctx.fail(answerErrors.worker_aborted())
    else if (encoder !== null) this.#open().end(encoder.end(this.#usage))
    else {
      const answers = this.#answers.map((answer) => answer.answer())
      this.#ctx.json(200, toBody(answers, this.#usage), headers)
    }
    this.#isOver = true
  }
}
