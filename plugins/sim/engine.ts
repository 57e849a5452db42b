/** One simulated engine: its settings and counters. */
import type { RequestContext } from '#kernel'
import { Batch, type BatchLoad } from './batch.ts'
import type { SimConfig } from './config.ts'
import { simErrors } from './errors.ts'
import { type Fault, NO_FAULT, parseFault } from './faults.ts'
import type { Setting } from './generation.ts'
import { PERSONALITIES, type Personality } from './personality.ts'
import { Random } from './random.ts'
import { RequestLog } from './request-log.ts'
import { ScriptedAnswers, ScriptedFaults } from './scripts.ts'
import type { ScriptedAnswer } from './wire.ts'

/** Shortest interval for measuring a rate. */
const RATE_SPAN_MS = 1000

/** Limits reported by an engine without a batch. */
const REPORTED = { maxRunning: 256, kvTokens: 524_288 }

export interface EngineLoad extends BatchLoad {
  readonly maxRunning: number
  readonly kvTokens: number
  /** Tokens generated per second. */
  readonly tokensPerSec: number
}

export class EngineStats {
  /** Running serving requests. */
  running = 0
  total = 0
  /** Serving requests ended by the client or by a fault. */
  aborted = 0
  promptTokens = 0
  generatedTokens = 0
  /** Tokens of running prompts and answers. */
  usedTokens = 0
  readonly #batch: Batch | null
  #tokensPerSec = 0
  #rateSince = { atMs: performance.now(), tokens: 0 }

  constructor(batch: Batch | null = null) {
    this.#batch = batch
  }

  /** Without a batch, nothing waits or is cached, and every request counts as running. */
  load(): EngineLoad {
    const tokensPerSec = this.tokensPerSec()
    if (this.#batch !== null) {
      const { maxRunning, kvTokens } = this.#batch
      return { ...this.#batch.load(), maxRunning, kvTokens, tokensPerSec }
    }
    const { running, usedTokens } = this
    const nothing = { waiting: 0, waitingUncachedTokens: 0, cachedTokens: 0, hitRate: 0 }
    return { ...REPORTED, ...nothing, running, usedTokens, tokensPerSec }
  }

  /** Tokens generated per second, measured between two calls at least one second apart. */
  tokensPerSec(): number {
    const elapsedMs = performance.now() - this.#rateSince.atMs
    if (elapsedMs < RATE_SPAN_MS) return this.#tokensPerSec
    this.#tokensPerSec = ((this.generatedTokens - this.#rateSince.tokens) * 1000) / elapsedMs
    this.#rateSince = { atMs: performance.now(), tokens: this.generatedTokens }
    return this.#tokensPerSec
  }

  toJSON() {
    return {
      running: this.running,
      total: this.total,
      aborted: this.aborted,
      prompt_tokens: this.promptTokens,
      generated_tokens: this.generatedTokens,
      ...this.#batch?.toJSON(),
    }
  }
}

export class Engine {
  readonly config: SimConfig
  readonly stats: EngineStats
  /** Null for engine model `paced`. */
  readonly batch: Batch | null
  readonly faults: ScriptedFaults
  readonly answers = new ScriptedAnswers()
  /** Null if `record` is off. */
  readonly log: RequestLog | null
  /** Start of the engine, Unix seconds. */
  readonly createdSec = Math.floor(Date.now() / 1000)
  readonly personality: Personality
  /** It generates nothing until it is restarted. */
  isDead = false
  /** Running requests. */
  readonly running = new Set<{ fail(error: unknown): void }>()
  /** Part of ids that distinguishes runs. */
  readonly #run = new Random(Date.now() >>> 0).hex(8)
  #answersGiven = 0

  constructor(config: SimConfig) {
    this.config = config
    this.personality = PERSONALITIES[config.runtime]
    this.batch = config.engine.model === 'batched' ? new Batch(config.engine) : null
    this.stats = new EngineStats(this.batch)
    this.faults = new ScriptedFaults(config.seed)
    this.log = config.record ? new RequestLog() : null
  }

  /** @throws invalid_api_key (401) */
  checkKey(ctx: RequestContext): void {
    const { apiKey } = this.config
    if (apiKey !== null && ctx.header('authorization') !== `Bearer ${apiKey}`)
      throw simErrors.invalid_api_key()
  }

  /**
   * The fault of a request: from its header, else a scripted one, else from its body field.
   * @throws unknown_fault (400)
   */
  faultFor(ctx: RequestContext, isServing: boolean, inBody: string | null | undefined): Fault {
    const header = ctx.header('x-sim-fault')
    if (header !== undefined) return parseFault(header)
    const laidOut = this.faults.take(ctx.path, isServing)
    if (laidOut !== NO_FAULT || inBody === null || inBody === undefined) return laidOut
    return parseFault(inBody)
  }

  setting(
    model: string | null | undefined,
    idPrefix: string,
    startedAtMs: number,
    script: ScriptedAnswer | null,
  ): Setting {
    const { models, seed, tokens, maxModelLen, role } = this.config
    this.#answersGiven += 1
    return {
      seed,
      model: model ?? models[0],
      id: `${idPrefix}${this.#run}-${this.#answersGiven}`,
      createdSec: Math.floor(Date.now() / 1000),
      startedAtMs,
      tokens,
      maxModelLen: this.personality.ignoresContext === true ? Number.POSITIVE_INFINITY : maxModelLen,
      mostTokens: role === 'prefill' ? 1 : Number.POSITIVE_INFINITY,
      cache: { tokens: null },
      script,
    }
  }
}
