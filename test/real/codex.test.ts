/** The Codex command line, unmodified and headless, over every kind of worker. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { Codex, codexModels, hasCodex } from '../support/agent-commands.ts'
import { CODEX_MODEL, LANES, type Lane, type LaneName, MODEL, ScriptedModel } from '../support/agent-lanes.ts'
import { type BuiltGateway, makeFolder, startBuiltGateway, stopCommands } from '../support/built-command.ts'

const ECHO = 'mcp__everything__echo'
const lanes = Object.keys(LANES) as LaneName[]

/** A lane that is closed after the test, with what the test has started. */
async function openLane(name: LaneName, model: ScriptedModel): Promise<Lane> {
  const lane = await LANES[name](model)
  onTestFinished(async () => {
    await stopCommands()
    await lane.close()
  })
  return lane
}

function startGateway(
  { plugins, worker }: Pick<Lane, 'plugins' | 'worker'>,
  storage = makeFolder(),
): Promise<BuiltGateway> {
  return startBuiltGateway({
    plugins: {
      auth: { apiKey: 'agent-key' },
      storage: { dir: storage },
      history: {},
      responses: {},
      ...plugins,
    },
    workers: [worker],
  })
}

test.skipIf(!hasCodex).each(lanes)(
  'over %s: a tool of a namespace, a file edit by the shell, a resume after a gateway restart, compaction',
  { timeout: 400_000 },
  async (name) => {
    const model = new ScriptedModel('THE SUMMARY')
    const opened = await openLane(name, model)
    const codex = new Codex()
    const storage = makeFolder()

    let gateway = await startGateway(opened, storage)
    model.plays(
      { text: 'First the tool.', call: { name: ECHO, input: { message: 'from-the-tool' } } },
      { call: { name: 'exec_command', input: { cmd: 'echo from-codex > made.txt' } } },
      { text: 'FIRST-ANSWER' },
    )
    const first = await codex.run(gateway.url, MODEL, 'FIRST-PROMPT')
    expect(first.text, JSON.stringify(model.requests.at(-1))).toBe('FIRST-ANSWER')
    expect(readFileSync(join(codex.folder, 'made.txt'), 'utf8')).toBe('from-codex\n')
    expect(model.requests[1].text).toContain('Echo: from-the-tool')

    await gateway.command.stop()
    gateway = await startGateway(opened, storage)
    model.plays({ text: 'SECOND-ANSWER' })
    const second = await codex.run(gateway.url, MODEL, 'SECOND-PROMPT', first.session)
    expect(second.text).toBe('SECOND-ANSWER')
    for (const said of ['FIRST-PROMPT', 'from-the-tool', 'FIRST-ANSWER', 'SECOND-PROMPT'])
      expect(model.requests.at(-1)?.text).toContain(said)

    // The limit is below the tokens that the last turn used, so the next one compacts first.
    model.plays({ text: 'THIRD-ANSWER' })
    const limit = 'model_auto_compact_token_limit=1'
    const third = await codex.run(gateway.url, MODEL, 'THIRD-PROMPT', second.session, ['-c', limit])
    expect(third.text).toBe('THIRD-ANSWER')
    const last = model.requests.findLast(({ text }) => text.includes('THIRD-PROMPT'))
    expect(last?.text).toContain('THE SUMMARY')
    expect(last?.text).not.toContain('from-the-tool')
  },
)

test.skipIf(!hasCodex).each(lanes)(
  'over %s: a deferred tool that is searched for, and a custom tool that edits a file',
  { timeout: 400_000 },
  async (name) => {
    const model = new ScriptedModel('THE SUMMARY')
    const opened = await openLane(name, model)
    const codex = new Codex()
    const gateway = await startGateway(opened)
    const patch = '*** Begin Patch\n*** Add File: patched.txt\n+by "the" model\n*** End Patch'
    model.plays(
      { call: { name: 'tool_search', input: { query: 'echo a message' } } },
      { call: { name: ECHO, input: { message: 'from-the-tool' } } },
      { call: { name: 'apply_patch', input: { input: patch } } },
      { text: 'FIRST-ANSWER' },
    )
    const first = await codex.run(gateway.url, CODEX_MODEL, 'FIRST-PROMPT')
    expect(first.text, JSON.stringify(model.requests.at(-1))).toBe('FIRST-ANSWER')
    expect(model.requests[2].text).toContain('Echo: from-the-tool')
    expect(readFileSync(join(codex.folder, 'patched.txt'), 'utf8')).toBe('by "the" model\n')
  },
)

const models = hasCodex ? codexModels() : []
const patch = '*** Begin Patch\n*** Add File: patched.txt\n+by the model\n*** End Patch'
const byCode = (code: string) => ({ call: { name: 'functions__exec', input: { input: code } } })
/** By `writesCode` of a model: what it generates until its answer. */
const turnsOf = (writesCode: boolean) =>
  writesCode
    ? [
        byCode(`text(await tools.${ECHO}({ message: 'from-the-tool' }))`),
        byCode(`text(await tools.apply_patch(${JSON.stringify(patch)}))`),
      ]
    : [
        { call: { name: 'tool_search', input: { query: 'echo a message' } } },
        { call: { name: ECHO, input: { message: 'from-the-tool' } } },
        { call: { name: 'apply_patch', input: { input: patch } } },
      ]

describe.skipIf(!hasCodex).each(lanes)('over %s', (laneName) => {
  const model = new ScriptedModel('THE SUMMARY')
  let opened: Lane
  let gateway: BuiltGateway

  beforeAll(async () => {
    opened = await LANES[laneName](model)
    const card = { id: MODEL, aliases: models.map(({ name }) => name) }
    gateway = await startGateway({ ...opened, worker: { ...opened.worker, models: [card] } })
  })
  afterAll(async () => {
    await stopCommands()
    await opened.close()
  })

  test.each(models)(
    'the model $name: a tool, a file edit, a resume',
    { timeout: 400_000 },
    async ({ name, writesCode }) => {
      const codex = new Codex()
      model.plays(...turnsOf(writesCode), { text: 'FIRST-ANSWER' })
      const first = await codex.run(gateway.url, name, 'FIRST-PROMPT')
      expect(first.text, JSON.stringify(model.requests.at(-1))).toBe('FIRST-ANSWER')
      expect(model.requests.at(-1)?.text).toContain('Echo: from-the-tool')
      expect(readFileSync(join(codex.folder, 'patched.txt'), 'utf8')).toBe('by the model\n')

      model.plays({ text: 'SECOND-ANSWER' })
      const second = await codex.run(gateway.url, name, 'SECOND-PROMPT', first.session)
      expect(second.text).toBe('SECOND-ANSWER')
      for (const said of ['FIRST-PROMPT', 'from-the-tool', 'FIRST-ANSWER', 'SECOND-PROMPT'])
        expect(model.requests.at(-1)?.text).toContain(said)
    },
  )
})
