/**
 * What clients and operators of two gateways see of each fault of the mesh engine. Requests go by turns to a gateway of the mesh,
 * whose limits are shared, and to one without a mesh, so that the difference is what the engine adds.
 */
import { afterEach, describe, expect, it } from 'vitest'
import { startBuiltGateway, stopCommands, until } from '../support/built-command.ts'
import { type ByteProxy, openByteProxy } from '../support/byte-proxy.ts'
import { startMeshProcesses } from '../support/mesh-gateways.ts'
import { ChangeLoad } from '../support/mesh-load.ts'
import { jsonAnswer, startScriptedWorker } from '../support/scripted-worker.ts'
import { startValkey, type ValkeyServer, valkeySkipReason } from '../support/valkey-server.ts'

const PAIRS = 200
const CHANGES_PER_SECOND = 50
const MODEL = 'demo'
const CHAT = { model: MODEL, messages: [{ role: 'user', content: 'Hello' }] }
const LIMITS = {
  requestsPerSecond: 100_000,
  tenants: { default: { requestsPerMinute: 1_000_000, tokensPerMinute: 100_000_000 } },
}

interface Fault {
  readonly name: string
  /** State of the engine that the gateways show meanwhile. */
  readonly state: string
  begin(server: ValkeyServer, proxy: ByteProxy): unknown
  end(server: ValkeyServer, proxy: ByteProxy): unknown
}

const FAULTS: readonly Fault[] = [
  { name: 'none', state: 'connected', begin: () => undefined, end: () => undefined },
  {
    name: 'killed',
    state: 'degraded',
    begin: (server) => server.kill(),
    end: (server) => server.start(),
  },
  {
    name: 'does not answer',
    state: 'degraded',
    begin: (server) => server.freeze(),
    end: (server) => server.resume(),
  },
  {
    name: '150 ms away in each direction',
    state: 'connected',
    begin: (_, proxy) => {
      proxy.delayMs = 150
    },
    end: (_, proxy) => proxy.heal(),
  },
  {
    name: 'out of memory',
    state: 'degraded',
    begin: (server) => server.operate('CONFIG', 'SET', 'maxmemory', '1'),
    end: (server) => server.operate('CONFIG', 'SET', 'maxmemory', '0'),
  },
  {
    name: 'read-only',
    state: 'degraded',
    begin: (server) => server.operate('REPLICAOF', '127.0.0.1', '1'),
    end: (server) => server.operate('REPLICAOF', 'NO', 'ONE'),
  },
  {
    name: 'cut off',
    state: 'degraded',
    begin: (_, proxy) => proxy.cut(),
    end: (_, proxy) => proxy.heal(),
  },
]

describe.skipIf(valkeySkipReason !== null)('faults of the engine', () => {
  afterEach(() => stopCommands())

  it('delay no request by a millisecond, lose no acknowledged change, and heal within 10 s', {
    timeout: 600_000,
  }, async () => {
    const server = await startValkey('--appendfsync', 'always')
    const proxy = await openByteProxy(server.port)
    const worker = await startScriptedWorker({ models: [MODEL] })
    worker.script('POST /v1/chat/completions', jsonAnswer({ id: 'x', choices: [] }))
    const workers = [{ url: worker.url, runtime_type: 'sglang', models: [{ id: MODEL }] }]
    const all = await startMeshProcesses(2, {
      url: `redis://127.0.0.1:${proxy.port}`,
      mesh: 'faults',
      workers,
      plugins: { limits: LIMITS },
    })
    const alone = await startBuiltGateway({ kernel: { threads: 1 }, plugins: { limits: LIMITS }, workers })
    const [one] = all
    const chat = async (url: string) => {
      const startedAtMs = performance.now()
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(CHAT),
      })
      await response.text()
      return { ms: performance.now() - startedAtMs, isFailed: response.status !== 200 }
    }
    /** Of pairs of chats, sorted. */
    const measure = async () => {
      const added: number[] = []
      let failed = 0
      for (let pair = 0; pair < PAIRS; pair += 1) {
        const meshed = await chat(one.gateway.url)
        const other = await chat(alone.url)
        added.push(meshed.ms - other.ms)
        if (meshed.isFailed) failed += 1
      }
      added.sort((a, b) => a - b)
      return { median: added[PAIRS / 2], p99: added[Math.floor(PAIRS * 0.99)], failed }
    }
    const statesAre = async (state: string) => {
      for (const gateway of all) if ((await gateway.status()).engine.state !== state) return false
      return true
    }
    await measure()
    const rows: { fault: string; [column: string]: string | number }[] = []
    let base = 0
    for (const fault of FAULTS) {
      const changes = new ChangeLoad(all, CHANGES_PER_SECOND, fault.name.replaceAll(' ', '-'))
      await until(() => changes.total > CHANGES_PER_SECOND)
      const beganAtMs = performance.now()
      const acknowledged = changes.total
      await fault.begin(server, proxy)
      const first = await measure()
      await until(() => statesAre(fault.state))
      const noticedMs = Math.round(performance.now() - beganAtMs)
      const later = await measure()
      const during = changes.total - acknowledged
      const refused = changes.refused
      const problem = (await one.call('GET', '/ha/health')).text
      await fault.end(server, proxy)
      const endedAtMs = performance.now()
      await until(() => statesAre('connected'))
      const connectedMs = Math.round(performance.now() - endedAtMs)
      const before = changes.total
      await until(() => changes.total > before + 2)
      const changeableMs = Math.round(performance.now() - endedAtMs)
      await changes.stop()
      let lost = 0
      for (const gateway of all)
        await until(async () => {
          lost = await changes.lostOn(gateway)
          return lost === 0
        })
      if (fault.name === 'none') base = later.median
      rows.push({
        fault: fault.name,
        'first ms': +(first.median - base).toFixed(2),
        'later ms': +(later.median - base).toFixed(2),
        'p99 ms': +Math.max(first.p99, later.p99).toFixed(1),
        failed: first.failed + later.failed,
        'changes meanwhile': during,
        refused,
        lost,
        noticedMs,
        connectedMs,
        changeableMs,
      })
      console.log(JSON.stringify(rows.at(-1)), problem)
    }
    console.table(rows)
    await proxy.close()
    await server.remove()
    await worker.close()
    for (const row of rows) {
      expect(row, row.fault).toMatchObject({ failed: 0, lost: 0 })
      // Requests that waited for the engine would take its time limit of seconds; idle machines add less than 1 ms.
      expect(Math.max(Number(row['first ms']), Number(row['later ms'])), row.fault).toBeLessThan(500)
    }
  })
})
