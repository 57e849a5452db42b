/** Every route of the bundled plugins declares access, error format and documentation. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  defineErrors,
  definePlugin,
  type Plugin,
  type RequestFacts,
  type RouteDefinition,
  Type,
} from '#kernel'
import { catalog, routePrefixes } from '../../plugins/catalog.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { type KubernetesApi, startKubernetesApi } from '../support/kubernetes-api.ts'

/** Public routes: this list makes each one an explicit decision. */
const PUBLIC_ROUTES: readonly string[] = [
  'DELETE /console/session',
  'GET /api/hello',
  'GET /console',
  'GET /console/:file',
  'GET /console/session',
  'GET /engine_metrics',
  'GET /get_model_info',
  'GET /get_server_info',
  'GET /health',
  'GET /health_generate',
  'GET /liveness',
  'GET /openapi.json',
  'GET /readiness',
  'GET /v1/models',
  'GET /v1/models/:model',
  'GET /v1/models/:owner/:model',
  'POST /console/session',
]

/** Excluded: these have no routes and need a server. */
const ROUTED = Object.keys(catalog).filter((name) => name !== 'postgres' && name !== 'mesh-valkey')

let routes: readonly RouteDefinition[] = []
/** Paths of the routes by plugin. */
const pathsOf = new Map<string, readonly string[]>()
let gateway: TestGateway
let cluster: KubernetesApi
const dataDir = mkdtempSync(join(tmpdir(), 'weir-routes-'))

const reader = definePlugin({
  manifest: {
    name: 'route-reader',
    version: '0.0.0',
    description: 'Shows the test what was declared.',
    dependencies: ROUTED,
    config: Type.Object({}),
  },
  register: (host) => ({
    start: () => {
      routes = host.routes()
    },
  }),
})

/** The plugin of the catalog, whose routes are noted. */
async function observed(name: string): Promise<Plugin> {
  const { default: plugin } = await catalog[name]()
  return {
    ...plugin,
    register: (host, config) => {
      const before = host.routes().length
      const lifecycle = plugin.register(host, config)
      const paths = host
        .routes()
        .slice(before)
        .map(({ path }) => path)
      pathsOf.set(name, paths)
      return lifecycle
    },
  }
}

beforeAll(async () => {
  const all = Object.fromEntries(ROUTED.map((name) => [name, {}]))
  cluster = await startKubernetesApi()
  const kubernetes = { selector: { app: 'engine' }, kubeconfig: cluster.kubeconfig }
  const plugins = {
    ...all,
    kubernetes,
    sim: { listen: { port: 0 } },
    storage: { dir: dataDir },
    auth: { apiKey: 'key' },
    'trusted-proxies': { addresses: ['10.0.0.0/8'] },
  }
  gateway = await startGateway({
    own: [reader, ...(await Promise.all(ROUTED.map(observed)))],
    plugins: { ...plugins, 'route-reader': {} },
  })
  // Every plugin, loaded and started on one thread.
}, 180_000)
afterAll(async () => {
  await gateway.stop()
  await cluster.close()
  rmSync(dataDir, { recursive: true, force: true })
})

const nameOf = ({ method, path }: RouteDefinition) => `${method} ${path}`

test('every route declares access and error format', () => {
  const vague = routes.filter(
    ({ access, errors }) => !['public', 'api', 'admin'].includes(access) || !/^\w+$/.test(errors.name),
  )
  expect(routes.length).toBeGreaterThan(20)
  expect(vague.map(nameOf)).toEqual([])
})

test('the public routes are exactly those of the list', () => {
  expect(
    routes
      .filter(({ access }) => access === 'public')
      .map(nameOf)
      .sort(),
  ).toEqual(PUBLIC_ROUTES)
})

test('every route has a summary, a tag and at least one documented response', () => {
  const silent = routes.filter(
    ({ docs }) => docs.summary === '' || docs.tag === '' || Object.keys(docs.responses).length === 0,
  )
  expect(silent.map(nameOf)).toEqual([])
})

test('control-plane routes use the control-plane error format', () => {
  const { unauthorized } = defineErrors('test', {
    unauthorized: { kind: 'unauthorized', source: 'client', text: () => 'no key' },
  })
  const request = {} as RequestFacts
  const wordOf = ({ errors }: RouteDefinition) =>
    (errors.body(unauthorized(), request) as { error?: { type?: string } }).error?.type
  const control = routes.filter(({ access }) => access === 'admin')
  expect(control.filter((route) => wordOf(route) !== 'unauthorized').map(nameOf)).toEqual([])
})

test('the catalog names the plugin of every route', () => {
  const isBelow = (path: string, prefix: string) => path === prefix || path.startsWith(`${prefix}/`)
  const ownersOf = (path: string) =>
    Object.keys(routePrefixes).filter((name) => routePrefixes[name].some((prefix) => isBelow(path, prefix)))
  const wrong = [...pathsOf].flatMap(([name, paths]) =>
    paths.filter((path) => ownersOf(path).join() !== name).map((path) => `${name}: ${path}`),
  )
  expect([...new Set(wrong)]).toEqual([])
  const unused = Object.entries(routePrefixes).flatMap(([name, prefixes]) =>
    prefixes.filter((prefix) => !pathsOf.get(name)?.some((path) => isBelow(path, prefix))),
  )
  expect(unused).toEqual([])
})
