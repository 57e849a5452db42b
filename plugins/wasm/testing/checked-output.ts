/** The output of a module in the terms of ABI.md, with the reasons why the gateway would ignore parts of it. */
import type { AttachPoint, GuestAction, HeaderPair, PromptTextEntry } from '../../../wasm-sdk/abi.ts'
import { headerProblem } from '../hooks/header-edits.ts'
import { BadOutput, keptState, readFetchHead, readPairs, unknownAction } from '../instances/guest-output.ts'
import { isStatus, readEdits, readPromptHead, readToolHead } from '../instances/phase-output.ts'
import { readStreamHead, readTextHead } from '../instances/stream-output.ts'
import { checkChoice, NO_CHOICE } from '../pick/pick-output.ts'
import type { StreamEvent } from '../threads/guest-task.ts'

export interface CheckedOutput {
  readonly action: GuestAction['action']
  /** Null for none; 400 for a rejection with an invalid status. */
  readonly status: number | null
  /** Of a rejection. */
  readonly headers: readonly HeaderPair[]
  readonly headers_set: readonly HeaderPair[]
  readonly headers_add: readonly HeaderPair[]
  readonly headers_remove: readonly string[]
  /** The body that replaces the current one, or that of a rejection; null keeps the current one. */
  readonly body: Buffer | null
  /** Stream phase: null passes the event on unchanged. */
  readonly events: readonly StreamEvent[] | null
  /** Stream phase: null keeps the state. */
  readonly state: string | null
  /** Text phase: what is passed on now, null for all of it; and what is held back. */
  readonly text: string | null
  readonly held: string
  /** Prompt phase: the texts after the change; empty in other phases. */
  readonly prompt: readonly string[]
  /** Pick phase: null leaves it to the default policy. */
  readonly choice: number | null
  readonly fetch: RequestedFetch | null
  /** What the gateway would ignore, one sentence each. */
  readonly ignored: readonly string[]
}

export interface RequestedFetch {
  readonly url: string
  readonly method: string
  readonly headers: readonly HeaderPair[]
  readonly body: Buffer
  readonly state: string
}

interface ShownInput {
  /** Number of workers in the pick phase. */
  readonly candidates?: number
  /** Texts of the prompt phase. */
  readonly prompt?: readonly PromptTextEntry[]
}

export const CONTINUE: CheckedOutput = Object.freeze({
  action: 'continue',
  status: null,
  headers: [],
  headers_set: [],
  headers_add: [],
  headers_remove: [],
  body: null,
  events: null,
  state: null,
  text: null,
  held: '',
  prompt: [],
  choice: null,
  fetch: null,
  ignored: [],
})

/**
 * @param output null when the module returned none: it continues
 * @param shown what the module was shown
 * @throws BadOutput naming the invalid member; the gateway counts such a call as failed
 */
export function checkOutput(
  output: { readonly head: unknown; readonly body: Buffer } | null,
  point: AttachPoint,
  { candidates = Number.POSITIVE_INFINITY, prompt = [] }: ShownInput = {},
): CheckedOutput {
  const unchanged = { ...CONTINUE, prompt: prompt.map(({ text }) => text) }
  if (output === null) return unchanged
  const { body } = output
  if (typeof output.head !== 'object' || output.head === null || Array.isArray(output.head))
    throw new BadOutput('the head of the output must be a JSON object')
  const head = output.head as Record<string, unknown>
  if (head.action === 'fetch' && point !== 'OnPick') {
    const fetch = readFetch(head, body)
    return point === 'OnStreamEvent' ? { ...fetch, state: keptState(head) } : fetch
  }
  if (point === 'OnStreamEvent') return { ...CONTINUE, ...readStreamHead(head, body) }
  if (point === 'OnText') return { ...CONTINUE, ...readTextHead(head, body) }
  if (point === 'OnPick') {
    const choice = checkChoice(head.choice, candidates)
    return choice === NO_CHOICE ? CONTINUE : { ...CONTINUE, choice }
  }
  if (head.action === 'continue') return unchanged
  if (point === 'OnToolCall') return readTool(head, body)
  if (point === 'OnPromptText') {
    const { action, status, replaced } = readPromptHead(head, body, prompt.length)
    const refusal = action === 'reject' ? { status, body } : {}
    return {
      ...unchanged,
      action,
      ...refusal,
      prompt: prompt.map(({ text }, index) => replaced?.[index] ?? text),
    }
  }
  return head.action === 'reject' ? readReject(head, body) : readModify(head, body, point)
}

function readReject(head: Record<string, unknown>, body: Buffer): CheckedOutput {
  const ignored: string[] = []
  const status = isStatus(head.status) ? head.status : 400
  if (status !== head.status) ignored.push(`status ${head.status} is not between 200 and 599: 400 is sent`)
  const headers = kept(readPairs(head, 'headers'), true, ignored)
  return { ...CONTINUE, action: 'reject', status, headers, body, ignored }
}

function readFetch(head: Record<string, unknown>, body: Buffer): CheckedOutput {
  const { url, method, state } = readFetchHead(head)
  const ignored: string[] = []
  const headers = kept(readPairs(head, 'headers'), false, ignored)
  return { ...CONTINUE, action: 'fetch', fetch: { url, method, headers, body, state }, ignored }
}

function readModify(head: Record<string, unknown>, body: Buffer, point: AttachPoint): CheckedOutput {
  if (head.action !== 'modify') throw unknownAction(head.action)
  const isResponse = point !== 'OnRequest'
  const { headers_set = [], headers_add = [], headers_remove = [] } = readEdits(head)
  const ignored: string[] = []
  const status = isResponse && isStatus(head.status) ? head.status : null
  if (head.status !== undefined && status === null) ignored.push(`status ${head.status} is not used`)
  const removed = headers_remove.map((name) => [name, ''] as const)
  return {
    ...CONTINUE,
    action: 'modify',
    status,
    headers_set: kept(headers_set, isResponse, ignored),
    headers_add: kept(headers_add, isResponse, ignored),
    headers_remove: kept(removed, isResponse, ignored).map(([name]) => name),
    body: head.replaces_body === true ? body : null,
    ignored,
  }
}

function readTool(head: Record<string, unknown>, body: Buffer): CheckedOutput {
  const answer = readToolHead(head, body)
  const ignored =
    answer.action === 'reject' ? ['status', 'headers'].filter((member) => head[member] !== undefined) : []
  return { ...CONTINUE, ...answer, ignored: ignored.map((member) => `${member} is not used in OnToolCall`) }
}

function kept(pairs: readonly HeaderPair[], isResponse: boolean, ignored: string[]): HeaderPair[] {
  return pairs.filter(([name, value]) => {
    const problem = headerProblem(name.toLowerCase(), value, isResponse)
    if (problem !== null) ignored.push(`header ${name} is dropped: ${problem}`)
    return problem === null
  })
}
