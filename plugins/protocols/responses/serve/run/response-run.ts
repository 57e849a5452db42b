/**
 * Runs one response: the model's turn, its items, and its end, which is sent only once it is stored.
 */

import type {
  GatewayError,
  Generation,
  GenerationEvent,
  GenerationListener,
  GenerationUsage,
  HistoryItem,
  Job,
  RequestContext,
  ResponseRecord,
  ResponseStatus,
} from '#kernel'
import { answerErrors, isPublic, toClientItems } from '#shared'
import { EventEncoder, type FrameSink, membersOf } from '../output/event-encoder.ts'
import { ItemCollector } from '../output/item-collector.ts'
import { outputOptions } from '../output/output-items.ts'
import { ResponseEncoder, type ResponseEnd, replyText } from '../output/response-encoder.ts'
import type { Parts } from '../parts.ts'
import { openTurn } from './open-turn.ts'
import { type LastingPlan, type Plan, warningsOf } from './plan.ts'
import { storeEnd, toStorageError } from './response-record.ts'

export interface RunOptions {
  readonly id: string
  readonly createdAtSec: number
  /** Takes the frames of the stream; null without one, also at the worker. */
  readonly sink: FrameSink | null
  /** Of a background response. */
  readonly job?: Job
  /** The events are messages of a WebSocket. */
  readonly isSocket?: boolean
  /** Called when a worker has begun to respond, with its connection mode. */
  readonly onWorker?: (connectionMode: string) => void
  /** Flushes the log before the response is stored as ended: from then on followers regard the log as complete. */
  readonly beforeEnd?: () => Promise<void>
  /** Called once, last. */
  readonly onEnd: (end: RunEnd) => void
}

export interface RunEnd {
  /** JSON; null if it was rejected before it began or its client disconnected. */
  readonly reply: string | null
  readonly status: ResponseStatus
  readonly error: GatewayError | null
  /** The request failed outside of the response, and its error format ends the stream. */
  readonly isAnswered: boolean
  /** History for a response that continues this one. */
  items(): readonly HistoryItem[]
}

export class ResponseRun implements GenerationListener {
  readonly #parts: Parts
  readonly #ctx: RequestContext
  /** Null after the start, to release memory: thousands of responses wait for their workers at once. */
  #start: Plan | null
  readonly #plan: LastingPlan
  readonly #options: RunOptions
  readonly #events: EventEncoder | null
  /** Items so far. */
  readonly output: ItemCollector
  readonly #encoder: ResponseEncoder
  #turn: Generation | null = null
  #hasBegun = false
  #hasStarted = false
  #hasCompaction = false
  #isAnswered = false
  #isOver = false
  #connectionMode: string | null = null
  /** That the worker reported. */
  #serviceTier: string | undefined
  /** Of the request, for a client that sees no response header; null for others. */
  readonly #warnings: readonly string[] | null

  constructor(parts: Parts, ctx: RequestContext, plan: Plan, options: RunOptions) {
    this.#parts = parts
    this.#ctx = ctx
    this.#start = plan
    this.#plan = plan.lasting
    this.#options = options
    this.#events = options.sink === null ? null : new EventEncoder(options.sink)
    this.#encoder = new ResponseEncoder(options, plan.request.echo)
    this.#warnings = options.job !== undefined || options.isSocket === true ? warningsOf(plan) : null
    this.output = new ItemCollector(
      this.#events,
      outputOptions(plan.request, parts.seal, plan.lasting.tenant),
    )
  }

