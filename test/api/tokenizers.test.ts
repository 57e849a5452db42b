/** Tokenizers: load, list, remove, tokenize and detokenize. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { type TokenizerService, Tokenizers } from '#kernel'
import { definePlugin, Type } from '../../kernel/index.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'

const SAMPLE = fileURLToPath(new URL('../../plugins/models/tokenizers/sample', import.meta.url))
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/

const endings: (() => unknown)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end()
})

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'weir-tokenizers-'))
  endings.push(() => rmSync(path, { recursive: true, force: true }))
  return path
}

interface Status {
  readonly id: string
  readonly status: string
  readonly message: string
  readonly vocab_size?: number
}

interface Fleet extends TestGateway {
  call(method: string, path: string, body?: unknown): Promise<{ status: number; body: never }>
  add(name: string, source?: string, more?: object): Promise<string>
  /** Adds tokenizers at once, so that one thread loads them all, and returns how each ended. */
  addAll(bodies: readonly { name: string; source: string; chat_template_path?: string }[]): Promise<Status[]>
  settled(id: string): Promise<Status>
  service: TokenizerService
}

/** Requests may name folders of these tests, and the sample. */
const ROOTS = [tmpdir(), SAMPLE]

/** Ends after the test. */
async function open(config: object = {}, plugins: object = {}): Promise<Fleet> {
  const fleet = await start(config, plugins)
  endings.push(() => fleet.stop())
  return fleet
}

/** Sections of gateways that tests share, and tokenizers of these sections. */
const EMPTY = { load: [] }
const CLOSED = { load: [], roots: [] }
const LOADED = { load: [{ name: 'm', source: SAMPLE }] }

const shared = new Map<object, Promise<Fleet>>()
afterAll(async () => {
  for (const fleet of shared.values()) await (await fleet).stop()
})

/** A gateway for the tests with this section, with the tokenizers of the section and no other. */
async function openShared(config: typeof EMPTY | typeof LOADED): Promise<Fleet> {
  const starting = shared.get(config) ?? start(config)
  shared.set(config, starting)
  const fleet = await starting
  for (const { name } of config.load) await fleet.settled(name)
  const { body } = await fleet.call('GET', '/v1/tokenizers')
  const { tokenizers } = body as { tokenizers: { id: string; name: string }[] }
  for (const { id, name } of tokenizers)
    if (!config.load.some((one) => one.name === name)) await fleet.call('DELETE', `/v1/tokenizers/${id}`)
  return fleet
}

