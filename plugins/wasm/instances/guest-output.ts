/** What the outputs of all attach points have in common: the frame, its checks, and the request of a fetch. Runs on pool threads. */
import { decodeOutput, type HeaderPair, MAX_ENTRIES } from '../../../wasm-sdk/abi.ts'
import type { FetchOrder } from '../fetch/fetch-order.ts'
import { applyEdits, EditList } from '../hooks/header-edits.ts'

/** Largest state that a module may carry from one call to the next, and largest text that it may hold back, bytes. */
export const MAX_STATE_BYTES = 65_536
const MAX_SHOWN_CHARACTERS = 64

/** Invalid output; the message names the member. */
export class BadOutput extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'BadOutput'
  }
}

export interface OutputFrame {
  readonly head: Record<string, unknown>
  readonly body: Buffer
}

/** @throws BadOutput */
export function readFrame(output: Uint8Array): OutputFrame {
  try {
    const { head, body } = decodeOutput(output)
    if (typeof head !== 'object' || head === null || Array.isArray(head))
      throw new BadOutput('the head of the output must be a JSON object')
    return { head: head as Record<string, unknown>, body }
  } catch (error) {
    if (error instanceof BadOutput) throw error
    throw new BadOutput(`the output is not a valid frame: ${(error as Error).message}`)
  }
}

/** @param what names the body in messages @throws BadOutput */
export function parseBody(body: Buffer, what: string): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    throw new BadOutput(`${what} not valid JSON`)
  }
}

const MAX_URL_CHARACTERS = 8_192
const METHOD = /^[A-Z]{1,16}$/

interface FetchHead {
  readonly url: string
  readonly method: string
  readonly timeoutMs: number | null
  readonly state: string
}

/** @throws BadOutput */
export function readFetchHead(head: Record<string, unknown>): FetchHead {
  const { url, method = 'GET', timeout_ms = null, state = '' } = head
  if (typeof url !== 'string' || url.length > MAX_URL_CHARACTERS)
    throw new BadOutput(`url of a fetch must be a string of at most ${MAX_URL_CHARACTERS} characters`)
  if (typeof method !== 'string' || !METHOD.test(method))
    throw new BadOutput(`method of a fetch must be an upper-case HTTP method (got ${shown(method)})`)
  if (timeout_ms !== null && !(typeof timeout_ms === 'number' && timeout_ms >= 1))
    throw new BadOutput('timeout_ms of a fetch must be a number >= 1')
  return { url, method, timeoutMs: timeout_ms, state: readState(state) }
}

/** @returns the request, and the number of its headers that were dropped @throws BadOutput */
export function readFetch({ head, body }: OutputFrame): { fetch: FetchOrder; droppedHeaders: number } {
  const order = readFetchHead(head)
  const list = new EditList(false)
  list.addResponse(readPairs(head, 'headers'))
  const headers = applyEdits([], list.edits)
  return { fetch: { ...order, headers, body: new Uint8Array(body) }, droppedHeaders: list.dropped }
}

/** Why a call fails that requests a further fetch. */
export function tooManyFetches(limit: number): string {
  return `more than ${limit} fetches in one phase (plugins.wasm.fetch.maxPerCall)`
}

function readState(state: unknown): string {
  if (typeof state !== 'string') throw new BadOutput('state must be a string')
  if (Buffer.byteLength(state) > MAX_STATE_BYTES)
    throw new BadOutput(`state has more than ${MAX_STATE_BYTES} bytes`)
  return state
}

/** @returns null without a state @throws BadOutput */
export function keptState({ state }: Record<string, unknown>): string | null {
  return state === undefined ? null : readState(state)
}

export function unknownAction(action: unknown): BadOutput {
  return new BadOutput(`action must be continue, reject, modify or fetch (got ${shown(action)})`)
}

export function checkLength(list: readonly unknown[], member: string): void {
  if (list.length > MAX_ENTRIES)
    throw new BadOutput(`${member} has ${list.length} entries; the limit is ${MAX_ENTRIES}`)
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, MAX_SHOWN_CHARACTERS)) : typeof value
}

/** @throws BadOutput */
export function readPairs(head: Record<string, unknown>, member: string): readonly HeaderPair[] {
  const pairs = head[member] ?? []
  const isPair = (pair: unknown) =>
    Array.isArray(pair) && pair.length === 2 && pair.every((text) => typeof text === 'string')
  if (!Array.isArray(pairs) || !pairs.every(isPair))
    throw new BadOutput(`${member} must be a list of [name, value]`)
  checkLength(pairs, member)
  return pairs as HeaderPair[]
}
