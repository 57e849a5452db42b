/**
 * CPU time of one worker pick by a module: the example `wasm-pick-team` behind the policy `wasm`, for small and larger
 * fleets, on one thread without a network. Run `npm run build`, then `node bench/micro/wasm-pick.ts`;
 * `node --conditions=weir-source bench/micro/wasm-pick.ts` measures the sources.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Figure } from '../support/figure.ts'
import { renderTable } from '../support/report.ts'

const { values: flags } = parseArgs({ options: { rounds: { type: 'string', default: '5' } } })
const ROUNDS = Number(flags.rounds)
const PICKS = 5_000
const FLEETS = [4, 16, 32]
/** The default of the gateway. */
const INLINE_FUEL = 400_000
const UUID = 'teams'
const LIMITS = { memoryPages: 64, tablePlaces: 1_000, stackKiB: 256, maxBodyBytes: 65_536, fuel: 4_000_000 }
const isSource = process.execArgv.some((argument) => argument.includes('source'))
const [ROOT, ENDING] = isSource ? ['../..', 'ts'] : ['../../dist', 'js']
const load = async (file: string) =>
  (await import(new URL(`${ROOT}/${file}.${ENDING}`, import.meta.url).href)) as Record<string, unknown>

/** Imported parts of the build. */
interface Guest {
  open(tenant: string | null): Promise<void>
  call(order: object): { readonly value: unknown; readonly report: { readonly failure: object | null } }
}
interface Policy {
  pick(candidates: object, request: object): number
}
type Make<Made> = new (...parameters: unknown[]) => Made

async function openGuest() {
  const { buildModule } = (await load('plugins/wasm/project/build')) as {
    buildModule: (options: object) => Promise<{ isOk: boolean; problem?: string }>
  }
  const { buildGuest } = (await load('plugins/wasm/instances/build-guest')) as {
    buildGuest: (bytes: Uint8Array, instance: string, limits: object) => Promise<object>
  }
  const { Guest } = (await load('plugins/wasm/instances/guest')) as { Guest: Make<Guest> }
  const { guestSurroundings } = (await load('plugins/wasm/instances/host-functions')) as {
    guestSurroundings: (state: object, level: string) => object
  }
  const { SharedState } = (await load('plugins/wasm/instances/shared-state')) as { SharedState: Make<object> }
  const folder = await mkdtemp(join(tmpdir(), 'weir-bench-'))
  const outFile = join(folder, 'module.wasm')
  const directory = fileURLToPath(new URL('../../examples/wasm-pick-team', import.meta.url))
  const compiled = await buildModule({ directory, outFile })
  if (!compiled.isOk) throw new Error(compiled.problem)
  const built = await buildGuest(Uint8Array.from(await readFile(outFile)), 'fresh', LIMITS)
  await rm(folder, { recursive: true })
  const surroundings = guestSurroundings(new SharedState(new SharedArrayBuffer(65_536), 0), 'error')
  const needs = { headers: ['x-team'], request_body: false }
  const module = {
    uuid: UUID,
    name: UUID,
    instance: 'fresh',
    config: {},
    match: {},
    needs,
    fuelPerByte: 0,
    stored: null,
    ...built,
  }
  const guest = new Guest(module, { surroundings, reuseCalls: 1_000 })
  await guest.open(null)
  return { module, guest }
}

/** Calls as on a serving thread. */
async function openPolicy(): Promise<{ policy: Policy; refresh(): Promise<void> }> {
  const { WasmPolicy } = (await load('plugins/wasm/pick/wasm-policy')) as { WasmPolicy: Make<Policy> }
  const { module, guest } = await openGuest()
  const policy = new WasmPolicy({
    modules: () => [module],
    inline: {
      pick: (_: object, input: Uint8Array, read: object) => {
        const call = guest.call({
          exportName: 'on_pick',
          input,
          tenant: null,
          fuel: INLINE_FUEL,
          read,
        })
        if (call.report.failure !== null) throw new Error(JSON.stringify(call.report.failure))
        return call
      },
    },
    statistics: { called: () => {}, isSuspended: () => false, skip: () => {} },
    otherwise: { name: 'none', needsBody: false, pick: () => -1 },
    limits: { maxCandidates: 32, maxBodyBytes: 16_384, headers: ['x-team'] },
  })
  return { policy, refresh: () => guest.open(null) }
}

function candidatesOf(count: number): object {
  const entries = Array.from({ length: count }, (_, slot) => ({
    slot,
    id: `0198c0de-0000-7000-8000-${String(slot).padStart(12, '0')}`,
    url: `http://10.0.0.${slot}:8000`,
    labels: { team: slot % 2 === 0 ? 'red' : 'blue' },
    cost: 1,
  }))
  return {
    length: count,
    hasLoads: false,
    worker: (index: number) => entries[index],
    inFlight: (index: number) => index % 5,
    load: () => null,
  }
}

const request = { model: 'llama', leg: 'whole', body: null, header: () => 'red' }
const figures: Figure[] = []
const { policy, refresh } = await openPolicy()
for (const count of FLEETS) {
  const candidates = candidatesOf(count)
  const values: number[] = []
  for (let round = 0; round <= ROUNDS; round++) {
    let usedUs = 0
    for (let left = PICKS; left > 0; left -= 500) {
      await refresh()
      const before = process.cpuUsage()
      for (let i = 0; i < 500; i++) {
        const choice = policy.pick(candidates, request)
        if (choice !== 0) throw new Error(`it chose ${choice}`)
      }
      const { user, system } = process.cpuUsage(before)
      usedUs += user + system
    }
    // The first round is warm-up.
    if (round > 0) values.push(usedUs / PICKS)
  }
  figures.push({ name: `pick of ${count} workers`, unit: 'us', values })
}
console.log(renderTable({ scenario: 'wasm-pick', question: 'What does a choice by a module cost?', figures }))
