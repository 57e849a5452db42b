/** Mutated modules against a real gateway: each is written to a file, registered, called by requests, and removed. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { guestBytes } from '../fixtures/wasm/guest-build.ts'
import { MUTABLE } from '../fixtures/wasm/mutable-module.ts'
import { mutateModule, randomOf } from '../fixtures/wasm/mutate-module.ts'
import { assemble } from '../fixtures/wasm/wat.ts'
import { type BuiltGateway, makeFolder, startBuiltGateway } from '../support/built-command.ts'
import { healthOf, probeLiveness, startWellWorker } from './fuzz.ts'

export interface ModulesReport {
  readonly count: number
  readonly seconds: number
  /** By the registration, in words. */
  refused: number
  /** Registered, called and removed. */
  called: number
  /** Calls that went well. */
  goodCalls: number
  /** Calls that ended with the error of a module that did not run. */
  failedCalls: number
  /** What no reply may be: the first twenty. */
  readonly unexpected: string[]
  /** Of /liveness meanwhile, milliseconds. */
  readonly livenessP99Ms: number
  /** Of the gateway after a tenth of the modules and after all of them. */
  readonly rssMiB: readonly [number, number]
  readonly errors: readonly string[]
  readonly isWell: boolean
}

/** The gateway lives, has no error of its own, and every reply is one that is documented. */
export function isGoodWithModules({ isWell, errors, unexpected }: ModulesReport): boolean {
  return isWell && errors.length === 0 && unexpected.length === 0
}

const LANES = 6
/** The second call finds what the first has left. */
const CALLS = 2
const REPLY_LIMIT_MS = 15_000
const PLACEMENTS = ['pool', 'inline', 'auto'] as const
const INSTANCES = ['fresh', 'reuse', 'shared', 'fresh'] as const

export async function fuzzModules(count: number, seed: number): Promise<ModulesReport> {
  // The small one more often: what a byte changes shows sooner there.
  const small = assemble(MUTABLE)
  const originals = [...Array<Uint8Array>(9).fill(small), Uint8Array.from(await guestBytes())]
  const { url, server } = await startWellWorker()
  const folder = makeFolder()
  const gateway = await startBuiltGateway({
    kernel: { threads: 1, log: { level: 'error', access: false } },
    plugins: { wasm: { roots: [folder], poolThreads: 2, fuel: 1_000_000 } },
    workers: [{ url, models: [{ id: 'm' }] }],
  })
  const random = randomOf(seed)
  const counts = { refused: 0, called: 0, goodCalls: 0, failedCalls: 0, unexpected: [] as string[] }
  const startedAtMs = performance.now()
  const endProbe = probeLiveness(gateway.port)
  let next = 0
  let firstRssMiB = 0
  await Promise.all(
    Array.from({ length: LANES }, async () => {
      while (next < count && !gateway.command.hasEnded) {
        const index = next++
        if (index === Math.floor(count / 10)) firstRssMiB = rssMiB(gateway.command.pid)
        const bytes = mutateModule(originals[random(originals.length)], random)
        await tryMutant(gateway, { index, bytes, file: join(folder, `mutant-${index}.wasm`) }, counts).catch(
          (error: unknown) => counts.unexpected.push(`mutant ${index}: ${error}`),
        )
      }
    }),
  )
  const livenessP99Ms = await endProbe()
  const seconds = (performance.now() - startedAtMs) / 1000
  const health = await healthOf(gateway)
  const lastRssMiB = gateway.command.hasEnded ? 0 : rssMiB(gateway.command.pid)
  await gateway.command.stop()
  server.close()
  rmSync(folder, { recursive: true, force: true })
  const unexpected = counts.unexpected.slice(0, 20)
  return {
    count,
    seconds,
    ...counts,
    unexpected,
    livenessP99Ms,
    rssMiB: [firstRssMiB, lastRssMiB],
    ...health,
  }
}

interface Mutant {
  readonly index: number
  readonly bytes: Uint8Array
  readonly file: string
}

type Counts = Pick<ModulesReport, 'refused' | 'called' | 'goodCalls' | 'failedCalls' | 'unexpected'>

/** @throws when a reply does not come, or is none of those that may */
async function tryMutant(
  gateway: BuiltGateway,
  { index, bytes, file }: Mutant,
  counts: Counts,
): Promise<void> {
  writeFileSync(file, bytes)
  const uuid = await register(gateway, index, file)
  rmSync(file)
  if (uuid === null) {
    counts.refused++
    return
  }
  counts.called++
  for (let call = 0; call < CALLS; call++) {
    if (await isCallGood(gateway, index)) counts.goodCalls++
    else counts.failedCalls++
  }
  const removed = await ask(gateway, 'DELETE', `/wasm/${uuid}`)
  if (removed.status !== 200) throw new Error(`removed with ${removed.status}: ${removed.text}`)
}

/** @returns null when it was refused in words */
async function register(gateway: BuiltGateway, index: number, file: string): Promise<string | null> {
  const module = {
    name: `mutant-${index}`,
    file_path: file,
    module_type: 'Middleware',
    attach_points: [{ Middleware: 'OnRequest' }],
    needs: { request_body: index % 2 === 0 },
    placement: PLACEMENTS[index % PLACEMENTS.length],
    instance: INSTANCES[index % INSTANCES.length],
    on_failure: 'closed',
    timeout_ms: 2_000,
    // Nobody else's requests reach it.
    match: { headers: { 'x-mutant': String(index) } },
  }
  const { status, text } = await ask(gateway, 'POST', '/wasm', { modules: [module] })
  const result = status === 200 || status === 400 ? JSON.parse(text).modules?.[0]?.add_result : undefined
  if (status === 200 && typeof result?.Success === 'string') return result.Success
  if (status === 400 && typeof result?.Error === 'string' && result.Error !== '') return null
  throw new Error(`registered with ${status}: ${text}`)
}

/** False for the one error that a module's failure is. */
async function isCallGood(gateway: BuiltGateway, index: number): Promise<boolean> {
  const body = { model: 'm', messages: [{ role: 'user', content: 'grüß dich' }] }
  const headers = { 'x-mutant': String(index) }
  const { status, text } = await ask(gateway, 'POST', '/v1/chat/completions', body, headers)
  if (status === 200) return true
  if (status === 500 && text.includes('wasm_module_failed')) return false
  throw new Error(`called with ${status}: ${text}`)
}

async function ask(
  gateway: BuiltGateway,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<{ status: number; text: string }> {
  const reply = await fetch(gateway.url + path, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.timeout(REPLY_LIMIT_MS),
  })
  return { status: reply.status, text: (await reply.text()).slice(0, 2_000) }
}

function rssMiB(pid: number): number {
  const [, kib] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kib) / 1_024)
}
