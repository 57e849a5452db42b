/** The generations of a request with several prompts: all use one worker, and a failure aborts all. */
import type {
  Generation,
  GenerationEvent,
  GenerationRequest,
  Generations,
  GenerationUsage,
  RequestContext,
  WorkerEntry,
} from '#kernel'
import { addUsage } from '#shared'

export interface PromptRunsOptions {
  readonly stream: boolean
  /** One per prompt, at least one. */
  readonly requests: readonly GenerationRequest[]
  /** Events of one prompt, except `finished` and `failed`. */
  onEvent(prompt: number, event: GenerationEvent): void
  /** All prompts have finished. */
  onDone(usage: GenerationUsage | null): void
}

export class PromptRuns {
  readonly #generations: Generations
  readonly #ctx: RequestContext
  readonly #options: PromptRunsOptions
  readonly #running: Generation[] = []
  #usage: GenerationUsage | null = null
  #left: number
  #isOver = false

  constructor(generations: Generations, ctx: RequestContext, options: PromptRunsOptions) {
    this.#generations = generations
    this.#ctx = ctx
    this.#options = options
    this.#left = options.requests.length
  }

  start(): void {
    this.#open(0, null)
  }

  pause(): void {
    for (const generation of this.#running) generation.pause()
  }

  resume(): void {
    for (const generation of this.#running) generation.resume()
  }

  #open(prompt: number, worker: WorkerEntry | null): void {
    const { stream, requests } = this.#options
    const onEvent = (event: GenerationEvent) => this.#onEvent(prompt, event)
    const accepts = worker === null ? undefined : (other: WorkerEntry) => other.id === worker.id
    this.#running.push(
      this.#generations.open(this.#ctx, requests[prompt], { stream, listener: { onEvent }, accepts }),
    )
  }

  #onEvent(prompt: number, event: GenerationEvent): void {
    if (this.#isOver) return
    if (event.type === 'failed') {
      this.#isOver = true
      for (const generation of this.#running) generation.abort()
      this.#ctx.fail(event.error)
      return
    }
    // The other prompts go to the worker of the first.
    if (event.type === 'started' && prompt === 0)
      for (let next = 1; next < this.#options.requests.length; next++) this.#open(next, event.worker)
    if (event.type !== 'finished') {
      this.#options.onEvent(prompt, event)
      return
    }
    this.#usage = addUsage(this.#usage, event.usage)
    this.#left--
    if (this.#left > 0) return
    this.#isOver = true
    this.#options.onDone(this.#usage)
  }
}
