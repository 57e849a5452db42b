/** A gateway with the wasm plugin before scripted workers, and what tests do with its modules. */
import { onTestFinished } from 'vitest'
import type { AddResult, ModuleDescriptor, ModuleList } from '../../plugins/wasm/wire.ts'
import { GuestFolder } from '../fixtures/wasm/guest-build.ts'
import { type Fleet, type FleetOptions, openFleet } from './fleet.ts'

type Point = ModuleDescriptor['attach_points'][number]['Middleware']

/**
 * Waiting for a thread counts, also while the machine does something else. Starting a thread takes
 * longer than starting a gateway, so only tests of concurrent calls have several.
 */
const PATIENT = { timeoutMs: 20_000, poolThreads: 1 }

export interface WasmFleet extends Fleet {
  readonly folder: GuestFolder
  register(...modules: unknown[]): Promise<{ status: number; results: AddResult[]; body: unknown }>
  /** Registers a copy of the guest that does what its configuration says. @returns its uuid */
  attach(
    name: string,
    points: Point | readonly Point[],
    config?: Record<string, string>,
    more?: Partial<ModuleDescriptor>,
  ): Promise<string>
  list(): Promise<ModuleList>
  remove(uuid: string): Promise<Response>
  chat(body?: unknown, headers?: Record<string, string>): Promise<Response>
  /** Samples of the metrics listener by name and labels. */
  metrics(): Promise<Map<string, number>>
}

/**
 * @param config the plugin's section; `roots` is the fleet's folder by default
 * @param options `adminKey` opens the control plane where the test has keys
 */
export async function openWasmFleet(
  config: Record<string, unknown> = {},
  { adminKey, ...options }: FleetOptions & { adminKey?: string } = {},
): Promise<WasmFleet> {
  const admin: Record<string, string> = adminKey === undefined ? {} : { authorization: `Bearer ${adminKey}` }
  const folder = new GuestFolder()
  onTestFinished(() => folder.remove())
  const fleet = await openFleet({
    ...options,
    plugins: { wasm: { ...PATIENT, roots: [folder.path], ...config }, ...options.plugins },
  })
  const { url, metricsUrl } = fleet.gateway
  const wasm: WasmFleet = {
    ...fleet,
    folder,
    register: async (...modules) => {
      const response = await fleet.post('/wasm', { modules }, admin)
      const body = (await response.json()) as { modules?: { add_result: AddResult }[] }
      const results = (body.modules ?? []).map(({ add_result }) => add_result)
      return { status: response.status, results, body }
    },
    attach: async (name, points, guestConfig = {}, more = {}) => {
      const module = await folder.module(name, [points].flat() as Point[], guestConfig, more)
      const { results } = await wasm.register(module)
      if (!('Success' in results[0])) throw new Error(`not registered: ${JSON.stringify(results)}`)
      return results[0].Success
    },
    list: async () => (await (await fleet.get('/wasm', admin)).json()) as ModuleList,
    remove: (uuid) => fetch(`${url}/wasm/${uuid}`, { method: 'DELETE', headers: admin }),
    chat: (body = { model: 'test-model', messages: [] }, headers = {}) =>
      fleet.post('/v1/chat/completions', body, headers),
    metrics: async () => {
      const text = await (await fetch(metricsUrl as string)).text()
      const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
      return new Map(
        lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]),
      )
    },
  }
  return wasm
}
