/**
 * The events of a stored response once more: from the log while there is one, live behind it, or made anew of its items.
 */
import type { ResponseRecord } from '#kernel'
import { defineTopic, type RequestContext, type SseWriter, type Topic } from '#kernel'
import { responsesErrors } from '../../errors.ts'
import { runOf } from '../background/run-facts.ts'
import { DONE } from '../output/frames.ts'
import type { RunParts } from '../run/run-parts.ts'
import { tenantOf } from '../run/serve-create.ts'
import { replayFrames, terminalFrame } from './replay-frames.ts'

/** Says that there is more to read of a response's log. */
export interface LogGrown {
  readonly isOver: boolean
}

export const LiveTopic = defineTopic<LogGrown>('responses-live')
export type LiveResponses = Topic<LogGrown>

export function liveKey(tenant: string, id: string): string {
  return `${tenant}/${id}`
}

/** Where a log grows in another gateway, nobody says so. */
const LOOK_AGAIN_MS = 500

const TERMINAL = /^event: response\.(completed|incomplete|failed)\n/

interface FollowParts extends RunParts {
  readonly live: LiveResponses
}

/** @param after number of the last event that the client has; -1 for none */
export async function followResponse(
  parts: FollowParts,
  ctx: RequestContext,
  record: ResponseRecord,
  after: number,
): Promise<void> {
  const tenant = tenantOf(ctx)
  const follower = new Follower(parts, ctx, tenant, record.id, after)
  await follower.run()
}

class Follower {
  readonly #parts: FollowParts
  readonly #ctx: RequestContext
  readonly #tenant: string
  readonly #id: string
  #last: number
  /** Of the response, as it was seen first. */
  #run: number | null = null
  /** It has told something of the log. */
  #hasTold = false
  /** What comes next in the log does not go on from what was told, or from the beginning. */
  #isBroken = false
  #isWhole = false
  #writer: SseWriter | null = null
  #wake: () => void = () => {}

  constructor(parts: FollowParts, ctx: RequestContext, tenant: string, id: string, after: number) {
    this.#parts = parts
    this.#ctx = ctx
    this.#tenant = tenant
    this.#id = id
    this.#last = after
  }

  async run(): Promise<void> {
    const subscription = this.#parts.live.subscribe(liveKey(this.#tenant, this.#id), {
      onEvent: () => this.#wake(),
      onLost: () => this.#wake(),
    })
    this.#ctx.onCancel(() => this.#wake())
    try {
      await subscription.ready
      this.#writer = this.#ctx.sse()
      this.#writer.onDrain(() => this.#wake())
      await this.#follow()
    } finally {
      subscription.close()
    }
  }

  async #follow(): Promise<void> {
    const { history } = this.#parts
    if (history === undefined) return
    while (!this.#isGone) {
      // Asked before the log is read: what has ended by now has all of its events there.
      const record = await history.responses.get(this.#tenant, this.#id)
      const grown = this.#nextSign()
      if (record !== undefined) this.#checkRun(record)
      if (!this.#isBroken) await this.#readLog()
      if (this.#isWhole) break
      if (record === undefined) throw responsesErrors.response_not_found(this.#id)
      if (record.status !== 'queued' && record.status !== 'in_progress') {
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

  /** One that is begun anew has another log. */
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
        this.#hasTold = true
        if (TERMINAL.test(frame)) this.#isWhole = true
        await this.#write(frame)
        if (this.#isGone) return
      }
    }
  }

  /** It has ended and its log does not say so: it was never written, is gone by now, or broke off. */
  async #endWithout(record: ResponseRecord): Promise<void> {
    const isTold = this.#isBroken ? this.#hasTold : await this.#hasLog()
    if (isTold) {
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
    if (this.#writer?.write(frame) !== false || this.#isGone) return
    await new Promise<void>((resolve) => {
      this.#wake = resolve
    })
  }

  /** Resolves when the log may have grown. */
  #nextSign(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, LOOK_AGAIN_MS)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
