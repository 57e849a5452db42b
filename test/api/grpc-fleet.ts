/** A gateway in front of scripted gRPC engines, registered and ready, with their tokenizer loaded. */
import { isDeepStrictEqual } from 'node:util'
import { afterAll, onTestFinished } from 'vitest'
import type { Plugin } from '../../kernel/plugin/define-plugin.ts'
import { startGateway } from '../support/gateway.ts'
import {
  ENGINE_NAMES,
  type EngineName,
  type ScriptedEngineOptions,
  startScriptedEngine,
} from '../support/scripted-engine.ts'

/** An engine; `spec` is added to its registration. */
export type EngineSpec = ScriptedEngineOptions & { readonly spec?: Record<string, unknown> }

export interface GrpcFleetOptions {
  readonly engines?: readonly EngineSpec[]
  readonly kernel?: Record<string, unknown>
  readonly plugins?: Record<string, unknown>
  readonly own?: readonly Plugin[]
  readonly template?: string
  /** Further settings of the workers plugin. */
  readonly workers?: Record<string, unknown>
  /** Number of workers to wait for; default: all engines. */
  readonly ready?: number
}

export type GrpcFleet = Awaited<ReturnType<typeof startGrpcFleet>>

/** Ends after the test. */
export function openGrpcFleet(options: GrpcFleetOptions = {}): Promise<GrpcFleet> {
  return startGrpcFleet(options, onTestFinished)
}

/**
 * Opens fleets that the tests of a file or of a `describe` share: those with equal options are one fleet, because most of
 * the time of a test goes into the threads of its tokenizer. Every call returns engines without a script and without
 * calls; no circuit breaker counts the failures of other tests.
 */
export function shareGrpcFleets(): (options?: GrpcFleetOptions) => Promise<GrpcFleet> {
  const shared: { readonly options: GrpcFleetOptions; readonly fleet: Promise<GrpcFleet> }[] = []
  const endings: (() => Promise<void>)[] = []
  afterAll(async () => {
    for (const end of endings) await end()
  })
  const start = (options: GrpcFleetOptions) => {
    const kernel = { breaker: { enabled: false }, ...options.kernel }
    const fleet = startGrpcFleet({ ...options, kernel }, (end) => endings.push(end))
    shared.push({ options, fleet })
    return fleet
  }
  return async (options = {}) => {
    const known = shared.find((one) => isDeepStrictEqual(one.options, options))
    const fleet = await (known?.fleet ?? start(options))
    for (const engine of fleet.engines) engine.reset()
    return fleet
  }
}

const EVERY_ENGINE: GrpcFleetOptions = {
  engines: ENGINE_NAMES.map((name) => ({ runtime: name, model: name })),
  plugins: {
    tokenizers: { load: ['test-model', ...ENGINE_NAMES].map((name) => ({ name, source: 'weir:sample' })) },
  },
}

/**
 * Opens one gateway with an engine of every kind.
 *
 * @param open opener of shared fleets
 * @returns an opener that shows the engine of one kind as if it were the only one: all requests are for its model
 */
export function withEveryEngine(
  open: (options: GrpcFleetOptions) => Promise<GrpcFleet>,
): (runtime: EngineName) => Promise<GrpcFleet> {
  return async (runtime) => {
    const fleet = await open(EVERY_ENGINE)
    const engine = fleet.engines[ENGINE_NAMES.indexOf(runtime)]
    const post: GrpcFleet['post'] = (path, body, headers, signal) =>
      fleet.post(path, { ...(body as object), model: runtime }, headers, signal)
    await until(async () => (await post('/v1/tokenize', { prompt: 'x' })).status === 200)
    return { ...fleet, engine, post }
  }
}

/** @param atEnd registers what ends the fleet */
async function startGrpcFleet(options: GrpcFleetOptions, atEnd: (end: () => Promise<void>) => void) {
  const given = options.engines ?? [{}]
  const engines = await Promise.all(given.map((engine) => startScriptedEngine(engine)))
  const gateway = await startGateway({
    kernel: { retry: { initialBackoffMs: 1, maxBackoffMs: 2 }, ...options.kernel },
    plugins: {
      auth: {},
      health: {},
      grpc: {},
      parsers: {},
      policies: {},
      chat: {},
      tokenizers: {
        load: [
          {
            name: 'test-model',
            source: 'weir:sample',
            ...(options.template && { chatTemplatePath: options.template }),
          },
        ],
      },
      workers: {
        workers: engines.map(({ url }, index) => ({ url, ...given[index].spec })),
        health: { disable_health_check: true },
        ...options.workers,
      },
      ...options.plugins,
    },
    own: options.own,
  })
  atEnd(async () => {
    await gateway.stop()
    for (const engine of engines) await engine.close()
  })
  const get = (path: string) => fetch(gateway.url + path)
  const post = (path: string, body: unknown, headers?: Record<string, string>, signal?: AbortSignal) =>
    fetch(gateway.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
      signal,
    })
  await until(async () => {
    const readiness = (await (await get('/readiness')).json()) as { healthy_workers?: number }
    return readiness.healthy_workers === (options.ready ?? engines.length)
  })
  // A real vocabulary takes long to load on a loaded machine.
  const isLoaded = async () =>
    (await post('/v1/tokenize', { model: 'test-model', prompt: 'x' })).status === 200
  await until(isLoaded, 100_000)
  const ids = async (text: string): Promise<number[]> => {
    const reply = await post('/v1/tokenize', { model: 'test-model', prompt: text, add_special_tokens: false })
    return ((await reply.json()) as { tokens: number[] }).tokens
  }
  return { gateway, engines, engine: engines[0], get, post, ids }
}

export async function until(check: () => Promise<boolean> | boolean, timeoutMs = 30_000): Promise<void> {
  const endsAt = performance.now() + timeoutMs
  while (!(await check())) {
    if (performance.now() > endsAt) throw new Error('it did not come about')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** The `data` values of an event stream. */
export function eventsOf(text: string): string[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => line.slice(6))
}
