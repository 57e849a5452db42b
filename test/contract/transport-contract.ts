/** Contract of connection modes (transport and control plane); each one's test file runs it. */

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type {
  DescribeTools,
  Exchange,
  Transport,
  UpstreamFailure,
  UpstreamHandler,
  UpstreamLimits,
  UpstreamRequest,
  WorkerControl,
  WorkerRegistration,
} from '#kernel'
import { workerEntry } from '../support/worker-entry.ts'

/** What the engine behind a URL does with a request. */
export type EngineManner =
  /** Is healthy when probed; sends `ANSWER` in several chunks. */
  | 'answers'
  /** Starts a response and continues until the connection is closed. */
  | 'endless'
  /** Accepts connections and sends nothing, also to probes. */
  | 'silent'
  /** Starts a response and then sends nothing. */
  | 'stuck'
  /** Starts a response and closes the connection. */
  | 'breaks'

/** Text contained in the joined response of the engine. */
export const ANSWER = 'one two three'

export interface ContractEngine {
  readonly url: string
  /** Resolves once a request has arrived. */
  readonly received: Promise<void>
  /** Resolves once the gateway has closed a connection that carried a request. */
  readonly left: Promise<void>
  close(): Promise<void>
}

export interface ConnectionModeParts {
  readonly transport: Transport
  readonly control: WorkerControl
  /** A request that the engine accepts. */
  readonly request: UpstreamRequest
  openEngine(manner: EngineManner): Promise<ContractEngine>
  /** URL of a worker that is absent. */
  absentUrl(): Promise<string>
  close(): void
}

const NO_LIMITS: UpstreamLimits = { connectMs: 0, headMs: 0, firstTokenMs: 0, idleMs: 0, requestMs: 0 }

/** Records the callbacks in order. */
class Witness implements UpstreamHandler {
  readonly calls: string[] = []
  exchange: Exchange | null = null
  /** Bytes received so far. */
  byteCount = 0
  text = ''
  failure: UpstreamFailure | null = null
  readonly over = Promise.withResolvers<void>()
  onCall: (name: string) => void = () => {}

  onResponseStart(status: number): void {
    this.#note(`start ${status}`)
  }
  onResponseData(chunk: Buffer): void {
    this.byteCount += chunk.length
    if (this.text.length < 1_000) this.text += chunk.toString()
    this.#note('data')
  }
  onResponseEnd(): void {
    this.#note('end')
    this.over.resolve()
  }
  onResponseError(failure: UpstreamFailure): void {
    this.failure = failure
    this.#note('error')
    this.over.resolve()
  }
  /** Without consecutive duplicates. */
  get steps(): string[] {
    return this.calls.filter((name) => name !== 'data')
  }
  #note(name: string): void {
    this.calls.push(name)
    this.onCall(name)
  }
}

const silent = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent }
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

