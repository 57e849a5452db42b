/** Writes the results of a module into its case files, as expectations. */
import { readFile, writeFile } from 'node:fs/promises'
import { isDeepStrictEqual } from 'node:util'
import type { HeaderPair } from '../../../wasm-sdk/abi.ts'
import { differences, type Member, type Observed, observedMember } from '../testing/compare.ts'
import type { CaseStep, Expectation, ModuleCase } from '../testing/module-case.ts'
import { type CaseResult, caseFiles } from '../testing/run-cases.ts'

interface RawCase {
  readonly steps?: { expect?: Expectation }[]
}

/** Adds an empty expectation to steps without one. Invalid files are reported by the reader. */
export async function withExpectations(place: string): Promise<void> {
  for (const file of await caseFiles(place)) {
    const raw = parse(await readFile(file, 'utf8'))
    const missing = raw?.steps?.filter?.(
      (step) => typeof step === 'object' && step !== null && step.expect === undefined,
    )
    if (missing === undefined || missing.length === 0) continue
    for (const step of missing) step.expect = {}
    await writeFile(file, toText(raw))
  }
}

interface Update {
  /** The file was changed. */
  readonly isWritten: boolean
  /** The file matches the result; repeated headers cannot be expressed. */
  readonly isOk: boolean
}

export async function updateCase(file: string, { steps }: ModuleCase, result: CaseResult): Promise<Update> {
  const expectations = steps.map((step, at) => expectationOf(step, result.steps[at].observed))
  const isOk = expectations.every((one, at) => differences(one, result.steps[at].observed).length === 0)
  if (expectations.every((expectation, at) => isDeepStrictEqual(expectation, steps[at].expect)))
    return { isWritten: false, isOk }
  const raw = JSON.parse(await readFile(file, 'utf8')) as { steps: { expect: Expectation }[] }
  for (const [at, expectation] of expectations.entries()) raw.steps[at].expect = expectation
  await writeFile(file, toText(raw))
  return { isWritten: true, isOk }
}

function parse(text: string): RawCase | null {
  try {
    return JSON.parse(text) as RawCase
  } catch {
    return null
  }
}

function toText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}

/**
 * Replaces members that differ by the observed values and keeps the others, including patterns. An empty expectation gets
 * all members.
 */
export function expectationOf(
  { on, expect }: Pick<CaseStep, 'on' | 'expect'>,
  observed: Observed,
): Expectation {
  if (differences(expect, observed).length === 0 && Object.keys(expect).length > 0) return expect
  if (observed.failure !== null) return { fails: lastingPart(observed.failure) }
  const named = Object.keys(expect).filter((name) => name !== 'fails') as Member[]
  if (named.length === 0) return wholeOf(on, observed)
  const entries = named.map((member) => {
    const isSame = differences({ [member]: expect[member] }, observed).length === 0
    const isKept = isSame || !isExpressible(member, observed)
    return [member, isKept ? expect[member] : observedOf(member, observed)]
  })
  return Object.fromEntries(entries)
}

/** Without limits and source positions, which change often. */
function lastingPart(failure: string): string {
  return failure.replace(/ exceeded \d+ ms$/, ' exceeded').replace(/ at \S+:\d+:\d+$/, '')
}

/** Members of results that are no action. */
const MEMBERS: Readonly<Partial<Record<CaseStep['on'], readonly Member[]>>> = {
  OnStreamEvent: ['events'],
  OnText: ['text'],
  OnPick: ['choice'],
}

function wholeOf(on: CaseStep['on'], observed: Observed): Expectation {
  const members = [...(MEMBERS[on] ?? ['action', ...actionMembers(observed)])]
  if (observed.fetches.length > 0) members.push('fetches')
  if (observed.logs.length > 0) members.push('logs')
  if (Object.keys(observed.metrics).length > 0) members.push('metrics')
  const expressible = members.filter((member) => isExpressible(member, observed))
  return Object.fromEntries(expressible.map((member) => [member, observedOf(member, observed)]))
}

/** Expected headers are an object by name, which cannot hold repeated names. */
function isExpressible(member: Member, observed: Observed): boolean {
  if (member !== 'headers' && member !== 'headers_set' && member !== 'headers_add') return true
  return isUnique(observed[member])
}

function isUnique(headers: readonly HeaderPair[]): boolean {
  return new Set(headers.map(([name]) => name.toLowerCase())).size === headers.length
}

function actionMembers({
  action,
  status,
  headers_set,
  headers_add,
  headers_remove,
  body,
  prompt,
}: Observed): Member[] {
  if (action === 'continue') return []
  if (action === 'reject') return status === null ? ['body'] : ['status', 'headers', 'body']
  const isThere: readonly [Member, boolean][] = [
    ['status', status !== null],
    ['headers_set', headers_set.length > 0],
    ['headers_add', headers_add.length > 0],
    ['headers_remove', headers_remove.length > 0],
    ['body', body !== null],
    ['prompt', prompt.length > 0],
  ]
  return isThere.filter(([, is]) => is).map(([member]) => member)
}

function observedOf(member: Member, observed: Observed): unknown {
  if (member === 'body') return toValue(observed.body)
  if (member === 'events') {
    return observed.events.map(({ name, data }) => ({ ...(name !== null && { name }), data: toValue(data) }))
  }
  if (member === 'fetches')
    return observed.fetches.map(({ url, method, headers, body }) => ({
      url,
      method,
      ...(isUnique(headers) && { headers: toRecord(headers) }),
      body: toValue(body),
    }))
  if (member === 'headers' || member === 'headers_set' || member === 'headers_add')
    return toRecord(observed[member])
  return observedMember(member, observed)
}

function toRecord(pairs: readonly HeaderPair[]): Record<string, string> {
  return Object.fromEntries(pairs.map(([name, value]) => [name, value]))
}

/** JSON objects and lists as values, everything else as text. */
function toValue(text: string | null): unknown {
  if (text === null || !/^\s*[[{]/.test(text)) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
