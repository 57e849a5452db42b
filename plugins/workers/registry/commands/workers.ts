/** `weir workers`: lists, adds, drains and removes workers of a running gateway. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Command, Option } from 'commander'
import { repeatable } from '../../../cli/config-options.ts'
import { clientOf, type GatewayClient, GatewayRefusal, withGateway } from '../../../cli/gateway-client.ts'
import { CliError, printable, printResult, renderTable } from '../../../cli/output.ts'
import type { WorkerAccepted, WorkerList, WorkerRecord } from '../wire.ts'

const EXAMPLES = `
Examples:
  weir workers list
  weir workers add http://10.0.0.1:8000 --wait
  weir workers add http://10.0.0.2:8000 --model llama --priority 80 --label zone=a
  weir workers drain http://10.0.0.1:8000
  weir workers remove http://10.0.0.1:8000
  WEIR_ADMIN_KEY=secret weir workers list --gateway https://gateway.example --json`

interface AddOptions {
  readonly model?: readonly string[]
  readonly workerApiKey?: string
  readonly priority?: string
  readonly type?: string
  readonly runtime?: string
  readonly label?: readonly string[]
  readonly wait?: boolean
  readonly waitMs: string
  readonly json?: boolean
}

/** Changes of one worker that need no options. */
const CHANGES = [
  {
    name: 'drain',
    description: 'Send a worker no further requests; it stays registered.',
    method: 'PATCH',
    body: { drained: true },
    effect: 'is being drained; requests that run may finish',
  },
  {
    name: 'undrain',
    description: 'End the drain of a worker: it gets requests again.',
    method: 'PATCH',
    body: { drained: false },
    effect: 'gets requests again while it is healthy',
  },
  {
    name: 'remove',
    description: 'Drain a worker and remove it.',
    method: 'DELETE',
    body: undefined,
    effect: 'is being removed; requests that run may finish',
  },
] as const

export function defineWorkers(command: Command): void {
  command.addHelpText('after', EXAMPLES)

  withGateway(command.command('list').description('Show all workers.'))
    .option('--model <id>', 'only workers that serve this model')
    .action((options: { model?: string; json?: boolean }, self: Command) => listWorkers(self, options))

  withGateway(
    command.command('add <url>').description('Register a worker; its engine and models are discovered.'),
  )
    .addOption(repeatable('--model <id>', 'model that it serves, instead of discovery; repeatable'))
    .option('--worker-api-key <key>', 'key that the gateway presents to the worker')
    .option('--priority <number>', 'higher is preferred (default: 50)')
    .addOption(
      new Option('--type <type>', 'role (default: regular)').choices(['regular', 'prefill', 'decode']),
    )
    .option('--runtime <engine>', 'engine, instead of detection, such as sglang, vllm or external')
    .addOption(repeatable('--label <key=value>', 'label; repeatable'))
    .option('--wait', 'return when the worker is ready, or has failed (exit code 1)')
    .option('--wait-ms <ms>', 'longest wait, milliseconds', '300000')
    .action((url: string, options: AddOptions, self: Command) => addWorker(self, url, options))

  for (const { name, description, method, body, effect } of CHANGES)
    withGateway(command.command(`${name} <id-or-url>`).description(description)).action(
      async (idOrUrl: string, options: { json?: boolean }, self: Command) => {
        const accepted = await changeWorker(clientOf(self), method, idOrUrl, body)
        printResult(options.json, accepted, () => `${idOrUrl} ${effect}`)
      },
    )
}

async function listWorkers(command: Command, options: { model?: string; json?: boolean }): Promise<void> {
  const query = options.model === undefined ? '' : `?model=${encodeURIComponent(options.model)}`
  const listing = (await clientOf(command).call('GET', `/workers${query}`)) as WorkerList
  printResult(options.json, listing, () =>
    listing.workers.length === 0
      ? 'no workers; add one with: weir workers add http://HOST:PORT'
      : renderWorkers(listing.workers),
  )
}

function renderWorkers(workers: readonly WorkerRecord[]): string {
  const headings = ['ID', 'URL', 'STATUS', 'MODELS', 'TYPE', 'ENGINE', 'PRIORITY', 'LOAD'].concat([
    'BREAKER',
    'REQUESTS',
    'FAILED',
    'LATENCY',
    'TTFT',
  ])
  const rows = workers.map((worker) => [
    worker.id,
    worker.url,
    worker.status,
    worker.models?.map(({ id }) => id).join(', ') || 'any',
    worker.worker_type,
    worker.runtime_type,
    worker.priority,
    worker.load,
    ...trafficCells(worker),
  ])
  return `${renderTable(headings, rows)}${workers.map(problemsOf).join('')}${workers.map(lastErrorOf).join('')}`
}

function trafficCells({ breaker, traffic }: WorkerRecord): (string | number)[] {
  if (traffic === undefined) return ['-', '-', '-', '-', '-']
  const { answered, silent, unreachable } = traffic.failures
  const failed = answered + silent + unreachable
  const share = traffic.failure_share < 0.01 ? '' : ` (${Math.round(traffic.failure_share * 100)} % recently)`
  return [
    traffic.is_stalled ? 'stalled' : (breaker ?? '-'),
    traffic.requests,
    `${failed}${share}`,
    shownMs(traffic.duration_ms),
    shownMs(traffic.ttft_ms),
  ]
}

