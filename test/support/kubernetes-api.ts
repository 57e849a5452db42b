/** A small API server that lists and watches pods like Kubernetes, for discovery with the real client. */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface FakePod {
  name: string
  uid: string
  ip: string
  labels: Record<string, string>
  annotations?: Record<string, string>
  isReady?: boolean
  isTerminating?: boolean
}

export interface KubernetesApi {
  /** Path of a kubeconfig for this server. */
  readonly kubeconfig: string
  /** Replaces the only token that is accepted, in the file that the kubeconfig names and here. */
  rotateToken(token: string): void
  /** Requested paths and queries. */
  readonly requests: string[]
  /** Adds or changes a pod and notifies the watchers. */
  put(pod: FakePod): void
  delete(name: string): void
  /** Status of every response from now on, as without permission; 200 ends that. */
  status: number
  /** Closes every watch, as a restarting server does. */
  cutWatches(): void
  /** Ends every watch at its timeout, with a bookmark of the current version for those that asked for bookmarks. */
  timeOutWatches(): void
  /** Forgets past events: a watch from before ends with 410. */
  compact(): void
  close(): Promise<void>
}

export async function startKubernetesApi(): Promise<KubernetesApi> {
  const pods = new Map<string, FakePod>()
  const watchers = new Set<ServerResponse>()
  const bookmarked = new WeakSet<ServerResponse>()
  const requests: string[] = []
  /** A watch from an older version receives the missed events. */
  const history: { version: number; line: string }[] = []
  let compactedVersion = 0
  let version = 1
  const toObject = (pod: FakePod) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: pod.name,
      namespace: 'default',
      uid: pod.uid,
      resourceVersion: String(version),
      labels: pod.labels,
      annotations: pod.annotations ?? {},
      ...(pod.isTerminating === true && { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    },
    status: {
      phase: 'Running',
      podIP: pod.ip,
      conditions: [{ type: 'Ready', status: pod.isReady === false ? 'False' : 'True' }],
    },
  })
  const notify = (type: string, pod: FakePod) => {
    version++
    const line = `${JSON.stringify({ type, object: toObject(pod) })}\n`
    history.push({ version, line })
    for (const watcher of watchers) watcher.write(line)
  }
  let accepted = ''
  const server = createServer((request, response) => {
    requests.push(request.url ?? '')
    if (request.headers.authorization !== `Bearer ${accepted}`) {
      response.writeHead(401).end()
      return
    }
    const url = new URL(request.url ?? '/', 'http://localhost')
    if (url.pathname !== '/api/v1/pods') {
      response.writeHead(404).end()
      return
    }
    if (api.status !== 200) {
      const failure = { kind: 'Status', status: 'Failure', message: 'x'.repeat(2_000), code: api.status }
      response.writeHead(api.status, { 'content-type': 'application/json' }).end(JSON.stringify(failure))
      return
    }
    response.writeHead(200, { 'content-type': 'application/json' })
    if (url.searchParams.get('watch') === 'true') {
      watchers.add(response)
      response.flushHeaders()
      if (url.searchParams.get('allowWatchBookmarks') === 'true') bookmarked.add(response)
      const since = Number(url.searchParams.get('resourceVersion') ?? version)
      if (since < compactedVersion) {
        const gone = { kind: 'Status', status: 'Failure', reason: 'Expired', code: 410, metadata: {} }
        response.end(`${JSON.stringify({ type: 'ERROR', object: gone })}\n`)
      } else for (const event of history) if (event.version > since) response.write(event.line)
      response.on('close', () => watchers.delete(response))
      return
    }
    const from = Number(url.searchParams.get('continue') ?? 0)
    const to = from + Number(url.searchParams.get('limit') ?? Number.POSITIVE_INFINITY)
    const items = [...pods.values()].slice(from, to).map(toObject)
    const metadata = {
      resourceVersion: String(version),
      ...(to < pods.size && { continue: String(to) }),
    }
    const list = { apiVersion: 'v1', kind: 'PodList', metadata, items }
    response.end(JSON.stringify(list))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const folder = mkdtempSync(join(tmpdir(), 'weir-kube-'))
  const kubeconfig = join(folder, 'config')
  const { port } = server.address() as AddressInfo
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'test',
      clusters: [
        { name: 'test', cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } },
      ],
      users: [{ name: 'test', user: { tokenFile: 'token' } }],
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    }),
  )
  const api: KubernetesApi = {
    status: 200,
    kubeconfig,
    requests,
    rotateToken: (token) => {
      accepted = token
      writeFileSync(join(folder, 'token'), token)
    },
    put: (pod) => {
      const type = pods.has(pod.name) ? 'MODIFIED' : 'ADDED'
      pods.set(pod.name, pod)
      notify(type, pod)
    },
    delete: (name) => {
      const pod = pods.get(name)
      pods.delete(name)
      if (pod !== undefined) notify('DELETED', pod)
    },
    cutWatches: () => {
      for (const watcher of watchers) watcher.destroy()
    },
    timeOutWatches: () => {
      // Another object of the cluster has changed.
      version++
      const object = { kind: 'Pod', metadata: { resourceVersion: String(version) } }
      const line = `${JSON.stringify({ type: 'BOOKMARK', object })}\n`
      for (const watcher of watchers) watcher.end(bookmarked.has(watcher) ? line : '')
    },
    compact: () => {
      compactedVersion = version
      history.length = 0
    },
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
      rmSync(folder, { recursive: true, force: true })
    },
  }
  api.rotateToken('first')
  return api
}
