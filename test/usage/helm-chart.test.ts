/** The Helm chart renders objects with known Kubernetes fields, and a configuration that `weir config check` accepts. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import * as kubernetes from '@kubernetes/client-node'
import { afterEach, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { makeFolder, runCommand, stopCommands } from '../support/built-command.ts'
import { promtool } from '../support/promtool.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const CHART = join(ROOT, 'examples/helm/weir')
const PATH = `${process.env.PATH}${delimiter}${join(ROOT, '.build-tools')}`
const hasHelm = PATH.split(delimiter).some((folder) => existsSync(join(folder, 'helm')))
if (!hasHelm)
  console.warn(
    'skipped: rendering the Helm chart, since helm is not installed: GOBIN=$PWD/.build-tools go install helm.sh/helm/v3/cmd/helm@v3.19.5',
  )

afterEach(stopCommands)

interface KubernetesObject {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  // biome-ignore lint/suspicious/noExplicitAny: rendered YAML, whose fields the client's type maps check.
  readonly [field: string]: any
}

const helm = (...args: string[]) => run('helm', args, { env: { ...process.env, PATH } })

/** Without a cluster, the Kubernetes version depends on the helm build. */
const CLUSTER = ['--namespace', 'gateways', '--kube-version', '1.31.0']

async function render(...args: string[]): Promise<Map<string, KubernetesObject>> {
  const { stdout } = await helm('template', 'weir', CHART, ...CLUSTER, ...args)
  const objects = parseAllDocuments(stdout).flatMap((document) => (document.toJS() ?? []) as KubernetesObject)
  return new Map(objects.map((one) => [one.kind, one]))
}

interface TypeMap {
  getAttributeTypeMap?(): { baseName: string; type: string }[]
}
const typeMaps = kubernetes as unknown as Record<string, TypeMap | undefined>
const PREFIXES: Readonly<Record<string, string>> = { HorizontalPodAutoscaler: 'V2' }
const CUSTOM = ['ServiceMonitor', 'PrometheusRule']

/** Fields that the type lacks, or whose value has another type. */
function* unknownFields(value: unknown, type: string, path: string): Generator<string> {
  const [, item] = /^Array<(.*)>$/.exec(type) ?? []
  const [, entry] = /^\{ \[key: string\]: (.*); \}$/.exec(type) ?? []
  const fields = typeMaps[type]?.getAttributeTypeMap?.()
  if (item !== undefined) {
    if (!Array.isArray(value)) yield `${path} is no ${type}`
    else for (const [at, one] of value.entries()) yield* unknownFields(one, item, `${path}[${at}]`)
  } else if (entry !== undefined || fields !== undefined) {
    if (typeof value !== 'object' || value === null) return yield `${path} is no ${type}`
    for (const [key, one] of Object.entries(value)) {
      const of = entry ?? fields?.find(({ baseName }) => baseName === key)?.type
      if (of === undefined) yield `${path}.${key} is not known`
      else yield* unknownFields(one, of, `${path}.${key}`)
    }
  } else if (type === 'IntOrString') {
    if (!['number', 'string'].includes(typeof value)) yield `${path} is no ${type}`
  } else if (typeof value !== type) yield `${path} is no ${type}`
}

function problemsOf(objects: Map<string, KubernetesObject>): string[] {
  return [...objects.values()].flatMap((one) => {
    const type = `${PREFIXES[one.kind] ?? 'V1'}${one.kind}`
    return CUSTOM.includes(one.kind) ? [] : [...unknownFields(one, type, one.kind)]
  })
}

async function checkConfig(objects: Map<string, KubernetesObject>): Promise<string> {
  const file = join(makeFolder(), 'weir.yaml')
  writeFileSync(file, objects.get('ConfigMap')?.data['weir.yaml'])
  const { code, stdout, stderr } = await runCommand(['config', 'check', file], { WEIR_API_KEY: 'a-key' })
    .ended
  expect({ code, stderr }).toMatchObject({ code: 0 })
  return stdout
}

const EVERYTHING = ['autoscaling', 'serviceMonitor', 'prometheusRule'].flatMap((name) => [
  '--set',
  `${name}.enabled=true`,
])

