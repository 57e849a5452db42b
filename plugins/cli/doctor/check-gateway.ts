/** Checks a running gateway by its API and its probe port, and the workers that it lists. */
import type { LoadedConfig } from '../../../kernel/config/loaded-config.ts'
import { messageOf } from '../../../kernel/errors/message-of.ts'
import type { GatewayClient } from '../gateway-client.ts'
import { printable } from '../output.ts'
import { type Finding, fail, ok, skip, warn } from './finding.ts'

/** What the checks read of a worker in the response of GET /workers. */
interface WorkerRecord {
  readonly id: string
  readonly url: string
  readonly status: string
  readonly job_status?: { readonly message: string | null }
}

const TIMEOUT_MS = 5_000
/** Dates of HTTP headers are whole seconds. */
const CLOCK_TOLERANCE_SECS = 5

/** Address of a listener as this machine reaches it. */
export function localUrl(scheme: 'http' | 'https', host: string, port: number): string {
  const name = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `${scheme}://${name.includes(':') ? `[${name}]` : name}:${port}`
}

interface Readiness {
  readonly degraded?: readonly { readonly service: string; readonly problem: string }[]
}

/** @param url base URL of the API */
export async function checkReadiness(config: LoadedConfig, url: string): Promise<Finding> {
  const { health } = config.plugins
  if (health === undefined)
    return skip('readiness', 'the health plugin is not enabled', 'add `health: {}` under plugins')
  const probe = health.probe as { host: string; port: number } | undefined
  const base = probe === undefined || probe.port === 0 ? url : localUrl('http', probe.host, probe.port)
  try {
    const response = await get(`${base}/readiness`)
    const { degraded = [] } = (await response.json()) as Readiness
    const problems = degraded.map(({ service, problem }) => `${service}: ${printable(problem)}`).join('; ')
    const text = `${base}/readiness returns ${response.status}`
    if (problems !== '') {
      const report = response.ok ? warn : fail
      return report('readiness', `${text}, degraded: ${problems}`, 'restore the service that it names')
    }
    if (response.ok) return ok('readiness', text)
    return fail(
      'readiness',
      `${text}: no worker is ready, or the gateway is shutting down`,
      'see the state of the workers: weir workers list',
    )
  } catch (error) {
    return fail(
      'readiness',
      `${base}/readiness cannot be reached: ${reasonOf(error)}`,
      'is the gateway running, and does it run with this configuration file?',
    )
  }
}

/** Nothing without the mesh plugin. */
export async function checkMesh({ plugins }: LoadedConfig, client: GatewayClient): Promise<Finding[]> {
  if (plugins.mesh === undefined) return []
  const advice = 'see what to do: weir mesh status'
  try {
    const health = (await client.call('GET', '/ha/health')) as {
      cluster_size: number
      problem: string | null
    }
    const text = `${health.cluster_size} gateways in the mesh`
    if (health.problem !== null) return [fail('mesh', `${text}: ${printable(health.problem)}`, advice)]
    return [ok('mesh', text)]
  } catch (error) {
    return [fail('mesh', messageOf(error).split('\n')[0], advice)]
  }
}

/** One finding per worker, and one about the clock. */
export async function checkWorkers({ plugins }: LoadedConfig, client: GatewayClient): Promise<Finding[]> {
  let workers: readonly WorkerRecord[]
  try {
    ;({ workers } = (await client.call('GET', '/workers')) as { workers: readonly WorkerRecord[] })
  } catch (error) {
    const [text, advice = 'check --gateway and --api-key'] = messageOf(error).split('\n')
    return [fail('workers', text, advice.trim())]
  }
  if (workers.length === 0) {
    const advice =
      plugins.kubernetes === undefined
        ? 'add one: weir workers add URL, or plugins.workers.urls'
        : 'are pods with the labels of plugins.kubernetes running and ready? kubectl get pods --show-labels'
    return [fail('workers', 'no worker is registered', advice)]
  }
  return [...workers.map(judgeWorker), await checkClock(workers)]
}

function judgeWorker({ id, url, status, job_status: job }: WorkerRecord): Finding {
  const text = `${printable(url)}: ${status}`
  if (status === 'ready') return ok('worker', text)
  if (status === 'draining') return warn('worker', text, 'it was removed and finishes its requests')
  const reason = job?.message ? ` (${printable(job.message)})` : ''
  const advice = `is the engine running, and reachable from the gateway? Otherwise: weir workers remove ${id}`
  return status === 'pending' ? warn('worker', text + reason, advice) : fail('worker', text + reason, advice)
}

/** Compares the Date headers of HTTP workers with the clock of this machine. */
async function checkClock(workers: readonly WorkerRecord[]): Promise<Finding> {
  const dated = workers.filter(({ url, status }) => status === 'ready' && /^https?:/.test(url))
  const offsets = (await Promise.all(dated.map(({ url }) => clockOffset(url)))).filter((one) => one !== null)
  if (offsets.length === 0) return skip('clock', 'no ready worker sends a Date header to compare with')
  const worst = offsets.reduce((a, b) => (Math.abs(a.secs) >= Math.abs(b.secs) ? a : b))
  const secs = Math.abs(worst.secs).toFixed(0)
  if (Math.abs(worst.secs) <= CLOCK_TOLERANCE_SECS)
    return ok('clock', `within ${CLOCK_TOLERANCE_SECS} s of ${offsets.length} workers`)
  const text = `${printable(worst.url)} is ${secs} s ${worst.secs > 0 ? 'ahead of' : 'behind'} this machine`
  return warn('clock', text, 'synchronize the clocks (NTP); signed tokens and certificates depend on them')
}

async function clockOffset(url: string): Promise<{ url: string; secs: number } | null> {
  try {
    const response = await get(url)
    await response.body?.cancel()
    const date = Date.parse(response.headers.get('date') ?? '')
    return Number.isNaN(date) ? null : { url, secs: (date - Date.now()) / 1000 }
  } catch {
    // Only the gateway may reach the worker.
    return null
  }
}

export function get(url: string): Promise<Response> {
  return fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS), redirect: 'manual' })
}

export function reasonOf(error: unknown): string {
  const { cause } = error as { cause?: { code?: string } }
  return cause?.code ?? messageOf(error)
}
