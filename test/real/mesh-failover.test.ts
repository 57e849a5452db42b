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
import { ChangeLoad, ChatLoad } from '../support/mesh-load.ts'
import { jsonAnswer, type ScriptedWorker, startScriptedWorker } from '../support/scripted-worker.ts'
import { startCluster, startSentinels, type ValkeySentinels } from '../support/valkey-sentinels.ts'
import { valkeySkipReason } from '../support/valkey-server.ts'

const CHANGES_PER_SECOND = 300
const MODEL = 'llama'
/** Of each fault. */
const ROUNDS = Number(process.env.WEIR_FAILOVER_ROUNDS ?? 1)

const readKey = async (one: MeshGateway, key: string) =>
  (await one.call('GET', `/ha/config/${key}`)).body?.value
const write = async (one: MeshGateway, key: string, value: string) =>
  (await one.call('POST', '/ha/config', { key, value })).status

describe.skipIf(valkeySkipReason !== null)('failover', () => {
  let sentinels: ValkeySentinels | null = null
  let worker: ScriptedWorker | null = null
  afterEach(async () => {
    await stopMesh()
    await sentinels?.remove()
    sentinels = null
    await worker?.close()
  })

  it('planned and after a crash loses no acknowledged change and fails no request, and heals', {
    timeout: 300_000 + ROUNDS * 300_000,
  }, async () => {
    const servers = await startSentinels()
    sentinels = servers
    worker = await startScriptedWorker({ models: [MODEL] })
    worker.script('POST /v1/chat/completions', jsonAnswer({ id: 'x', choices: [] }))
    const { url } = worker
    const isWhole = () => servers.isWhole()
    await eventually(isWhole)
    const mesh = newMesh()
    const open = (name: string) =>
      openGateway(name, null, {
        mesh,
        settings: { secret: SECRET, acknowledge: { replicas: 1 } },
        plugins: {
          'mesh-valkey': { url: 'redis://mymaster', sentinels: servers.addresses, timeoutMs: 1_000 },
          workers: { workers: [{ url, runtime_type: 'sglang', models: [{ id: MODEL }] }] },
        },
      })
    const all = [await open('gw-1'), await open('gw-2')]
    for (const one of all) await eventually(async () => (await one.call('GET', '/readiness')).status === 200)
    const figures: Record<string, string | number>[] = []
    for (let round = 0; round < ROUNDS * 2; round += 1) {
      const isPlanned = round % 2 === 0
      const chats = new ChatLoad(all, MODEL)
      const changes = new ChangeLoad(all, CHANGES_PER_SECOND, `round-${round}`)
      const loadedAtMs = performance.now()
      await eventually(() => changes.total > 3 * CHANGES_PER_SECOND)
      const perSecond = (changes.total / (performance.now() - loadedAtMs)) * 1_000
      const old = await servers.primary()
      if (isPlanned) expect(await servers.failOver()).toBe('OK')
      else await old?.kill()
      const faultAtMs = performance.now()
      const sinceFault = () => Math.round(performance.now() - faultAtMs)
      let primary = old
      await eventually(async () => {
        primary = await servers.primary()
        return primary !== null && primary !== old
      })
      // As an init script does that asks the sentinels: without a replica no change is acknowledged.
      if (!isPlanned) await old?.start('--replicaof', `127.0.0.1 ${primary?.port}`)
      for (const one of all) await eventually(async () => (await one.status()).engine.state === 'connected')
      const connectedMs = sinceFault()
      const before = new Map(changes.acknowledged)
      await eventually(() =>
        all.every((one) => (changes.acknowledged.get(one) ?? 0) > (before.get(one) ?? 0) + 2),
      )
      const changeableMs = sinceFault()
      await changes.stop()
      const stoppedAtMs = performance.now()
      // It has what the engine has, and nothing of its own.
      const late = await open('gw-3')
      let lost = 0
      for (const one of [...all, late]) {
        const isWhole = async () => {
          lost = await changes.lostOn(one)
          return lost === 0
        }
        await eventually(isWhole).catch(() => undefined)
        if (lost > 0) break
      }
      const inStepMs = Math.round(performance.now() - stoppedAtMs)
      await chats.stop()
      await late.stop()
      figures.push({
        fault: isPlanned ? 'planned' : 'kill -9',
        'changes/s': Math.round(perSecond),
        acknowledged: changes.total,
        lost,
        refused: changes.refused,
        'connected ms': connectedMs,
        'changes again ms': changeableMs,
        'in step ms': inStepMs,
        requests: chats.sent,
        failed: chats.failed,
        'slowest ms': Math.round(chats.slowestMs),
      })
      console.log(JSON.stringify(figures.at(-1)))
      await eventually(isWhole)
    }
    console.table(figures)
    for (const { lost, failed } of figures) expect([lost, failed]).toEqual([0, 0])
  })

  it.each(['disk', { replicas: 1 }])('split, with changes acknowledged by %j', async (acknowledge) => {
    const servers = await startSentinels()
    sentinels = servers
    await eventually(() => servers.isWhole())
    const mesh = newMesh()
    const open = (name: string, engine: object) =>
      openGateway(name, null, {
        mesh,
        settings: { secret: SECRET, acknowledge },
        plugins: { 'mesh-valkey': { timeoutMs: 1_000, ...engine } },
      })
    const old = await servers.primary()
    if (old === null) throw new Error('the sentinels name no primary')
    // On the side of the old primary, and on that of the sentinels.
    const stranded = await open('gw-1', { url: old.url })
    const moved = await open('gw-2', { url: 'redis://mymaster', sentinels: servers.addresses })
    const all = [stranded, moved]
    const changes = all.map((one) => new ChangeLoad([one], CHANGES_PER_SECOND / 2, 'split'))
    await eventually(() => changes.every(({ total }) => total > CHANGES_PER_SECOND))
    const heal = await servers.split(old)
    const before = changes.map(({ total, refused }) => ({ total, refused }))
    const splitAtMs = performance.now()
    await eventually(async () => {
      const primary = await servers.primary()
      return primary !== null && primary !== old
    })
    await eventually(async () => (await moved.status()).engine.state !== 'degraded')
    const connectedMs = Math.round(performance.now() - splitAtMs)
    // Without a replica that confirms it, a change is refused on both sides.
    const count = acknowledge === 'disk' ? 'total' : 'refused'
    await eventually(() =>
      changes.every((one, at) => one[count] > (before[at]?.[count] ?? 0) + CHANGES_PER_SECOND / 2),
    )
    const meanwhile = changes.map(({ total }, at) => total - (before[at]?.total ?? 0))
    await changes[0]?.stop()
    await heal()
    const healedAtMs = performance.now()
    await eventually(() => servers.isWhole())
    const wholeMs = Math.round(performance.now() - healedAtMs)
    await changes[1]?.stop()
    const states = () => Promise.all(all.map(async (one) => (await one.status()).engine.state))
    // Both had changes acknowledged by the old primary alone, and renewals on the new one find them missing.
    if (acknowledge === 'disk') await eventually(async () => (await states()).includes('diverged'))
    const primary = await servers.primary()
    const late = await openGateway('gw-3', primary, { mesh, settings: { acknowledge: 'memory' } })
    const lost = await Promise.all(changes.map((one) => one.lostOn(late)))
    console.log(
      JSON.stringify({
        acknowledge,
        meanwhile,
        lost,
        states: await states(),
        late: (await late.status()).engine.state,
        connectedMs,
        wholeMs,
      }),
    )
    if (acknowledge !== 'disk') expect(lost).toEqual([0, 0])
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
    await eventually(async () => (await readKey(two, 'a')) === '01')
    await server.kill()
    await eventually(async () => (await one.status()).engine.state === 'degraded')
    await server.start()
    for (const gateway of [one, two])
      await eventually(async () => (await gateway.status()).engine.state === 'connected')
    await eventually(async () => (await write(two, 'a', '02')) === 200)
    await eventually(async () => (await readKey(one, 'a')) === '02')
    await stopMesh()
    await server.remove()
  })
})
