/** `weir mesh` and `weir doctor` against gateways of a mesh, and their metrics. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startBuiltGateway, stopCommands, until } from '../support/built-command.ts'
import { startMeshProcesses } from '../support/mesh-gateways.ts'
import { weir } from '../support/short-command.ts'
import { startValkey, type ValkeyServer, valkeySkipReason } from '../support/valkey-server.ts'

let server: ValkeyServer
beforeAll(async () => {
  if (valkeySkipReason === null) server = await startValkey()
})
afterEach(stopCommands)
afterAll(() => server?.remove())

describe.skipIf(valkeySkipReason !== null)('weir mesh', () => {
  it('shows the gateways, says what to do about a fault, restores the records, and lets a gateway leave', async () => {
    const [one, two] = await startMeshProcesses(2, { url: server.url })
    const mesh = (command: string, ...more: readonly string[]) =>
      weir(['mesh', command, '--gateway', one.gateway.url, ...more])

    const healthy = await mesh('status')
    expect([healthy.code, healthy.err]).toEqual([0, ''])
    expect(healthy.out).toMatch(/^NAME +STATUS +ADDRESS/m)
    expect(healthy.out).toMatch(/^gw-1 \* +Alive/m)
    expect(healthy.out).toMatch(/^gw-2 +Alive/m)
    expect(healthy.out).toMatch(/^engine valkey: connected, revision 0$/m)
    const [, , , config] = one.gateway.command.child.spawnargs.slice(1)
    const doctor = await weir(['doctor', '--config', config, '--gateway', one.gateway.url])
    expect(doctor.out).toMatch(/^ok +mesh +2 gateways in the mesh$/m)
    const json = JSON.parse((await mesh('status', '--json')).out)
    expect([json.node_count, json.health.status]).toEqual([2, 'healthy'])
    expect((await mesh('workers')).out).toMatch(/^no workers/)
    const metrics = await one.gateway.metrics()
    expect(metrics.get('weir_mesh_nodes{status="Alive"}')).toBe(2)
    expect(metrics.get('weir_mesh_engine_up')).toBe(1)
    expect(metrics.get('weir_mesh_config_differences')).toBe(0)
    expect(metrics.get('weir_mesh_commands_total')).toBeGreaterThan(0)

    await one.write('kept', '01')
    await server.kill()
    server.eraseData()
    await until(async () => (await mesh('status')).out.includes('degraded'))
    const away = await mesh('status')
    expect(away.code).toBe(1)
    expect(away.out).toMatch(/mesh engine unreachable: .+\n {2}changes are rejected until it answers again/)
    const refused = await mesh('restore')
    expect([refused.code, refused.err]).toEqual([1, expect.stringMatching(/503.*cannot be changed now/)])
    expect((await one.gateway.metrics()).get('weir_mesh_engine_up')).toBe(0)

    await server.start()
    await until(async () => (await mesh('status')).out.includes('weir mesh restore'))
    await until(async () => (await one.gateway.metrics()).get('weir_mesh_diverged') === 1)
    expect((await mesh('restore')).out).toMatch(/^1 records? (is|are) in the engine again/)
    await until(async () => (await two.status()).engine.state === 'connected')
    expect(await two.read('kept')).toBe('01')

    const left = await weir(['mesh', 'leave', '--gateway', two.gateway.url])
    expect(left.out).toBe('gw-2 leaves the mesh; it ends when its running requests have finished\n')
    expect((await two.gateway.command.ended).code).toBe(0)
    await until(async () => !(await mesh('status')).out.includes('gw-2'))
    expect((await mesh('status')).code).toBe(0)
  })

  it('of a gateway without a mesh names the plugin', async () => {
    const gateway = await startBuiltGateway()
    const { code, err } = await weir(['mesh', 'status', '--gateway', gateway.url])
    expect([code, err]).toEqual([1, expect.stringMatching(/the plugin mesh is not enabled/)])
  })
})
