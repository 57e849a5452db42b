/** GET /console/live: the points of the overview as an event stream. */
import {
  adminErrorFormat,
  defineCommand,
  defineTopic,
  type Host,
  Interval,
  type RequestContext,
  type RouteDefinition,
  type StreamWriter,
  Type,
} from '#kernel'
import { consoleErrors } from '../errors.ts'
import { type ConsoleSessions, SESSION_HEADERS } from '../sessions.ts'
import type { Point } from './point.ts'
import { INTERVAL_MS, type Sampler, SCOPES, type Scope } from './sampler.ts'

export const PointsTopic = defineTopic<Point>('console.points')
const WatchPoints = defineCommand<Scope, readonly Point[]>('console.watch')

/** Per data thread. */
const MAX_STREAMS = 32
const CHECK_MS = 1_000

interface LiveStream {
  readonly ctx: RequestContext
  readonly writer: StreamWriter
  readonly unsubscribe: () => void
}

export function handleLiveCommands(host: Host, sampler: Sampler): void {
  host.onCommand(WatchPoints, (scope) => sampler.watch(scope))
}

/** The open streams of this thread. */
export class LiveStreams {
  readonly #host: Host
  readonly #sessions: ConsoleSessions
  readonly #streams = new Set<LiveStream>()
  readonly #checks = new Interval(CHECK_MS, () => this.#checkAll())

  constructor(host: Host, sessions: ConsoleSessions) {
    this.#host = host
    this.#sessions = sessions
  }

  get route(): RouteDefinition {
    return {
      method: 'GET',
      path: '/console/live',
      access: 'admin',
      errors: adminErrorFormat,
      headers: SESSION_HEADERS,
      handler: (ctx) => this.#open(ctx),
      docs: {
        summary: 'Rates, latencies and workers: the last 15 minutes, then each second',
        tag: 'Console',
        query: {
          scope: Type.Optional(
            Type.String({ enum: [...SCOPES], default: 'gateway', description: 'This gateway, or the mesh.' }),
          ),
        },
        responses: {
          200: {
            description:
              'Events `history` (`interval_ms` and `points`), `point`, and `session_ended`, after which the stream ends.',
            contentType: 'text/event-stream',
          },
          400: { description: 'The scope is unknown.' },
          429: { description: 'As many streams are open as may be.' },
        },
      },
    }
  }

  async #open(ctx: RequestContext): Promise<void> {
    const scope = (ctx.queryParam('scope') ?? 'gateway') as Scope
    const history = await this.#host.command(WatchPoints, scope)
    if (ctx.isDone) return
    if (this.#streams.size >= MAX_STREAMS) throw consoleErrors.too_many_live_streams(MAX_STREAMS)
    const writer = ctx.sse()
    writer.write(event('history', { interval_ms: INTERVAL_MS, points: history }))
    const unsubscribe = this.#host.topic(PointsTopic).subscribe(scope, (point) => {
      // A client that is slow misses points.
      if (!ctx.flow.isHeld) writer.write(event('point', point))
    })
    const stream = { ctx, writer, unsubscribe }
    this.#streams.add(stream)
    ctx.onAbort(() => this.#forget(stream))
    this.#checks.start()
  }

  /** Ends the streams whose session or key has ended, and all when the gateway drains. */
  #checkAll(): void {
    for (const stream of this.#streams)
      if (this.#host.isDraining) this.#end(stream)
      else this.#check(stream).catch(() => this.#end(stream, event('session_ended', {})))
  }

  /** @throws as `AuthService.check` */
  async #check({ ctx }: LiveStream): Promise<void> {
    await (this.#sessions.identify(ctx) ?? this.#sessions.check('GET', ctx.header('authorization')))
  }

  #end(stream: LiveStream, last?: string): void {
    // A check may take longer than the interval of the checks.
    if (!this.#streams.has(stream)) return
    this.#forget(stream)
    stream.writer.end(last)
  }

  #forget(stream: LiveStream): void {
    stream.unsubscribe()
    this.#streams.delete(stream)
    if (this.#streams.size === 0) this.#checks.stop()
  }

  stop(): void {
    this.#checks.stop()
  }
}

/** JSON has no line break outside of strings, which escape them. */
function event(name: string, data: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
}
