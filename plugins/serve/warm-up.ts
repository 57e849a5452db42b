/**
 * Makes a data thread compile the code of its requests before clients need it: a second gateway inside the thread serves
 * every enabled format for a while from an engine of its own, and is closed. Nothing of it reaches the metrics, logs, limits
 * or stores of the gateway. Keys, hooks, modules and plugins of third parties are left out.
 */
import type { KernelConfig } from '../../kernel/config/kernel-config.ts'
import type { LoadedConfig } from '../../kernel/config/loaded-config.ts'
import { createLogger } from '../../kernel/observe/log.ts'
import { catalog } from '../catalog.ts'
import { MODEL, openFixedEngine } from './fixed-engine.ts'
import { repeatRequests } from './repeat-requests.ts'
import { openSolo } from './solo-gateway.ts'

/** Time after which most of the code is optimised. bench: first-seconds */
const LENGTH_MS = 1_800
/** Typical for a chat of 250 bytes. */
const TEXT =
  'What is the capital of the country that borders on Spain and Italy? Answer in one word. '.repeat(2)
const messages = [{ role: 'user', content: TEXT }]
/** Path and body of the requests of a format, by the plugin that serves it. */
const FORMATS: Readonly<Record<string, readonly [path: string, body: object]>> = {
  chat: ['/v1/chat/completions', { messages }],
  responses: ['/v1/responses', { input: TEXT, store: false }],
  messages: ['/v1/messages', { messages, max_tokens: 64 }],
}
/** What their requests pass besides. */
const SHARED = ['generations', 'http-workers', 'policies', 'workers']

/** @throws Error if the second gateway does not start, or does not serve a format */
export async function warmUp({ kernel, plugins }: LoadedConfig): Promise<void> {
  const formats = Object.keys(FORMATS).filter((name) => plugins[name] !== undefined)
  if (formats.length === 0 || plugins['http-workers'] === undefined) return
  const log = createLogger({ level: 'silent', thread: 0 })
  const engine = await openFixedEngine(kernel, log)
  try {
    const sections = [...formats, ...SHARED].flatMap((name) =>
      plugins[name] === undefined ? [] : [[name, plugins[name]] as const],
    )
    const gateway = await openSolo(
      {
        kernel: soloKernel(kernel),
        plugins: {
          ...Object.fromEntries(sections),
          workers: { ...plugins.workers, urls: [engine.url], workers: [] },
        },
        requiredBy: {},
        disabledRoutes: {},
        file: null,
        secretPaths: [],
        sources: {},
        notices: [],
      },
      catalog,
      log,
    )
    try {
      await repeatRequests(gateway.port, requestsOf(formats), LENGTH_MS)
    } finally {
      await gateway.close()
    }
  } finally {
    engine.close()
  }
}

function soloKernel(kernel: KernelConfig): KernelConfig {
  const { tls: _tls, policy: _policy, prefillPolicy: _prefill, decodePolicy: _decode, ...rest } = kernel
  return { ...rest, host: '127.0.0.1', threads: 0, auth: 'off', log: { ...kernel.log, access: false } }
}

function requestsOf(formats: readonly string[]): (readonly [path: string, body: object])[] {
  return formats.flatMap((name) => {
    const [path, body] = FORMATS[name]
    return [false, true].map((stream) => [path, { model: MODEL, stream, ...body }] as const)
  })
}
