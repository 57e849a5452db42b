/** Runs one phase of one request through its chain of modules, each seeing what those before it changed. Pool threads. */
import { EXPORT_OF_ATTACH_POINT } from '../../wasm-sdk/abi.ts'
import { writeFrame } from './guest-frame.ts'
import type { GuestRunner } from './guest-runner.ts'
import type { LoadedModule, PhaseItem, PhaseResult } from './guest-task.ts'
import { applyEdits } from './header-edits.ts'
import { memoOf } from './output-memo.ts'
import { headOf, requestJson } from './phase-head.ts'

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
  readonly item: Omit<PhaseItem, 'modules'>
  /** Positions in the chain, in order. */
  readonly modules: readonly number[]
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
  modules,
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
  const request = requestJson(item.input)
  for (const position of modules) {
    onStart(position)
    const module = runner.module(chain[position])
    const { tenant } = item.input.request
    if (!runner.isReady(module.uuid, tenant)) yield module.uuid
    const body = isTool ? (working.body ?? NO_BODY) : bodyFor(module, isRequest, working)
    const fetched = item.fetched?.uuid === module.uuid ? item.fetched : null
    const head = headOf({ input: item.input, request, needs: module.needs, fetched, ...working })
    const frame = writeFrame(head, fetched === null ? body : Buffer.concat([body, fetched.body]))
    const memo = memoOf(module, item.point)
    const { value, report } = runner.call({
      uuid: module.uuid,
      exportName: EXPORT_OF_ATTACH_POINT[item.point],
      input: frame,
      tenant,
      fuel,
      read: memo.read,
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

function apply(working: Working, { edits, status, body }: PhaseResult, isRequest: boolean): void {
  if (edits.length > 0) {
    if (isRequest)
      working.requestHeaders = working.requestHeaders && applyEdits(working.requestHeaders, edits)
    else working.responseHeaders = working.responseHeaders && applyEdits(working.responseHeaders, edits)
  }
  if (status !== null) working.status = status
  if (body !== null) working.body = body
}

function bodyFor({ needs }: LoadedModule, isRequest: boolean, { body }: Working): Uint8Array {
  const isWanted = isRequest ? needs.request_body : needs.response_body
  return isWanted && body !== null ? body : NO_BODY
}
