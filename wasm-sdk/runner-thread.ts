/** Entry of the thread that a runner's guest lives in, so that a guest that never returns can be stopped with it. */
import { parentPort, workerData } from 'node:worker_threads'
import { createPlugin, type Plugin } from '@extism/extism'
import type { LogLine, ThreadCall, ThreadData, ThreadReply } from './guest-thread.ts'
import { hostFunctions } from './host-functions.ts'
import { HostState } from './host-state.ts'

const { module, config, snapshot, seed, usesWasi } = workerData as ThreadData
const state = new HostState(snapshot, seed)
let logs: LogLine[] = []
let warm: Plugin | null = null
let memory: WebAssembly.Memory | null = null

const logger = {
  trace: (text: string) => void logs.push({ level: 'trace', text }),
  debug: (text: string) => void logs.push({ level: 'debug', text }),
  info: (text: string) => void logs.push({ level: 'info', text }),
  warn: (text: string) => void logs.push({ level: 'warn', text }),
  error: (text: string) => void logs.push({ level: 'error', text }),
}

parentPort?.on('message', async (call: ThreadCall) => parentPort?.postMessage(await answer(call)))
parentPort?.postMessage('ready')

async function answer(call: ThreadCall): Promise<ThreadReply> {
  logs = []
  state.nowMs = call.nowMs
  state.tenant = call.tenant
  let output: Uint8Array | null = null
  let problem: string | null = null
  let elapsedMs = 0
  let memoryBytes = 0
  try {
    const plugin = (call.isReuse ? warm : null) ?? (await open())
    warm = call.isReuse ? plugin : null
    const begin = performance.now()
    try {
      const result = await plugin.call(call.exportName, call.input)
      output = result === null ? null : Uint8Array.from(result.bytes())
    } finally {
      elapsedMs = performance.now() - begin
      memoryBytes = memory?.buffer.byteLength ?? 0
      // Blocks are only freed so; without it an instance breaks after some thousand calls.
      await plugin.reset()
      // Descriptors of WASI would stay open.
      if (!call.isReuse) await plugin.close()
    }
  } catch (cause) {
    problem = (cause as Error).message
    // The globals of an instance that trapped are in no known state.
    warm = null
  }
  return { output, problem, logs, elapsedMs, memoryBytes, snapshot: state.snapshot() }
}

async function open(): Promise<Plugin> {
  const functions = hostFunctions(state, logger.trace, () => memory?.buffer ?? null)
  memory = null
  const plugin = await createPlugin({ wasm: [{ module }] }, {
    functions,
    useWasi: usesWasi,
    allowedPaths: {},
    allowedHosts: [],
    config: toExtismConfig(),
    logger,
  } as unknown as Parameters<typeof createPlugin>[1])
  const exported = (await plugin.getInstance()).exports.memory
  memory = exported instanceof WebAssembly.Memory ? exported : null
  return plugin
}

/** Only the given names are visible, and an empty value is a value. */
function toExtismConfig(): Record<string, string | Uint8Array> {
  const settings: Record<string, string | Uint8Array> = Object.create(null)
  for (const [name, value] of Object.entries(config))
    settings[name] = value === '' ? new Uint8Array(0) : value
  return settings
}
