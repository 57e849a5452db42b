/** The generated reference pages match the schemas, tables and routes; `npm run docs` writes them. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { definePlugin, type MetricsSnapshot, type RouteDefinition, Type } from '#kernel'
import { catalog } from '../../plugins/catalog.ts'
import { buildProgram } from '../../plugins/cli/program.ts'
import { ROOT, readSource, scan, sourceFiles } from '../architecture/source-scan.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { type KubernetesApi, startKubernetesApi } from '../support/kubernetes-api.ts'
import { cliPage } from '../support/reference/cli.ts'
import { configurationPage } from '../support/reference/configuration.ts'
import { enginesPage } from '../support/reference/engines.ts'
import { errorsPage } from '../support/reference/errors.ts'
import { hooksPage } from '../support/reference/hooks.ts'
import { httpPage } from '../support/reference/http.ts'
import { metricsPage } from '../support/reference/metrics.ts'
import { modulesPage } from '../support/reference/modules.ts'

/** Excluded: the database plugin needs a server and has no routes. */
const STARTED = Object.keys(catalog).filter((name) => name !== 'postgres' && name !== 'mesh-valkey')
const dataDir = mkdtempSync(join(tmpdir(), 'weir-reference-'))
let routes: readonly RouteDefinition[] = []
let readMetrics: () => Promise<MetricsSnapshot>
let gateway: TestGateway
let cluster: KubernetesApi

const reader = definePlugin({
  manifest: {
    name: 'reference-reader',
    version: '0.0.0',
    description: 'Reads what every plugin declares.',
    dependencies: STARTED,
    config: Type.Object({}),
  },
  register: (host) => ({
    start: () => {
      routes = host.routes()
      readMetrics = () => host.readMetrics()
    },
  }),
})

beforeAll(async () => {
  cluster = await startKubernetesApi()
  gateway = await startGateway({
    own: [reader],
    plugins: {
      ...Object.fromEntries(STARTED.map((name) => [name, {}])),
      kubernetes: { selector: { app: 'engine' }, kubeconfig: cluster.kubeconfig },
      sim: { listen: { port: 0 } },
      storage: { dir: dataDir },
      auth: { apiKey: 'key' },
      'trusted-proxies': { addresses: ['10.0.0.0/8'] },
      'reference-reader': {},
    },
  })
})
afterAll(async () => {
  await gateway.stop()
  await cluster.close()
  rmSync(dataDir, { recursive: true, force: true })
})

const expectPage = (name: string, text: string) =>
  expect(text).toMatchFileSnapshot(join(ROOT, 'docs/reference', name))

test('configuration', async () => expectPage('configuration.md', await configurationPage()))

test('errors', async () => {
  const tables = sourceFiles(['{kernel,plugins}/**/*.ts']).filter(
    (file) =>
      file !== 'kernel/errors/define-errors.ts' && /\bdefineErrors\(/.test(scan(readSource(file)).code),
  )
  for (const file of tables) await import(join(ROOT, file))
  await expectPage('errors.md', errorsPage())
})

test('engines', async () => expectPage('engines.md', enginesPage()))

test('HTTP API', async () => expectPage('http.md', httpPage(routes)))

test('metrics', async () => expectPage('metrics.md', metricsPage(await readMetrics())))

test('hooks', async () => expectPage('hooks.md', hooksPage(readSource('kernel/contracts/hook.ts'))))

test('command line', async () => expectPage('cli.md', await cliPage(buildProgram)))

test('modules', async () => expectPage('modules.md', await modulesPage()))
