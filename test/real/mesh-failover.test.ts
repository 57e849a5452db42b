/** A mesh on a primary, a replica and three sentinels: changes go on while the primary is replaced. Also on a cluster. */
import { afterEach, describe, expect, it } from 'vitest'
import {
  eventually,
  type MeshGateway,
  newMesh,
  openGateway,
  SECRET,
  stopMesh,
} from '../api/mesh/mesh-fleet.ts'
import { startCluster, startSentinels, type ValkeySentinels } from '../support/valkey-sentinels.ts'
import { valkeySkipReason } from '../support/valkey-server.ts'

const LANES = 4
/** Of each fault. */
const ROUNDS = Number(process.env.WEIR_FAILOVER_ROUNDS ?? 1)

const readKey = async (one: MeshGateway, key: string) =>
  (await one.call('GET', `/ha/config/${key}`)).body?.value
const write = async (one: MeshGateway, key: string, value: string) =>
  (await one.call('POST', '/ha/config', { key, value })).status

describe.skipIf(valkeySkipReason !== null)('failover', () => {
  let sentinels: ValkeySentinels | null = null
  afterEach(async () => {
    await stopMesh()
    await sentinels?.remove()
    sentinels = null
  })

  /** Writes growing numbers under a key of its own until it is ended. */
  class Writer {
    /** The last acknowledged number. */
    acknowledged = 0
    isEnded = false
    readonly done: Promise<void>

    constructor(gateway: MeshGateway, key: string) {
      this.done = this.#run(gateway, key)
    }

    async #run(gateway: MeshGateway, key: string): Promise<void> {
      for (let n = 1; !this.isEnded; n += 1)
        if ((await write(gateway, key, n.toString(16).padStart(8, '0'))) === 200) this.acknowledged = n
    }
  }

  it('planned and after a crash loses no acknowledged change, and heals', {
    timeout: 120_000 + ROUNDS * 120_000,
  }, async () => {
    sentinels = await startSentinels()
    const { addresses } = sentinels
    const isWhole = () => sentinels?.isWhole() ?? false
    await eventually(90_000, isWhole)
    const mesh = newMesh()
    const open = (name: string) =>
      openGateway(name, null, {
        mesh,
        settings: { secret: SECRET, acknowledge: { replicas: 1 } },
        plugins: { 'mesh-valkey': { url: 'redis://mymaster', sentinels: addresses, timeoutMs: 1_000 } },
      })
    const all = [await open('gw-1'), await open('gw-2')]
    const figures: object[] = []
    for (let round = 0; round < ROUNDS * 2; round += 1) {
      const isPlanned = round % 2 === 0
      const writers = all
        .flatMap((one) =>
          Array.from({ length: LANES }, (_, lane) => [`${one.name}.${lane}.${round}`, one] as const),
        )
        .map(([key, one]) => ({ key, writer: new Writer(one, key) }))
      await eventually(5_000, () => writers.every(({ writer }) => writer.acknowledged > 5))
      const old = await sentinels.primary()
      if (isPlanned) expect(await sentinels.failOver()).toBe('OK')
      else await old?.kill()
      const faultAtMs = performance.now()
      const sinceFault = () => Math.round(performance.now() - faultAtMs)
      await eventually(60_000, async () => {
        const primary = await sentinels?.primary()
        return primary !== null && primary !== old
      })
      if (!isPlanned) await old?.start()
      for (const one of all)
        await eventually(60_000, async () => (await one.status()).engine.state === 'connected')
      const connected = sinceFault()
      // Without a replica no change is acknowledged: Sentinel makes one of the old primary.
      await eventually(90_000, isWhole)
      const before = new Map(writers.map(({ key, writer }) => [key, writer.acknowledged]))
      await eventually(30_000, () =>
        writers.every(({ key, writer }) => writer.acknowledged > (before.get(key) ?? 0) + 2),
      )
      figures.push({ fault: isPlanned ? 'planned' : 'crash', connected, acknowledged: sinceFault() })
      for (const { writer } of writers) writer.isEnded = true
      await Promise.all(writers.map(({ writer }) => writer.done))
      for (const one of all) {
        for (const { key, writer } of writers)
          await eventually(
            5_000,
            async () => Number.parseInt((await readKey(one, key)) ?? '0', 16) >= writer.acknowledged,
          )
      }
      await eventually(90_000, isWhole)
    }
    console.table(figures)
  })

  it('a cluster is an engine as well', async () => {
    const server = await startCluster()
    const mesh = newMesh()
    const open = (name: string) =>
      openGateway(name, null, {
        mesh,
        settings: { secret: SECRET },
        plugins: { 'mesh-valkey': { url: server.url, cluster: true, timeoutMs: 1_000 } },
      })
    const [one, two] = [await open('gw-1'), await open('gw-2')]
    expect(await write(one, 'a', '01')).toBe(200)
    await eventually(2_000, async () => (await readKey(two, 'a')) === '01')
    await server.kill()
    await eventually(5_000, async () => (await one.status()).engine.state === 'degraded')
    await server.start()
    for (const gateway of [one, two])
      await eventually(10_000, async () => (await gateway.status()).engine.state === 'connected')
    await eventually(10_000, async () => (await write(two, 'a', '02')) === 200)
    await eventually(8_000, async () => (await readKey(one, 'a')) === '02')
    await stopMesh()
    await server.remove()
  })
})
