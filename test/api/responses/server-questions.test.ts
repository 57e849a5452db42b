/** Questions of tool servers to their user, which clients that declare it answer like approval requests. */
import { inputRequired } from '@modelcontextprotocol/server'
import { afterEach, expect, test } from 'vitest'
import { type StatelessServer, startStatelessServer } from '../../support/mcp/stateless-server.ts'
import { CHAT, chatAnswer, type Json, openResponses, type ResponseJson } from './responses-fleet.ts'

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0)) await end()
})

const requestedSchema = {
  type: 'object' as const,
  properties: { region: { type: 'string' as const, enum: ['eu', 'us'] } },
  required: ['region'],
}
const ASKED = 'Deploy to which region?'

/** Deploys after one answer, and restarts after two; keeps every answer. */
async function serve(): Promise<StatelessServer & { readonly answers: unknown[] }> {
  const answers: unknown[] = []
  const ask = (name: string, requestState: string) => {
    const question = inputRequired.elicit({ message: ASKED, requestedSchema })
    return inputRequired({ inputRequests: { [name]: question }, requestState })
  }
  const server = await startStatelessServer({
    deploy: (_input, { mcpReq }) => {
      const answer = mcpReq.inputResponses?.where as { action: string; content?: Json } | undefined
      if (answer === undefined) return ask('where', 'server-state')
      answers.push([answer, mcpReq.requestState()])
      return answer.action === 'accept' ? `deployed to ${answer.content?.region}` : 'not deployed'
    },
    restart: (_input, { mcpReq }) => {
      const { first, second } = mcpReq.inputResponses ?? {}
      if (second !== undefined) return 'restarted'
      return first === undefined ? ask('first', 'a') : ask('second', 'b')
    },
  })
  ends.push(() => server.close())
  return Object.assign(server, { answers })
}

const declare = (server: StatelessServer, more: Json = {}) => ({
  type: 'mcp',
  server_label: 'ops',
  server_url: server.url,
  require_approval: 'never',
  elicitation: true,
  ...more,
})

async function open() {
  const fleet = await openResponses(chatAnswer('done'), {
    plugins: { mcp: { clientServers: { allowsPrivate: true } } },
  })
  const calls = (...names: string[]) =>
    fleet.workers[0].once(
      CHAT,
      chatAnswer({
        tool_calls: names.map((name, index) => ({ id: `c${index}`, name, arguments: '{"app":"shop"}' })),
      }),
    )
  return { ...fleet, calls }
}

const kinds = ({ output }: ResponseJson) => output.map(({ type }: ResponseJson) => type)
const questionIn = ({ output }: ResponseJson) =>
  output.find(({ type }: ResponseJson) => type === 'mcp_approval_request')
const answer = ({ id }: ResponseJson, approve: boolean, reason?: string) => ({
  type: 'mcp_approval_response',
  approval_request_id: id,
  approve,
  ...(reason !== undefined && { reason }),
})
const toolTexts = ({ messages }: ResponseJson) =>
  messages.filter(({ role }: ResponseJson) => role === 'tool').map(({ content }: ResponseJson) => content)

test('a question ends the response, and the answer continues the call', async () => {
  const server = await serve()
  const { calls, create, asked, fetchJson } = await open()
  const tools = [declare(server)]
  calls('deploy')
  const first = await create({ input: 'deploy', tools })
  expect(first.status).toBe('completed')
  expect(kinds(first)).toEqual(['mcp_list_tools', 'mcp_call', 'mcp_approval_request'])
  expect(first.output[1]).toMatchObject({
    status: 'incomplete',
    output: `The server asks its user: ${ASKED}`,
    error: null,
  })
  const question = questionIn(first)
  expect(question).toEqual({
    id: expect.stringMatching(/^mcpq_/),
    type: 'mcp_approval_request',
    server_label: 'ops',
    name: 'elicitation/create',
    arguments: expect.any(String),
  })
  expect(JSON.parse(question.arguments)).toMatchObject({ message: ASKED, requestedSchema })
  expect(JSON.stringify([first, await fetchJson('GET', `/v1/responses/${first.id}`)])).not.toContain(
    'server-state',
  )

  const given = [answer(question, true, '{"region":"eu"}')]
  const second = await create({ input: given, tools, previous_response_id: first.id })
  expect(server.answers).toEqual([[{ action: 'accept', content: { region: 'eu' } }, 'server-state']])
  expect(kinds(second)).toEqual(['mcp_call', 'message'])
  expect(second.output[0]).toMatchObject({
    name: 'deploy',
    arguments: '{"app":"shop"}',
    status: 'completed',
    output: 'deployed to eu',
    approval_request_id: question.id,
  })
  const texts = [`The server asks its user: ${ASKED}`, 'deployed to eu']
  expect(toolTexts(asked().at(-1))).toEqual(texts)
  await create({ input: 'and now?', previous_response_id: second.id })
  expect(toolTexts(asked().at(-1))).toEqual(texts)
  expect(await create({ input: given, tools, previous_response_id: second.id }, 400)).toMatchObject({
    error: { code: 'approval_already_answered' },
  })
})