function shownMs(ms: number | null): string {
  if (ms === null) return '-'
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`
}

/** Older errors are not shown beside the table. */
const MAX_ERROR_AGE_SEC = 600

function lastErrorOf({ url, traffic }: WorkerRecord): string {
  if (traffic?.last_error == null || traffic.last_error_at === null) return ''
  const ageSec = Math.max(0, Math.round(Date.now() / 1000 - traffic.last_error_at))
  return ageSec > MAX_ERROR_AGE_SEC ? '' : `\n${url}, ${ageSec} s ago: ${printable(traffic.last_error)}`
}

/** Why a worker is not ready yet, or what to correct, as lines of their own: reasons are too long for a column. */
function problemsOf({ url, status, job_status, warnings = [] }: WorkerRecord): string {
  const reason = status === 'pending' ? job_status?.message : null
  const lines = typeof reason === 'string' && reason !== '' ? [reason, ...warnings] : warnings
  return lines.map((line) => `\n${printable(line.startsWith(url) ? line : `${url}: ${line}`)}`).join('')
}

async function addWorker(command: Command, url: string, options: AddOptions): Promise<void> {
  const client = clientOf(command)
  const waitMs = toInteger('--wait-ms', options.waitMs)
  const accepted = (await client.call('POST', '/workers', toSpec(url, options)).catch((error: unknown) => {
    throw explainAdd(error, url)
  })) as WorkerAccepted
  if (options.wait !== true) {
    const { url: place, worker_id } = accepted
    const text = `${place} is being registered as ${worker_id}; see: weir workers list`
    printResult(options.json, accepted, () => text)
    return
  }
  const worker = await waitForWorker(client, accepted, waitMs)
  printResult(options.json, worker, () => renderWorkers([worker]))
}

/** Only what was given; the rest is the gateway's to decide. */
function toSpec(url: string, options: AddOptions): Record<string, unknown> {
  const { model, workerApiKey, priority, type, runtime, label } = options
  return {
    url,
    ...(model && { models: model.map((id) => ({ id })) }),
    ...(workerApiKey !== undefined && { api_key: workerApiKey }),
    ...(priority !== undefined && { priority: toInteger('--priority', priority) }),
    ...(type !== undefined && { worker_type: type }),
    ...(runtime !== undefined && { runtime_type: runtime }),
    ...(label && { labels: Object.fromEntries(label.map(toLabel)) }),
  }
}

function toInteger(flag: string, text: string): number {
  if (!/^\d+$/.test(text)) throw new CliError(`${flag} must be a whole number, got ${text}`)
  return Number(text)
}

function toLabel(text: string): [string, string] {
  const split = text.indexOf('=')
  if (split < 1) throw new CliError(`--label must be key=value, got ${text}`)
  return [text.slice(0, split), text.slice(split + 1)]
}

function explainAdd(error: unknown, url: string): unknown {
  if (!(error instanceof GatewayRefusal)) return error
  if (error.status === 409)
    return new CliError(
      `${error.message}\n  to register it again: weir workers remove ${url}, then add it again`,
    )
  if (error.status === 400 && !url.includes('://'))
    return new CliError(`${error.message}\n  did you mean http://${url} ?`)
  return error
}

async function changeWorker(
  client: GatewayClient,
  method: 'PATCH' | 'DELETE',
  idOrUrl: string,
  body: object | undefined,
): Promise<unknown> {
  const id = idOrUrl.includes('://') ? await findByUrl(client, idOrUrl) : idOrUrl
  return client.call(method, `/workers/${encodeURIComponent(id)}`, body).catch((error: unknown) => {
    if (!(error instanceof GatewayRefusal) || (error.status !== 404 && error.status !== 400)) throw error
    throw new CliError(`${error.message}\n  'weir workers list' shows the ids`)
  })
}

async function findByUrl(client: GatewayClient, url: string): Promise<string> {
  const { workers } = (await client.call('GET', '/workers')) as WorkerList
  const found = workers.find((worker) => worker.url === url || worker.dp_base_url === url)
  if (found !== undefined) return found.id
  const known = workers.map((worker) => worker.url).join(', ')
  throw new CliError(`no worker has the url ${url}${known === '' ? '' : `; known: ${known}`}`)
}

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 2_000

/**
 * Polls until a registered worker is ready, with growing pauses; prints each change of state on standard error.
 *
 * @param limitMs longest wait, in milliseconds
 * @throws CliError if the registration fails, the worker disappears or the time is over
 */
async function waitForWorker(
  client: GatewayClient,
  { worker_id: id, url }: Pick<WorkerAccepted, 'worker_id' | 'url'>,
  limitMs: number,
): Promise<WorkerRecord> {
  const startedAtMs = Date.now()
  let shown = ''
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 1.5, LONGEST_PAUSE_MS)) {
    const worker = await readWorker(client, id, url)
    const elapsedMs = Date.now() - startedAtMs
    const state = stateOf(worker)
    if (state !== shown) console.error(`${url}: ${state} (${(elapsedMs / 1000).toFixed(1)} s)`)
    shown = state
    if (worker.status === 'ready') return worker
    if (worker.status === 'failed' || worker.job_status?.status === 'failed') {
      const reason = printable(worker.job_status?.message ?? 'its health checks fail')
      throw new CliError(
        `${url} did not become ready: ${reason}\n  remove it with: weir workers remove ${id}`,
      )
    }
    if (elapsedMs + pauseMs > limitMs)
      throw new CliError(`${url} is not ready after ${limitMs} ms; it is still being registered as ${id}`)
    await sleep(pauseMs)
  }
}

async function readWorker(client: GatewayClient, id: string, url: string): Promise<WorkerRecord> {
  try {
    return (await client.call('GET', `/workers/${encodeURIComponent(id)}`)) as WorkerRecord
  } catch (error) {
    if (error instanceof GatewayRefusal && error.status === 404)
      throw new CliError(`${url} was removed before it was ready`, error)
    throw error
  }
}

function stateOf({ status, job_status: job }: WorkerRecord): string {
  if (job === undefined) return status
  return job.message === null
    ? `${status}, registration ${job.status}`
    : `${status}, ${printable(job.message)}`
}