async function start(config: object = {}, plugins: object = {}): Promise<Fleet> {
  let service: TokenizerService | undefined
  const spy = definePlugin({
    manifest: {
      name: 'spy',
      version: '0.0.0',
      description: 'Uses the contract.',
      uses: [Tokenizers],
      config: Type.Object({}),
    },
    register(host) {
      return {
        start: () => {
          service = host.use(Tokenizers)
        },
      }
    },
  })
  const gateway = await startGateway({
    plugins: { auth: {}, tokenizers: { roots: ROOTS, ...config }, workers: {}, ...plugins },
    own: [spy],
  })
  const call: Fleet['call'] = async (method, path, body) => {
    const reply = await fetch(gateway.url + path, {
      method,
      headers: { 'content-type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    return { status: reply.status, body: (await reply.json()) as never }
  }
  const settled: Fleet['settled'] = async (id) => {
    for (;;) {
      const { body } = await call('GET', `/v1/tokenizers/${id}/status`)
      const { status } = body as { status: string }
      if (status !== 'pending' && status !== 'processing') return body
      await sleep(10)
    }
  }
  const add: Fleet['add'] = async (name, source = SAMPLE, more = {}) => {
    const { status, body } = await call('POST', '/v1/tokenizers', { name, source, ...more })
    expect(status).toBe(202)
    return (body as { id: string }).id
  }
  const addAll: Fleet['addAll'] = async (bodies) => {
    const ids = await Promise.all(bodies.map(({ name, source, ...more }) => add(name, source, more)))
    const ended: Status[] = []
    for (const id of ids) ended.push(await settled(id))
    return ended
  }
  return { ...gateway, call, add, addAll, settled, service: service as TokenizerService }
}

describe('the resource', () => {
  test('is accepted as pending, then loaded, listed and found by id and by name', async () => {
    const fleet = await openShared(EMPTY)
    const { status, body } = await fleet.call('POST', '/v1/tokenizers', {
      name: 'org/model',
      source: SAMPLE,
      chat_template_path: null,
    })
    expect(status).toBe(202)
    expect(body).toEqual({
      id: expect.stringMatching(UUID),
      status: 'pending',
      message: expect.any(String),
    })
    const { id } = body as { id: string }
    expect(await fleet.settled(id)).toEqual({
      id,
      status: 'completed',
      message: expect.any(String),
      vocab_size: 4105,
    })
    const record = { id, name: 'org/model', source: SAMPLE, vocab_size: 4105 }
    expect((await fleet.call('GET', '/v1/tokenizers')).body).toEqual({ tokenizers: [record] })
    for (const path of [id, encodeURIComponent('org/model')])
      expect(await fleet.call('GET', `/v1/tokenizers/${path}`)).toEqual({
        status: 200,
        body: {
          ...record,
          chat_templates: [expect.objectContaining({ name: 'default', content: 'string' })],
        },
      })
  })

  test('a path that cannot be loaded fails with a reason, and is not listed', async () => {
    const fleet = await openShared(EMPTY)
    const broken = folder()
    writeFileSync(join(broken, 'tokenizer.json'), '{"model": {')
    const bad = folder()
    cpSync(SAMPLE, bad, { recursive: true })
    writeFileSync(join(bad, 'chat_template.jinja'), '{% if %}')
    const cases: readonly (readonly [source: string, reason: string | RegExp])[] = [
      [join(tmpdir(), 'nowhere-at-all'), 'cannot be opened'],
      // Relative to the working directory, which may be inside the root of this test.
      ['org/model-of-a-hub', /outside|cannot be opened/],
      [folder(), 'has no tokenizer.json'],
      [broken, 'ends inside'],
      [bad, 'chat template'],
    ]
    const ended = await fleet.addAll(cases.map(([source]) => ({ name: 'x', source })))
    for (const [at, [, reason]] of cases.entries()) {
      const { id } = ended[at]
      expect(ended[at]).toMatchObject({ status: 'failed', message: expect.stringMatching(reason) })
      expect((await fleet.call('GET', `/v1/tokenizers/${id}`)).status).toBe(404)
      expect((await fleet.call('DELETE', `/v1/tokenizers/${id}`)).status).toBe(404)
    }
    expect((await fleet.call('GET', '/v1/tokenizers')).body).toEqual({ tokenizers: [] })
  })

  test('the forms and refusals of each chat template are reported; one that refuses everything fails the load', async () => {
    const fleet = await openShared(EMPTY)
    const [some, all] = [folder(), folder()]
    for (const path of [some, all]) cpSync(SAMPLE, path, { recursive: true })
    const loop = `{% for m in messages %}{{ m.content }}{{ m.tool_calls[0].function.arguments + '' if m.tool_calls }}{% endfor %}`
    writeFileSync(
      join(some, 'chat_template.jinja'),
      `{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}${loop}`,
    )
    mkdirSync(join(some, 'additional_chat_templates'))
    writeFileSync(
      join(some, 'additional_chat_templates/tool_use.jinja'),
      `{% for m in messages %}{% for part in m.content %}{{ part.text }}{% endfor %}{% endfor %}`,
    )
    writeFileSync(join(all, 'chat_template.jinja'), `{{ raise_exception('for agents only') }}`)
    const id = await fleet.add('some', some)
    expect(await fleet.settled(id)).toMatchObject({ status: 'completed' })
    const { body } = await fleet.call('GET', `/v1/tokenizers/${id}`)
    expect((body as { chat_templates: unknown }).chat_templates).toEqual([
      {
        name: 'default',
        content: 'string',
        empty_content: 'empty',
        tool_arguments: 'text',
        developer_role: 'system',
        refused: [{ conversation: 'system message', reason: 'no system role' }],
      },
      expect.objectContaining({
        name: 'tool_use',
        content: 'parts',
        refused: [],
      }),
    ])
    expect(await fleet.settled(await fleet.add('all', all))).toMatchObject({
      status: 'failed',
      message: "the chat template 'default' refuses every conversation: for agents only",
    })
  })

  test('an existing name is a 409; of two pending loads with one name the second fails', async () => {
    const fleet = await openShared(EMPTY)
    const [first, second] = [await fleet.add('twice'), await fleet.add('twice')]
    expect(await fleet.settled(first)).toMatchObject({ status: 'completed' })
    expect(await fleet.settled(second)).toMatchObject({ status: 'failed' })
    const { status, body } = await fleet.call('POST', '/v1/tokenizers', { name: 'twice', source: SAMPLE })
    expect(status).toBe(409)
    expect(body).toMatchObject({ error: { type: 'conflict', code: 'tokenizer_exists' } })
  })

  test('a deleted tokenizer is unknown, for tokenize too', async () => {
    const fleet = await openShared(EMPTY)
    const id = await fleet.add('gone')
    await fleet.settled(id)
    expect(await fleet.call('DELETE', `/v1/tokenizers/${id}`)).toEqual({
      status: 200,
      body: { success: true, message: expect.any(String) },
    })
    const again = await fleet.call('DELETE', `/v1/tokenizers/${id}`)
    expect(again).toMatchObject({ status: 404, body: { error: { type: 'tokenizer_not_found' } } })
    expect((await fleet.call('GET', `/v1/tokenizers/${id}/status`)).status).toBe(404)
    expect((await fleet.call('POST', '/v1/tokenize', { model: 'gone', prompt: 'x' })).status).toBe(400)
    // The name can be used again.
    expect(await fleet.settled(await fleet.add('gone'))).toMatchObject({ status: 'completed' })
  })

  test.each([{}, { name: '', source: 'x' }, { name: 'x', source: '' }, { name: 1, source: 'x' }])(
    'the body %j is rejected',
    async (body) => {
      const fleet = await openShared(EMPTY)
      expect(await fleet.call('POST', '/v1/tokenizers', body)).toMatchObject({
        status: 400,
        body: { error: { type: 'bad_request' } },
      })
    },
  )

  describe('files that a request names', () => {
    const failure = (reason: string) => ({ status: 'failed', message: expect.stringContaining(reason) })

    test.each([
      { source: SAMPLE },
      { source: '/proc/self/environ' },
      { source: 'weir:sample', chat_template_path: '/proc/self/environ' },
    ])('without roots %j is rejected, and the error names the setting', async (paths) => {
      const fleet = await openShared(CLOSED)
      const { status, body } = await fleet.call('POST', '/v1/tokenizers', { name: 'x', ...paths })
      expect(status).toBe(400)
      expect(body).toMatchObject({
        error: {
          code: 'tokenizer_path_not_allowed',
          message: expect.stringContaining('plugins.tokenizers.roots'),
        },
      })
      expect(await fleet.settled(await fleet.add('sample', 'weir:sample'))).toMatchObject({
        status: 'completed',
      })
    })

    test('must be inside the roots with links resolved; those of the configuration file need not', async () => {
      const [root, elsewhere] = [folder(), folder()]
      cpSync(SAMPLE, join(root, 'inside'), { recursive: true })
      cpSync(SAMPLE, join(elsewhere, 'model'), { recursive: true })
      symlinkSync(join(root, 'inside'), join(root, 'link'))
      symlinkSync(join(elsewhere, 'model'), join(root, 'leads-out'))
      const half = join(root, 'half')
      mkdirSync(half)
      symlinkSync(join(elsewhere, 'model', 'tokenizer.json'), join(half, 'tokenizer.json'))
      const load = [{ name: 'configured', source: join(elsewhere, 'model') }]
      const fleet = await open({ roots: [root], load })
      expect(await fleet.settled('configured')).toMatchObject({ status: 'completed' })
      const inside = ['inside', 'link', 'inside/tokenizer.json']
      expect(await fleet.addAll(inside.map((name) => ({ name, source: join(root, name) })))).toMatchObject(
        inside.map(() => ({ status: 'completed' })),
      )
      const outside = [
        SAMPLE,
        join(root, 'leads-out'),
        half,
        join(root, '../..'),
        `${root}-other`,
        '/nowhere',
      ]
      expect(await fleet.addAll(outside.map((source) => ({ name: 'x', source })))).toMatchObject(
        outside.map(() => failure('outside')),
      )
    })

    test('must be regular files of known kinds and limited size', async () => {
      const root = folder()
      const inside = join(root, 'inside')
      cpSync(SAMPLE, inside, { recursive: true })
      execFileSync('mkfifo', [join(root, 'pipe.jinja'), join(root, 'pipe.json')])
      mkdirSync(join(root, 'folder.jinja'))
      symlinkSync('/proc/self/environ', join(root, 'environ.jinja'))
      writeFileSync(join(root, 'secret.env'), 'KEY=value')
      writeFileSync(join(root, 'large.jinja'), 'x'.repeat(17_000_000))
      writeFileSync(join(root, 'long.jinja'), 'x'.repeat(300_000))
      writeFileSync(join(root, 'own.jinja'), 'own')
      const fleet = await open({ roots: [root] })
      const cases = [
        ['/proc/self/environ', 'extension'],
        [fileURLToPath(import.meta.url), 'extension'],
        [join(SAMPLE, 'chat_template.jinja'), 'outside'],
        [join(root, 'environ.jinja'), 'outside'],
        [join(root, 'pipe.jinja'), 'not a regular file'],
        [join(root, 'folder.jinja'), 'not a regular file'],
        [join(root, 'secret.env'), 'extension'],
        [join(root, 'large.jinja'), 'the limit is'],
        [join(root, 'long.jinja'), 'the limit is'],
      ]
      const templates = cases.map(([path]) => ({ name: 'x', source: inside, chat_template_path: path }))
      expect(
        await fleet.addAll([
          ...templates,
          { name: 'x', source: join(root, 'pipe.json') },
          { name: 'own', source: inside, chat_template_path: join(root, 'own.jinja') },
        ]),
      ).toMatchObject([
        ...cases.map(([, reason]) => failure(reason)),
        failure('not a regular file'),
        { status: 'completed' },
      ])
    })
  })

  test('tokenizers added through the API are restored after a restart, with the same id', async () => {
    const dir = folder()
    const first = await open({}, { storage: { dir } })
    const id = await first.add('kept')
    const removed = await first.add('removed')
    await first.settled(id)
    await first.settled(removed)
    await first.call('DELETE', `/v1/tokenizers/${removed}`)
    await endings.pop()?.()
    const second = await open({}, { storage: { dir } })
    expect(await second.settled(id)).toMatchObject({ status: 'completed' })
    expect((await second.call('GET', '/v1/tokenizers')).body).toMatchObject({
      tokenizers: [{ id, name: 'kept' }],
    })
  })

  describe('paths in worker labels', () => {
    const described = (port: number, model: string, labels: object) => ({
      url: `http://127.0.0.1:${port}`,
      models: [{ id: model }],
      labels,
      health: { disable_health_check: true },
    })
    const isKnown = (fleet: Fleet, name: string) =>
      expect
        .poll(async () => (await fleet.call('GET', `/v1/tokenizers/${name}/status`)).status, {
          timeout: 10_000,
        })
        .toBe(200)

    test('the configuration file may name any path', async () => {
      const labels = { tokenizer_path: SAMPLE, model_path: '/else' }
      const fleet = await open({ roots: [] }, { workers: { workers: [described(9, 'named', labels)] } })
      await isKnown(fleet, 'named')
      expect(await fleet.settled('named')).toMatchObject({ status: 'completed' })
    })

    test('labels of a worker registered or changed through the API obey the roots', async () => {
      const configured = described(9, 'configured', {})
      const fleet = await open({ roots: [] }, { workers: { workers: [configured] } })
      const labels = { tokenizer_path: SAMPLE }
      expect((await fleet.call('POST', '/workers', described(10, 'added', labels))).status).toBe(202)
      await isKnown(fleet, 'added')
      const { body } = await fleet.call('GET', '/workers')
      const worker = (body as { workers: { id: string; url: string }[] }).workers.find(
        ({ url }) => url === configured.url,
      )
      expect((await fleet.call('PATCH', `/workers/${worker?.id}`, { labels })).status).toBe(202)
      await isKnown(fleet, 'configured')
      for (const name of ['added', 'configured'])
        expect(await fleet.settled(name)).toMatchObject({
          status: 'failed',
          message: expect.stringContaining('plugins.tokenizers.roots'),
        })
    })

    test('a worker registered through the API may name a path inside the roots', async () => {
      const fleet = await open({ roots: [SAMPLE] })
      await fleet.call('POST', '/workers', described(10, 'added', { tokenizer_path: SAMPLE }))
      await isKnown(fleet, 'added')
      expect(await fleet.settled('added')).toMatchObject({ status: 'completed' })
    })
  })
})

describe('tokenize and detokenize', () => {
  test('round-trip in single and batch forms', async () => {
    const fleet = await openShared(LOADED)
    const prompt = 'Hello <|im_end|> 😀'
    const { body } = await fleet.call('POST', '/v1/tokenize', { model: 'm', prompt })
    const { tokens } = body as { tokens: number[] }
    expect(body).toEqual({ tokens, count: tokens.length, char_count: 18 })
    expect(tokens).toContain(4098)
    const whole = { model: '', tokens, skip_special_tokens: false }
    expect((await fleet.call('POST', '/v1/detokenize', whole)).body).toEqual({ text: prompt })
    const skipped = { model: 'unknown', tokens: [tokens, []] }
    expect((await fleet.call('POST', '/v1/detokenize', skipped)).body).toEqual({ text: ['Hello  😀', ''] })

    const ask = async (given: unknown) =>
      (await fleet.call('POST', '/v1/tokenize', { model: 'm', prompt: given })).body
    expect(await ask('')).toEqual({ tokens: [], count: 0, char_count: 0 })
    expect(await ask([])).toEqual({ tokens: [], count: [], char_count: [] })
    expect(await ask(['😀'])).toEqual({
      tokens: [expect.any(Array)],
      count: [expect.any(Number)],
      char_count: [1],
    })
  })

  test('invalid requests are rejected with an error type', async () => {
    const fleet = await openShared(LOADED)
    const refusal = async (path: string, body: object) => {
      const reply = await fetch(fleet.url + path, { method: 'POST', body: JSON.stringify(body) })
      expect(reply.status).toBe(400)
      return ((await reply.json()) as { error: { type: string } }).error.type
    }
    expect(await refusal('/v1/tokenize', { model: 'other', prompt: 'x' })).toBe('tokenizer_not_found')
    expect(await refusal('/v1/tokenize', { prompt: 'x' })).toBe('invalid_request_error')
    expect(await refusal('/v1/tokenize', { model: 'm', prompt: 3 })).toBe('invalid_request_error')
    for (const tokens of [[-1], [4_294_967_296], [1.5], ['1'], [[1], 2], [1, [2]], [[[1]]]])
      expect(await refusal('/v1/detokenize', { model: 'm', tokens })).toBe('invalid_request_error')
    const beyond = await fleet.call('POST', '/v1/detokenize', { model: 'm', tokens: [999_999] })
    expect(beyond).toEqual({ status: 200, body: { text: '' } })
  })
})

describe('the tokenizer service', () => {
  const weather = { type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }

  test('a chat becomes text and ids; counting and decoding agree', async () => {
    const fleet = await openShared(LOADED)
    const tokenizer = fleet.service.find('m')!
    expect(tokenizer).toMatchObject({ vocabSize: 4105, contentFormat: 'string', eosIds: [4098] })
    expect([...tokenizer.templates.keys()]).toEqual(['default'])
    const prompt = {
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'Weather?' }] },
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id: '1', type: 'function', function: { name: 'weather', arguments: '{"city":"Bonn"}' } },
          ],
        },
        { role: 'tool', tool_call_id: '1', content: 'rain' },
        { role: 'assistant', content: 'It ' },
      ],
      tools: [weather],
      continueFinalMessage: true,
    }
    const { text, tokenIds } = await tokenizer.renderAndEncode(prompt)
    expect(text).toContain('{"name": "weather", "arguments": {"city": "Bonn"}}')
    expect(text.endsWith('<|im_start|>assistant\nIt ')).toBe(true)
    expect(tokenIds).toEqual(await tokenizer.encode(text))
    expect(await tokenizer.count(prompt)).toBe(tokenIds.length)
    const decoder = tokenizer.openDecoder({ skipSpecialTokens: false })
    expect([...tokenIds].map((id) => decoder.push(id)).join('') + decoder.end()).toBe(text)
  })

  test('template variables are passed and cannot replace the messages', async () => {
    const fleet = await openShared(LOADED)
    const messages = [{ role: 'user', content: 'x' }]
    const templateKwargs = { enable_thinking: false, messages: [], weir_text: 'no', __proto__: null }
    const { text } = await fleet.service.find('m')!.renderAndEncode({ messages, templateKwargs })
    expect(text).toBe('<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n')
  })

  test('messages that the template cannot render are a 400', async () => {
    const fleet = await openShared(LOADED)
    const tokenizer = fleet.service.find('m')!
    for (const messages of [[{ role: 5, content: 'x' }], ['x']])
      await expect(tokenizer.renderAndEncode({ messages })).rejects.toMatchObject({
        status: 400,
        code: 'chat_template_failed',
      })
  })

  test('a template that does not terminate is stopped, and requests to another model are served meanwhile', async () => {
    const body = '{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}'
    const hostile = folder()
    cpSync(SAMPLE, hostile, { recursive: true })
    writeFileSync(
      join(hostile, 'chat_template.jinja'),
      `{% if messages[0].content == "go" %}${body}{% endif %}`,
    )
    const tried = folder()
    cpSync(SAMPLE, tried, { recursive: true })
    writeFileSync(join(tried, 'chat_template.jinja'), body)
    const fleet = await open(LOADED)
    await fleet.settled('m')
    expect(await fleet.settled(await fleet.add('tried', tried))).toMatchObject({
      status: 'failed',
      message: expect.stringMatching(/the chat template 'default' needs more than .*plugins\.tokenizers/),
    })
    await fleet.settled(await fleet.add('hostile', hostile))
    const render = () =>
      fleet.service.find('hostile')!.renderAndEncode({ messages: [{ role: 'user', content: 'go' }] })
    const first = render()
    first.catch(() => undefined)
    await setImmediate()
    let stopped = 0
    for (let i = 0; i < 200; i++) render().catch(() => stopped++)
    // Once in the same turn of the event loop, and once through a route.
    await fleet.service.find('m')!.encode('text')
    expect(stopped).toBeLessThan(3)
    const reply = await fleet.call('POST', '/v1/tokenize', { model: 'm', prompt: 'text' })
    expect(reply.status).toBe(200)
    await expect(first).rejects.toMatchObject({
      status: 400,
      code: 'chat_template_limit_exceeded',
      message: expect.stringMatching(/'hostile'.*'default'.*plugins\.tokenizers\.rendering/),
    })
  })

  test('loading is stopped after loadMs, and delays neither encoding nor the next load', async () => {
    const hostile = folder()
    cpSync(SAMPLE, hostile, { recursive: true })
    const body = '{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}'
    writeFileSync(join(hostile, 'chat_template.jinja'), body)
    const fleet = await open({
      ...LOADED,
      loadMs: 5_000,
      rendering: { maxSteps: 1_000_000_000, maxMs: 600_000 },
    })
    await fleet.settled('m')
    // Starts the encoding thread.
    await fleet.service.find('m')!.encode('text')
    const [first, next] = [await fleet.add('hostile', hostile), await fleet.add('next')]
    for (let i = 0; i < 3; i++)
      expect((await fleet.call('POST', '/v1/tokenize', { model: 'm', prompt: `text ${i}` })).status).toBe(200)
    expect((await fleet.call('GET', `/v1/tokenizers/${first}/status`)).body).toMatchObject({
      status: 'processing',
    })
    expect(await fleet.settled(first)).toMatchObject({
      status: 'failed',
      message: 'timed out after 5000 ms (plugins.tokenizers.loadMs)',
    })
    expect(await fleet.settled(next)).toMatchObject({ status: 'completed' })
  })

  test('a vocabulary that requires the native library gives the same ids', async () => {
    const lower = folder()
    cpSync(SAMPLE, lower, { recursive: true })
    const file = join(lower, 'tokenizer.json')
    writeFileSync(
      file,
      JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), normalizer: { type: 'Lowercase' } }),
    )
    const fleet = await openShared(LOADED)
    expect(await fleet.settled(await fleet.add('lower', lower))).toMatchObject({ status: 'completed' })
    // Encoding reads no files.
    rmSync(lower, { recursive: true })
    const [upper, same] = await Promise.all([
      fleet.service.find('lower')!.encode('HELLO World'),
      fleet.service.find('m')!.encode('hello world'),
    ])
    expect([...upper]).toEqual([...same])
  })

  test('texts beyond queueLimit are rejected, and later texts are encoded', async () => {
    const fleet = await open({ ...LOADED, queueLimit: 4 })
    await fleet.settled('m')
    const tokenizer = fleet.service.find('m')!
    const many = await Promise.allSettled(Array.from({ length: 6 }, () => tokenizer.encode('x')))
    expect(many.map(({ status }) => status)).toEqual(Array(6).fill('rejected'))
    expect(many[0]).toMatchObject({ reason: { status: 503, code: 'tokenizer_busy' } })
    expect(await tokenizer.encode('hi')).toBeInstanceOf(Uint32Array)
  })

  test('encoding a large prompt does not block the event loop', async () => {
    const fleet = await openShared(LOADED)
    const text = 'A prompt of some words, and then some more. '.repeat(2_300)
    let turns = 0
    const watch = setInterval(() => turns++, 1)
    const lengths = await Promise.all(
      Array.from({ length: 8 }, async () => (await fleet.service.find('m')!.encode(text)).length),
    )
    clearInterval(watch)
    expect(Math.min(...lengths)).toBeGreaterThan(20_000)
    // The event loop turned while a pool thread encoded; encoding on this thread would have blocked it.
    expect(turns).toBeGreaterThan(8)
  })

  test('ids with both caches equal ids without', async () => {
    const caches = {
      promptCache: { enabled: true, maxBytes: 20_000 },
      segmentCache: { enabled: true, maxBytes: 20_000 },
    }
    const [cached, plain] = [await open({ ...LOADED, ...caches }), await openShared(LOADED)]
    await cached.settled('m')
    const words = ['Hello', ' world', '\n', '😀', '<|im_end|>', '<think>', '  ', 'Größe', '<tool_call>', '']
    const chats = Array.from({ length: 200 }, (_, chat) => ({
      messages: Array.from({ length: 1 + (chat % 7) }, (_, turn) => ({
        role: turn % 2 === 0 ? 'user' : 'assistant',
        content: Array.from(
          { length: (chat * 7 + turn) % 9 },
          (_, at) =>
            words[(chat % 5) * 2 + ((turn * at) % 10) - ((chat % 5) * 2 + ((turn * at) % 10) > 9 ? 10 : 0)],
        ).join(''),
      })),
    }))
    const ids = async (fleet: Fleet) => {
      const tokenizer = fleet.service.find('m')!
      return Promise.all(chats.map(async (chat) => [...(await tokenizer.renderAndEncode(chat)).tokenIds]))
    }
    const expected = await ids(plain)
    expect(await ids(cached)).toEqual(expected)
    expect(await ids(cached)).toEqual(expected)
    // Both caches are off by default.
    expect(await (await fetch(`${plain.metricsUrl}`)).text()).not.toMatch(
      /weir_tokenizer_cache_(lookups_total\{.*\}|bytes) [1-9]/,
    )
    const metrics = await (await fetch(`${cached.metricsUrl}`)).text()
    expect(metrics).toMatch(/weir_tokenizer_cache_lookups_total\{cache="segment",result="hit"\} [1-9]/)
    const [, bytes] = /weir_tokenizer_cache_bytes (\d+)/.exec(metrics) ?? []
    expect(Number(bytes)).toBeGreaterThan(0)
    expect(Number(bytes)).toBeLessThanOrEqual(40_000)
  })
})
