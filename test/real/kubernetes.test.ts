/** A real API server of Kubernetes: it accepts the objects of the chart, and discovery follows it through changes and outages. */
import { execFile } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import {
  type BuiltGateway,
  makeFolder,
  startBuiltGateway,
  startSim,
  stopCommands,
  until,
} from '../support/built-command.ts'
import { endChildren } from '../support/child-processes.ts'
import { freePort } from '../support/free-port.ts'
import { hasKubernetes, type KubernetesCluster, startCluster } from '../support/kubernetes-cluster.ts'
import { COMPLETE, endingOfStream } from '../support/request-ending.ts'
import { openSse } from '../support/sse-client.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const PATH = `${process.env.PATH}${delimiter}${join(ROOT, '.build-tools')}`
const hasHelm = PATH.split(delimiter).some((folder) => existsSync(join(folder, 'helm')))
const skipReason = !hasKubernetes
  ? 'kube-apiserver is not built: test/real/kubernetes/setup.sh'
  : hasHelm
    ? null
    : 'helm is not installed'
if (skipReason !== null) console.warn(`skipped: a real Kubernetes API server, since ${skipReason}`)

/** Required of discovery, milliseconds. */
const NOTICE_LIMIT_MS = 1_000
const OUTAGE_MS = Number(process.env.WEIR_OUTAGE_MS ?? 30_000)
const CLUSTER_SCOPED = ['Namespace', 'ClusterRole', 'ClusterRoleBinding']

interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
}

async function chartObjects(...args: string[]): Promise<KubernetesObject[]> {
  const chart = join(ROOT, 'examples/helm/weir')
  const flags = ['--namespace', 'gateways', '--kube-version', '1.36.3', ...args]
  const { stdout } = await promisify(execFile)('helm', ['template', 'weir', chart, ...flags], {
    env: { ...process.env, PATH },
  })
  return parseAllDocuments(stdout).flatMap((document) => (document.toJS() ?? []) as KubernetesObject)
}

function pathOf({ apiVersion, kind, metadata: { name, namespace = 'gateways' } }: KubernetesObject): string {
  const base = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
  const plural = `${kind.toLowerCase().replace(/y$/, 'ie')}s`
  return CLUSTER_SCOPED.includes(kind)
    ? `${base}/${plural}/${name}`
    : `${base}/namespaces/${namespace}/${plural}/${name}`
}

