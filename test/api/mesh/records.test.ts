/** Records of three mesh services on one Valkey: concurrent changes and removals, seen by the watchers of all. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import type { Logger } from '#kernel'
import { SharedMesh } from '../../../plugins/mesh/mesh/mesh-service.ts'
import { ValkeyEngine } from '../../../plugins/mesh/valkey/valkey-engine.ts'
import { openByteProxy } from '../../support/byte-proxy.ts'
import { engineConfig } from '../../support/engine-config.ts'
import { valkeySkipReason } from '../../support/valkey-server.ts'
import { eventually, newMesh, SECRET, useValkey } from './mesh-fleet.ts'

const quiet = Object.fromEntries(
  ['debug', 'info', 'warn', 'error'].map((level) => [level, () => undefined]),
) as unknown as Logger

describe.skipIf(valkeySkipReason !== null)('records on Valkey', () => {
  const valkey = useValkey()
  const open: SharedMesh[] = []
  afterEach(async () => {
    for (const one of open.splice(0)) await one.stop()
  })

  interface Member {
    readonly mesh: SharedMesh
    readonly records: ReturnType<typeof SharedMesh.prototype.records<number>>
    /** Last value of each record that the watcher was called with. */
    readonly seen: Map<string, number | undefined>
  }

  async function join(mesh: string, name: string, port = valkey.server.port): Promise<Member> {
    const config = {
      name,
      mesh,
      address: null,
      secret: SECRET,
      acknowledge: 'memory',
      requireAtStart: false,
      whenAlone: 'share',
      shares: {
        workers: true,
        limits: true,
        prefixes: true,
        sessions: true,
        wasm: true,
        tokenizers: true,
        keys: true,
      },
    } as const
    const about = {
      address: '',
      software: '',
      protocols: [1],
      secretCheck: '',
      status: 'Alive',
      inFlight: 0,
      config: {},
      position: null,
    } as const
    const url = `redis://127.0.0.1:${port}`
    const engine = new ValkeyEngine(engineConfig(url, 2_000), `weir:{${mesh}}:`, () => undefined)
    const one = new SharedMesh({
      engine,
      store: null,
      isShared: true,
      name,
      config,
      about: () => about,
      log: quiet,
    })
    open.push(one)
    const records = one.records<number>('counts')
    const seen = new Map<string, number | undefined>()
    records.watch((id, record) => seen.set(id, record?.value))
    await one.start()
    return { mesh: one, records, seen }
  }
  const joinAll = async (): Promise<Member[]> => {
    const mesh = newMesh()
    return Promise.all(['a', 'b', 'c'].map((name) => join(mesh, name)))
  }
  const valuesOf = ({ records }: Member) =>
    Object.fromEntries([...records.all].map(([id, { value }]) => [id, value]).sort())

  it('a removal is seen by all others, also if the record was changed just before', async () => {
    const [a, b, c] = await joinAll()
    await a.records.change('x', () => 1)
    await eventually(() => b.records.all.has('x') && c.records.all.has('x'))
    await b.records.change('x', (value = 0) => value + 1)
    await b.records.change('x', () => undefined)
    await eventually(() => !a.records.all.has('x') && !c.records.all.has('x'))
    expect([a.seen.get('x'), c.seen.get('x')]).toEqual([undefined, undefined])
    await c.records.change('x', (value = 40) => value + 2)
    await eventually(() => a.records.all.get('x')?.value === 42 && b.seen.get('x') === 42)
  })

  it('a gateway that was away reads everything again if the log was trimmed meanwhile', async () => {
    const mesh = newMesh()
    const proxy = await openByteProxy(valkey.server.port)
    const a = await join(mesh, 'a')
    const b = await join(mesh, 'b', proxy.port)
    await a.records.change('removed', () => 1)
    await eventually(() => b.records.all.has('removed'))
    proxy.cut()
    await a.records.change('removed', () => undefined)
    for (let value = 0; value < 10; value += 1) await a.records.change('changed', () => value)
    const socket = connect(valkey.server.port, '127.0.0.1')
    socket.write('AUTH operator any\r\n')
    await once(socket, 'data')
    socket.write(`XTRIM weir:{${mesh}}:log MAXLEN 2\r\n`)
    const [reply] = await once(socket, 'data')
    socket.destroy()
    // Of 12 changes.
    expect(String(reply)).toBe(':10\r\n')
    proxy.heal()
    await eventually(() => b.records.all.get('changed')?.value === 9)
    expect(valuesOf(b)).toEqual({ changed: 9 })
    expect([b.seen.get('removed'), b.seen.get('changed')]).toEqual([undefined, 9])
    await proxy.close()
  })

  it('of 600 concurrent additions none is lost', async () => {
    const all = await joinAll()
    const ids = ['p', 'q', 'r']
    const adding = Array.from({ length: 600 }, (_, n) =>
      all[n % 3].records.change(ids[(n % 7) % 3], (value = 0) => value + 1),
    )
    await Promise.all(adding)
    await eventually(() => new Set(all.map((one) => JSON.stringify(valuesOf(one)))).size === 1)
    const sum = [...all[0].records.all.values()].reduce((total, { value }) => total + value, 0)
    expect(sum).toBe(600)
  })

  it('random changes and removals of three gateways end equal, for watchers too', async () => {
    const all = await joinAll()
    let seed = 7
    const random = (below: number) => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed % below
    }
    for (let round = 0; round < 60; round += 1) {
      const changes = Array.from({ length: 12 }, () => {
        const [id, member, value] = [`id-${random(8)}`, all[random(3)], random(1_000)]
        const isRemoval = random(3) === 0
        return member.records.change(id, () => (isRemoval ? undefined : value))
      })
      await Promise.all(changes)
    }
    await eventually(() => new Set(all.map((one) => JSON.stringify(valuesOf(one)))).size === 1)
    for (const one of all)
      for (const [id, value] of one.seen) expect([id, one.records.all.get(id)?.value]).toEqual([id, value])
  })
})
