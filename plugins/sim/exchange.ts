/** One request to the simulated engine: records and counts it, applies faults and delays, and sends the answer. */
import type { RequestContext } from '#kernel'
import type { Batch, BatchHandle } from './batch.ts'
import type { Engine } from './engine.ts'
import { simErrors } from './errors.ts'
import { type Fault, NO_FAULT } from './faults.ts'
import type { Generation } from './generation.ts'
import { blockHashes } from './kv-cache.ts'
import { DRIPPED_BYTES, type Pace, PacedStream, STEPPED } from './paced-stream.ts'
import type { Refusal } from './personality.ts'
import type { Outcome, RequestRecord } from './request-log.ts'

const FIRST_ERROR_STATUS = 400

export class Exchange {
  readonly ctx: RequestContext
  readonly #engine: Engine
  readonly #record: RequestRecord | null
  /** Whether it counts as running; probes and control calls do not. */
  readonly #isServing: boolean
  #heldTokens = 0
  #timer: NodeJS.Timeout | null = null
  #stream: PacedStream | null = null
  /** Set by an engine with a batch. */
  #batchHandle: BatchHandle | null = null
  #isClosed = false

  constructor(engine: Engine, ctx: RequestContext, isServing: boolean) {
    this.ctx = ctx
    this.#engine = engine
    this.#isServing = isServing
    this.#record = engine.log === null ? null : engine.log.open(ctx)
    if (isServing) {
      engine.stats.running += 1
      engine.stats.total += 1
      engine.running.add(this)
    }
    ctx.onAbort(() => this.#close('aborted'))
  }

  /** Applies the fault, then answers unless the fault ended the request. */
  run(fault: Fault, answer: () => void): void {
    if (fault === NO_FAULT) answer()
    else this.#delay(fault.delayMs, () => this.#applyFault(fault, answer))
  }

  json(status: number, value: unknown): void {
    this.ctx.json(status, value)
    this.#close('completed')
  }

  /** Sends an error of the engine's own. */
  refuse(refusal: Refusal): void {
    const body = this.#engine.personality.errorBody?.(refusal, '') ?? {
      error: { message: refusal.message, type: 'invalid_request_error' },
    }
    if (typeof body === 'string') this.ctx.text(refusal.status, body)
    else this.ctx.json(refusal.status, body)
    this.#close('failed')
  }

  text(status: number, body: string): void {
    this.ctx.text(status, body)
    this.#close('completed')
  }

  /** @param error shown in the route's error format */
  fail(error: unknown): void {
    this.ctx.fail(error)
    this.#close('failed')
  }

  /** Sends a generated answer at the engine's pace. */
  deliver(generation: Generation, isStream: boolean, fault: Fault): void {
    const { stats, batch, config } = this.#engine
    stats.promptTokens += generation.promptTokens
    this.#hold(generation.promptTokens)
    if (this.#engine.personality.sharesContext === true && stats.usedTokens > config.maxModelLen)
      for (const exchange of [...this.#engine.running]) exchange.fail(simErrors.context_full())
    else if (batch !== null) this.#submitToBatch(batch, generation, isStream, fault)
    else if (isStream) this.#openStream(generation, config, fault)
    else this.#finishWhole(config.ttftMs + generation.completionTokens * config.itlMs, generation, fault)
  }

  /** Submits the request to the batch, which reports each token. */
  #submitToBatch(batch: Batch, generation: Generation, isStream: boolean, fault: Fault): void {
    const { prompts, promptTokens, completionTokens, steps, cache } = generation
    const blocks = blockHashes(prompts, this.#engine.config.engine.blockTokens)
    const job = { promptTokens, blocks, outputTokens: completionTokens, steps }
    this.#batchHandle = batch.submit(job, {
      onAdmit: (cachedTokens) => {
        cache.tokens = cachedTokens
      },
      onToken: (index) => this.#guarded(() => this.#stream?.release(index)),
      onEnd: () => {
        this.#guarded(() => {
          if (isStream) this.#stream?.release(Number.POSITIVE_INFINITY)
          else this.#finishWhole(0, generation, fault)
        })
      },
    })
    if (isStream) this.#openStream(generation, STEPPED, fault)
  }

  #finishWhole(waitMs: number, generation: Generation, fault: Fault): void {
    if (fault.hangAfter !== null) return
    this.#delay(waitMs + fault.dripMs * DRIPPED_BYTES, () => {
      this.#produced(generation.completionTokens)
      if (fault.dropAfter === null) this.#sendBody(generation.body(), fault)
      else this.#drop()
    })
  }

  #sendBody(body: string | Buffer, fault: Fault): void {
    this.ctx.send(200, 'application/json', fault.isMalformed ? firstHalf(body) : body)
    this.#close('completed')
  }

  #openStream(generation: Generation, pace: Pace | typeof STEPPED, fault: Fault): void {
    this.#stream = new PacedStream(this.ctx.sse(), this.ctx.flow, generation.events(), pace, fault, {
      onTokens: (count) => this.#produced(count),
      onEnd: () => this.#close('completed'),
      onDrop: () => this.#drop(),
    })
  }

  #applyFault(fault: Fault, answer: () => void): void {
    if (fault.isFatal) this.#engine.isDead = true
    if (fault.isDropped) this.#drop()
    else if (fault.status !== null) this.#sendStatus(fault.status, fault.retryAfterSec)
    else if (!fault.isHanging) answer()
  }

  #sendStatus(status: number, retryAfterSec: string | null): void {
    const headers = retryAfterSec === null ? [] : ['retry-after', retryAfterSec]
    const error = { message: `scripted status ${status}`, type: 'simulated_fault', code: 'simulated_fault' }
    this.ctx.json(status, { error }, headers)
    this.#close(status >= FIRST_ERROR_STATUS ? 'failed' : 'completed')
  }

  /** Synchronous without a delay. */
  #delay(waitMs: number, work: () => void): void {
    if (waitMs <= 0) {
      work()
      return
    }
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.#guarded(work)
    }, waitMs)
  }

  /** Reports exceptions inside of timers, where no caller catches them. */
  #guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.fail(error)
    }
  }

  #produced(tokens: number): void {
    this.#engine.stats.generatedTokens += tokens
    this.#hold(tokens)
  }

  #hold(tokens: number): void {
    this.#heldTokens += tokens
    this.#engine.stats.usedTokens += tokens
  }

  #drop(): void {
    this.#close('dropped')
    this.ctx.destroy()
  }

  #close(outcome: Outcome): void {
    if (this.#isClosed) return
    this.#isClosed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#stream?.stop()
    this.#batchHandle?.cancel()
    const { stats, log } = this.#engine
    stats.usedTokens -= this.#heldTokens
    if (this.#isServing) {
      stats.running -= 1
      this.#engine.running.delete(this)
      if (outcome === 'aborted' || outcome === 'dropped') stats.aborted += 1
    }
    if (this.#record !== null) log?.close(this.#record, outcome)
  }
}

function firstHalf(body: string | Buffer): string | Buffer {
  const half = Math.floor(body.length / 2)
  return typeof body === 'string' ? body.slice(0, half) : body.subarray(0, half)
}
