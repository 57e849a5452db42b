/** Gateways of a mesh that are killed, frozen, restarted and told to leave: M07–M09 and M40–M45 of the mesh specification. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { runCommand, startSim, stopCommands, until } from '../support/built-command.ts'
import { type MeshProcess, startMeshProcesses } from '../support/mesh-gateways.ts'
import { COMPLETE, endingOfStream } from '../support/request-ending.ts'
import { openSse } from '../support/sse-client.ts'
import { startValkey, type ValkeyServer, valkeySkipReason } from '../support/valkey-server.ts'

let server: ValkeyServer
let meshes = 0
beforeAll(async () => {
  if (valkeySkipReason === null) server = await startValkey()
})
afterEach(stopCommands)
afterAll(() => server?.remove())

const open = (count: number, more: Partial<Parameters<typeof startMeshProcesses>[1]> = {}) =>
  startMeshProcesses(count, { url: server.url, mesh: `test-${++meshes}`, ...more })

/** Resolves when each viewer shows the status. */
async function seenBy(viewers: readonly MeshProcess[], name: string, status: string): Promise<void> {
  for (const viewer of viewers)
    await until(
      async () => (await viewer.sees(name)) === status,
      () => `${viewer.name} shows ${name} as ${status}`,
    )
}

/** Resolves when each viewer has logged that the gateway changed to the status, which it may no longer have. */
const loggedBy = (viewers: readonly MeshProcess[], name: string, status: string) =>
  Promise.all(
    viewers.map(({ gateway }) =>
      gateway.command.line(new RegExp(`"name":"${name}","status":"${status}".*mesh member changed`)),
    ),
  )

describe.skipIf(valkeySkipReason !== null)('members', () => {
  it('M07, M08 A killed gateway is Suspected, then Down; restarted under its name it is Alive again, once', async () => {
    const [one, two, three] = await open(3)
    const others = [one, two]
    await three.kill()
    await loggedBy(others, 'gw-3', 'Suspected')
    await seenBy(others, 'gw-3', 'Down')
    await one.write('while-away', '01')
    await three.start()
    await seenBy([one, two, three], 'gw-3', 'Alive')
    expect(await three.read('while-away')).toBe('01')
    for (const viewer of [one, two, three]) {
      const listed = (await viewer.status()).nodes.filter(({ name }) => name === 'gw-3')
      expect(listed).toMatchObject([{ version: 2 }])
    }
  })

  it('a gateway that was frozen is Down meanwhile, and Alive everywhere after it resumes', async () => {
    const all = await open(3)
    const [one, two, three] = all
    three.freeze()
    await loggedBy([one, two], 'gw-3', 'Suspected')
    await seenBy([one, two], 'gw-3', 'Down')
    await one.write('meanwhile', '01')
    three.resume()
    await seenBy(all, 'gw-3', 'Alive')
    await until(async () => (await three.read('meanwhile')) === '01')
    expect(await three.write('after', '02')).toBe(200)
    expect((await three.status()).nodes.find(({ name }) => name === 'gw-3')).toMatchObject({ version: 2 })
  })

  it('a gateway restarted within the lease of its name waits for it and starts', async () => {
    const [one, two] = await open(2)
    await two.kill()
    await two.start()
    await seenBy([one, two], 'gw-2', 'Alive')
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

/** Long enough for the requests of the test while the gateway is leaving, on a busy machine as well. */
const SETTLE_MS = 5_000
const FLAGS = ['--model', 'demo', '--ttft-ms', '5', '--itl-ms', '20', '--tokens', '400']
const CHAT = { model: 'demo', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 200, stream: true }

describe.skipIf(valkeySkipReason !== null).each(['POST /ha/shutdown', 'SIGTERM'])('leaving by %s', (way) => {
  it('M40–M45 The gateway is Leaving everywhere, finishes its streams, exits 0, and is then gone', async () => {
    const sim = await startSim(...FLAGS)
    const worker = { url: sim.url, runtime_type: 'sglang', models: [{ id: 'demo' }] }
    const [one, two] = await open(2, {
      kernel: { shutdown: { graceMs: 30_000, settleMs: SETTLE_MS } },
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
      // It waits neither for clients nor for load balancers.
      expect(performance.now() - sentAtMs).toBeLessThan(SETTLE_MS)
      // M43: a second one changes nothing.
      expect((await two.gateway.send('POST', '/ha/shutdown')).status).toBe(202)
    }
    // M41
    await seenBy([one, two], 'gw-2', 'Leaving')
    expect((await two.gateway.get('/readiness')).status).toBe(503)
    expect((await two.gateway.get('/liveness')).status).toBe(200)
    // M42
    await until(() =>
      two.gateway.get('/liveness').then(
        () => false,
        () => true,
      ),
    )
    await stream.done
    expect(endingOfStream(stream)).toBe(COMPLETE)
    // M43
    expect((await command.ended).code).toBe(0)
    // M45
    await until(async () => (await one.status()).nodes.every(({ name }) => name !== 'gw-2'))
    await two.start()
    await seenBy([one, two], 'gw-2', 'Alive')
  })
})
