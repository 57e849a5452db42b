/** Failed attempts of one call: which worker has failed, in which class, and what it sent. Created with the first failure. */
import type { Attempt, Fault } from '../balance/worker-balance.ts'
import type { Call } from '../contracts/call.ts'
import type { WorkerErrorText } from '../contracts/hook.ts'
import type { UpstreamFailure } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import type { AttemptNotes } from './attempts.ts'
import type { CallParts } from './call-parts.ts'
import { isRejection, type Misconfiguration } from './worker-warnings.ts'

const NOT_FOUND = 404

export class CallFaults {
  readonly #call: Call
  /** Canonical. */
  readonly #model: string
  readonly #parts: CallParts
  /** Slots of the workers whose breaker has counted a failure of this request. */
  readonly #blamed: number[] = []
  /** Workers that know nothing of the model that they list; they have failed if another worker serves the request. */
  readonly #suspects: WorkerEntry[] = []
  /** Workers that answered 500 while another one was left; they have failed unless that one answers the same. */
  #doubted: WorkerEntry[] = []
  /** Two workers answered 500: none of them has failed. */
  isOfRequest = false
  /** Of the last failed attempt, whose body may still arrive. */
  #received: { readonly worker: WorkerEntry; readonly error: ReceivedError } | null = null

  constructor(call: Call, model: string, parts: CallParts) {
    this.#call = call
    this.#model = model
    this.#parts = parts
  }

