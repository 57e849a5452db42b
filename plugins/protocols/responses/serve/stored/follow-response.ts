/**
 * Sends the events of a stored response again: from its log while there is one, live behind it, or made of its items.
 */

import { type RequestContext, type ResponseRecord, type StreamWriter, tenantOf } from '#kernel'
import { responsesErrors } from '../../errors.ts'
import { FOLLOW_AGAIN_MS, liveKey } from '../background/signals.ts'
import { DONE } from '../output/event-encoder.ts'
import { replayFrames, terminalFrame } from '../output/replay.ts'
import type { Parts } from '../parts.ts'
import { isRunning, runOf } from '../run/response-record.ts'

/** Poll interval: without a mesh, no event is published for a log that grows in another gateway. */
const POLL_MS = 500
/** First interval: another gateway publishes events once it knows of a follower. */
const FIRST_POLL_MS = 50

const TERMINAL = /^event: response\.(completed|incomplete|failed)\n/

export class ResponseFollower {
  readonly #parts: Parts
  readonly #ctx: RequestContext
  readonly #tenant: string
  readonly #id: string
  readonly #key: string
  #last: number
  /** Of the response, as it was seen first. */
  #run: number | null = null
  /** Frames of the log were sent. */
  #hasSent = false
  /** The log has a gap, or belongs to another run. */
  #isBroken = false
  #isWhole = false
  #writer: StreamWriter | null = null
  #wake: () => void = () => {}

  /** @param after number of the last event that the client has; -1 for none */
  constructor(parts: Parts, ctx: RequestContext, id: string, after: number) {
    this.#parts = parts
    this.#ctx = ctx
    this.#tenant = tenantOf(ctx)
    this.#id = id
    this.#key = liveKey(this.#tenant, id)
    this.#last = after
  }

  async run(): Promise<void> {
    const unsubscribe = this.#parts.live.subscribe(this.#key, () => this.#wake())
    this.#ctx.onCancel(() => this.#wake())
    try {
      this.#writer = this.#ctx.sse()
      await this.#follow()
    } finally {
      unsubscribe()
    }
  }

  async #follow(): Promise<void> {
    const { history } = this.#parts
    if (history === undefined) return
    let announcedAtMs = Number.NEGATIVE_INFINITY
    while (!this.#isGone) {
      const isDue = performance.now() - announcedAtMs >= FOLLOW_AGAIN_MS
      const pollMs = announcedAtMs < 0 ? FIRST_POLL_MS : POLL_MS
      if (isDue) {
        this.#parts.signals.publish('follow', this.#key)
        announcedAtMs = performance.now()
      }
      // Read before the log: a response that has ended by now has all of its events there.
      const record = await history.responses.get(this.#tenant, this.#id)
      const grown = this.#nextChange(pollMs)
      if (record !== undefined) this.#checkRun(record)
      if (!this.#isBroken) await this.#readLog()
      if (this.#isWhole) break
      if (record === undefined) throw responsesErrors.response_not_found(this.#id)
      if (!isRunning(record)) {
        await this.#endWithout(record)
        break
      }
      await grown
    }
    if (!this.#isGone) this.#writer?.end(DONE)
  }

  get #isGone(): boolean {
    return this.#ctx.isAborted || this.#ctx.isDone || this.#ctx.isFailing
  }

  /** A run that is started again has another log. */
  #checkRun(record: ResponseRecord): void {
    const run = runOf(record)
    if (this.#run !== null && this.#run !== run && this.#last >= 0) this.#isBroken = true
    this.#run = run
  }

  async #readLog(): Promise<void> {
    for (;;) {
      const frames = await this.#parts.history?.events.read(this.#tenant, this.#id, this.#last)
      if (frames === undefined || frames.length === 0) return
      for (const { number, frame } of frames) {
        // Pieces expire one by one, and one that could not be kept is missing.
        if (number !== this.#last + 1) {
          this.#isBroken = true
          return
        }
        this.#last = number
        this.#hasSent = true
        if (TERMINAL.test(frame)) this.#isWhole = true
        await this.#write(frame)
        if (this.#isGone) return
      }
    }
  }

  /** It has ended without a complete log: the log was never written, has expired, or has a gap. */
  async #endWithout(record: ResponseRecord): Promise<void> {
    const hasSent = this.#isBroken ? this.#hasSent : await this.#hasLog()
    if (hasSent) {
      await this.#write(terminalFrame(record, this.#last + 1))
      return
    }
    for (const { number, frame } of replayFrames(record)) {
      if (number <= this.#last) continue
      await this.#write(frame)
      if (this.#isGone) return
    }
  }

  async #hasLog(): Promise<boolean> {
    const first = await this.#parts.history?.events.read(this.#tenant, this.#id, -1)
    return first !== undefined && first.length > 0
  }

  async #write(frame: string): Promise<void> {
    if (this.#writer?.write(frame) === false && !this.#isGone)
      await new Promise<void>((resolve) => this.#ctx.flow.whenReleased(resolve))
  }

  /** Resolves when the log may have grown. */
  #nextChange(pollMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, pollMs)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
