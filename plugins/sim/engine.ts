/** One simulated engine: its settings, what it remembers, and the faults and answers laid out for it. */
import type { RequestContext } from '#kernel'
import { AnswerBook } from './answers.ts'
import { Batch } from './batch.ts'
import type { SimConfig } from './config.ts'
import { simErrors } from './errors.ts'
import { type Fault, FaultBook, NO_FAULT, parseFault } from './faults.ts'
import type { Setting } from './generation.ts'
import { Random } from './random.ts'
import { RequestLog } from './request-log.ts'
import { EngineStats } from './stats.ts'
import type { ScriptedAnswer } from './wire.ts'

export class Engine {
  readonly config: SimConfig
  readonly stats: EngineStats
  /** Null when the engine paces each request by itself. */
  readonly batch: Batch | null
  readonly faults: FaultBook
  readonly answers = new AnswerBook()
  /** Null when nothing is recorded. */
  readonly log: RequestLog | null
  /** When the engine was made, Unix seconds. */
  readonly createdSec = Math.floor(Date.now() / 1000)
  /** Tells the ids of one run from those of the next. */
  readonly #run = new Random(Date.now() >>> 0).hex(8)
  #answersGiven = 0

  constructor(config: SimConfig) {
    this.config = config
    this.batch = config.engine.model === 'batched' ? new Batch(config.engine) : null
    this.stats = new EngineStats(this.batch)
    this.faults = new FaultBook(config.seed)
    this.log = config.record ? new RequestLog() : null
  }

  /** @throws invalid_api_key (401) */
  checkKey(ctx: RequestContext): void {
    const { apiKey } = this.config
    if (apiKey !== null && ctx.header('authorization') !== `Bearer ${apiKey}`)
      throw simErrors.invalid_api_key()
  }

  /**
   * The trouble that this request gets: its own header first, then what was laid out, then its body field.
   * @throws unknown_fault (400)
   */
  faultFor(ctx: RequestContext, isServing: boolean, inBody: string | null | undefined): Fault {
    const header = ctx.header('x-sim-fault')
    if (header !== undefined) return parseFault(header)
    const laidOut = this.faults.take(ctx.path, isServing)
    if (laidOut !== NO_FAULT || inBody === null || inBody === undefined) return laidOut
    return parseFault(inBody)
  }

  /** @throws sim_model_not_found (404) under vllm, which knows its models by name; others answer for any */
  setting(
    model: string | null | undefined,
    idPrefix: string,
    startedAtMs: number,
    script: ScriptedAnswer | null,
  ): Setting {
    const { models, runtime, seed, tokens, maxModelLen, role } = this.config
    if (runtime === 'vllm' && model != null && !models.includes(model))
      throw simErrors.sim_model_not_found(model)
    this.#answersGiven += 1
    return {
      seed,
      model: model ?? models[0],
      id: `${idPrefix}${this.#run}-${this.#answersGiven}`,
      createdSec: Math.floor(Date.now() / 1000),
      startedAtMs,
      tokens,
      maxModelLen,
      mostTokens: role === 'prefill' ? 1 : Number.POSITIVE_INFINITY,
      cache: { tokens: null },
      script,
    }
  }
}