export function transportContract(name: string, make: () => ConnectionModeParts): void {
  describe(`the transport contract, by ${name}`, () => {
    let parts: ConnectionModeParts
    const engines: ContractEngine[] = []
    beforeEach(() => {
      parts = make()
    })
    afterEach(async () => {
      parts.transport.close()
      parts.close()
      for (const engine of engines.splice(0)) await engine.close()
    })

    const openEngine = async (manner: EngineManner) => {
      const engine = await parts.openEngine(manner)
      engines.push(engine)
      return engine
    }
    const entryOf = (url: string) => {
      const runtimeType = parts.control.runtimes[0] ?? 'unspecified'
      return workerEntry({ slot: 0, url, connectionMode: parts.transport.mode, runtimeType })
    }
    const send = (url: string, limits: Partial<UpstreamLimits> = {}, witness = new Witness()) => {
      let hasReturned = false
      const { onCall } = witness
      witness.onCall = (call) => {
        expect(hasReturned).toBe(true)
        onCall(call)
      }
      witness.exchange = parts.transport.open(
        entryOf(url),
        parts.request,
        { ...NO_LIMITS, ...limits },
        witness,
      )
      hasReturned = true
      return witness
    }

    test('mode of transport and control are the same, and the control claims a scheme', () => {
      expect(parts.control.mode).toBe(parts.transport.mode)
      expect(parts.control.schemes).not.toEqual([])
      for (const scheme of parts.control.schemes) expect(scheme).toMatch(/^[a-z][a-z0-9+.-]*$/)
    })

    test('a response is reported in order: one start, its chunks, one end, and nothing before open returns', async () => {
      const witness = send((await openEngine('answers')).url)
      await witness.over.promise
      expect(witness.steps).toEqual(['start 200', 'end'])
      expect(witness.calls[0]).toBe('start 200')
      expect(witness.calls.at(-1)).toBe('end')
      expect(witness.text).toContain(ANSWER)
    })

    test('concurrent exchanges do not mix', async () => {
      const { url } = await openEngine('answers')
      const witnesses = Array.from({ length: 20 }, () => send(url))
      await Promise.all(witnesses.map(({ over }) => over.promise))
      for (const { steps, text } of witnesses) {
        expect(steps).toEqual(['start 200', 'end'])
        expect(text).toBe(witnesses[0].text)
      }
    })

    test('an absent worker fails as connect, before any response', async () => {
      const witness = send(await parts.absentUrl(), { connectMs: 5_000 })
      await witness.over.promise
      expect(witness.calls).toEqual(['error'])
      expect(witness.failure).toMatchObject({ kind: 'connect', responseStarted: false })
    })

    test('a connection that breaks during the response fails as started', async () => {
      const witness = send((await openEngine('breaks')).url)
      await witness.over.promise
      expect(witness.steps).toEqual(['start 200', 'error'])
      expect(witness.failure).toMatchObject({ kind: 'reset', responseStarted: true })
    })

    test.each([
      ['headMs', 'silent', 'first_byte_timeout', false],
      ['firstTokenMs', 'silent', 'first_byte_timeout', false],
      ['requestMs', 'silent', 'request_timeout', false],
      ['idleMs', 'stuck', 'idle_timeout', true],
      ['requestMs', 'stuck', 'request_timeout', true],
      ['requestMs', 'endless', 'request_timeout', true],
    ] as const)(
      '%s ends an exchange with an engine that is %s, named %s',
      async (limit, manner, kind, isBegun) => {
        const engine = await openEngine(manner)
        // The request must have arrived, which takes time on a loaded machine.
        const witness = send(engine.url, { [limit]: 1_000 })
        await witness.over.promise
        expect(witness.failure).toMatchObject({ kind, responseStarted: isBegun })
        expect(witness.steps.at(-1)).toBe('error')
        await engine.left
      },
    )

    test('a paused exchange receives nothing, its timeouts are suspended, and it continues when resumed', async () => {
      const witness = new Witness()
      const begun = Promise.withResolvers<void>()
      witness.onCall = (call) => call === 'data' && begun.resolve()
      send((await openEngine('endless')).url, { idleMs: 1_000 }, witness)
      await begun.promise
      witness.exchange?.pause()
      const countAtPause = witness.calls.length
      await pause(1_500)
      expect(witness.calls.length - countAtPause).toBeLessThanOrEqual(1)
      expect(witness.failure).toBeNull()
      const goesOn = Promise.withResolvers<void>()
      const target = witness.byteCount + 100_000
      witness.onCall = () => witness.byteCount > target && goesOn.resolve()
      witness.exchange?.resume()
      await Promise.race([goesOn.promise, witness.over.promise])
      expect([witness.steps, witness.failure]).toEqual([['start 200'], null])
      witness.exchange?.abort()
    })

    test('pausing during a response loses nothing', async () => {
      const { url } = await openEngine('answers')
      const plain = send(url)
      await plain.over.promise
      const witness = new Witness()
      witness.onCall = (call) => {
        if (call !== 'data') return
        witness.exchange?.pause()
        setTimeout(() => witness.exchange?.resume(), 5)
      }
      send(url, {}, witness)
      await witness.over.promise
      expect(witness.steps).toEqual(['start 200', 'end'])
      expect(witness.text).toBe(plain.text)
    })

    test.each([
      ['silent', null],
      ['endless', 'start 200'],
      ['endless', 'data'],
      ['stuck', 'start 200'],
    ] as const)(
      'abort of an exchange with an engine that is %s, at %s: nothing follows and the engine sees it',
      async (manner, at) => {
        const engine = await openEngine(manner)
        const witness = new Witness()
        const aborted = Promise.withResolvers<void>()
        const abort = () => {
          witness.exchange?.abort()
          witness.exchange?.abort()
          aborted.resolve()
        }
        witness.onCall = (call) => call === at && abort()
        send(engine.url, { requestMs: 1_500, idleMs: 1_000 }, witness)
        if (at === null) void engine.received.then(abort)
        await aborted.promise
        const count = witness.calls.length
        await engine.left
        await pause(1_700)
        expect(witness.calls.length).toBe(count)
        witness.exchange?.resume()
        witness.exchange?.pause()
        expect(witness.calls.length).toBe(count)
      },
    )

    test('abort right after open, and after the end, is harmless', async () => {
      const { url } = await openEngine('answers')
      const early = send(url)
      early.exchange?.abort()
      const whole = send(url)
      await whole.over.promise
      whole.exchange?.abort()
      await pause(50)
      expect(early.calls).toEqual([])
      expect(whole.steps).toEqual(['start 200', 'end'])
    })
  })

  describe(`the control contract, by ${name}`, () => {
    let parts: ConnectionModeParts
    const engines: ContractEngine[] = []
    beforeEach(() => {
      parts = make()
    })
    afterEach(async () => {
      parts.transport.close()
      parts.close()
      for (const engine of engines.splice(0)) await engine.close()
    })
    const urlOf = async (manner: EngineManner | 'absent') => {
      if (manner === 'absent') return parts.absentUrl()
      const engine = await parts.openEngine(manner)
      engines.push(engine)
      return engine.url
    }
    const wishOf = (url: string, more: Partial<WorkerRegistration> = {}): WorkerRegistration => ({
      url,
      apiKey: null,
      runtimeType: 'unspecified',
      models: null,
      labels: {},
      provider: null,
      isConfigured: false,
      ...more,
    })
    const toolsOf = (more: Partial<DescribeTools> = {}): DescribeTools => ({
      signal: new AbortController().signal,
      wait: (waitMs) => pause(Math.min(waitMs, 20)).then(() => {}),
      note: () => {},
      log: silent,
      health: { path: '/health', timeoutMs: 100 },
      startupTimeoutMs: 300,
      checkIntervalMs: 50,
      expandsRanks: false,
      serviceKeys: new Map(),
      ...more,
    })

    test('a healthy worker is reported as healthy; a silent or absent one with the reason, in time', async () => {
      const probe = async (manner: EngineManner | 'absent', timeoutMs = 200) =>
        parts.control.probe({ url: await urlOf(manner), apiKey: null }, '/health', timeoutMs)
      expect(await probe('answers', 2_000)).toBeNull()
      const startedAtMs = performance.now()
      expect(await probe('silent')).toMatch(/\S/)
      expect(await probe('absent')).toMatch(/\S/)
      expect(performance.now() - startedAtMs).toBeLessThan(10_000)
    })

    test('a healthy worker is described, and the description survives JSON', async () => {
      const url = await urlOf('answers')
      const found = await parts.control.describe(wishOf(url), toolsOf({ startupTimeoutMs: 5_000 }))
      expect(JSON.parse(JSON.stringify(found))).toEqual(found)
      expect(parts.control.runtimes).toContain(found.runtimeType)
      expect(found.isExternal).toBe(parts.control.isExternal(wishOf(url)))
      expect(new Set(found.apis).size).toBe(found.apis.length)
    })

    test('configured models and runtime are kept', async () => {
      const url = await urlOf('answers')
      const [runtimeType] = parts.control.runtimes
      const wish = wishOf(url, { runtimeType, models: [{ id: 'mine' }] })
      const found = await parts.control.describe(wish, toolsOf({ startupTimeoutMs: 5_000 }))
      expect(found).toMatchObject({ runtimeType, models: [{ id: 'mine' }] })
      const wildcard = await parts.control.describe(
        { ...wish, models: [] },
        toolsOf({ startupTimeoutMs: 5_000 }),
      )
      expect(wildcard.models).toEqual([])
    })

    test.each(['silent', 'absent'] as const)(
      'a worker that is %s is given up when its time is over, and what kept it is noted',
      async (manner) => {
        const note = vi.fn()
        const described = parts.control.describe(wishOf(await urlOf(manner)), toolsOf({ note }))
        await expect(described).rejects.toMatchObject({ code: expect.stringMatching(/^[a-z_]+$/) })
        expect(note).toHaveBeenCalledWith(expect.stringMatching(/\S/))
      },
    )

    test('describing stops when the registration is cancelled', async () => {
      const controller = new AbortController()
      const wait = async () => {
        controller.abort(new Error('cancelled'))
        controller.signal.throwIfAborted()
      }
      const tools = toolsOf({ signal: controller.signal, wait, startupTimeoutMs: 60_000 })
      const described = parts.control.describe(wishOf(await parts.absentUrl()), tools)
      await expect(described).rejects.toThrow('cancelled')
    })

    test('other calls to an absent worker fail without an exception', async () => {
      const { control } = parts
      const worker = workerEntry({ slot: 0, url: await parts.absentUrl(), connectionMode: control.mode })
      expect((await control.loads?.(worker)) ?? null).toBeNull()
      control.forget?.(worker)
      expect((await control.metricsText?.(worker, 200)) ?? null).toBeNull()
      expect(control.actions.length === 0 || control.perform !== undefined).toBe(true)
      for (const kind of control.actions) {
        const action = kind === 'start_profile' ? { kind, options: {} } : { kind }
        expect(await control.perform?.(worker, action, 200)).toMatch(/\S/)
      }
    })
  })
}
