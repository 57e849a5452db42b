/** A real API server of Kubernetes with its etcd, without controllers and nodes; see test/real/kubernetes/setup.sh. */
import { type ChildProcess, spawn } from 'node:child_process'
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { until } from './built-command.ts'
import { endsWithTest } from './child-processes.ts'
import { freePort } from './free-port.ts'

const SERVERS = fileURLToPath(new URL('../real/kubernetes/.servers', import.meta.url))

/** False if the servers have not been built. */
export const hasKubernetes = existsSync(join(SERVERS, 'kube-apiserver')) && existsSync(join(SERVERS, 'etcd'))

export interface ApiAnswer {
  readonly status: number
  readonly warnings: readonly string[]
  // biome-ignore lint/suspicious/noExplicitAny: an object of any kind.
  readonly body: any
}

export class KubernetesCluster {
  readonly url: string
  readonly #folder: string
  readonly #etcdPort: number
  readonly #token = randomUUID()
  #server: ChildProcess | null = null

  /** Use `startCluster`. */
  constructor(folder: string, port: number, etcdPort: number) {
    this.#folder = folder
    this.url = `https://127.0.0.1:${port}`
    this.#etcdPort = etcdPort
    writeFileSync(join(folder, 'tokens.csv'), `${this.#token},admin,admin,system:masters\n`)
    const { privateKey } = generateKeyPairSync('rsa', {
      modulusLength: 2048,
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
    })
    writeFileSync(join(folder, 'accounts.key'), privateKey)
  }

  /** Starts the API server and waits until it is ready. */
  async startServer(): Promise<void> {
    const folder = this.#folder
    const server = endsWithTest(
      spawn(
        join(SERVERS, 'kube-apiserver'),
        [
          `--etcd-servers=http://127.0.0.1:${this.#etcdPort}`,
          '--bind-address=127.0.0.1',
          '--advertise-address=127.0.0.1',
          `--secure-port=${new URL(this.url).port}`,
          `--cert-dir=${folder}`,
          `--token-auth-file=${join(folder, 'tokens.csv')}`,
          `--service-account-key-file=${join(folder, 'accounts.key')}`,
          `--service-account-signing-key-file=${join(folder, 'accounts.key')}`,
          '--service-account-issuer=https://kubernetes.default.svc',
          '--service-cluster-ip-range=10.0.0.0/24',
          '--authorization-mode=RBAC',
          // No controller creates the account that it would require.
          '--disable-admission-plugins=ServiceAccount',
          '--endpoint-reconciler-type=none',
        ],
        { stdio: 'ignore' },
      ),
    )
    this.#server = server
    await until(async () => {
      if (server.exitCode !== null) throw new Error(`kube-apiserver ended with code ${server.exitCode}`)
      return this.call('GET', '/readyz').then(
        ({ status }) => status === 200,
        () => false,
      )
    })
  }

  /** Ends the API server as a crash does. */
  async killServer(): Promise<void> {
    const server = this.#server as ChildProcess
    const ended = once(server, 'exit')
    server.kill('SIGKILL')
    await ended
  }

  /** @param body sent as JSON @param type default: `application/json` */
  call(method: string, path: string, body?: object | string, type = 'application/json'): Promise<ApiAnswer> {
    return new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${this.#token}`, 'content-type': type }
      const sent = request(this.url + path, { method, headers, rejectUnauthorized: false, agent: false })
      sent.on('error', reject)
      sent.on('response', async (response) => {
        const content = await text(response)
        const isJson = response.headers['content-type'] === 'application/json'
        const warnings = [response.headers.warning ?? []].flat()
        resolve({ status: response.statusCode ?? 0, warnings, body: isJson ? JSON.parse(content) : content })
      })
      sent.end(typeof body === 'object' ? JSON.stringify(body) : body)
    })
  }

  /** @throws Error with the answer unless it has a status below 300 */
  async must(method: string, path: string, body?: object, type?: string): Promise<ApiAnswer['body']> {
    const answer = await this.call(method, path, body, type)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`)
    return answer.body
  }

  /** Removes all past revisions from etcd; watches that continue from one get 410 from a restarted API server. */
  async compact(): Promise<void> {
    const etcd = (path: string, body: object) =>
      fetch(`http://127.0.0.1:${this.#etcdPort}${path}`, { method: 'POST', body: JSON.stringify(body) })
    const { header } = (await (await etcd('/v3/kv/range', { key: 'AA==' })).json()) as {
      header: { revision: string }
    }
    const response = await etcd('/v3/kv/compaction', { revision: header.revision, physical: true })
    if (!response.ok) throw new Error(`compaction: ${await response.text()}`)
  }
}

/** @param folder for data, certificates and tokens */
export async function startCluster(folder: string): Promise<KubernetesCluster> {
  const [port, etcdPort, peerPort] = [await freePort(), await freePort(), await freePort()]
  endsWithTest(
    spawn(
      join(SERVERS, 'etcd'),
      [
        `--data-dir=${join(folder, 'etcd')}`,
        `--listen-client-urls=http://127.0.0.1:${etcdPort}`,
        `--advertise-client-urls=http://127.0.0.1:${etcdPort}`,
        `--listen-peer-urls=http://127.0.0.1:${peerPort}`,
        '--unsafe-no-fsync',
      ],
      { stdio: 'ignore' },
    ),
  )
  const cluster = new KubernetesCluster(folder, port, etcdPort)
  await cluster.startServer()
  return cluster
}
