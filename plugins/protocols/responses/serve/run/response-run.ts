/**
 * One response while it is made: the model's turn, its items, and the end, which is told only when it is stored.
 */

import type {
  GatewayError,
  GenerationUsage,
  HistoryItem,
  Job,
  RequestContext,
  ResponseRecord,
  ResponseStatus,
  ToolLoopEvent,
} from '#kernel'
import { isPublic, toClientItems } from '#shared'
import { responsesErrors } from '../../errors.ts'
import { type FrameSink, Frames } from '../output/frames.ts'
import { OutputItems } from '../output/output-items.ts'
import { wishesOf } from '../output/output-wishes.ts'
import { openTurn, type Turn } from './open-turn.ts'
import type { Plan } from './plan.ts'
import { replyText } from './reply-object.ts'
import type { RunParts } from './run-parts.ts'
import { type LastingPlan, lastingPlan, storeEnd } from './store-end.ts'
import { ToldResponse } from './told-response.ts'

export interface RunOptions {
  readonly id: string
  readonly createdAtSec: number
  /** Follows the stream; null when nobody does. */
  readonly sink: FrameSink | null
  /** The worker is asked for a stream. */
  readonly stream: boolean
  /** Of a background response. */
  readonly job?: Job
  /** Called when a worker has begun to answer, with the way in which it is reached. */
  readonly onWorker?: (connectionMode: string) => void
  /** Keeps what was told so far, before the response is stored as ended: who follows it takes its log for whole then. */
  readonly beforeEnd?: () => Promise<void>
  /** Called once, at the very end. */
  readonly onEnd: (end: RunEnd) => void
}

export interface RunEnd {
  /** JSON. Null: it was refused before it began, or its client left. */
  readonly reply: string | null
  readonly status: ResponseStatus
  readonly error: GatewayError | null
  /** Somebody else has failed the request, and tells its client so. */
  readonly isAnswered: boolean
  /** History for whoever goes on from here. */
  items(): readonly HistoryItem[]
}

export class ResponseRun {
  readonly #parts: RunParts
  readonly #ctx: RequestContext
  /** Null once it was begun: requests are large, and thousands of responses wait for their workers at once. */
  #start: Plan | null
  readonly #plan: LastingPlan
  readonly #options: RunOptions
  readonly #frames: Frames | null
  readonly #output: OutputItems
  readonly #told: ToldResponse
  #turn: Turn | null = null
  #hasBegun = false
  #hasStarted = false
  #hasCompaction = false
  #isAnswered = false
  #isOver = false
  #isPaused = false
  #connectionMode: string | null = null

  constructor(parts: RunParts, ctx: RequestContext, plan: Plan, options: RunOptions) {
    this.#parts = parts
    this.#ctx = ctx
    this.#start = plan
    this.#plan = lastingPlan(plan)
    this.#options = options
    this.#frames = options.sink === null ? null : new Frames(options.sink)
    this.#told = new ToldResponse(options, plan.request.echo)
    this.#output = new OutputItems(this.#frames, wishesOf(plan.request, parts.seal, plan.tenant))
  }

  /** Items that have ended so far, for who shows progress. */
  get output(): OutputItems {
    return this.#output
  }

