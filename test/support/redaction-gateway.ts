/** A gateway with one redaction module of the examples, in front of workers of each kind. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import { builtModule } from '../../wasm-sdk/fixtures/built-modules.ts'
import { startGateway, type TestGateway } from './gateway.ts'
import { TextWorkers, WORKER_KINDS } from './text-workers.ts'

export interface RedactionGateway {
  readonly gateway: TestGateway
  readonly workers: TextWorkers
  close(): Promise<void>
}

/** @param example folder of the module @param config of the module */
export async function startRedaction(
  example: string,
  attachPoint: string,
  config: object = {},
): Promise<RedactionGateway> {
  const folder = await mkdtemp(join(tmpdir(), 'weir-redaction-'))
  await writeFile(join(folder, 'redact.wasm'), await builtModule(example))
  const workers = await TextWorkers.start()
  const module = {
    name: 'redact',
    file_path: join(folder, 'redact.wasm'),
    module_type: 'Middleware',
    attach_points: [{ Middleware: attachPoint }],
    config,
    placement: 'inline',
  }
  const gateway = await startGateway({
    plugins: {
      auth: {},
      health: {},
      policies: {},
      chat: {},
      messages: {},
      grpc: {},
      parsers: { toolParser: 'qwen' },
      tokenizers: { load: [{ name: 'grpc', source: 'weir:sample' }] },
      storage: { dir: join(folder, 'store') },
      history: {},
      conversations: {},
      responses: { background: { pollMs: 20 } },
      wasm: { timeoutMs: 20_000, roots: [folder], modules: [module] },
      workers: { workers: workers.specs, health: { disable_health_check: true } },
    },
  })
  await vi.waitFor(
    async () => {
      const readiness = (await (await fetch(`${gateway.url}/readiness`)).json()) as Record<string, unknown>
      expect(readiness.healthy_workers).toBe(WORKER_KINDS.length)
      // The tokenizer is loaded.
      const body = JSON.stringify({ model: 'grpc', prompt: 'hi' })
      const headers = { 'content-type': 'application/json' }
      const reply = await fetch(`${gateway.url}/v1/completions`, { method: 'POST', headers, body })
      expect(await reply.text()).toBeTypeOf('string')
      expect(reply.status).toBe(200)
    },
    { timeout: 60_000, interval: 20 },
  )
  return {
    gateway,
    workers,
    close: async () => {
      await gateway.stop()
      await workers.close()
      await rm(folder, { recursive: true })
    },
  }
}
