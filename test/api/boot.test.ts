/** What stops a gateway from starting, as its operator sees it. */
import { expect, test } from 'vitest'
import { adminErrorFormat, type RouteDefinition } from '#kernel'
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

test('a route for some callers only is refused where nobody checks keys', async () => {
  await expect(startGateway({ own: [guarded], plugins: {} })).rejects.toThrow(
    'plugin guarded declares GET /guarded for admin callers, but no plugin checks keys; ' +
      'enable plugin auth, or set kernel.auth to off to leave every route open',
  )
})

test('kernel.auth: off opens it to everybody, said on purpose', async () => {
  const gateway = await startGateway({ own: [guarded], plugins: {}, kernel: { auth: 'off' } })
  expect((await fetch(`${gateway.url}/guarded`)).status).toBe(200)
  await gateway.stop()
})

test('a listener of a plugin takes public routes only', async () => {
  const listening = plugin('listening', (host) => ({
    start: async () => void (await host.listen({ host: '127.0.0.1', port: 0, routes: [route] })),
  }))
  await expect(startGateway({ own: [listening], plugins: {} })).rejects.toThrow(
    'plugin listening failed in start: /guarded is not public; only public routes may have a listener of their own',
  )
})
