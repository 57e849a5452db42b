/**
 * Logs workers whose answers show a fault that only a correction of their settings can end, and those that answer for another
 * model than they were asked for: an engine that was restarted with another model may answer for it under the old name. A
 * difference of names alone is no fault, since services answer with dated names; a new one is a reason to look at the engine.
 * @hot
 */
import type { WorkerBalance } from '../balance/worker-balance.ts'
import type { Logger } from '../contracts/log.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import { QUOTE, skipString } from '../wire/json-bytes.ts'
import { valueAt } from '../wire/token-usage.ts'

/** Shortest time between two log lines about a worker that fails only some requests, milliseconds. */
const MIN_FAILING_MS = 60_000

const UNAUTHORIZED = 401
const FORBIDDEN = 403

/** True for statuses that reject a credential. gRPC statuses count by their HTTP status. */
export function isRejection(status: number): boolean {
  return status === UNAUTHORIZED || status === FORBIDDEN
}

const CREDENTIAL_NAME = /authorization|cookie|api-?key|token|secret/

/** @param header name of a request header, lower-case */
export function mayHoldCredential(header: string): boolean {
  return CREDENTIAL_NAME.test(header)
}

/** Values are the log messages. */
const MESSAGES = {
  credentials: "worker rejects the gateway's credentials",
  stream: 'worker answers a stream request without a stream',
  page: 'worker answers requests with an HTML page',
  model: 'worker does not serve a model that it lists',
} as const

export type Misconfiguration = keyof typeof MESSAGES

const MODEL = Buffer.from('"model"')
/** Engines write the name near the beginning or, in whole answers, near the end. */
const SEARCHED_BYTES = 1_024
/** Longer names are not compared. */
const MAX_NAME_BYTES = 1_024
/** Names that are kept for one worker: of a wildcard worker, clients choose what it is asked for. */
const MAX_KEPT = 64
/** Shortest time between two reports of one worker, milliseconds. */
const MIN_REPORT_MS = 10_000

/** What differed in the answers of one worker. */
interface Differences {
  /** The last name in an answer, by the name that was asked for. */
  readonly named: Map<string, string>
  reportedAtMs: number
}

export class WorkerWarnings {
  readonly #balance: Pick<WorkerBalance, 'misnamed'>
  readonly #log: Logger
  /** Time of the first response with a fault. A changed worker is a new entry and starts again. */
  readonly #sinceMs = new WeakMap<WorkerEntry, number>()
  /** By worker id: a worker that is described again is a new entry. */
  readonly #differences = new Map<string, Differences>()

  constructor(balance: Pick<WorkerBalance, 'misnamed'>, log: Logger) {
    this.#balance = balance
    this.#log = log
  }

  found(worker: WorkerEntry, fault: Misconfiguration, status: number, model: string): void {
    if (this.#sinceMs.has(worker)) return
    this.#sinceMs.set(worker, performance.now())
    const fields = { worker: worker.url, status, model, has_api_key: worker.apiKey !== null }
    if (fault === 'credentials') this.#log.error(fields, MESSAGES[fault])
    else this.#log.warn(fields, MESSAGES[fault])
  }

  /** Called for each request that the worker answered as expected. */
  working(worker: WorkerEntry): void {
    const sinceMs = this.#sinceMs.get(worker)
    if (sinceMs === undefined || performance.now() - sinceMs < MIN_FAILING_MS) return
    this.#sinceMs.delete(worker)
    this.#log.info({ worker: worker.url }, 'worker answers as configured again')
  }

  onWorkersChanged(workers: readonly WorkerEntry[]): void {
    const ids = new Set(workers.map(({ id }) => id))
    for (const id of this.#differences.keys()) if (!ids.has(id)) this.#differences.delete(id)
  }

  /**
   * @param asked the model that the worker was asked for
   * @param bytes part of a successful answer, in JSON or events
   * @returns true if the part has the name, whole or in part
   */
  compareModel(worker: WorkerEntry, asked: string, bytes: Buffer): boolean {
    const start = nameIn(bytes)
    if (start < 0) return false
    if (!isText(bytes, start, asked)) this.#compareNames(worker, asked, textAt(bytes, start))
    else if (this.#differences.size > 0) this.#differences.get(worker.id)?.named.delete(asked)
    return true
  }

  #compareNames(worker: WorkerEntry, asked: string, named: string | null): void {
    if (named === null) return
    if (named === asked || knows(worker, named)) this.#differences.get(worker.id)?.named.delete(asked)
    else this.#differs(worker, asked, named)
  }

  #differs(worker: WorkerEntry, asked: string, named: string): void {
    const known = this.#differences.get(worker.id)
    const { named: before, reportedAtMs } = known ?? { named: new Map(), reportedAtMs: -MIN_REPORT_MS }
    const nowMs = performance.now()
    if (before.get(asked) === named || nowMs - reportedAtMs < MIN_REPORT_MS) return
    if (before.size >= MAX_KEPT) before.clear()
    before.set(asked, named)
    this.#differences.set(worker.id, { named: before, reportedAtMs: nowMs })
    this.#balance.misnamed(worker.slot)
    this.#log.warn({ worker: worker.url, model: asked, named }, 'worker answers for another model')
  }
}

/** Position of the name's opening quote; -1 if there is none. Generated text cannot match, because its quotes are escaped. */
function nameIn(bytes: Buffer): number {
  const { length } = bytes
  if (length <= 2 * SEARCHED_BYTES) return nextName(bytes, 0)
  const start = nextName(bytes.subarray(0, SEARCHED_BYTES), 0)
  return start >= 0 ? start : nextName(bytes, length - SEARCHED_BYTES)
}

function nextName(bytes: Buffer, from: number): number {
  let at = bytes.indexOf(MODEL, from)
  // Schemas of tools have properties of this name, whose values are objects.
  while (at >= 0) {
    const start = valueAt(bytes, at + MODEL.length)
    if (bytes[start] === QUOTE) return start
    at = bytes.indexOf(MODEL, at + MODEL.length)
  }
  return -1
}

/** True if the string that begins at the quote is this text of ASCII characters. */
function isText(bytes: Buffer, quote: number, text: string): boolean {
  let at = quote + 1
  for (let i = 0; i < text.length; i++) if (bytes[at++] !== text.charCodeAt(i)) return false
  return bytes[at] === QUOTE
}

/** Null if the string is too long, cut off or invalid. */
function textAt(bytes: Buffer, quote: number): string | null {
  const end = skipString(bytes, quote)
  if (end < 0 || end - quote > MAX_NAME_BYTES) return null
  try {
    return JSON.parse(bytes.toString('utf8', quote, end))
  } catch {
    return null
  }
}

/** True for models and aliases of the worker, and for the name under which its engine describes its model. */
function knows({ models, labels }: WorkerEntry, name: string): boolean {
  const { served_model_name: served, model_id: id, model_path: path } = labels
  if (name === served || name === id || name === path) return true
  return models.some((card) => card.id === name || card.aliases?.includes(name) === true)
}