  /** Once. */
  start(): void {
    this.#ctx.onCancel(() => this.#cancelled())
    const plan = this.#start
    this.#start = null
    if (this.#isOver || plan === null) return
    try {
      const { stream } = this.#options
      this.#turn = openTurn(this.#parts, this.#ctx, plan, stream, (event) => this.#onEvent(event))
      if (this.#isPaused) this.#turn.pause()
    } catch (error) {
      this.#refused(error as GatewayError)
    }
  }

  pause(): void {
    this.#isPaused = true
    this.#turn?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#turn?.resume()
  }

  /** Ends it by somebody's wish; what there is of it is kept. Safe at any time. */
  cancel(): void {
    if (this.#isOver) return
    this.#turn?.abort()
    this.#end('cancelled', null, null)
  }

  /** Stops it without an end: somebody else begins it anew, or says what became of it. */
  abandon(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#turn?.abort()
    void this.#plan.lock?.release()
  }

  /** Tells the stream that the response has been begun; before that, a failure has a status of its own. */
  begin(): void {
    if (this.#hasBegun || this.#frames === null) return
    this.#hasBegun = true
    this.#told.sendBegin(this.#frames, this.#options.job !== undefined)
    this.#showCompaction()
  }

  /** Before all other items. */
  #showCompaction(): void {
    const { compaction } = this.#plan
    if (compaction === null || this.#hasCompaction) return
    this.#hasCompaction = true
    this.#output.addWhole(0, compaction.item)
  }

  /** Frames that end the stream where somebody else has failed the request. */
  lastFrames(error: GatewayError): string {
    if (this.#frames === null) return ''
    return this.#told.lastFrames(this.#frames.count, error, this.#output.items())
  }

  #onEvent(event: ToolLoopEvent): void {
    if (this.#isOver) return
    switch (event.type) {
      case 'started':
        this.#hasStarted = true
        this.#connectionMode = event.started.worker.connectionMode
        this.#options.onWorker?.(this.#connectionMode)
        this.begin()
        this.#showCompaction()
        return
      case 'finished':
        this.#finished(event)
        return
      case 'failed':
        this.#failed(event.error, event.usage)
        return
      default:
        this.begin()
        this.#showCompaction()
        this.#output.add(event)
    }
  }

  #finished({ reason, usage }: Extract<ToolLoopEvent, { type: 'finished' }>): void {
    this.begin()
    if (reason === 'length') this.#end('incomplete', null, usage, 'max_output_tokens')
    else if (reason === 'content_filter') this.#end('incomplete', null, usage, 'content_filter')
    else if (reason === 'abort') this.#end('failed', responsesErrors.worker_aborted(), usage)
    else this.#end('completed', null, usage)
  }

  #failed(error: GatewayError, usage: GenerationUsage | null): void {
    if (this.#hasBegun || this.#hasStarted) this.#end('failed', error, usage)
    else this.#refused(error)
  }

  /** Nothing of it is kept: for its client it never was. */
  #refused(error: GatewayError): void {
    if (this.#options.job !== undefined || this.#hasBegun) {
      this.#end('failed', error, null)
      return
    }
    this.#leaveNothing('failed', error)
  }

  /** The client left, or somebody else has failed the request. */
  #cancelled(): void {
    if (this.#isOver) return
    this.#isAnswered = !this.#ctx.isAborted
    this.#turn?.abort()
    if (this.#hasBegun || this.#hasStarted)
      this.#end(this.#ctx.isAborted ? 'cancelled' : 'failed', null, null)
    else this.#leaveNothing('cancelled', null)
  }

  #leaveNothing(status: ResponseStatus, error: GatewayError | null): void {
    this.#isOver = true
    void this.#plan.lock?.release()
    this.#options.onEnd({ reply: null, status, error, isAnswered: this.#isAnswered, items: noItems })
  }

  #end(
    status: ResponseStatus,
    error: GatewayError | null,
    usage: GenerationUsage | null,
    incompleteReason: string | null = null,
  ): void {
    this.#isOver = true
    const members = this.#told.members(status, { error, usage, incompleteReason })
    const { history } = this.#parts
    if (!this.#plan.store || history === undefined) {
      void this.#plan.lock?.release()
      this.#tell(status, members, error, this.#output.storedItems())
      return
    }
    const items = this.#output.storedItems()
    // What clients see of the items is what is stored of them, nearly always: one text for both.
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
    const failed = (cause: unknown) =>
      this.#storeFailed(error ?? responsesErrors.storage_error.with({ cause }))
    this.#parts.host.background(
      stored.then((outcome) => {
        if (outcome === null) this.#tell(status, members, error, items, text)
        else if (outcome !== 'gone') this.#storeFailed(error ?? outcome)
        else
          return history.responses
            .get(this.#plan.tenant, id)
            .then((record) => this.#tellStored(record), failed)
      }, failed),
    )
  }

  /** Somebody else has ended it meanwhile, and that is what holds; of one that was deleted nothing is left. */
  #tellStored(record: ResponseRecord | undefined): void {
    if (record !== undefined) this.#tell(record.status, JSON.stringify(record.reply), null, record.output)
    else this.#tell('cancelled', this.#told.members('cancelled', { usage: null }), null, [])
  }

  /** What cannot be found again is no success. */
  #storeFailed(error: GatewayError): void {
    this.#parts.host.log.error({ err: error, response_id: this.#options.id }, 'a response was not stored')
    void this.#plan.lock?.release()
    this.#tell(
      'failed',
      this.#told.members('failed', { error, usage: null }),
      error,
      this.#output.storedItems(),
    )
  }

  /** @param text the JSON of the items, when there is one and it is what clients see */
  #tell(
    status: ResponseStatus,
    members: string,
    error: GatewayError | null,
    items: readonly HistoryItem[],
    text = JSON.stringify(toClientItems(items)),
  ): void {
    const reply = replyText(members, text)
    // Where somebody else has failed the request, its error format ends the stream.
    const isAnswered = this.#isAnswered || this.#ctx.isFailing
    if (this.#frames !== null && this.#hasBegun && !isAnswered) {
      if (status === 'failed') this.#told.sendFailure(this.#frames, members, error, this.#output.items())
      else this.#told.sendEnd(this.#frames, status, reply)
    }
    this.#options.onEnd({ reply, status, error, isAnswered, items: () => [...this.#plan.context, ...items] })
  }
}

function noItems(): readonly HistoryItem[] {
  return []
}
