/**
 * Limits of three gateways on a real engine, with uneven traffic above them, while gateways are killed. They are
 * checked in every second of the engine, whose clock is that of this machine. `WEIR_TEST_LIMIT_SECONDS` sets the duration.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startValkey, type ValkeyServer, valkeySkipReason } from '../support/valkey-server.ts'

const MEMBER = fileURLToPath(new URL('../fixtures/limit-member.ts', import.meta.url))
const SECONDS = Number(process.env.WEIR_TEST_LIMIT_SECONDS ?? 8)
const LIMITS = [100, 1_000]
const KILL_EVERY_MS = 3_000
/** Shares of the traffic. */
const SHARES = [0.6, 0.3, 0.1]
const OFFERED = 1.5

interface Second {
  readonly admitted: number
  /** Admitted without grants, because the engine did not answer in time. */
  readonly alone: number
}

describe.skipIf(valkeySkipReason !== null)('limits of three gateways', () => {
  let server: ValkeyServer
  let dir: string

  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'weir-limits-'))
    server = await startValkey()
  })
  afterAll(async () => {
    await server?.remove()
    rmSync(dir, { recursive: true, force: true })
  })

  async function start(run: string, member: number): Promise<ChildProcess> {
    const load = String(OFFERED * SHARES[member])
    const child = fork(MEMBER, [server.url, load, join(dir, `${run}-${member}`), ...LIMITS.map(String)], {
      execArgv: ['--conditions=weir-source', '--disable-warning=ExperimentalWarning'],
    })
    await once(child, 'message')
    return child
  }

  async function stop(child: ChildProcess): Promise<void> {
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }

  /** Admitted requests by whole second of the run. */
  function secondsOf(run: string, limit: number, fromMs: number, toMs: number): Second[] {
    const bySecond = new Map<number, Second>()
    const files = readdirSync(dir).filter((one) => one.startsWith(`${run}-`) && one.includes(`-${limit}.`))
    for (const file of files) {
      const marks = readFileSync(join(dir, file), 'latin1')
      const second = Number(file.split('.')[1])
      const { admitted, alone } = bySecond.get(second) ?? { admitted: 0, alone: 0 }
      const aloneHere = marks.split('!').length - 1
      bySecond.set(second, { admitted: admitted + marks.length, alone: alone + aloneHere })
    }
    const first = Math.ceil(fromMs / 1_000)
    const count = Math.floor(toMs / 1_000) - first
    return Array.from({ length: count }, (_, at) => bySecond.get(first + at) ?? { admitted: 0, alone: 0 })
  }

  /** @returns the least share of a limit that was used */
  async function measure(run: string, seconds: number, kills: boolean): Promise<number> {
    const members = await Promise.all(SHARES.map((_, member) => start(run, member)))
    const fromMs = Date.now() + 1_000
    let next = 0
    for (const endsAtMs = fromMs + seconds * 1_000; Date.now() < endsAtMs; ) {
      await pause(Math.min(KILL_EVERY_MS, endsAtMs - Date.now()))
      if (!kills || Date.now() >= endsAtMs) continue
      const member = next++ % members.length
      await stop(members[member])
      members[member] = await start(run, member)
    }
    const toMs = Date.now()
    await Promise.all(members.map(stop))
    const shares = LIMITS.map((limit) => {
      const counts = secondsOf(run, limit, fromMs, toMs)
      const used = counts.reduce((sum, { admitted }) => sum + admitted, 0) / (limit * counts.length)
      const granted = counts.map(({ admitted, alone }) => admitted - alone)
      expect(Math.max(...granted), JSON.stringify(counts)).toBeLessThanOrEqual(limit)
      return used
    })
    return Math.min(...shares)
  }

  test.each([
    { run: 'steady', seconds: SECONDS / 2, kills: false, use: 0.97 },
    { run: 'killed', seconds: SECONDS, kills: true, use: 0.9 },
  ])('are used and never exceeded: $run', async ({ run, seconds, kills, use }) => {
    let used = 0
    // On a busy machine no traffic is offered for a while, so only the best of several tries counts.
    for (let count = 0; count < 4 && used < use; count += 1)
      used = Math.max(used, await measure(`${run}${count}`, seconds, kills))
    expect(used).toBeGreaterThanOrEqual(use)
  })
})
