/** Output at the attach points of a request: OnRequest, OnResponse, OnError, OnToolCall and OnPromptText. */
import type { ModifyAction, PromptTextEntry } from '../../../wasm-sdk/abi.ts'
import { EditList } from '../hooks/header-edits.ts'
import type { PhaseResult } from '../threads/guest-task.ts'
import {
  BadOutput,
  checkLength,
  type OutputFrame,
  parseBody,
  readFetch,
  readFrame,
  readPairs,
  unknownAction,
} from './guest-output.ts'

const LEAST_STATUS = 200
const GREATEST_STATUS = 599
const LEAST_ERROR_STATUS = 400

export type PhaseOutput = Pick<
  PhaseResult,
  'action' | 'status' | 'edits' | 'droppedHeaders' | 'body' | 'fetch'
>

export const CONTINUE: PhaseOutput = Object.freeze({
  action: 'continue',
  status: null,
  edits: [],
  droppedHeaders: 0,
  body: null,
  fetch: null,
})

/** Reads what all of them have in common. @param output null when the module returned none: it continues */
function readOutput(output: Uint8Array | null, read: (frame: OutputFrame) => PhaseOutput): PhaseOutput {
  if (output === null || output.length === 0) return CONTINUE
  const frame = readFrame(output)
  const { action } = frame.head
  if (action === 'continue') return CONTINUE
  return action === 'fetch' ? { ...CONTINUE, action, ...readFetch(frame) } : read(frame)
}

/** @throws BadOutput */
export function readPhaseOutput(output: Uint8Array | null, isRequestPhase: boolean): PhaseOutput {
  return readOutput(output, ({ head, body }) => {
    if (head.action === 'reject') return readReject(head, body)
    if (head.action !== 'modify') throw unknownAction(head.action)
    const list = new EditList(!isRequestPhase)
    list.addAll(readEdits(head))
    return {
      action: 'modify',
      status: !isRequestPhase && isStatus(head.status) ? head.status : null,
      edits: list.edits,
      droppedHeaders: list.dropped,
      body: head.replaces_body === true ? new Uint8Array(body) : null,
      fetch: null,
    }
  })
}

function readReject(head: Record<string, unknown>, body: Uint8Array): PhaseOutput {
  const list = new EditList(true)
  list.addResponse(readPairs(head, 'headers'))
  return {
    action: 'reject',
    status: isStatus(head.status) ? head.status : 400,
    edits: list.edits,
    droppedHeaders: list.dropped,
    body: new Uint8Array(body),
    fetch: null,
  }
}

/** @throws BadOutput */
export function readEdits(head: Record<string, unknown>): ModifyAction {
  const removed = head.headers_remove ?? []
  if (!Array.isArray(removed) || !removed.every((name) => typeof name === 'string'))
    throw new BadOutput('headers_remove must be a list of names')
  checkLength(removed, 'headers_remove')
  return {
    action: 'modify',
    headers_set: readPairs(head, 'headers_set'),
    headers_add: readPairs(head, 'headers_add'),
    headers_remove: removed,
  }
}

/** Interim and unregistered statuses cannot end an exchange. */
export function isStatus(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= LEAST_STATUS && Number(value) <= GREATEST_STATUS
}

/** Of the text that the model reads in place of a tool result, and of the message of a refused prompt. */
const MAX_REFUSAL_BYTES = 65_536

/** Output of OnToolCall. @throws BadOutput */
export function readToolOutput(output: Uint8Array | null): PhaseOutput {
  return readOutput(output, ({ head, body }) => {
    const { action, body: replaced } = readToolHead(head, body)
    return { ...CONTINUE, action, body: replaced && new Uint8Array(replaced) }
  })
}

/** @returns the text for the model, or the new arguments; null keeps the arguments @throws BadOutput */
export function readToolHead(
  head: Record<string, unknown>,
  body: Buffer,
): { action: 'reject' | 'modify'; body: Buffer | null } {
  if (head.action === 'reject') {
    if (body.length > MAX_REFUSAL_BYTES)
      throw new BadOutput(`the text for the model has more than ${MAX_REFUSAL_BYTES} bytes`)
    return { action: 'reject', body }
  }
  if (head.action !== 'modify') throw unknownAction(head.action)
  if (head.replaces_body !== true) return { action: 'modify', body: null }
  checkArguments(body)
  return { action: 'modify', body }
}

function checkArguments(body: Buffer): void {
  const value = parseBody(body, 'the arguments are')
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new BadOutput('the arguments must be a JSON object')
}

/**
 * Output of OnPromptText. The body of the result is the module's list.
 *
 * @param texts number of texts in the input
 * @throws BadOutput
 */
export function readPromptOutput(output: Uint8Array | null, texts: number): PhaseOutput {
  return readOutput(output, ({ head, body }) => {
    const { action, status, replaced } = readPromptHead(head, body, texts)
    return {
      ...CONTINUE,
      action,
      status,
      body: replaced || action === 'reject' ? new Uint8Array(body) : null,
    }
  })
}

export function toEntries(json: Uint8Array): readonly PromptTextEntry[] {
  return JSON.parse(Buffer.from(json.buffer, json.byteOffset, json.byteLength).toString('utf8'))
}

/** @param texts number of texts in the input @returns the list; null keeps all @throws BadOutput */
export function readPromptHead(
  head: Record<string, unknown>,
  body: Buffer,
  texts: number,
): { action: 'reject' | 'modify'; status: number | null; replaced: readonly (string | null)[] | null } {
  if (head.action === 'reject') {
    if (body.length > MAX_REFUSAL_BYTES)
      throw new BadOutput(`the message of the error has more than ${MAX_REFUSAL_BYTES} bytes`)
    const status =
      isStatus(head.status) && head.status >= LEAST_ERROR_STATUS ? head.status : LEAST_ERROR_STATUS
    return { action: 'reject', status, replaced: null }
  }
  if (head.action !== 'modify') throw unknownAction(head.action)
  if (head.replaces_body !== true) return { action: 'modify', status: null, replaced: null }
  const replaced = readList(body)
  if (replaced.length !== texts)
    throw new BadOutput(`the body must be a list of ${texts} texts (got ${replaced.length})`)
  const bad = replaced.findIndex((text) => text !== null && typeof text !== 'string')
  if (bad >= 0) throw new BadOutput(`text ${bad} of the body must be a string or null`)
  return { action: 'modify', status: null, replaced: replaced as readonly (string | null)[] }
}

function readList(body: Buffer): readonly unknown[] {
  const list = parseBody(body, 'the body is')
  if (!Array.isArray(list)) throw new BadOutput('the body must be a list of texts')
  return list
}
