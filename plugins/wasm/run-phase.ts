/** Runs one phase of one request through its chain of modules, each seeing what those before it changed. Pool threads. */
import {
  CREDENTIAL_HEADERS,
  EXPORT_OF_ATTACH_POINT,
  encodeFrame,
  type GuestInput,
  type HeaderPair,
} from '../../wasm-sdk/abi.ts'
import { readPhaseOutput, readToolOutput } from './guest-output.ts'
import type { GuestRunner } from './guest-runner.ts'
import type { Fetched, LoadedModule, PhaseItem, PhaseResult } from './guest-task.ts'
import { applyEdits } from './header-edits.ts'

const NO_BODY = new Uint8Array(0)

/** What the phase has made of the message so far. */
interface Working {
  requestHeaders: readonly string[] | null
  responseHeaders: readonly string[] | null
  status: number
  body: Uint8Array | null
}

export interface PhaseRun {
  readonly runner: GuestRunner
  readonly item: PhaseItem
  /** UUIDs of the modules that the item's positions mean. */
  readonly chain: readonly string[]
  /** Units of each call; null for what the modules may burn. */
  readonly fuel: number | null
  /** Told before each call, with the position of the module. */
  onStart(module: number): void
}

/** Yields the module that needs an instance before it can go on. */
export function* runPhase({
  runner,
  item,
  chain,
  fuel,
  onStart,
}: PhaseRun): Generator<string, PhaseResult[]> {
  const isRequest = item.point === 'OnRequest'
  const isTool = item.point === 'OnToolCall'
  const working: Working = {
    requestHeaders: item.requestHeaders,
    responseHeaders: item.responseHeaders,
    status: item.input.response?.status ?? 0,
    body: item.body,
  }
  const results: PhaseResult[] = []
  for (const position of item.modules) {
    onStart(position)
    const module = runner.module(chain[position])
    const { tenant } = item.input.request
    if (!runner.isReady(module.uuid, tenant)) yield module.uuid
    const body = isTool ? (working.body ?? NO_BODY) : bodyFor(module, isRequest, working)
    const head = headFor(module, item.input, working)
    const frame =
      item.fetched?.uuid === module.uuid ? afterFetch(head, body, item.fetched) : encodeFrame(head, body)
    const { value, report } = runner.call({
      uuid: module.uuid,
      exportName: EXPORT_OF_ATTACH_POINT[item.point],
      input: frame,
      tenant,
      fuel,
      read: (output) => (isTool ? readToolOutput(output) : readPhaseOutput(output, isRequest)),
    })
    const result: PhaseResult = value === null ? { ...report, ...UNCHANGED } : { ...report, ...value }
    results.push(result)
    if (
      result.action === 'reject' ||
      result.action === 'fetch' ||
      (result.failure !== null && module.onFailure === 'closed')
    )
      break
    apply(working, result, isRequest)
  }
  return results
}

const UNCHANGED = {
  action: 'continue',
  status: null,
  edits: [],
  droppedHeaders: 0,
  body: null,
  fetch: null,
} as const

/** The same input again, with what the module waited for. */
function afterFetch(input: GuestInput, body: Uint8Array, { head, state, body: fetched }: Fetched): Buffer {
  return encodeFrame({ ...input, fetched: head, state }, Buffer.concat([body, fetched]))
}

function apply(working: Working, { edits, status, body }: PhaseResult, isRequest: boolean): void {
  if (edits.length > 0) {
    if (isRequest)
      working.requestHeaders = working.requestHeaders && applyEdits(working.requestHeaders, edits)
    else working.responseHeaders = working.responseHeaders && applyEdits(working.responseHeaders, edits)
  }
  if (status !== null) working.status = status
  if (body !== null) working.body = body
}

function headFor({ needs }: LoadedModule, input: GuestInput, working: Working): GuestInput {
  const request = withHeaders(input.request, working.requestHeaders, needs.headers, needs.credentials)
  if (input.response === undefined) return { ...input, request }
  const response = withHeaders(
    { ...input.response, status: working.status },
    working.responseHeaders,
    needs.response_headers,
  )
  return { ...input, request, response }
}

function withHeaders<T extends object>(
  message: T,
  headers: readonly string[] | null,
  needs: boolean | readonly string[],
  showsCredentials = false,
): T {
  if (headers === null || needs === false) return message
  return { ...message, headers: toPairs(headers, needs, showsCredentials) }
}

/** @param needs true for all but credentials, or the names wanted */
export function toPairs(
  headers: readonly string[],
  needs: boolean | readonly string[],
  showsCredentials = false,
): HeaderPair[] {
  const pairs: HeaderPair[] = []
  for (let i = 0; i < headers.length; i += 2) {
    const isShown =
      needs === true
        ? showsCredentials || !CREDENTIAL_HEADERS.includes(headers[i])
        : Array.isArray(needs) && needs.includes(headers[i])
    if (isShown) pairs.push([headers[i], headers[i + 1]])
  }
  return pairs
}

function bodyFor({ needs }: LoadedModule, isRequest: boolean, { body }: Working): Uint8Array {
  const isWanted = isRequest ? needs.request_body : needs.response_body
  return isWanted && body !== null ? body : NO_BODY
}
