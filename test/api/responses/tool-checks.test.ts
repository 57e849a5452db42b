/**
 * Tools run by the gateway, over HTTP and gRPC workers, streamed and non-streamed: each check holds for every
 * combination.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { startToolServer, type TestTool, type ToolServer } from '../../support/mcp/tool-server.ts'
import { checkResponseEvents } from '../../support/response-events.ts'
import { openSse } from '../../support/sse-client.ts'
import { type GrpcFleetOptions, openGrpcFleet, shareGrpcFleets } from '../grpc-fleet.ts'
import {
  CHAT,
  chatAnswer,
  type Json,
  newDirectory,
  openResponses,
  RESPONSES,
  type ResponseJson,
} from './responses-fleet.ts'

const directory = mkdtempSync(join(tmpdir(), 'weir-tool-checks-'))
afterAll(() => rmSync(directory, { recursive: true }))
const openShared = shareGrpcFleets()
/** Open as long as the shared gateway, which knows servers by their ports. */
const servers: ToolServer[] = []
afterAll(async () => {
  for (const server of servers) await server.close()
})

/** One turn of the model: text, or calls as name and JSON arguments. */
type Turn = string | readonly (readonly [name: string, args: string])[]

interface Site {
  readonly url: string
  /** Sets the model output, turn by turn; the last one repeats. */
  chatAnswer(...turns: Turn[]): Promise<void>
  /** The complete input of the worker in each turn. */
  workerInputs(): Promise<string[]>
  /** For each turn, whether the model was forced to call. */
  forced(): boolean[]
  /** The model output for a forced call. */
  readonly forcedCall: (name: string, args: string) => Turn
}

async function httpSite(plugins: Json): Promise<Site> {
  const { gateway, workers, asked } = await openResponses(undefined, { plugins })
  return {
    url: gateway.url,
    chatAnswer: async (...turns) => {
      const scripts = turns.map((turn) =>
        typeof turn === 'string'
          ? chatAnswer(turn)
          : chatAnswer({
              tool_calls: turn.map(([name, args], i) => ({ id: `c${i}`, name, arguments: args })),
            }),
      )
      for (const script of scripts.slice(0, -1)) workers[0].once(CHAT, script)
      workers[0].script(CHAT, scripts[scripts.length - 1])
    },
    workerInputs: async () => asked().map((body) => JSON.stringify(body)),
    forced: () => asked().map(({ tool_choice }) => tool_choice === 'required'),
    forcedCall: (name, args) => [[name, args]],
  }
}

/** Tests with the usual settings share one gateway. */
async function grpcSite(plugins: Json): Promise<Site> {
  const isShared = plugins.mcp === LOOPBACK
  const options: GrpcFleetOptions = {
    plugins: {
      storage: { dir: isShared ? directory : newDirectory() },
      history: {},
      responses: {},
      ...plugins,
      parsers: { toolParser: 'qwen' },
    },
  }
  const { gateway, engine, post, ids } = await (isShared ? openShared : openGrpcFleet)(options)
  const toText = (turn: Turn) =>
    typeof turn === 'string'
      ? turn
      : turn
          .map(([name, args]) => `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`)
          .join('\n')
  return {
    url: gateway.url,
    chatAnswer: async (...turns) => {
      const all = await Promise.all(turns.map((turn) => ids(toText(turn))))
      let nth = 0
      engine.script = ({ request }) => {
        const turn = all[Math.min(nth++, all.length - 1)]
        return engine.steps(
          turn.map((id) => [id]),
          {},
          request,
        )
      }
    },
    forced: () =>
      engine.calls.map(({ request }) => {
        const { jsonSchema, structuralTag } = request.samplingParams as Json
        return (jsonSchema ?? structuralTag ?? null) !== null
      }),
    // The output that the constraint allows, instead of the model's own call format.
    forcedCall: (name, args) => `[{"name":"${name}","parameters":${args}}]`,
    workerInputs: () =>
      Promise.all(
        engine.calls.map(async ({ request }) => {
          const { inputIds } = (request as { tokenized: { inputIds: number[] } }).tokenized
          const reply = await post('/v1/detokenize', { model: 'test-model', tokens: inputIds })
          return ((await reply.json()) as { text: string }).text
        }),
      ),
  }
}

const SITES = { HTTP: httpSite, gRPC: grpcSite }
const LOOPBACK = { clientServers: { allowsPrivate: true } }

