/**
 * Hooks of every kind, in two plugins, that keep a trace of one request, and let its client leave at a chosen step of it:
 * for tests of what runs, and what is given back, after that.
 */
import { connect, type Socket } from 'node:net'
import { defineErrors, type HookName, type Host, type RequestContext } from '#kernel'

/** FIN, RST, or the work's own failure where somebody else than the one at work declares it. */
export type Leaving = 'fin' | 'rst' | 'fail'

/** Where the client leaves. */
export interface Plan {
  /** Which step of the trace, 0-based; -1: it stays. */
  readonly step: number
  readonly how: Leaving
  /** Turns of the event loop that each asynchronous hook takes; default 0, one of them at least makes it a promise. */
  readonly turns?: number
  /** Only after a part of the body is sent. */
  readonly inBody?: boolean
  /** Leaves this many turns of the event loop after the request was sent, wherever that is; default: by `step`. */
  readonly afterTurns?: number
}

export interface Outcome {
  /** Steps in order, such as `onRequest a`. */
  readonly trace: readonly string[]
  /** Steps that began after the request was over. */
  readonly late: readonly string[]
  /** How often each plugin heard of the end. */
  readonly ends: readonly number[]
  /** The one at which it left; null when it never came to that. */
  readonly left: string | null
}

const errors = defineErrors('leaving test', {
  given_up: { kind: 'unavailable', source: 'gateway', text: () => 'given up by somebody else' },
})

const ALL = { scope: 'all' } as const
/** Longest wait for what must come, also on a busy machine. */
const PATIENCE_MS = 20_000
/** Steps whose maker waits for an answer, so that the client can be gone before it is given. */
const AWAITED: ReadonlySet<string> = new Set([
  'access',
  'guard',
  'tool',
  'onRequest',
  'onUpstreamRequest',
  'onResponse',
  'onEvents',
  'onError',
])
/** They look at requests that are over. */
const OBSERVERS: ReadonlySet<string> = new Set(['onAttempt', 'onDone'])
/** What an error's own response goes through. */
const OF_ERRORS: ReadonlySet<string> = new Set(['onError', 'onResponse'])

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Turns until it is so, or nobody can believe in it any more. */
async function until(isSo: (turns: number) => boolean): Promise<void> {
  const endMs = performance.now() + PATIENCE_MS
  for (let turns = 0; !isSo(turns) && performance.now() < endMs; turns++) await turn()
}

/** One request at a time. */
export class LeavingTraces {
  readonly names: readonly string[] = ['a', 'b']
  #trace: string[] = []
  #late: string[] = []
  #ends = [0, 0]
  #plan: Plan = { step: -1, how: 'fin' }
  #left: string | null = null
  #ctx: RequestContext | null = null
  #socket: Socket | null = null
  #isOver = false
  #hasFailed = false
  /** Its guard has answered after the end. A call that is on its way already cannot be taken back. */
  #mayNotRunTools = false

  /** As the `register` of a plugin. @param index 0 or 1 */
  hook(host: Host, index: number): void {
    const name = this.names[index]
    const step = <T>(hook: HookName, ctx: RequestContext, value: T) => {
      this.#ctx = ctx
      return this.step(hook, name, value)
    }
    const now = <T>(hook: HookName, ctx: RequestContext, value: T): T => {
      this.#ctx = ctx
      this.#note(hook, name)
      return value
    }
    host.hook('onRequest', (ctx) => step('onRequest', ctx, undefined), ALL)
    host.hook('onPick', (ctx) => now('onPick', ctx, undefined), ALL)
    host.hook('onGeneration', (ctx) => now('onGeneration', ctx, undefined), ALL)
    host.hook('onUpstreamRequest', (ctx) => step('onUpstreamRequest', ctx, undefined), ALL)
    host.hook('onResponse', (ctx) => step('onResponse', ctx, undefined), ALL)
    host.hook('onEvents', (ctx, events) => step('onEvents', ctx, events), ALL)
    host.hook('onChunk', (ctx, chunk) => now('onChunk', ctx, chunk), ALL)
    host.hook('onError', (ctx, error) => step('onError', ctx, error), ALL)
    host.hook('onAttempt', (ctx) => now('onAttempt', ctx, undefined), ALL)
    host.hook(
      'onDone',
      (ctx) => {
        now('onDone', ctx, undefined)
        this.#ends[index]++
        this.#isOver = true
      },
      ALL,
    )
  }

  /** A step that its caller waits for. */
  async step<T>(what: string, name: string, value: T): Promise<T> {
    const leaves = this.#note(what, name)
    for (let turns = this.#plan.turns ?? 0; turns > 0; turns--) await turn()
    // It answers only when the gateway knows that the client has gone.
    if (leaves && this.#plan.how !== 'fail') await until(() => this.#isOver)
    if (what === 'guard' && this.#isOver) this.#mayNotRunTools = true
    return value
  }

  /** @returns whether the client leaves at it */
  #note(what: string, name: string): boolean {
    const label = `${what} ${name}`
    const isLate =
      what === 'tool'
        ? this.#mayNotRunTools
        : (this.#isOver || (this.#hasFailed && !OF_ERRORS.has(what))) && !OBSERVERS.has(what)
    if (isLate) this.#late.push(label)
    const isIt = this.#trace.push(label) - 1 === this.#plan.step
    if (isIt) this.#leave(label)
    return isIt && AWAITED.has(what)
  }

  #leave(label: string): void {
    const { how } = this.#plan
    if (how === 'rst') this.#socket?.resetAndDestroy()
    else if (how === 'fin') this.#socket?.destroy()
    else if (this.#ctx !== null && !OBSERVERS.has(label.split(' ')[0]) && !this.#ctx.isFailing) {
      this.#ctx.fail(errors.given_up())
      // Not yet, where hooks still hold a part of a stream: that goes out before the error does.
      this.#hasFailed = this.#ctx.isFailing
    } else return
    this.#left = label
  }

  /** One request, until its end is known to all and whatever would come too late has had its time. */
  async run(port: number, path: string, body: string, plan: Plan): Promise<Outcome> {
    this.#trace = []
    this.#late = []
    this.#ends = [0, 0]
    this.#plan = plan
    this.#left = null
    this.#ctx = null
    this.#isOver = false
    this.#hasFailed = false
    this.#mayNotRunTools = false
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    this.#socket = socket
    socket.on('error', () => {})
    socket.resume()
    const length = Buffer.byteLength(body)
    const head = `POST ${path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: ${length}`
    const sent = plan.inBody === true ? body.slice(0, length >> 1) : body
    await new Promise<void>((resolve) => socket.write(`${head}\r\n\r\n${sent}`, () => resolve()))
    if (plan.inBody === true) {
      // The head has arrived when the access check was asked.
      await until(() => this.#trace.length > 0)
      this.#leave('body')
    }
    if (plan.afterTurns !== undefined) {
      for (let turns = plan.afterTurns; turns > 0; turns--) await turn()
      this.#leave('any')
    }
    // Bytes that were sent just before a reset need not arrive.
    const isUnheard = (turns: number) => turns > 50 && this.#trace.length === 0 && socket.destroyed
    await until((turns) => Math.min(...this.#ends) > 0 || isUnheard(turns))
    for (let turns = 0; turns < 12; turns++) await turn()
    socket.destroy()
    return { trace: this.#trace, late: this.#late, ends: this.#ends, left: this.#left }
  }
}
