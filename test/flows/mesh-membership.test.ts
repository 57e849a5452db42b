/** Gateways of a mesh that are killed, frozen, restarted and told to leave: M07–M09 and M40–M45 of the mesh specification. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { runCommand, startSim, stopCommands, until } from '../support/built-command.ts'
import { type MeshProcess, startMeshProcesses } from '../support/mesh-gateways.ts'
import { COMPLETE, endingOfStream } from '../support/request-ending.ts'
import { openSse } from '../support/sse-client.ts'
import { startValkey, type ValkeyServer, valkeySkipReason } from '../support/valkey-server.ts'

/** The specification asks for 30 s. */
const FROZEN_MS = Number(process.env.WEIR_TEST_MESH_FROZEN_MS ?? 8_000)

let server: ValkeyServer
let meshes = 0
beforeAll(async () => {
  if (valkeySkipReason === null) server = await startValkey()
})
afterEach(stopCommands)
afterAll(() => server?.remove())

const open = (count: number, more: Partial<Parameters<typeof startMeshProcesses>[1]> = {}) =>
  startMeshProcesses(count, { url: server.url, mesh: `test-${++meshes}`, ...more })

/** @returns milliseconds until each viewer shows the status */
async function seenBy(viewers: readonly MeshProcess[], name: string, status: string, limitMs: number) {
  const startedAtMs = performance.now()
  for (const viewer of viewers)
    await until(
      async () => (await viewer.sees(name)) === status,
      limitMs,
      () => `${viewer.name} shows ${name} as ${status}`,
    )
  return performance.now() - startedAtMs
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

describe.skipIf(valkeySkipReason !== null)('members', () => {
  it('M07, M08 A killed gateway is Suspected, then Down; restarted under its name it is Alive again, once', async () => {
    const [one, two, three] = await open(3)
    const others = [one, two]
    await three.kill()
    const killedAtMs = performance.now()
    expect(await seenBy(others, 'gw-3', 'Suspected', 3_500)).toBeLessThan(3_500)
    await seenBy(others, 'gw-3', 'Down', 7_000 - (performance.now() - killedAtMs))
    await one.write('while-away', '01')
    await three.start()
    await seenBy([one, two, three], 'gw-3', 'Alive', 3_000)
    expect(await three.read('while-away')).toBe('01')
    for (const viewer of [one, two, three]) {
      const listed = (await viewer.status()).nodes.filter(({ name }) => name === 'gw-3')
      expect(listed).toMatchObject([{ version: 2 }])
    }
  })

  it('a gateway that was frozen is Down meanwhile, and Alive everywhere within 3 s after it resumes', async () => {
    const all = await open(3)
    const [one, two, three] = all
    three.freeze()
    await seenBy([one, two], 'gw-3', 'Suspected', 3_500)
    await seenBy([one, two], 'gw-3', 'Down', 4_500)
    await one.write('meanwhile', '01')
    await pause(Math.max(0, FROZEN_MS - 7_000))
    three.resume()
    await seenBy(all, 'gw-3', 'Alive', 3_000)
    await until(async () => (await three.read('meanwhile')) === '01', 3_000)
    expect(await three.write('after', '02')).toBe(200)
    expect((await three.status()).nodes.find(({ name }) => name === 'gw-3')).toMatchObject({ version: 2 })
  })

  it('a gateway restarted within the lease of its name waits for it and starts', async () => {
    const [one, two] = await open(2)
    await two.kill()
    await two.start()
    await seenBy([one, two], 'gw-2', 'Alive', 3_000)
  })

  it('M09 A second gateway under one name ends with an error that names the setting', async () => {
    const [one] = await open(1)
    const [, ...args] = one.gateway.command.child.spawnargs.slice(1)
    const config = args[args.indexOf('--config') + 1]
    const end = await runCommand(['serve', '--config', config, '--port', '0']).ended
    expect(end.code).not.toBe(0)
    expect(end.stdout + end.stderr).toMatch(/is named gw-1: set plugins.mesh.name/)
    expect(await one.sees('gw-1')).toBe('Alive')
  })
})

const FLAGS = ['--model', 'demo', '--ttft-ms', '5', '--itl-ms', '20', '--tokens', '400']
const CHAT = { model: 'demo', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 200, stream: true }

describe.skipIf(valkeySkipReason !== null).each(['POST /ha/shutdown', 'SIGTERM'])('leaving by %s', (way) => {
  it('M40–M45 The gateway is Leaving everywhere, finishes its streams, exits 0, and is then gone', async () => {
    const sim = await startSim(...FLAGS)
    const worker = { url: sim.url, runtime_type: 'sglang', models: [{ id: 'demo' }] }
    const [one, two] = await open(2, {
      kernel: { shutdown: { graceMs: 30_000, settleMs: 2_500 } },
      workers: [worker],
    })
    const { url, command } = two.gateway
    const stream = openSse(`${url}/v1/chat/completions`, { body: CHAT })
    await stream.receive(2)

    const sentAtMs = performance.now()
    if (way === 'SIGTERM') command.signal('SIGTERM')
    else {
      // M40
      const response = await two.gateway.send('POST', '/ha/shutdown')
      expect([response.status, await response.json()]).toEqual([202, { status: 'shutdown initiated' }])
      // 100 ms, and time for a busy machine.
      expect(performance.now() - sentAtMs).toBeLessThan(1_000)
      // M43: a second one changes nothing.
      expect((await two.gateway.send('POST', '/ha/shutdown')).status).toBe(202)
    }
    // M41
    await seenBy([one, two], 'gw-2', 'Leaving', 2_000)
    expect((await two.gateway.get('/readiness')).status).toBe(503)
    expect((await two.gateway.get('/liveness')).status).toBe(200)
    // M42
    await until(
      () =>
        two.gateway.get('/liveness').then(
          () => false,
          () => true,
        ),
      10_000,
    )
    await stream.done
    expect(endingOfStream(stream)).toBe(COMPLETE)
    // M43
    expect((await command.ended).code).toBe(0)
    // M45
    await until(async () => (await one.status()).nodes.every(({ name }) => name !== 'gw-2'), 2_000)
    await two.start()
    await seenBy([one, two], 'gw-2', 'Alive', 3_000)
  })
})