  /** Must be called once. */
  start(): void {
    this.#ctx.onCancel(() => this.#cancelled())
    const plan = this.#start
    this.#start = null
    if (this.#isOver || plan === null) return
    try {
      const isStream = this.#events !== null
      this.#turn = openTurn(this.#parts, this.#ctx, plan, isStream, this)
    } catch (error) {
      this.#refused(error as GatewayError)
    }
  }

  /** Ends it as cancelled and stores the output so far. Safe at any time. */
  cancel(): void {
    if (this.#isOver) return
    this.#turn?.abort()
    this.#end('cancelled', { usage: null })
  }

  /** Stops it without storing an end: another gateway runs or fails it. */
  abandon(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#turn?.abort()
    void this.#plan.lock?.release()
  }

  /** Opens the stream; before that, a failure has an HTTP status of its own. */
  begin(): void {
    if (this.#hasBegun || this.#events === null) return
    this.#hasBegun = true
    this.#encoder.sendBegin(this.#events, this.#options.job !== undefined)
    this.#showCompaction()
  }

  /** Before all other items. */
  #showCompaction(): void {
    const { compaction } = this.#plan
    if (compaction === null || this.#hasCompaction) return
    this.#hasCompaction = true
    this.output.addWhole(compaction.item)
  }

  /** Frames that end the stream if the request failed outside of the response. */
  lastFrames(error: GatewayError): string {
    if (this.#events === null) return ''
    return this.#encoder.lastFrames(this.#events.count, error, this.output.items())
  }

  onEvent(event: GenerationEvent): void {
    if (this.#isOver) return
    switch (event.type) {
      case 'started':
        this.#hasStarted = true
        this.#connectionMode = event.worker?.connectionMode ?? null
        this.#serviceTier = event.serviceTier
        if (this.#connectionMode !== null) this.#options.onWorker?.(this.#connectionMode)
        this.begin()
        this.#showCompaction()
        return
      case 'finished':
        this.#finished(event)
        return
      case 'failed':
        this.#failed(event.error, event.usage ?? null)
        return
      default:
        this.begin()
        this.#showCompaction()
        this.output.add(event)
    }
  }

  #finished({ usage, generations = 1 }: Extract<GenerationEvent, { type: 'finished' }>): void {
    this.begin()
    const { reason, native } = this.output.end ?? {}
    const stated = native?.engine === 'responses' ? native.members : { service_tier: this.#serviceTier }
    // Of several answers the usage is a sum.
    const end = { usage, native: generations > 1 ? { ...stated, usage: undefined } : stated }
    if (reason === 'length') this.#end('incomplete', { ...end, incompleteReason: 'max_output_tokens' })
    else if (reason === 'content_filter') this.#end('incomplete', { ...end, incompleteReason: reason })
    else if (reason === 'abort') this.#end('failed', { ...end, error: answerErrors.worker_aborted() })
    else this.#end('completed', end)
  }

  #failed(error: GatewayError, usage: GenerationUsage | null): void {
    if (this.#hasBegun || this.#hasStarted) this.#end('failed', { error, usage })
    else this.#refused(error)
  }

  /** Nothing is stored of a response that has not begun. */
  #refused(error: GatewayError): void {
    if (this.#options.job !== undefined || this.#hasBegun) {
      this.#end('failed', { error, usage: null })
      return
    }
    this.#leaveNothing('failed', error)
  }

  /** The client disconnected, or the request failed outside of the response. */
  #cancelled(): void {
    if (this.#isOver) return
    this.#isAnswered = !this.#ctx.isAborted
    this.#turn?.abort()
    if (this.#hasBegun || this.#hasStarted)
      this.#end(this.#ctx.isAborted ? 'cancelled' : 'failed', { usage: null })
    else this.#leaveNothing('cancelled', null)
  }

  #leaveNothing(status: ResponseStatus, error: GatewayError | null): void {
    this.#isOver = true
    void this.#plan.lock?.release()
    this.#options.onEnd({ reply: null, status, error, isAnswered: this.#isAnswered, items: () => [] })
  }

  #end(status: ResponseStatus, end: ResponseEnd): void {
    this.#isOver = true
    const warnings = this.#warnings === null ? [] : [...this.#warnings, ...this.#ctx.takeWarnings()]
    const members = this.#encoder.members(status, { ...end, warnings })
    const { error = null } = end
    const { history } = this.#parts
    if (!this.#plan.store || history === undefined) {
      void this.#plan.lock?.release()
      this.#finish(status, members, error, this.output.storedItems())
      return
    }
    const items = this.output.storedItems()
    // Clients nearly always see the items as they are stored, so one text serves both.
    const text = items.every(isPublic) ? JSON.stringify(items) : undefined
    const { id, createdAtSec, job, beforeEnd } = this.#options
    const store = () =>
      storeEnd(history, this.#plan, {
        id,
        createdAtSec,
        status,
        members,
        output: items,
        outputText: text,
        connectionMode: this.#connectionMode,
        job,
      })
    const stored = beforeEnd === undefined ? store() : beforeEnd().then(store)
    const failed = (cause: unknown) => this.#failStorage(error ?? toStorageError(cause))
    this.#parts.host.background(
      stored.then((outcome) => {
        if (outcome === null) this.#finish(status, members, error, items, text)
        else if (outcome !== 'gone') this.#failStorage(error ?? outcome)
        else
          return history.responses
            .get(this.#plan.tenant, id)
            .then((record) => this.#finishAsStored(record), failed)
      }, failed),
    )
  }

  /** The response was ended or deleted by another request: the stored end applies. */
  #finishAsStored(record: ResponseRecord | undefined): void {
    if (record !== undefined) this.#finish(record.status, membersOf(record.reply), null, record.output)
    else this.#finish('cancelled', this.#encoder.members('cancelled', { usage: null }), null, [])
  }

  /** A response that is not stored has failed. */
  #failStorage(error: GatewayError): void {
    this.#parts.host.log.error({ err: error, response_id: this.#options.id }, 'response not stored')
    void this.#plan.lock?.release()
    this.#finish(
      'failed',
      this.#encoder.members('failed', { error, usage: null }),
      error,
      this.output.storedItems(),
    )
  }

  /** @param text the JSON of the items, when there is one and it is what clients see */
  #finish(
    status: ResponseStatus,
    members: string,
    error: GatewayError | null,
    items: readonly HistoryItem[],
    text = JSON.stringify(toClientItems(items)),
  ): void {
    const reply = replyText(members, text)
    // If the request failed outside of the response, its error format ends the stream.
    const isAnswered = this.#isAnswered || this.#ctx.isFailing
    if (this.#events !== null && this.#hasBegun && !isAnswered) {
      if (status === 'failed') this.#encoder.sendFailure(this.#events, members, error, this.output.items())
      else this.#events.end(status, reply)
    }
    this.#options.onEnd({ reply, status, error, isAnswered, items: () => [...this.#plan.context, ...items] })
  }
}