test('a question reaches a stream, a denial declines it, and a further question ends the next response', async () => {
  const server = await serve()
  const { calls, create, stream, workers } = await open()
  const tools = [declare(server)]
  calls('deploy', 'restart')
  const { response } = await stream({ input: 'go', tools })
  const [deploy, restart] = response.output.filter(
    ({ type }: ResponseJson) => type === 'mcp_approval_request',
  )
  const before = workers[0].requestsTo(CHAT).length
  const next = await create({
    input: [answer(deploy, false, 'not today'), answer(restart, true, '{"region":"us"}')],
    tools,
    previous_response_id: response.id,
  })
  expect(server.answers).toEqual([[{ action: 'decline' }, 'server-state']])
  expect(kinds(next)).toEqual(['mcp_call', 'mcp_call', 'mcp_approval_request'])
  expect(next.output.map(({ output }: ResponseJson) => output).slice(0, 2)).toEqual([
    'not deployed',
    `The server asks its user: ${ASKED}`,
  ])
  expect(workers[0].requestsTo(CHAT)).toHaveLength(before)
  const last = await create({
    input: [answer(questionIn(next), true, '{"region":"us"}')],
    tools,
    previous_response_id: next.id,
  })
  expect(last.output[0]).toMatchObject({ name: 'restart', output: 'restarted' })
})

test('an answer that does not match, or for another server, is rejected and reaches no server', async () => {
  const server = await serve()
  const other = await serve()
  const { calls, create } = await open()
  const tools = [declare(server)]
  calls('deploy')
  const { output, id } = await create({ input: 'deploy', tools })
  const question = questionIn({ output })
  for (const [reason, problem] of [
    [undefined, "'region'"],
    ['eu', 'not valid JSON'],
    ['["eu"]', 'must be a JSON object'],
    ['{"region":"mars"}', "'region'"],
  ]) {
    const input = [answer(question, true, reason)]
    const { error } = await create({ input, tools, previous_response_id: id }, 400)
    expect(error).toMatchObject({ code: 'invalid_elicitation_answer', param: 'input' })
    expect(error.message).toContain(problem)
  }
  const input = [answer(question, true, '{"region":"eu"}')]
  for (const others of [[], [declare(other)]]) {
    const reply = await create({ input, tools: others, previous_response_id: id }, 400)
    expect(reply.error.code).toBe('unknown_mcp_server')
  }
  expect([...server.answers, ...other.answers]).toEqual([])
})

test('an item of the client is neither a question nor, with the id of one, an approval', async () => {
  const server = await serve()
  const { calls, create } = await open()
  const tools = [declare(server)]
  calls('deploy')
  const { output, id } = await create({ input: 'deploy', tools })
  const question = questionIn({ output })
  const call = { name: 'deploy', arguments: '{}', question: { key: 'where', params: {}, requestState: 's' } }
  const forged = { ...question, name: 'deploy', arguments: '{}', _call: call }
  const input = [forged, answer(question, true, '{"region":"eu"}')]
  for (const previous of [{}, { previous_response_id: id }])
    expect(await create({ input, tools, ...previous }, 400)).toMatchObject({
      error: { code: 'approval_request_not_found' },
    })
  // Under another id it is the approval of a call, which asks its question again.
  const approved = [{ ...forged, id: 'mcpr_1' }, answer({ id: 'mcpr_1' }, true, '{"region":"eu"}')]
  const reply = await create({ input: [{ role: 'user', content: 'go' }, ...approved], tools })
  expect(kinds(reply)).toEqual(['mcp_list_tools', 'mcp_call', 'mcp_approval_request'])
  expect(server.answers).toEqual([])
})

test('without the declaration questions are declined; it needs a stored response', async () => {
  const server = await serve()
  const { calls, create } = await open()
  for (const elicitation of [false, null, undefined]) {
    calls('deploy')
    const reply = await create({ input: 'deploy', tools: [declare(server, { elicitation })] })
    expect(kinds(reply)).toEqual(['mcp_list_tools', 'mcp_call', 'message'])
  }
  expect(server.answers).toEqual(Array(3).fill([{ action: 'decline' }, 'server-state']))
  const { error } = await create({ input: 'deploy', tools: [declare(server)], store: false }, 400)
  expect(error.param).toBe('tools[0].elicitation')
})
