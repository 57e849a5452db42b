/**
 * CPU time of one worker pick by a module: the example `wasm-pick-team` behind the policy `wasm`, for small and larger
 * fleets, on one thread without a network. Run `node --conditions=weir-source bench/micro/wasm-pick.ts`.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { CandidateView } from '#kernel'
import { Guest } from '../../plugins/wasm/instances/guest.ts'
import { guestSurroundings } from '../../plugins/wasm/instances/host-functions.ts'
import { SharedState } from '../../plugins/wasm/instances/shared-state.ts'
import { WasmPolicy } from '../../plugins/wasm/pick/wasm-policy.ts'
import { buildModule } from '../../plugins/wasm/project/build.ts'
import { loadTrial, withDefaultLimits } from '../../plugins/wasm/testing/trial-module.ts'
import { pickRequest } from '../../test/support/policy-fleet.ts'
import { workerEntry } from '../../test/support/worker-entry.ts'
import { candidatesOf } from '../support/candidates.ts'
import type { Figure } from '../support/figure.ts'
import { renderTable } from '../support/report.ts'

const { values: flags } = parseArgs({ options: { rounds: { type: 'string', default: '5' } } })
const ROUNDS = Number(flags.rounds)
const PICKS = 5_000
const FLEETS = [4, 16, 32]

async function openGuest(): Promise<Guest> {
  const folder = await mkdtemp(join(tmpdir(), 'weir-bench-'))
  const outFile = join(folder, 'module.wasm')
  const directory = fileURLToPath(new URL('../../examples/wasm-pick-team', import.meta.url))
  const compiled = await buildModule({ directory, outFile })
  if (!compiled.isOk) throw new Error(compiled.problem)
  const { module } = await loadTrial({ bytes: await readFile(outFile) })
  await rm(folder, { recursive: true })
  const surroundings = guestSurroundings(new SharedState(new SharedArrayBuffer(65_536), 0), 'error')
  const guest = new Guest(module, { surroundings, reuseCalls: 1_000 })
  await guest.open(null)
  return guest
}

/** Calls as on a serving thread. */
function policyOf(guest: Guest): WasmPolicy {
  const { fuel } = withDefaultLimits().inline
  return new WasmPolicy({
    modules: () => [guest.module],
    inline: {
      pick: (_module, input, read) => {
        const call = guest.call({ exportName: 'on_pick', input, tenant: null, fuel, read })
        if (call.report.failure !== null) throw new Error(JSON.stringify(call.report.failure))
        return call
      },
    },
    statistics: { called: () => {}, isSuspended: () => false, skip: () => {} },
    otherwise: { name: 'none', needsBody: false, pick: () => -1 },
    limits: { maxCandidates: 32, maxBodyBytes: 16_384, headers: ['x-team'] },
  })
}

function fleetOf(count: number): CandidateView {
  const workers = Array.from({ length: count }, (_, slot) =>
    workerEntry({
      slot,
      id: `0198c0de-0000-7000-8000-${String(slot).padStart(12, '0')}`,
      labels: { team: slot % 2 === 0 ? 'red' : 'blue' },
    }),
  )
  return candidatesOf(
    workers,
    Int32Array.from(workers, ({ slot }) => slot % 5),
  )
}

const request = pickRequest({ model: 'llama', headers: { 'x-team': 'red' } })
const figures: Figure[] = []
const guest = await openGuest()
const policy = policyOf(guest)
for (const count of FLEETS) {
  const candidates = fleetOf(count)
  const values: number[] = []
  for (let round = 0; round <= ROUNDS; round++) {
    let usedUs = 0
    for (let left = PICKS; left > 0; left -= 500) {
      await guest.open(null)
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
