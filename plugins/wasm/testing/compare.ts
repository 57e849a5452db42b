/** Compares the result of a module with the expectation of a case. */
import { isDeepStrictEqual } from 'node:util'
import type { HeaderPair } from '../../../wasm-sdk/abi.ts'
import type { Expectation, ExpectedFetch, ExpectedText } from './module-case.ts'

/** Result of a step, with the members of an expectation. */
export interface Observed {
  readonly action: 'continue' | 'reject' | 'modify' | 'fetch'
  readonly status: number | null
  readonly headers: readonly HeaderPair[]
  readonly headers_set: readonly HeaderPair[]
  readonly headers_add: readonly HeaderPair[]
  readonly headers_remove: readonly string[]
  readonly body: string | null
  readonly events: readonly { readonly name: string | null; readonly data: string }[]
  /** Texts passed on, in order. */
  readonly pieces: readonly string[]
  /** Index of a worker. */
  readonly choice: number | null
  readonly fetches: readonly ObservedFetch[]
  readonly logs: readonly string[]
  readonly metrics: Readonly<Record<string, number>>
  /** Why the call failed. */
  readonly failure: string | null
}

interface ObservedFetch {
  readonly url: string
  readonly method: string
  readonly headers: readonly HeaderPair[]
  readonly body: string
}

/** @returns one sentence per difference */
export function differences(expected: Expectation, observed: Observed): string[] {
  if (expected.fails !== undefined) {
    if (observed.failure?.includes(expected.fails)) return []
    return [`expected to fail with ${show(expected.fails)}, but ${observed.failure ?? 'it did not fail'}`]
  }
  if (observed.failure !== null) return [`the call failed: ${observed.failure}`]
  const found: string[] = []
  const check = (what: string, isSame: boolean, wanted: unknown, actual: unknown) => {
    if (!isSame) found.push(`${what}: expected ${show(wanted)}, got ${show(actual)}`)
  }
  const { action, status, headers_remove, body, events, text, pieces, choice, fetches, logs, metrics } =
    expected
  if (action !== undefined) check('action', action === observed.action, action, observed.action)
  if (status !== undefined) check('status', status === observed.status, status, observed.status)
  for (const member of ['headers', 'headers_set', 'headers_add'] as const) {
    const wanted = expected[member]
    if (wanted !== undefined) check(member, hasHeaders(observed[member], wanted), wanted, observed[member])
  }
  if (headers_remove !== undefined) {
    check(
      'headers_remove',
      isDeepStrictEqual(headers_remove, observed.headers_remove),
      headers_remove,
      observed.headers_remove,
    )
  }
  if (body !== undefined) check('body', isBody(observed.body, body), body, observed.body)
  if (events !== undefined) check('events', hasEvents(observed.events, events), events, observed.events)
  if (text !== undefined) check('text', text === observed.pieces.join(''), text, observed.pieces.join(''))
  if (pieces !== undefined)
    check('pieces', isDeepStrictEqual(pieces, observed.pieces), pieces, observed.pieces)
  if (choice !== undefined) check('choice', choice === observed.choice, choice, observed.choice)
  if (fetches !== undefined)
    check('fetches', hasFetches(observed.fetches, fetches), fetches, observed.fetches)
  if (logs !== undefined) {
    const isSame =
      logs.length === observed.logs.length && logs.every((line, i) => isText(observed.logs[i], line))
    check('logs', isSame, logs, observed.logs)
  }
  if (metrics !== undefined)
    check('metrics', isDeepStrictEqual(metrics, observed.metrics), metrics, observed.metrics)
  return found
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
