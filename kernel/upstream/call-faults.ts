/** Failed attempts of one call: which worker has failed, in which class, and what it sent. Created with the first failure. */
import type { Attempt, Fault } from '../balance/worker-balance.ts'
import type { Call } from '../contracts/call.ts'
import type { UpstreamFailure } from '../contracts/transport.ts'
import type { WorkerEntry } from '../contracts/worker.ts'
import type { AttemptNotes } from './attempt-notes.ts'
import type { CallParts } from './call-parts.ts'
import { ReceivedError } from './received-error.ts'
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