test('the chart ships the alert rules of examples/observability', () => {
  const read = (path: string) => readFileSync(join(ROOT, 'examples', path), 'utf8')
  expect(read('helm/weir/files/alerts.yml')).toBe(read('observability/alerts.yml'))
})

describe.skipIf(!hasHelm)('rendered by helm', () => {
  test('the default values pass lint, render valid objects and a valid configuration', async () => {
    await helm('lint', '--strict', '--kube-version', '1.31.0', CHART)
    const objects = await render()
    expect([...objects.keys()].sort()).toEqual([
      'ConfigMap',
      'Deployment',
      'PodDisruptionBudget',
      'Role',
      'RoleBinding',
      'Service',
      'ServiceAccount',
    ])
    expect(problemsOf(objects)).toEqual([])
    expect(await checkConfig(objects)).toContain('kubernetes')
  })

  test("probes use the probe port, and the pods' grace period exceeds that of the gateway", async () => {
    const objects = await render(
      ...['--set', 'config.kernel.shutdown.graceMs=90500'],
      ...['--set', 'config.plugins.health.probe.port=30009'],
      ...['--set', 'config.kernel.http.maxBodyBytes=134217728'],
    )
    const spec = objects.get('Deployment')?.spec.template.spec
    expect(spec.terminationGracePeriodSeconds).toBe(111)
    const [container] = spec.containers
    expect(spec.enableServiceLinks).toBe(false)
    expect(container.ports).toContainEqual({ name: 'probe', containerPort: 30009 })
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'])
      expect(container[probe].httpGet.port).toBe('probe')
    await checkConfig(objects)
  })

  test('the role allows pod discovery, in the namespace of the workers or in all', async () => {
    const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch'] }]
    const inNamespace = await render()
    expect(inNamespace.get('Role')).toMatchObject({ metadata: { namespace: 'models' }, rules })
    expect(inNamespace.get('RoleBinding')?.subjects).toEqual([
      { kind: 'ServiceAccount', name: 'weir', namespace: 'gateways' },
    ])
    const everywhere = await render('--set', 'config.plugins.kubernetes.namespace=null')
    expect(everywhere.get('ClusterRole')).toMatchObject({ metadata: { name: 'gateways-weir' }, rules })
    expect(problemsOf(everywhere)).toEqual([])
    const without = await render('--set', 'config.plugins.kubernetes=false')
    expect([...without.keys()].filter((kind) => kind.includes('Role'))).toEqual([])
    expect(await checkConfig(without)).not.toContain('kubernetes')
  })

  test('autoscaling and the objects of the Prometheus operator', async () => {
    const objects = await render(...EVERYTHING, '--set', 'serviceMonitor.labels.release=prometheus')
    expect(problemsOf(objects)).toEqual([])
    expect(objects.get('Deployment')?.spec).not.toHaveProperty('replicas')
    expect(objects.get('HorizontalPodAutoscaler')?.spec.metrics[0].pods.metric).toEqual({
      name: 'weir_http_connections_active',
    })
    const monitor = objects.get('ServiceMonitor')
    expect(monitor?.metadata).toMatchObject({ labels: { release: 'prometheus' } })
    const service = objects.get('Service')
    expect(service?.spec.ports).toContainEqual(
      expect.objectContaining({ name: monitor?.spec.endpoints[0].port }),
    )
    expect(service?.metadata).toMatchObject({ labels: monitor?.spec.selector.matchLabels })
    const rules = objects.get('PrometheusRule')?.spec
    expect(rules.groups[0].rules.length).toBeGreaterThan(5)
    if (promtool === null) return
    const file = join(makeFolder(), 'rules.yml')
    writeFileSync(file, JSON.stringify(rules))
    expect(await promtool.run(['check', 'rules', file])).toMatchObject({ code: 0 })
  })

  test.each([
    ['replicaCounts=3', 'replicaCounts'],
    ['config.kernel.host=127.0.0.1', 'host'],
    ['config.plugins.metrics.port=0', 'port'],
    ['autoscaling.maxReplicas=many', 'maxReplicas'],
  ])('--set %s is rejected by the schema of the values', async (value, named) => {
    await expect(render('--set', value)).rejects.toThrow(named)
  })
})
