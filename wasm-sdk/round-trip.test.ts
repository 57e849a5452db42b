/** Text of every alphabet goes through the library of each language as it came. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { checkOutput } from '../plugins/wasm/testing/checked-output.ts'
import { ModuleRunner } from '../plugins/wasm/testing/runner.ts'
import { isThorough } from '../test/support/thorough.ts'
import { ABI_VERSION, type GuestInput } from './abi.ts'
import { BUILD_LIMIT_MS, BUSY_LIMIT_MS, builtOrReason } from './fixtures/built-modules.ts'

vi.setConfig({ testTimeout: BUSY_LIMIT_MS })

const TEXT = 'Grüße, Ελλάδα, 日本, 😀 "quoted" \\ \u0001 \u2028 end'
const HEADER = 'Zürich 日本 😀'
const request = {
  id: 'chatcmpl-ü😀',
  method: 'POST',
  path: '/v1/größe/日本',
  query: 'q=ä&r=%20',
  route: '/v1/:x',
  tenant: 'auth:größe',
  client_ip: '::1',
}

function input(phase: GuestInput['phase'], more: Partial<GuestInput> = {}): GuestInput {
  return { abi: ABI_VERSION, phase, now_ms: 1_767_225_600_123, request, ...more }
}

const PROJECTS = [
  ['AssemblyScript', 'wasm-sdk/fixtures/echo'],
  ['Rust', 'wasm-sdk/fixtures/echo-rust'],
  ['Go', 'wasm-sdk/fixtures/echo-go'],
  ['C', 'wasm-sdk/fixtures/echo-c-head'],
] as const

describe.each(isThorough ? PROJECTS : PROJECTS.slice(0, 1))('a module in %s', (language, project) => {
  let runner: ModuleRunner | null = null
  let reason = ''

  beforeAll(async () => {
    const built = await builtOrReason(project)
    if (typeof built === 'string') reason = built
    else {
      const usesWasi = language === 'Go'
      runner = await ModuleRunner.open({ bytes: built, config: { grüße: HEADER }, usesWasi })
    }
    if (reason !== '') console.warn(`skipped for ${language}: ${reason}`)
  }, BUILD_LIMIT_MS)
  afterAll(() => runner?.close())

  const echo = (name: string, act: (runner: ModuleRunner) => Promise<void>) =>
    test(name, async ({ skip }) => {
      if (runner === null) skip(reason)
      else await act(runner)
    })

  const expectedHeaders = [
    ['echo-id', request.id],
    ['echo-path', request.path],
    ['echo-query', request.query],
    ['echo-config', HEADER],
  ]

  echo('gives back body, headers, path, settings, stored values and log lines of a request', async (open) => {
    const headers = [
      ['x-name', HEADER],
      ['x-name', 'second'],
      ['x-empty', ''],
    ] as const
    const result = await open.call(
      'OnRequest',
      input('request', { request: { ...request, headers } }),
      Buffer.from(TEXT),
    )
    expect(result.problem).toBeNull()
    const answer = checkOutput(result.output, 'OnRequest')
    expect(answer.headers_set).toEqual(expectedHeaders)
    expect(answer.headers_add).toEqual(headers.map(([name, value]) => [`echo-${name}`, value]))
    expect(answer.body?.toString()).toBe(TEXT)
    expect(answer.ignored).toEqual(['header ünsafe is dropped: it is not a valid header name'])
    expect(result.logs).toEqual([{ level: 'info', text: `größe 😀 ${request.path}` }])
  })

  echo('fetches with headers, body and text kept, and gives back what came of it', async (open) => {
    const asked = input('request', { request: { ...request, method: 'FETCH' } })
    const first = await open.call('OnRequest', asked, Buffer.from(TEXT))
    expect(first.problem).toBeNull()
    const { fetch } = checkOutput(first.output, 'OnRequest')
    expect(first.output?.head).toMatchObject({ timeout_ms: 5 })
    expect([fetch?.url, fetch?.method, fetch?.headers, fetch?.body.toString(), fetch?.state]).toEqual([
      `https://a.example/${request.path}`,
      'PUT',
      [['x-name', HEADER]],
      TEXT,
      `${TEXT} kept`,
    ])
    const body = Buffer.from(`fetched ${TEXT}`)
    const headers = [['x-name', HEADER]] as const
    const fetched = { error: null, status: 418, headers, body_bytes: body.length }
    const bodies = Buffer.concat([Buffer.from(TEXT), body])
    const { output } = await open.call('OnRequest', { ...asked, fetched, state: fetch?.state }, bodies)
    const answer = checkOutput(output, 'OnRequest')
    expect(answer.body?.toString()).toBe(`${TEXT}|${TEXT} kept|fetched ${TEXT}|${HEADER}`)
    expect(answer.status).toBe(418)
    const failed = { error: 'timeout', status: 0, headers: [], body_bytes: 0 } as const
    const late = await open.call('OnRequest', { ...asked, fetched: failed, state: '' }, Buffer.from(TEXT))
    expect(checkOutput(late.output, 'OnRequest').body?.toString()).toBe('timeout')
  })

  echo('fetches for an event and for a text, and is called again with them', async (open) => {
    const response = { status: 200, is_stream: true }
    const event = { index: 0, name: 'fetch', is_end: false }
    const text = {
      kind: 'citation',
      choice: 0,
      call_id: null,
      call_name: null,
      is_last: false,
      held_bytes: 0,
    } as const
    const cases = [
      ['OnStreamEvent', input('stream_event', { response, event, state: '' })],
      ['OnText', input('text', { text })],
    ] as const
    for (const [point, head] of cases) {
      const first = await open.call(point, head, Buffer.from(TEXT))
      expect(first.problem).toBeNull()
      const { fetch } = checkOutput(first.output, point)
      expect([fetch?.url, fetch?.method, fetch?.body.toString(), fetch?.state]).toEqual([
        'https://a.example/',
        'PUT',
        TEXT,
        'kept',
      ])
      const result = { error: null, status: 200, headers: [], body_bytes: Buffer.byteLength(TEXT) } as const
      // The first member, as the gateway sends it.
      const again = { fetched: result, ...head, state: 'kept' }
      const { output, problem } = await open.call(point, again, Buffer.from(TEXT + TEXT))
      expect(problem).toBeNull()
      const { text: passed, events } = checkOutput(output, point)
      expect(passed ?? events?.[0].data).toBe(`${TEXT}|kept|${TEXT}`)
    }
  })

  echo('asks a model', async (open) => {
    const asked = input('request', { request: { ...request, method: 'ASK' } })
    const question = { messages: [{ role: 'user', content: TEXT }], max_tokens: 20 }
    const { output, problem } = await open.call('OnRequest', asked, Buffer.from(JSON.stringify(question)))
    expect(problem).toBeNull()
    const { fetch } = checkOutput(output, 'OnRequest')
    expect([fetch?.url, fetch?.method]).toEqual(['model:größe', 'POST'])
    expect(JSON.parse(String(fetch?.body))).toEqual(question)
  })

  echo('replaces the texts of a prompt, or refuses it', async (open) => {
    const entries = (texts: readonly string[]) =>
      texts.map((text, index) => ({ role: index === 1 ? null : 'user', place: `größe.${index}`, text }))
    const run = async (texts: readonly string[], isQuestion = false) => {
      const prompt = entries(texts)
      const asked = input('prompt_text', { prompt: { texts: prompt.length, is_question: isQuestion } })
      const { output, problem } = await open.call('OnPromptText', asked, Buffer.from(JSON.stringify(prompt)))
      expect(problem).toBeNull()
      return checkOutput(output, 'OnPromptText', { prompt })
    }
    expect((await run([TEXT, TEXT, 'b'])).prompt).toEqual([`${TEXT} user größe.0`, TEXT, 'b user größe.2'])
    const refused = await run([TEXT, 'b', 'refuse'])
    expect([refused.action, refused.status, refused.body?.toString()]).toEqual(['reject', 451, 'no größe.2'])
    expect((await run(['refuse'], true)).body?.toString()).toBe('question größe.0')
  })

  echo('chooses a worker by what it is told of each, and leaves it open', async (open) => {
    const candidate = (place: number, labels: Record<string, string>) => ({
      url: `http://größe:${place}`,
      labels,
      cost: place,
      in_flight: place * 2,
      load: place === 0 ? null : { queued_tokens: 7, used_tokens: -1, kv_usage: 0.5, tokens_per_second: 0 },
    })
    const pick = {
      model: 'größe 😀',
      leg: 'decode' as const,
      body_bytes: 3,
      candidates: [
        candidate(0, {}),
        candidate(1, { größe: HEADER }),
        { ...candidate(2, { größe: 'x' }), model: 'größe', weight: 90 },
      ],
    }
    const headers = [['x-name', HEADER]] as const
    const asked = input('pick', { pick, request: { ...request, headers } })
    const { output, logs, problem } = await open.call('OnPick', asked, Buffer.from('ü!'))
    expect(problem).toBeNull()
    expect(checkOutput(output, 'OnPick', { candidates: 3 }).choice).toBe(1)
    expect(logs.map(({ text }) => text)).toEqual([
      'http://größe:0 0 0 none',
      'http://größe:1 1 2 7 0.5',
      'http://größe:2 2 4 7 0.5 größe 90',
      'größe 😀 decode 3 ü!',
    ])
    const unnamed = await open.call('OnPick', input('pick', { pick }), Buffer.from(''))
    expect(checkOutput(unnamed.output, 'OnPick', { candidates: 3 }).choice).toBeNull()
  })

  echo('gives back body and headers of an answer', async (open) => {
    const response = { status: 201, is_stream: false, headers: [['x-name', HEADER]] as const }
    const result = await open.call('OnResponse', input('response', { response }), Buffer.from(TEXT))
    const answer = checkOutput(result.output, 'OnResponse')
    expect(answer.status).toBe(201)
    expect(answer.headers_add).toEqual([['echo-x-name', HEADER]])
    expect(answer.body?.toString()).toBe(TEXT)
  })

  echo('gives back what an error says', async (open) => {
    const error = { code: 'größe', message: TEXT, type: 'server_error', status: 502 }
    const response = { status: 502, is_stream: false }
    const result = await open.call('OnError', input('error', { response, error }))
    const answer = checkOutput(result.output, 'OnError')
    expect(answer).toMatchObject({ action: 'reject', status: 502, headers: [['echo-code', 'größe']] })
    expect(answer.body?.toString()).toBe(`server_error: ${TEXT}`)
  })

  echo('gives back events and carries text from one to the next', async (open) => {
    const response = { status: 200, is_stream: true }
    const event = (index: number, is_end: boolean) => ({ index, name: is_end ? null : 'größe', is_end })
    let state = ''
    for (const [index, data] of [TEXT, '', '日本'].entries()) {
      const head = input('stream_event', { response, event: event(index, false), state })
      const answer = checkOutput(
        (await open.call('OnStreamEvent', head, Buffer.from(data))).output,
        'OnStreamEvent',
      )
      expect(answer.events).toEqual([{ name: 'größe', data }])
      state = answer.state ?? state
    }
    const head = input('stream_event', { response, event: event(3, true), state })
    const last = checkOutput((await open.call('OnStreamEvent', head)).output, 'OnStreamEvent')
    expect(last.events).toEqual([{ name: 'ende', data: `${TEXT}日本` }])
  })

  echo('gives back the pieces of a text, holds them back and passes them on unchanged', async (open) => {
    const text = {
      kind: 'tool_arguments' as const,
      choice: 2,
      call_id: 'größe',
      call_name: '日本',
      is_last: false,
      held_bytes: 0,
    }
    const ask = async (more: Partial<typeof text> | { kind: 'refusal' }, body: string) => {
      const head = input('text', { text: { ...text, ...more } })
      const { output, problem } = await open.call('OnText', head, Buffer.from(body))
      expect(problem).toBeNull()
      const { text: passed, held } = checkOutput(output, 'OnText')
      return { passed, held }
    }
    expect(await ask({}, TEXT)).toEqual({ passed: '', held: TEXT })
    const last = { passed: `${TEXT} tool_arguments 2 größe 日本`, held: '' }
    expect(await ask({ is_last: true }, TEXT)).toEqual(last)
    expect(await ask({ kind: 'refusal' }, TEXT)).toEqual({ passed: null, held: '' })
  })

  echo('gives back the call of a tool, its refusal and its arguments', async (open) => {
    const tool = {
      kind: 'mcp' as const,
      name: 'größe',
      label: 'läden',
      server: 'https://läden.example',
      model: null,
    }
    const ask = async (more: Partial<GuestInput['tool']>) => {
      const head = input('tool_call', { tool: { ...tool, ...more } as typeof tool })
      const { output, problem } = await open.call(
        'OnToolCall',
        head,
        Buffer.from(JSON.stringify({ text: TEXT })),
      )
      expect(problem).toBeNull()
      return checkOutput(output, 'OnToolCall')
    }
    const changed = await ask({})
    expect([changed.action, JSON.parse(String(changed.body))]).toEqual(['modify', { text: TEXT }])
    const refused = await ask({ label: null })
    expect([refused.action, refused.body?.toString(), refused.status, refused.ignored]).toEqual([
      'reject',
      'größe at https://läden.example',
      null,
      [],
    ])
    expect((await ask({ name: 'plain' })).action).toBe('continue')
  })

  echo('a body of every length around the eight bytes of a host call comes back whole', async (open) => {
    for (let length = 0; length <= 17; length++) {
      const body = Buffer.from('ü'.repeat(length))
      const result = await open.call(
        'OnRequest',
        input('request', { request: { ...request, headers: [] } }),
        body,
      )
      expect(checkOutput(result.output, 'OnRequest').body?.toString()).toBe(body.toString())
    }
  })
})
