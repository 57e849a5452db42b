/**
 * Streams with shadow versions. A module with a shadow is run in a session of its own, so that its input and output can be
 * compared with those of the shadow byte by byte. Each stream counts once.
 */
import type { RequestContext } from '#kernel'
import type { CallStatistics } from '../statistics/call-statistics.ts'
import type { LoadedModule, StreamItemResult } from '../threads/guest-task.ts'
import { StreamBatcher, type StreamWork } from './stream-batcher.ts'
import { RequestModules, StreamSession } from './stream-session.ts'

/** Maximum number of batches that wait for a shadow of one stream; a shadow that is further behind is dropped. */
const MAX_BEHIND = 64
const POINT = 'OnStreamEvent' as const

/** Receives the events of a stream and returns the changed ones. */
export type StreamEventSink = Pick<StreamSession, 'take'>

/** Runs shadows in the pool for any placement, and to the end even if the client disconnects. */
export class ShadowBatcher extends StreamBatcher {
  override run(work: StreamWork): StreamItemResult['out'] | null | Promise<StreamItemResult['out'] | null> {
    return super.run({ ...work, origin: { isDone: false } })
  }
}

interface WatchParts {
  readonly batcher: StreamBatcher
  readonly shadowBatcher: ShadowBatcher
  readonly statistics: Pick<CallStatistics, 'compared' | 'isSuspended'>
}

interface Part {
  readonly session: StreamSession
  readonly watches: readonly ShadowWatch[]
}

export class ShadowedStream implements StreamEventSink {
  readonly #parts: Part[] = []

  /** @param shadows each of one of the modules */
  constructor(
    parts: WatchParts,
    modules: readonly LoadedModule[],
    shadows: readonly LoadedModule[],
    ctx: RequestContext,
    responseHeaders: readonly string[],
  ) {
    const open = (batcher: StreamBatcher, chain: readonly LoadedModule[]) =>
      new StreamSession(batcher, new RequestModules(chain, ctx), responseHeaders)
    let unwatched: LoadedModule[] = []
    const close = () => {
      if (unwatched.length > 0) this.#parts.push({ session: open(parts.batcher, unwatched), watches: [] })
      unwatched = []
    }
    for (const module of modules) {
      const own = shadows.filter(({ shadowOf }) => shadowOf === module.uuid)
      if (own.length === 0) {
        unwatched.push(module)
        continue
      }
      close()
      const watches = own.map(
        (shadow) =>
          new ShadowWatch(
            shadow,
            open(parts.shadowBatcher, [strict(shadow)]),
            parts.statistics,
            ctx.requestId,
          ),
      )
      this.#parts.push({ session: open(parts.batcher, [module]), watches })
    }
    close()
  }

  async take(events: Buffer, isLast: boolean): Promise<Buffer> {
    let current = events
    for (const { session, watches } of this.#parts) {
      // Copied, since the buffer is reused.
      const given = watches.some(({ isWatching }) => isWatching) ? Buffer.from(current) : null
      current = await session.take(current, isLast)
      if (given === null) continue
      const made = Buffer.from(current)
      for (const watch of watches) watch.note(given, made, isLast)
    }
    return current
  }
}

/** One shadow of one stream; the stream does not wait for it. */
class ShadowWatch {
  isWatching = true
  readonly #shadow: LoadedModule
  readonly #session: StreamSession
  readonly #statistics: WatchParts['statistics']
  readonly #requestId: string
  #last: Promise<void> = Promise.resolve()
  #behind = 0

  constructor(
    shadow: LoadedModule,
    session: StreamSession,
    statistics: WatchParts['statistics'],
    requestId: string,
  ) {
    this.#shadow = shadow
    this.#session = session
    this.#statistics = statistics
    this.#requestId = requestId
  }

  /** @param made output of the current version */
  note(given: Buffer, made: Buffer, isLast: boolean): void {
    if (this.#behind >= MAX_BEHIND) this.isWatching = false
    if (!this.isWatching) return
    this.#behind++
    this.#last = this.#last.then(() => this.#compare(given, made, isLast))
  }

  async #compare(given: Buffer, made: Buffer, isLast: boolean): Promise<void> {
    this.#behind--
    if (!this.isWatching || this.#statistics.isSuspended(this.#shadow)) {
      this.isWatching = false
      return
    }
    try {
      const isSame = made.equals(await this.#session.take(given, isLast))
      if (isSame && !isLast) return
      const call = { module: this.#shadow, point: POINT, requestId: this.#requestId }
      this.#statistics.compared(call, isSame)
    } catch {
      // The shadow was skipped: its result is unknown.
    }
    this.isWatching = false
  }
}

/** Fail-closed copies of shadows: a skipped call rejects instead of passing the events. */
const stricts = new WeakMap<LoadedModule, LoadedModule>()

function strict(shadow: LoadedModule): LoadedModule {
  let module = stricts.get(shadow)
  if (module === undefined) {
    module = { ...shadow, onFailure: 'closed' }
    stricts.set(shadow, module)
  }
  return module
}