  /** Reports a failure to the breaker, at most once per request and worker. */
  blame(attempt: Attempt, fault: Fault): void {
    const { slot } = attempt.worker
    if (this.#blamed.includes(slot)) return
    this.#blamed.push(slot)
    attempt.failed(fault)
  }

  /** True if the worker rejects credentials of the gateway; this counts as a failure of the worker. */
  isRejected(worker: WorkerEntry, status: number): boolean {
    if (!isRejection(status)) return false
    const { outgoing } = this.#parts
    if (!outgoing.areOwnCredentials(this.#call.ctx, worker)) return false
    this.misconfigured(worker, 'credentials', status)
    return true
  }

  misconfigured(worker: WorkerEntry, what: Misconfiguration, status: number): void {
    this.#parts.warnings.found(worker, what, status, this.#model)
  }

  /** The worker answered 404 for a model that it lists. */
  suspect(worker: WorkerEntry): void {
    this.#suspects.push(worker)
  }

  /** Another worker served the request: those that answered 404 before it have failed. */
  served(): void {
    for (const worker of this.#suspects) {
      this.misconfigured(worker, 'model', NOT_FOUND)
      this.#blameLater(worker)
    }
  }

  /** The worker answered 500, and another one gets the request. */
  doubt(worker: WorkerEntry): void {
    this.#doubted.push(worker)
  }

  /** @returns true if another worker has answered this request with 500 too */
  repeats(worker: WorkerEntry): boolean {
    this.isOfRequest = this.#doubted.some(({ slot }) => slot !== worker.slot)
    if (this.isOfRequest) this.#doubted = []
    return this.isOfRequest
  }

  /** No further attempt follows. */
  ended(): void {
    for (const worker of this.#doubted) this.#blameLater(worker)
    this.#doubted = []
  }

  /** Blames the worker of an attempt that was released. */
  #blameLater(worker: WorkerEntry): void {
    const attempt = this.#parts.balance.attempt(worker)
    this.blame(attempt, 'answered')
    attempt.release()
  }

  /** A worker sent a response that counts as a failure; `receive` takes its body. */
  answered(worker: WorkerEntry, status: number, notes: AttemptNotes | null): void {
    this.#keep(worker, `status ${status}`, notes)
  }

  /** A worker sent a response whose status is good, but not its format. */
  unusable(worker: WorkerEntry, status: number, notes: AttemptNotes | null): void {
    this.#keep(worker, `status ${status}, but not a response of the requested format`, notes)
  }

  /** An attempt failed without a usable response. */
  failed(worker: WorkerEntry, { kind, message }: UpstreamFailure, notes: AttemptNotes | null): void {
    if (notes !== null) notes.failure = kind
    this.#keep(worker, `${kind}: ${message}`, notes)
  }

  receive(chunk: Buffer): void {
    this.#received?.error.take(chunk)
  }

  /** No more bytes of the failed response follow. */
  settle(): void {
    if (this.#received === null) return
    const { worker, error } = this.#received
    this.#received = null
    this.#parts.balance.noteError(worker, error.text)
  }

  #keep(worker: WorkerEntry, what: string, notes: AttemptNotes | null): void {
    this.settle()
    const { ctx } = this.#call
    const client = (ctx.header('authorization') ?? '').replace(/^\S+\s+/, '')
    const secrets = [worker.apiKey ?? '', client, ctx.header('x-api-key') ?? '']
    const error = new ReceivedError(worker.url, what, secrets)
    this.#received = { worker, error }
    if (notes !== null) notes.error = error
    ctx.workerError = error
  }
}

/** Bytes of an error body that are read. */
const MAX_BODY_BYTES = 1_024
/** Longest text, characters. */
const MAX_TEXT = 300

/** Control characters, and those that change the direction of text. */
const CONTROLS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu
/** Values of fields and headers with the name of a credential, also after `provided`. */
const NAMED =
  /((?:api[-_ ]?key|token|secret|password|passwd|authorization|cookie|credentials?)(?: \w{1,12}){0,2}["']? ?[:=] ?["']?)(?!\[redacted\])[^\s"',;&}]{4,}/gi
const SCHEME = /\b(bearer|basic) [\w.~+/=-]{6,}/gi
/** Keys by their usual prefixes. */
const PREFIXED = /\b(?:sk|pk|rk|hf|gsk|xai|ghp|glpat|eyJ|AIza|AKIA)[-_]?[\w.*-]{8,}/g
/** Long runs of letters and digits are keys, hashes or parts of tokens. */
const OPAQUE = /\b(?=[A-Za-z]*\d)[A-Za-z0-9]{24,}\b/g
const REDACTED = '[redacted]'

/**
 * The text of a worker's error for operators: bounded, on one line, without credentials.
 * @param secrets values to remove wherever they occur, such as the worker's key; those under 4 characters are ignored
 */
export function redact(text: string, secrets: readonly string[]): string {
  let safe = text.replace(CONTROLS, ' ').trim()
  for (const secret of secrets) if (secret.length >= 4) safe = safe.replaceAll(secret, REDACTED)
  safe = safe
    .replace(SCHEME, `$1 ${REDACTED}`)
    .replace(NAMED, `$1${REDACTED}`)
    .replace(PREFIXED, REDACTED)
    .replace(OPAQUE, REDACTED)
  return safe.length > MAX_TEXT ? `${safe.slice(0, MAX_TEXT - 1)}…` : safe
}

/** An error that is being received. */
export class ReceivedError implements WorkerErrorText {
  readonly workerUrl: string
  readonly #what: string
  readonly #secrets: readonly string[]
  #body: Buffer[] | null = []
  #byteCount = 0
  #text = ''

  /** @param what the status, or the kind and message of a failure */
  constructor(workerUrl: string, what: string, secrets: readonly string[]) {
    this.workerUrl = workerUrl
    this.#what = what
    this.#secrets = secrets
  }

  /** @param chunk copied as far as it is kept */
  take(chunk: Buffer): void {
    if (this.#body === null || this.#byteCount >= MAX_BODY_BYTES) return
    const kept = Buffer.from(chunk.subarray(0, MAX_BODY_BYTES - this.#byteCount))
    this.#byteCount += kept.length
    this.#body.push(kept)
  }

  /** Final from the first read on. */
  get text(): string {
    if (this.#body !== null) {
      // The end of a body that is cut may be half a key.
      const isCut = this.#byteCount >= MAX_BODY_BYTES
      const body = Buffer.concat(this.#body).toString('utf8')
      const whole = isCut ? body.slice(0, body.search(/\S*$/)) : body
      this.#text = redact(whole === '' ? this.#what : `${this.#what}: ${whole}`, this.#secrets)
      this.#body = null
    }
    return this.#text
  }
}
