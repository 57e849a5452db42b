/** Runs one phase of one request through its chain of modules, each seeing what those before it changed. @hot */
import { performance } from 'node:perf_hooks'
import { EXPORT_OF_ATTACH_POINT } from '../../../wasm-sdk/abi.ts'
import type { Guest } from '../instances/guest.ts'
import { isLastFrame, writeFrame } from '../instances/guest-frame.ts'
import { CONTINUE, readPromptOutput } from '../instances/phase-output.ts'
import type { Fetched, LoadedModule, PhaseItem, PhaseResult } from '../threads/guest-task.ts'
import { applyEdits } from './header-edits.ts'
import { headOf, requestJson } from './phase-head.ts'
import { withTexts } from './prompt-texts.ts'

const NO_BODY = new Uint8Array(0)

/** The message after the modules so far. */
interface Working {
  requestHeaders: readonly string[] | null
  responseHeaders: readonly string[] | null
  status: number
  body: Uint8Array | null
}

interface PhaseRunParts {
  readonly item: Omit<PhaseItem, 'modules'>
  /** In order. */
  readonly guests: readonly Guest[]
  /** Fuel of each call; null for the module's own. */
  readonly fuel: number | null
  /** Called before each call with the index of the guest. */
  onStart?(place: number): void
}

export class PhaseRun {
  /** Results of the modules so far. */
  readonly results: PhaseResult[] = []
  readonly #parts: PhaseRunParts
  readonly #working: Working
  readonly #request: string
  /** Frame of modules that need nothing of the message, shared by all of them. */
  #bareFrame: Buffer | null = null
  #place = 0
  /** End of the last call, and start of the next. */
  #atMs = 0

  constructor(parts: PhaseRunParts) {
    const { item } = parts
    this.#parts = parts
    this.#request = requestJson(item.input)
    this.#working = {
      requestHeaders: item.requestHeaders,
      responseHeaders: item.responseHeaders,
      status: item.input.response?.status ?? 0,
      body: item.body,
    }
  }

  /** Continues. @returns a guest that needs an instance first; null when finished */
  next(): Guest | null {
    const { item, guests, onStart } = this.#parts
    const { tenant } = item.input.request
    this.#atMs = performance.now()
    while (this.#place < guests.length) {
      const guest = guests[this.#place]
      onStart?.(this.#place)
      if (!guest.isReady(tenant)) return guest
      const result = this.#call(guest, tenant)
      this.results.push(result)
      const { action, failure } = result
      if (
        action === 'reject' ||
        action === 'fetch' ||
        (failure !== null && guest.module.onFailure === 'closed')
      )
        return null
      this.#place++
      if (this.#place < guests.length) apply(this.#working, result, item.point)
    }
    return null
  }

  #call(guest: Guest, tenant: string | null): PhaseResult {
    const { item, fuel } = this.#parts
    const { module } = guest
    const { point } = item
    const working = this.#working
    const body = alwaysHasBody(point) ? working.body : bodyFor(module, point === 'OnRequest', working)
    const fetched = item.fetched?.uuid === module.uuid ? item.fetched : null
    const { value, report, endedAtMs } = guest.call({
      exportName: EXPORT_OF_ATTACH_POINT[point],
      input: this.#frame(module, body ?? NO_BODY, fetched),
      tenant,
      fuel,
      startedAtMs: this.#atMs,
      read:
        point === 'OnPromptText'
          ? (output) => readPromptOutput(output, item.input.prompt?.texts ?? 0)
          : guest.reader(point),
    })
    this.#atMs = endedAtMs
    const { action, status, edits, droppedHeaders, body: written, fetch } = value ?? CONTINUE
    const { failure, durationUs, fuel: burnt, logs, droppedLogs, counted, observed, gauged } = report
    return {
      failure,
      durationUs,
      fuel: burnt,
      logs,
      droppedLogs,
      counted,
      observed,
      gauged,
      action,
      status,
      edits,
      droppedHeaders,
      body: written,
      fetch,
    }
  }

  #frame(module: LoadedModule, body: Uint8Array, fetched: Fetched | null): Buffer {
    const { input } = this.#parts.item
    const { requestHeaders, responseHeaders, status } = this.#working
    const isBare =
      body.length === 0 && fetched === null && requestHeaders === null && responseHeaders === null
    if (isBare && this.#bareFrame !== null && isLastFrame(this.#bareFrame)) return this.#bareFrame
    const head = headOf({
      input,
      request: this.#request,
      needs: module.needs,
      fetched,
      requestHeaders,
      responseHeaders,
      status,
    })
    const frame = writeFrame(head, fetched === null ? body : Buffer.concat([body, fetched.body]))
    // A changed status is part of the next frame.
    this.#bareFrame = isBare && input.response === undefined ? frame : null
    return frame
  }
}

function apply(working: Working, { edits, status, body }: PhaseResult, point: PhaseItem['point']): void {
  if (edits.length > 0) {
    if (point === 'OnRequest')
      working.requestHeaders = working.requestHeaders && applyEdits(working.requestHeaders, edits)
    else working.responseHeaders = working.responseHeaders && applyEdits(working.responseHeaders, edits)
  }
  if (status !== null) working.status = status
  if (body !== null && working.body !== null && point === 'OnPromptText')
    working.body = withTexts(working.body, body)
  else if (body !== null) working.body = body
}

function alwaysHasBody(point: PhaseItem['point']): boolean {
  return point === 'OnToolCall' || point === 'OnPromptText'
}

function bodyFor({ needs }: LoadedModule, isRequest: boolean, { body }: Working): Uint8Array | null {
  return (isRequest ? needs.request_body : needs.response_body) ? body : null
}
