/** Compares the result of a module with the expectation of a case. */
import { isDeepStrictEqual } from 'node:util'
import type { HeaderPair } from '../../../wasm-sdk/abi.ts'
import type { StreamEvent } from '../threads/guest-task.ts'
import type { CheckedOutput, RequestedFetch } from './checked-output.ts'
import type { Expectation, ExpectedFetch, ExpectedText } from './module-case.ts'

/** Result of a step, with the members of an expectation. */
export interface Observed
  extends Pick<
    CheckedOutput,
    'action' | 'status' | 'headers' | 'headers_set' | 'headers_add' | 'headers_remove' | 'choice' | 'prompt'
  > {
  readonly body: string | null
  readonly events: readonly StreamEvent[]
  /** Texts passed on, in order. */
  readonly pieces: readonly string[]
  readonly fetches: readonly ObservedFetch[]
  readonly logs: readonly string[]
  readonly metrics: Readonly<Record<string, number>>
  /** Why the call failed. */
  readonly failure: string | null
}

interface ObservedFetch extends Omit<RequestedFetch, 'body' | 'state'> {
  readonly body: string
}

/** @returns one sentence per difference */
export function differences(expected: Expectation, observed: Observed): string[] {
  if (expected.fails !== undefined) {
    if (observed.failure?.includes(expected.fails)) return []
    return [`expected to fail with ${show(expected.fails)}, but ${observed.failure ?? 'it did not fail'}`]
  }
  if (observed.failure !== null) return [`the call failed: ${observed.failure}`]
  return MEMBERS.flatMap((member) => {
    const wanted = expected[member]
    if (wanted === undefined) return []
    const actual = observedMember(member, observed)
    const fits = FITS[member] ?? isDeepStrictEqual
    return fits(actual as never, wanted as never)
      ? []
      : [`${member}: expected ${show(wanted)}, got ${show(actual)}`]
  })
}

export type Member = Exclude<keyof Expectation, 'fails'>

const MEMBERS: readonly Member[] = [
  ...(['action', 'status', 'headers', 'headers_set', 'headers_add', 'headers_remove', 'body'] as const),
  ...(['events', 'text', 'pieces', 'prompt', 'choice', 'fetches', 'logs', 'metrics'] as const),
]

/** Comparisons of members that may differ from what is expected, or are patterns. */
const FITS: Readonly<Partial<Record<Member, (actual: never, expected: never) => boolean>>> = {
  headers: hasHeaders,
  headers_set: hasHeaders,
  headers_add: hasHeaders,
  body: isBody,
  events: hasEvents,
  fetches: hasFetches,
  logs: hasLines,
}

export function observedMember(member: Member, observed: Observed): unknown {
  return member === 'text' ? observed.pieces.join('') : observed[member]
}

function hasLines(actual: readonly string[], expected: readonly ExpectedText[]): boolean {
  return actual.length === expected.length && expected.every((line, i) => isText(actual[i], line))
}

function hasHeaders(
  actual: readonly HeaderPair[],
  expected: Readonly<Record<string, ExpectedText>>,
): boolean {
  const names = Object.keys(expected)
  if (actual.length !== names.length) return false
  return names.every((name) => {
    const pair = actual.find(([given]) => given.toLowerCase() === name.toLowerCase())
    return pair !== undefined && isText(pair[1], expected[name])
  })
}

function hasFetches(actual: readonly ObservedFetch[], expected: readonly ExpectedFetch[]): boolean {
  if (actual.length !== expected.length) return false
  return expected.every(({ url, method, headers, body }, i) => {
    const fetch = actual[i]
    if (url !== undefined && !isText(fetch.url, url)) return false
    if (method !== undefined && method !== fetch.method) return false
    if (headers !== undefined && !hasHeaders(fetch.headers, headers)) return false
    return body === undefined || isBody(fetch.body, body)
  })
}

function isText(actual: string, expected: ExpectedText): boolean {
  return typeof expected === 'string' ? actual === expected : new RegExp(expected.matches, 'u').test(actual)
}

function isBody(actual: string | null, expected: unknown): boolean {
  if (expected === null || typeof expected === 'string' || actual === null) return actual === expected
  try {
    return isDeepStrictEqual(JSON.parse(actual), expected)
  } catch {
    return false
  }
}

function hasEvents(actual: Observed['events'], expected: NonNullable<Expectation['events']>): boolean {
  if (actual.length !== expected.length) return false
  return expected.every(({ name = null, data }, i) => name === actual[i].name && isBody(actual[i].data, data))
}

function show(value: unknown): string {
  return JSON.stringify(value) ?? 'nothing'
}
