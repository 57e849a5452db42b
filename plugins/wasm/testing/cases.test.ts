/** Cases: rejected files and reported differences. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { toInput } from './case-input.ts'
import { differences, type Observed } from './compare.ts'
import { type Expectation, readCase } from './module-case.ts'
import { readCases } from './run-cases.ts'

const step = { on: 'OnRequest', expect: {} }
const observed: Observed = {
  action: 'modify',
  status: null,
  headers: [],
  headers_set: [['X-Name', 'größe']],
  headers_add: [],
  headers_remove: ['x-old'],
  body: '{"b": 1, "a": [2]}',
  events: [{ name: null, data: '{"x":1}' }],
  prompt: [],
  pieces: ['a', 'b'],
  choice: null,
  fetches: [{ url: 'https://a.example/ü', method: 'POST', headers: [['X-Name', 'b']], body: '{"c":1}' }],
  logs: ['one'],
  metrics: { seen_total: 2 },
  failure: null,
}

describe('reading', () => {
  test.each([
    ['{', 'the case is not valid JSON'],
    ['[]', 'the case must be an object'],
    [{ steps: [step] }, 'title is required'],
    [{ title: 't', steps: [] }, 'steps must not be empty'],
    [{ title: 't', steps: [step], step: 1 }, 'step is not known'],
    [{ title: 't', steps: [step, { on: 'OnFire', expect: {} }] }, 'steps.1.on must be one of "OnRequest"'],
    [{ title: 't', steps: [{ on: 'OnRequest' }] }, 'steps.0.expect is required'],
    [
      { title: 't', steps: [{ ...step, expect: { headers_sets: {} } }] },
      'steps.0.expect.headers_sets is not known',
    ],
    [{ title: 't', steps: [{ ...step, request: { header: {} } }] }, 'steps.0.request.header is not known'],
    [{ title: 't', steps: [{ ...step, events: [] }] }, 'steps.0.events is only allowed for OnStreamEvent'],
    [
      { title: 't', steps: [{ on: 'OnStreamEvent', expect: {} }] },
      'steps.0.events is required for OnStreamEvent',
    ],
  ])('%j is rejected: %s', (value, message) => {
    expect(() => readCase(typeof value === 'string' ? value : JSON.stringify(value))).toThrow(message)
  })

  test('a folder returns its cases by name, and an error names the file', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'weir-cases-'))
    try {
      for (const name of ['b', 'a'])
        await writeFile(join(folder, `${name}.json`), JSON.stringify({ title: name, steps: [step] }))
      await writeFile(join(folder, 'notes.txt'), 'no case')
      expect((await readCases(folder)).map(({ moduleCase }) => moduleCase.title)).toEqual(['a', 'b'])
      await writeFile(join(folder, 'c.json'), '{}')
      await expect(readCases(folder)).rejects.toThrow(`${join(folder, 'c.json')}: title is required`)
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

describe('input', () => {
  test('contains only what the module needs', () => {
    const request = { headers: { 'X-Team': 'a', other: 'b' }, body: { a: 1 } }
    const input = (needs: object) => toInput({ on: 'OnRequest', request, expect: {} }, needs, 5)
    expect(input({}).head.request.headers).toEqual([
      ['X-Team', 'a'],
      ['other', 'b'],
    ])
    expect(input({ headers: ['x-team'] }).head.request.headers).toEqual([['X-Team', 'a']])
    expect(input({ headers: false }).head.request).not.toHaveProperty('headers')
    expect(input({}).body).toHaveLength(0)
    expect(Buffer.from(input({ request_body: true }).body).toString()).toBe('{"a":1}')
    expect(input({}).head).not.toHaveProperty('response')
  })

  test('of an error has the response and the error', () => {
    const { head } = toInput({ on: 'OnError', response: { status: 502 }, expect: {} }, {}, 0)
    expect(head).toMatchObject({ phase: 'error', response: { status: 502 }, error: { status: 502 } })
  })
})

describe('comparing', () => {
  const same: readonly Expectation[] = [
    {},
    {
      action: 'modify',
      status: null,
      headers_remove: ['x-old'],
      logs: [{ matches: '^o' }],
      metrics: { seen_total: 2 },
    },
    { headers_set: { 'x-name': 'größe' } },
    { headers_set: { 'x-name': { matches: '^gr.ße$' } } },
    { body: { a: [2], b: 1 } },
    { body: '{"b": 1, "a": [2]}' },
    { events: [{ data: { x: 1 } }] },
  ]
  test.each(same)('%j matches', (expected) => {
    expect(differences(expected, observed)).toEqual([])
  })

  const different: readonly (readonly [Expectation, string])[] = [
    [{ action: 'continue' }, 'action: expected "continue", got "modify"'],
    [{ status: 200 }, 'status: expected 200, got null'],
    [{ headers_set: {} }, 'headers_set: expected {}, got [["X-Name","größe"]]'],
    [{ headers_set: { 'x-name': 'g' } }, 'headers_set: expected'],
    [{ body: { a: [2] } }, 'body: expected'],
    [{ body: null }, 'body: expected null'],
    [{ events: [] }, 'events: expected []'],
    [{ events: [{ name: 'x', data: { x: 1 } }] }, 'events: expected'],
    [{ logs: [] }, 'logs: expected []'],
    [{ metrics: {} }, 'metrics: expected {}'],
    [{ fails: 'x' }, 'expected to fail with "x", but it did not fail'],
  ]
  test.each(different)('%j does not match', (expected, message) => {
    expect(differences(expected, observed)).toEqual([expect.stringContaining(message)])
  })

  test('a failed call is one difference, unless that failure is expected', () => {
    const failed = { ...observed, failure: 'unreachable' }
    expect(differences({ action: 'continue' }, failed)).toEqual(['the call failed: unreachable'])
    expect(differences({ fails: 'reach' }, failed)).toEqual([])
    expect(differences({ fails: 'other' }, failed)).toEqual([
      'expected to fail with "other", but unreachable',
    ])
  })
})
