/** The unmodified agents SDK with tools that the gateway runs, against the built gateway with two data threads. */
import { Agent, hostedMcpTool, OpenAIProvider, Runner } from '@openai/agents'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type BuiltGateway, makeFolder, startBuiltGateway, stopCommands } from '../support/built-command.ts'
import { CHAT, chatAnswer } from '../support/chat-script.ts'
import { startToolServer, type ToolServer } from '../support/mcp/tool-server.ts'
import { type ScriptedWorker, startScriptedWorker } from '../support/scripted-worker.ts'

const model = 'test-model'
const question = 'What is the weather in Bern?'
let gateway: BuiltGateway
let worker: ScriptedWorker
let server: ToolServer
let runner: Runner

beforeAll(async () => {
  worker = await startScriptedWorker({ models: [model] })
  server = await startToolServer({ get_weather: ({ city }) => `rain in ${city}` })
  gateway = await startBuiltGateway({
    plugins: {
      generations: {},
      storage: { dir: makeFolder() },
      history: {},
      mcp: { clientServers: { allowsPrivate: true } },
      responses: {},
    },
    workers: [{ url: worker.url, runtime_type: 'sglang', models: [{ id: model }] }],
  })
  const openAIClient = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'none', maxRetries: 0 })
  const modelProvider = new OpenAIProvider({ openAIClient, useResponses: true })
  runner = new Runner({ modelProvider, tracingDisabled: true })
})

afterAll(async () => {
  await stopCommands()
  await worker?.close()
  await server?.close()
})

beforeEach(() => {
  server.ran.length = 0
  worker.once(
    CHAT,
    chatAnswer({ tool_calls: [{ id: 'call_w', name: 'get_weather', arguments: '{"city":"Bern"}' }] }),
  )
  worker.script(CHAT, chatAnswer('It rains in Bern.'))
})

const asker = (requireApproval: 'never' | 'always') =>
  new Agent({
    name: 'Weather',
    instructions: 'You tell the weather.',
    model,
    tools: [
      hostedMcpTool({
        serverLabel: 'sky',
        serverUrl: server.url,
        ...(requireApproval === 'never' ? { requireApproval } : { requireApproval }),
      }),
    ],
  })

describe.each([false, true])('streamed: %s', (stream) => {
  test('a hosted tool runs on its server, and the run completes with its result', async () => {
    if (stream) {
      const result = await runner.run(asker('never'), question, { stream: true })
      for await (const _ of result);
      await result.completed
      expect(result.finalOutput).toBe('It rains in Bern.')
    } else expect((await runner.run(asker('never'), question)).finalOutput).toBe('It rains in Bern.')
    expect(server.ran).toEqual(['get_weather'])
  })

  test.each([true, false])(
    'a hosted tool that requires approval runs only if approved: %s',
    async (isApproved) => {
      const agent = asker('always')
      const first = stream
        ? await runner.run(agent, question, { stream: true })
        : await runner.run(agent, question)
      if ('completed' in first) {
        for await (const _ of first);
        await first.completed
      }
      expect(server.ran).toEqual([])
      expect(first.interruptions).toHaveLength(1)
      const [interruption] = first.interruptions
      if (isApproved) first.state.approve(interruption)
      else first.state.reject(interruption)
      const second = await runner.run(agent, first.state)
      expect(second.finalOutput).toBe('It rains in Bern.')
      expect(server.ran).toEqual(isApproved ? ['get_weather'] : [])
    },
  )
})
