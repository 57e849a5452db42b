/** Mutated modules: each is written to a file, registered, called by requests, and removed. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { guestBytes } from '../fixtures/wasm/guest-build.ts'
import { MUTABLE } from '../fixtures/wasm/mutable-module.ts'
import { mutateModule } from '../fixtures/wasm/mutate-module.ts'
import { assemble } from '../fixtures/wasm/wat.ts'
import { makeFolder } from '../support/built-command.ts'
import { startByteWorker } from './byte-worker.ts'
import { type Outcome, type Suite, startFuzzed, type Target } from './harness.ts'
import { HttpLane } from './http-lane.ts'
import { pickOf } from './mutate.ts'

const LANES = 6
/** The second call runs after the state changes of the first. */
const CALLS = 2
const PLACEMENTS = ['pool', 'inline', 'auto'] as const
const INSTANCES = ['fresh', 'reuse', 'shared', 'fresh'] as const

export const modules: Suite = { lanes: LANES, count: 300, start }

async function start(): Promise<Target> {
  // The small module is used more often, because a changed byte matters more there.
  const originals = [...Array<Uint8Array>(9).fill(assemble(MUTABLE)), Uint8Array.from(await guestBytes())]
  const worker = await startByteWorker()
  const folder = makeFolder()
  const gateway = await startFuzzed({
    plugins: { wasm: { roots: [folder], poolThreads: 2, fuel: 1_000_000 } },
    workers: [{ url: worker.url, models: [{ id: 'm' }] }],
  })
  const lanes = Array.from({ length: LANES }, () => new HttpLane(gateway.port))
  const send = (lane: number, start: string, body: unknown, mutant = 0) =>
    lanes[lane].send(
      `${start} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nx-mutant: ${mutant}\r\n`,
      Buffer.from(JSON.stringify(body) ?? ''),
    )
  let files = 0

  const run = async (lane: number, index: number, bytes: Buffer): Promise<Outcome> => {
    const file = join(folder, `${files++}.wasm`)
    writeFileSync(file, bytes)
    const added = await send(lane, 'POST /wasm', { modules: [definition(index, file)] })
    rmSync(file)
    const result = (JSON.parse(added.body || '{}') as Registered).modules?.[0]?.add_result
    if (added.status === 400 && result?.Error) return { ending: 'rejected' }
    if (result?.Success === undefined)
      return { ending: 'fault', fault: `registration: ${added.ending} ${added.body}` }
    const statuses: number[] = []
    for (let call = 0; call < CALLS; call++) {
      const { status, body } = await send(lane, 'POST /v1/chat/completions', CHAT, index)
      statuses.push(status)
      if (status !== 200 && !(status === 500 && body.includes('wasm_module_failed')))
        return { ending: 'fault', fault: `call: ${status} ${body}` }
    }
    const removed = await send(lane, `DELETE /wasm/${result.Success}`, undefined)
    return {
      ending: statuses.join(),
      fault: removed.status === 200 ? undefined : `removal: ${removed.status} ${removed.body}`,
    }
  }

  return {
    gateway,
    make: (draw, index) => ({
      label: String(index),
      parts: [Buffer.from(mutateModule(pickOf(originals, draw), draw))],
    }),
    run: ({ label, parts: [bytes] }, lane) => run(lane, Number(label), bytes),
    close: () => {
      for (const lane of lanes) lane.close()
      worker.close()
    },
  }
}

interface Registered {
  readonly modules?: readonly {
    readonly add_result?: { readonly Success?: string; readonly Error?: string }
  }[]
}

const CHAT = { model: 'm', messages: [{ role: 'user', content: 'grüß dich' }] }

function definition(index: number, file: string): object {
  return {
    name: `mutant-${index}`,
    file_path: file,
    module_type: 'Middleware',
    attach_points: [{ Middleware: 'OnRequest' }],
    needs: { request_body: index % 2 === 0 },
    placement: PLACEMENTS[index % PLACEMENTS.length],
    instance: INSTANCES[index % INSTANCES.length],
    on_failure: 'closed',
    timeout_ms: 2_000,
    // Other requests do not match it.
    match: { headers: { 'x-mutant': String(index) } },
  }
}
