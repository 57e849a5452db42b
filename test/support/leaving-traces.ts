/**
 * Hooks of every kind, in two plugins, that record a trace of one request, and disconnect its client at a chosen step:
 * for tests of what runs after that, and what is released.
 */
import { connect, type Socket } from 'node:net'
import { defineErrors, type HookName, type Host, type RequestContext } from '#kernel'

/** FIN, RST, or `ctx.fail` from outside the running step. */
export type Leaving = 'fin' | 'rst' | 'fail'

/** When the client disconnects. */
export interface Plan {
  /** Step of the trace, 0-based; -1: never. */
  readonly step: number
  readonly how: Leaving
  /** Event loop turns of each asynchronous hook; default 0. With 1 or more it returns a pending promise. */
  readonly turns?: number
  /** Only after a part of the body is sent. */
  readonly inBody?: boolean
  /** Disconnects this many event loop turns after the request was sent; default: by `step`. */
  readonly afterTurns?: number
}

export interface Outcome {
  /** Steps in order, such as `onRequest a`. */
  readonly trace: readonly string[]
  /** Steps that began after the request had ended. */
  readonly late: readonly string[]
  /** Number of onDone calls of each plugin. */
  readonly ends: readonly number[]
  /** The step at which the client disconnected; null if it was not reached. */
  readonly left: string | null
}

const errors = defineErrors('leaving test', {
  given_up: { kind: 'unavailable', source: 'gateway', text: () => 'given up by another part' },
})

const ALL = { scope: 'all' } as const
/** Longest wait, also on a loaded machine. */
const TIMEOUT_MS = 20_000
/** Steps whose caller awaits their result, so that the client can disconnect before it is returned. */
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
/** Hooks that run after the end of a request. */
const OBSERVERS: ReadonlySet<string> = new Set(['onAttempt', 'onDone'])
/** Hooks of an error response. */
const OF_ERRORS: ReadonlySet<string> = new Set(['onError', 'onResponse'])

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Waits turn by turn until the condition holds, at most `TIMEOUT_MS`. */
async function until(isSo: (turns: number) => boolean): Promise<void> {
  const endMs = performance.now() + TIMEOUT_MS
  for (let turns = 0; !isSo(turns) && performance.now() < endMs; turns++) await turn()
}

/** Records one request at a time. */
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
  /** The guard returned after the end. A call in progress cannot be stopped. */
  #mayNotRunTools = false

  /** Registers the hooks of a plugin. @param index 0 or 1 */
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

  /** An asynchronous step. */
  async step<T>(what: string, name: string, value: T): Promise<T> {
    const leaves = this.#note(what, name)
    for (let turns = this.#plan.turns ?? 0; turns > 0; turns--) await turn()
    // Returns only after the gateway has noticed the disconnect.
    if (leaves && this.#plan.how !== 'fail') await until(() => this.#isOver)
    if (what === 'guard' && this.#isOver) this.#mayNotRunTools = true
    return value
  }

  /** @returns true if the client disconnects at this step */
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
      // Not while hooks still hold a part of a stream, which is sent before the error.
      this.#hasFailed = this.#ctx.isFailing
    } else return
    this.#left = label
  }

  /** Sends one request, and waits until both plugins saw its end and late steps had time to run. */
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
      // The head has arrived once the access check runs.
      await until(() => this.#trace.length > 0)
      this.#leave('body')
    }
    if (plan.afterTurns !== undefined) {
      for (let turns = plan.afterTurns; turns > 0; turns--) await turn()
      this.#leave('any')
    }
    // Bytes sent just before a reset may be lost.
    const isLost = (turns: number) => turns > 50 && this.#trace.length === 0 && socket.destroyed
    await until((turns) => Math.min(...this.#ends) > 0 || isLost(turns))
    for (let turns = 0; turns < 12; turns++) await turn()
    socket.destroy()
    return { trace: this.#trace, late: this.#late, ends: this.#ends, left: this.#left }
  }
}
