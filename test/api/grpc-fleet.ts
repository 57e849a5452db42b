/** A gateway in front of scripted gRPC engines, registered and ready, with their tokenizer loaded. */
import { onTestFinished } from 'vitest'
import type { Plugin } from '../../kernel/plugin/define-plugin.ts'
import { startGateway } from '../support/gateway.ts'
import { type ScriptedEngineOptions, startScriptedEngine } from '../support/scripted-engine.ts'

export interface GrpcFleetOptions {
  readonly engines?: readonly (ScriptedEngineOptions & { readonly spec?: Record<string, unknown> })[]
  readonly kernel?: Record<string, unknown>
  readonly plugins?: Record<string, unknown>
  readonly own?: readonly Plugin[]
  readonly template?: string
  /** Further settings of the workers plugin. */
  readonly workers?: Record<string, unknown>
  /** Number of workers to wait for; default: all engines. */
  readonly ready?: number
}

export async function openGrpcFleet(options: GrpcFleetOptions = {}) {
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
  onTestFinished(async () => {
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