async function serve(tools: Record<string, TestTool['run'] | TestTool>): Promise<ToolServer> {
  const server = await startToolServer(tools)
  servers.push(server)
  return server
}
const echo: TestTool = {
  run: ({ text }) => `you said ${text}`,
  description: 'repeats its input',
  inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
}
const mcp = (server: ToolServer, more: Json = {}) => ({
  type: 'mcp',
  server_label: 'echoes',
  server_url: server.url,
  require_approval: 'never',
  ...more,
})
const kinds = ({ output }: ResponseJson) => output.map(({ type }: ResponseJson) => type)
const saying = (text: string): [string, string] => ['echo', JSON.stringify({ text })]
const textOf = ({ output }: ResponseJson) => output.at(-1).content[0].text

describe.each(
  (['HTTP', 'gRPC'] as const).flatMap((kind) => [[kind, 'whole'] as const, [kind, 'streamed'] as const]),
)('over a worker of %s, %s', (kind, form) => {
  async function open(config: Json = LOOPBACK) {
    const site = await SITES[kind]({ mcp: config })
    let types: readonly string[] = []
    const post = (body: Json) =>
      fetch(site.url + RESPONSES, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'test-model', input: 'go', ...body }),
      })
    /** The final response. */
    const create = async (body: Json): Promise<ResponseJson> => {
      if (form === 'whole') {
        const reply = await post(body)
        const text = await reply.text()
        expect(reply.status, text).toBe(200)
        return JSON.parse(text)
      }
      const sse = openSse(site.url + RESPONSES, {
        body: { model: 'test-model', input: 'go', stream: true, ...body },
      })
      await sse.done
      expect(sse.status, sse.text()).toBe(200)
      const checked = checkResponseEvents(sse.events)
      types = checked.types
      return checked.response
    }
    const stored = async (id: string): Promise<ResponseJson> =>
      (await fetch(`${site.url}${RESPONSES}/${id}`)).json()
    return { ...site, create, post, stored, types: () => types }
  }

  test('the output is list, call, message, the stored response is equal, and the secret is absent', async () => {
    const server = await serve({ echo })
    const { chatAnswer, create, stored, types } = await open()
    await chatAnswer([saying('hi')], 'done')
    const reply = await create({ tools: [mcp(server, { authorization: 'very-secret' })] })
    expect([kinds(reply), reply.status]).toEqual([['mcp_list_tools', 'mcp_call', 'message'], 'completed'])
    expect(reply.output[1]).toMatchObject({ name: 'echo', output: 'you said hi', status: 'completed' })
    const kept = await stored(reply.id)
    expect(kept.output).toEqual(reply.output)
    expect(JSON.stringify([reply, kept])).not.toContain('very-secret')
    if (form === 'streamed')
      expect(types().filter((type) => type.includes('mcp') && !type.endsWith('delta'))).toEqual([
        'response.mcp_list_tools.in_progress',
        'response.mcp_list_tools.completed',
        'response.mcp_call.in_progress',
        'response.mcp_call_arguments.done',
        'response.mcp_call.completed',
      ])
  })

  test('allowed_tools limits the listed tools and those that the worker sees', async () => {
    const server = await serve({ echo, hiddenone: () => 'x' })
    const { chatAnswer, create, workerInputs } = await open()
    await chatAnswer('done')
    const reply = await create({ tools: [mcp(server, { allowed_tools: ['echo'] })] })
    expect(reply.output[0].tools.map(({ name }: ResponseJson) => name)).toEqual(['echo'])
    const [prompt] = await workerInputs()
    expect([prompt.includes('echo'), prompt.includes('hiddenone')]).toEqual([true, false])
  })

  test('three tools with one name get three names; the function keeps its own', async () => {
    const [a, b] = [await serve({ echo }), await serve({ echo })]
    const { chatAnswer, create } = await open()
    await chatAnswer([['mcp_one_echo', '{"text":"hi"}']], 'done')
    const tools = [
      mcp(a, { server_label: 'one' }),
      mcp(b, { server_label: 'two' }),
      { type: 'function', name: 'echo', parameters: { type: 'object', properties: {} } },
    ]
    const reply = await create({ tools })
    expect(reply.output.find(({ type }: ResponseJson) => type === 'mcp_call')).toMatchObject({
      name: 'echo',
      server_label: 'one',
    })
    expect([a.ran, b.ran]).toEqual([['echo'], []])
  })

  test('a tool error is a failed call whose text reaches the model', async () => {
    const server = await serve({
      echo: () => ({ isError: true, content: [{ type: 'text', text: 'out of paper' }] }),
    })
    const { chatAnswer, create, workerInputs } = await open()
    await chatAnswer([saying('hi')], 'done')
    const reply = await create({ tools: [mcp(server)] })
    expect(reply.output[1]).toMatchObject({ status: 'failed', output: '', error: expect.anything() })
    expect(reply.status).toBe('completed')
    expect((await workerInputs())[1]).toContain('out of paper')
  })

  test('arguments that are not an object reach no server, and the loop continues', async () => {
    const server = await serve({ echo })
    const { chatAnswer, create } = await open()
    await chatAnswer([['echo', '[1]']], 'done')
    const reply = await create({ tools: [mcp(server)] })
    expect([kinds(reply), reply.output[1].status]).toEqual([
      ['mcp_list_tools', 'mcp_call', 'message'],
      'failed',
    ])
    expect(server.ran).toEqual([])
  })

  test('an unreachable server fails the request before a worker is called', async () => {
    const server = await startToolServer({ echo })
    await server.close()
    const { chatAnswer, post, create, workerInputs, types } = await open()
    await chatAnswer('never')
    if (form === 'whole') {
      const reply = await post({ tools: [mcp(server)] })
      expect([reply.status, ((await reply.json()) as ResponseJson).error.param]).toEqual([424, 'tools'])
    } else {
      await create({ tools: [mcp(server)] })
      expect(types()).toContain('response.mcp_list_tools.failed')
      expect(types().at(-1)).toBe('response.failed')
    }
    expect(await workerInputs()).toEqual([])
  })

  test('a tool beyond its timeout is a failed call', async () => {
    const server = await serve({ echo: () => new Promise(() => {}) })
    const { chatAnswer, create } = await open({ ...LOOPBACK, limits: { callMs: 200 } })
    await chatAnswer([saying('hi')], 'done')
    const reply = await create({ tools: [mcp(server)] })
    expect([kinds(reply).at(-1), reply.output[1].status, reply.status]).toEqual([
      'message',
      'failed',
      'completed',
    ])
  })

  test('max_tool_calls 1 runs one of three calls, and the response completes', async () => {
    const server = await serve({ echo })
    const { chatAnswer, create } = await open()
    await chatAnswer([saying('a'), saying('b'), saying('c')], 'done')
    const reply = await create({ tools: [mcp(server)], max_tool_calls: 1 })
    expect([server.ran, reply.status, textOf(reply)]).toEqual([['echo'], 'completed', 'done'])
  })

  test('a model that keeps calling is stopped by maxIterations', async () => {
    const server = await serve({ echo })
    const { chatAnswer, create, workerInputs } = await open({ ...LOOPBACK, limits: { maxIterations: 3 } })
    await chatAnswer([saying('1')], [saying('2')], [saying('3')], 'enough')
    const reply = await create({ tools: [mcp(server)] })
    expect([textOf(reply), reply.status]).toEqual(['enough', 'completed'])
    // The last turn has no tools.
    expect((await workerInputs()).map((turn) => turn.includes('repeats its input'))).toEqual([
      true,
      true,
      true,
      false,
    ])
  })

  test('a turn with server and client calls, and its follow-up', async () => {
    const server = await serve({ echo })
    const { chatAnswer, create } = await open()
    await chatAnswer([saying('hi'), ['mine', '{}']], 'done')
    const tools = [
      mcp(server),
      { type: 'function', name: 'mine', parameters: { type: 'object', properties: {} } },
    ]
    const first = await create({ tools })
    expect([first.status, kinds(first)]).toEqual([
      'completed',
      ['mcp_list_tools', 'mcp_call', 'function_call'],
    ])
    const output = { type: 'function_call_output', call_id: first.output[2].call_id, output: 'mine too' }
    const second = await create({ input: [output], tools, previous_response_id: first.id })
    expect([second.status, kinds(second)]).toEqual(['completed', ['message']])
  })

  test("calls of one turn run in parallel, and are listed in the model's order; usage is summed", async () => {
    let running = 0
    const { promise: all, resolve } = Promise.withResolvers<void>()
    const server = await serve({
      echo: async ({ text }) => {
        running += 1
        if (running === 3) resolve()
        await all
        return `${text}`
      },
    })
    const { chatAnswer, create, workerInputs } = await open()
    await chatAnswer([saying('a'), saying('b'), saying('c')], 'done')
    const reply = await create({ tools: [mcp(server)] })
    expect(reply.output.slice(1, 4).map(({ output }: ResponseJson) => output)).toEqual(['a', 'b', 'c'])
    expect((await workerInputs()).length).toBe(2)
    const perTurn = kind === 'HTTP' ? 10 : 7
    expect(reply.usage.input_tokens).toBe(2 * perTurn)
  })

  test('a call that requires approval waits; approval runs it, denial does not', async () => {
    const server = await serve({ echo })
    for (const approve of [true, false]) {
      const { chatAnswer, create } = await open()
      const tools = [mcp(server, { require_approval: 'always' })]
      await chatAnswer([saying('hi')], 'done')
      const before = server.ran.length
      const first = await create({ tools })
      expect(kinds(first)).toEqual(['mcp_list_tools', 'mcp_approval_request'])
      const answer = { type: 'mcp_approval_response', approval_request_id: first.output[1].id, approve }
      const second = await create({ input: [answer], tools, previous_response_id: first.id })
      expect(kinds(second)).toEqual(approve ? ['mcp_call', 'message'] : ['message'])
      if (approve) expect(second.output[0].approval_request_id).toBe(first.output[1].id)
      expect(server.ran.length - before).toBe(approve ? 1 : 0)
    }
  })

  test('duplicate server labels, in any case, are rejected', async () => {
    const server = await serve({ echo })
    const { chatAnswer, post, workerInputs } = await open()
    await chatAnswer('never')
    const tools = [mcp(server), mcp(server, { server_label: 'ECHOES' })]
    const reply = await post({ tools, stream: form === 'streamed' })
    expect([reply.status, ((await reply.json()) as ResponseJson).error.code]).toEqual([
      400,
      'mcp_tool_duplicate_server_label',
    ])
    expect(await workerInputs()).toEqual([])
  })

  test('tools listed earlier in the chain are not listed again, and all are offered', async () => {
    const [a, b] = [await serve({ echo }), await serve({ other: () => 'x' })]
    const { chatAnswer, create, workerInputs } = await open()
    await chatAnswer('alpha', [saying('beta')], 'gamma', 'delta')
    const first = await create({ input: 'one', tools: [mcp(a)] })
    const second = await create({ input: 'two', tools: [mcp(a)], previous_response_id: first.id })
    const both = [mcp(a), mcp(b, { server_label: 'others' })]
    const third = await create({ input: 'three', tools: both, previous_response_id: second.id })
    expect([first, second, third].map(kinds)).toEqual([
      ['mcp_list_tools', 'message'],
      ['mcp_call', 'message'],
      ['mcp_list_tools', 'message'],
    ])
    expect(third.output[0].server_label).toBe('others')
    const [, , inLoop] = await workerInputs()
    for (const words of ['one', 'alpha', 'two', 'you said beta']) expect(inLoop).toContain(words)
  })

  test('a mapped built-in tool has its own item type and events', async () => {
    const server = await serve({ search: ({ query }) => `found ${query} at https://example.com/x` })
    const { chatAnswer, create, types } = await open({
      servers: [{ label: 'engine', url: server.url }],
      builtIns: [{ type: 'web_search', server: 'engine', tool: 'search' }],
    })
    await chatAnswer([['web_search', '{"query":"weir"}']], 'done')
    const reply = await create({ tools: [{ type: 'web_search_preview' }] })
    expect(kinds(reply)).toEqual(['web_search_call', 'message'])
    expect(reply.output[0].action).toMatchObject({ type: 'search', query: 'weir' })
    if (form === 'streamed')
      expect(types().filter((type) => type.includes('web_search'))).toEqual([
        'response.web_search_call.in_progress',
        'response.web_search_call.searching',
        'response.web_search_call.completed',
      ])
  })

  test('an unmapped built-in tool is ignored and echoed, or rejected if isStrict', async () => {
    const { chatAnswer, create, workerInputs } = await open()
    await chatAnswer('done')
    const reply = await create({ tools: [{ type: 'web_search_preview' }] })
    expect([kinds(reply), reply.tools]).toEqual([['message'], [{ type: 'web_search_preview' }]])
    expect((await workerInputs())[0]).not.toContain('web_search')
    const strict = await open({ isStrict: true })
    const refused = await strict.post({
      tools: [{ type: 'web_search_preview' }],
      stream: form === 'streamed',
    })
    expect([refused.status, ((await refused.json()) as ResponseJson).error.code]).toEqual([
      400,
      'tool_not_available',
    ])
  })

  test('tool_choice required forces one call; the next turn is free', async () => {
    const server = await serve({ echo })
    const { chatAnswer, create, forced, forcedCall } = await open()
    await chatAnswer(forcedCall(...saying('hi')), 'done')
    const reply = await create({ tools: [mcp(server)], tool_choice: 'required' })
    expect(kinds(reply)).toEqual(['mcp_list_tools', 'mcp_call', 'message'])
    expect(forced()).toEqual([true, false])
  })

  test('an internal server is not revealed to clients', async () => {
    const server = await serve({ lookup: () => 'inner words' })
    const { chatAnswer, create, stored, types } = await open({
      servers: [{ label: 'innermost', url: server.url, isInternal: true }],
    })
    await chatAnswer([['lookup', '{}']], 'done')
    const reply = await create({ tools: [{ type: 'mcp', server_label: 'innermost' }] })
    expect(server.ran).toEqual(['lookup'])
    const all = JSON.stringify([reply, await stored(reply.id), types()])
    for (const word of ['innermost', 'lookup', 'inner words', server.url]) expect(all).not.toContain(word)
    expect(kinds(reply)).toEqual(['message'])
  })
})
