/** The Codex command line, unmodified and headless, over every kind of worker. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { Codex, codexModels, hasCodex } from '../support/agent-commands.ts'
import { CODEX_MODEL, LANES, type Lane, type LaneName, MODEL, ScriptedModel } from '../support/agent-lanes.ts'
import { type BuiltGateway, makeFolder, startBuiltGateway, stopCommands } from '../support/built-command.ts'

const ECHO = 'mcp__everything__echo'
const lanes = Object.keys(LANES) as LaneName[]
let lane: Lane | null = null

afterEach(async () => {
  await stopCommands()
  await lane?.close()
})

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
    const opened = await LANES[name](model)
    lane = opened
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
    const opened = await LANES[name](model)
    lane = opened
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
const CHAT_LANE = 'chat with a strict template'
/** All models over one kind of workers, and the newest over all of them. */
const pairs = models.flatMap((model, index) =>
  (index === 0 ? lanes : [CHAT_LANE as LaneName]).map((name) => ({ ...model, lane: name })),
)

test.skipIf(!hasCodex).each(pairs)(
  'the model $name over $lane: a tool, a file edit, a resume',
  { timeout: 400_000 },
  async ({ name, writesCode, lane: laneName }) => {
    const model = new ScriptedModel('THE SUMMARY')
    const opened = await LANES[laneName](model)
    lane = opened
    const worker = { ...opened.worker, models: [{ id: MODEL, aliases: [name] }] }
    const codex = new Codex()
    const gateway = await startGateway({ ...opened, worker })

    const patch = '*** Begin Patch\n*** Add File: patched.txt\n+by the model\n*** End Patch'
    const byCode = (code: string) => ({ call: { name: 'functions__exec', input: { input: code } } })
    if (writesCode)
      model.plays(
        byCode(`text(await tools.${ECHO}({ message: 'from-the-tool' }))`),
        byCode(`text(await tools.apply_patch(${JSON.stringify(patch)}))`),
        { text: 'FIRST-ANSWER' },
      )
    else
      model.plays(
        { call: { name: 'tool_search', input: { query: 'echo a message' } } },
        { call: { name: ECHO, input: { message: 'from-the-tool' } } },
        { call: { name: 'apply_patch', input: { input: patch } } },
        { text: 'FIRST-ANSWER' },
      )
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