describe.skipIf(skipReason !== null)('kube-apiserver 1.36', () => {
  let cluster: KubernetesCluster
  beforeEach(async () => {
    cluster = await startCluster(makeFolder())
    for (const name of ['gateways', 'models'])
      await cluster.must('POST', '/api/v1/namespaces', { metadata: { name } })
  })
  afterEach(async () => {
    await endChildren()
    await stopCommands()
  })

  /** Server-side apply with validation of every field. */
  const apply = (one: KubernetesObject, isDryRun: boolean) =>
    cluster.call(
      'PATCH',
      `${pathOf(one)}?fieldManager=test&fieldValidation=Strict${isDryRun ? '&dryRun=All' : ''}`,
      JSON.stringify(one),
      'application/apply-patch+yaml',
    )

  async function applyChart(...args: string[]): Promise<Map<string, readonly string[]>> {
    const kinds = new Map<string, readonly string[]>()
    for (const isDryRun of [true, false])
      for (const one of await chartObjects(...args)) {
        const { status, warnings, body } = await apply(one, isDryRun)
        expect([one.kind, status < 300 ? 'applied' : body.message]).toEqual([one.kind, 'applied'])
        kinds.set(one.kind, warnings)
      }
    return kinds
  }

  test('every object of the chart is accepted, without a warning', async () => {
    for (const args of [[], ['--set', 'config.plugins.kubernetes.namespace=null']]) {
      const kinds = await applyChart('--set', 'autoscaling.enabled=true', ...args)
      expect([...kinds.values()].flat()).toEqual([])
      expect(kinds.size).toBeGreaterThan(6)
    }
  })

  /** Token of the account of the chart, which ends with its Secret. */
  async function issueToken(secret: string): Promise<string> {
    const { metadata } = await cluster.must('POST', '/api/v1/namespaces/gateways/secrets', {
      metadata: { name: secret },
    })
    const { status } = await cluster.must('POST', '/api/v1/namespaces/gateways/serviceaccounts/weir/token', {
      spec: {
        expirationSeconds: 600,
        boundObjectRef: { kind: 'Secret', apiVersion: 'v1', name: secret, uid: metadata.uid },
      },
    })
    return status.token
  }

  const pods = '/api/v1/namespaces/models/pods'
  const patchPod = (name: string, patch: object, part = '') =>
    cluster.must('PATCH', `${pods}/${name}${part}`, patch, 'application/merge-patch+json')
  const setStatus = (name: string, ip: string, isReady = true) =>
    patchPod(
      name,
      {
        status: {
          phase: 'Running',
          podIP: ip,
          podIPs: [{ ip }],
          conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }],
        },
      },
      '/status',
    )

  async function addPod(name: string, ip: string, port: number): Promise<void> {
    await cluster.must('POST', pods, {
      metadata: { name, labels: { app: 'vllm' }, annotations: { 'weir/worker-ports': String(port) } },
      spec: { containers: [{ name: 'engine', image: 'engine' }] },
    })
    await setStatus(name, ip)
  }

  async function startDiscovery(tokenFile: string): Promise<BuiltGateway> {
    const kubeconfig = join(makeFolder(), 'kubeconfig.json')
    // As the client reads the token of a pod.
    const provider = { name: 'tokenFile', config: { tokenFile } }
    writeFileSync(
      kubeconfig,
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        'current-context': 'test',
        clusters: [{ name: 'test', cluster: { server: cluster.url, 'insecure-skip-tls-verify': true } }],
        users: [{ name: 'weir', user: { 'auth-provider': provider } }],
        contexts: [{ name: 'test', context: { cluster: 'test', user: 'weir' } }],
      }),
    )
    return startBuiltGateway({
      kernel: { threads: 1 },
      plugins: { kubernetes: { kubeconfig, namespace: 'models', selector: { app: 'vllm' } } },
    })
  }

  test('changes of pods are noticed within a second, and no request fails while the API server is away, compacts or rotates tokens', async () => {
    await applyChart()
    const [port, ips] = [await freePort(), ['127.0.0.2', '127.0.0.3', '127.0.0.4']]
    for (const ip of ips)
      await startSim(
        '--host',
        ip,
        '--port',
        String(port),
        '--model',
        'demo',
        '--tokens',
        '8',
        '--ttft-ms',
        '5',
      )
    const tokenFile = join(makeFolder(), 'token')
    writeFileSync(tokenFile, await issueToken('first'))
    const gateway = await startDiscovery(tokenFile)
    const urlOf = (ip: string) => `http://${ip}:${port}`
    const inUse = async () => {
      const { workers } = (await (await gateway.get('/workers')).json()) as {
        workers: { url: string; status: string }[]
      }
      return workers.filter(({ status }) => status === 'ready').map(({ url }) => url)
    }
    const noticed: Record<string, number> = {}
    /** Measures the time from a change until the worker of an address is in use, or is not. */
    const notices = async (what: string, change: () => Promise<unknown>, ip: string, isUsed: boolean) => {
      await change()
      const changedAtMs = performance.now()
      const isNoticed = async () => (await inUse()).includes(urlOf(ip)) === isUsed
      await until(isNoticed, () => `${what}\n${gateway.command.lines.join('\n')}`)
      noticed[what] = Math.round(performance.now() - changedAtMs)
    }
    await addPod('a', ips[0], port)
    await addPod('b', ips[1], port)
    await until(async () => (await inUse()).length === 2)

    const requests: Promise<string>[] = []
    const load = setInterval(() => {
      const body = { model: 'demo', messages: [{ role: 'user', content: 'Hello' }], stream: true }
      const stream = openSse(`${gateway.url}/v1/chat/completions`, { body })
      requests.push(stream.done.then(() => endingOfStream(stream)))
    }, 20)
    const label = (app: string) => patchPod('a', { metadata: { labels: { app } } })
    await notices('label removed', () => label('other'), ips[0], false)
    await notices('label added', () => label('vllm'), ips[0], true)
    await notices('not ready', () => setStatus('a', ips[0], false), ips[0], false)
    await notices('ready', () => setStatus('a', ips[0]), ips[0], true)
    await notices('address replaced: old', () => setStatus('a', ips[2]), ips[0], false)
    await until(async () => (await inUse()).includes(urlOf(ips[2])))
    await notices('address replaced: new', () => setStatus('a', ips[0]), ips[0], true)
    expect(Object.entries(noticed).filter(([, ms]) => ms > NOTICE_LIMIT_MS)).toEqual([])

    await cluster.killServer()
    await new Promise((resolve) => setTimeout(resolve, OUTAGE_MS))
    await cluster.startServer()
    await notices('change after an outage', () => setStatus('a', ips[2]), ips[2], true)

    // Both while it is away, so that the watch cannot continue, neither from its version nor with its token.
    const second = await issueToken('second')
    await cluster.must('DELETE', '/api/v1/namespaces/gateways/secrets/first')
    await cluster.killServer()
    await cluster.compact()
    writeFileSync(tokenFile, second)
    await cluster.startServer()
    await notices('change after a compaction and a rotation', () => setStatus('a', ips[0]), ips[0], true)

    clearInterval(load)
    const endings = await Promise.all(requests)
    console.log(JSON.stringify({ requests: endings.length, noticed }))
    expect(endings.filter((ending) => ending !== COMPLETE)).toEqual([])
    expect(gateway.command.lines.filter((line) => line.includes('"level":"error"'))).toEqual([])
  })
})
