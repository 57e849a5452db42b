/** Errors that prevent a start, as an operator sees them. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect, test } from 'vitest'
import { adminErrorFormat, type RouteDefinition, Store, token, WorkerRegistry } from '#kernel'
import { freePort } from '../support/free-port.ts'
import { startGateway } from '../support/gateway.ts'
import { plugin } from '../support/hooked-gateway.ts'

const route: RouteDefinition = {
  method: 'GET',
  path: '/guarded',
  access: 'admin',
  errors: adminErrorFormat,
  handler: (ctx) => ctx.json(200, {}),
  docs: { summary: 'own', tag: 'test', responses: {} },
}
const guarded = plugin('guarded', (host) => host.route(route))

test('a guarded route without a plugin that checks keys prevents the start', async () => {
  await expect(startGateway({ own: [guarded], plugins: {} })).rejects.toThrow(
    'plugin guarded declares GET /guarded for admin callers, but no plugin checks keys; ' +
      'enable plugin auth, or set kernel.auth to off to leave every route open',
  )
})

test('kernel.auth: off opens it explicitly', async () => {
  const gateway = await startGateway({ own: [guarded], plugins: {}, kernel: { auth: 'off' } })
  expect((await fetch(`${gateway.url}/guarded`)).status).toBe(200)
  await gateway.stop()
})

test('a listener of a plugin accepts public routes only', async () => {
  const listening = plugin('listening', (host) => ({
    start: async () => void (await host.listen({ host: '127.0.0.1', port: 0, routes: [route] })),
  }))
  await expect(startGateway({ own: [listening], plugins: {} })).rejects.toThrow(
    'plugin listening failed in start: /guarded is not public; only public routes may have a listener of their own',
  )
})

test('an unprovided service is reported with its user and the plugin that would provide it', async () => {
  const finder = plugin('finder', () => {}, { uses: [WorkerRegistry] })
  await expect(startGateway({ own: [finder], plugins: { workers: false } })).rejects.toThrow(
    'plugin finder uses the service worker-registry, which no enabled plugin provides; ' +
      'enable plugin workers, which provides it',
  )
  const dreamer = plugin('dreamer', () => {}, { uses: [token('dreams')] })
  await expect(startGateway({ own: [dreamer], plugins: {} })).rejects.toThrow(
    'plugin dreamer uses the service dreams, which no enabled plugin provides; no plugin of the catalog does either',
  )
})

test('two providers of a service are reported by name before either registers', async () => {
  const memory = plugin('memory', () => {}, { provides: [Store] })
  await expect(startGateway({ own: [memory], plugins: { storage: { dir: '.' } } })).rejects.toThrow(
    'plugins memory and storage both provide the service store; enable one of them',
  )
})

test('two listeners of one gateway on one port prevent the start', async () => {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as AddressInfo
  probe.close()
  await once(probe, 'close')
  await expect(startGateway({ plugins: { metrics: { port }, sim: { listen: { port } } } })).rejects.toThrow(
    /in use|taken/,
  )
})

test('so do listeners that would share a port across threads', async () => {
  const port = await freePort()
  const start = startGateway({ plugins: { sim: { listen: { port } }, health: { probe: { port } } } })
  await expect(start).rejects.toThrow(`port ${port} of 127.0.0.1 is taken by`)
})

test.each(['127.0.0.1', '0.0.0.0'])(
  'so does an API listener on %s that would share its port',
  async (host) => {
    const port = await freePort()
    const start = startGateway({ kernel: { host, port }, plugins: { sim: { listen: { port } } } })
    await expect(start).rejects.toThrow(
      `port ${port} of ${host} is taken by plugin sim; choose another one with --port`,
    )
  },
)
