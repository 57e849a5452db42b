/** Claude Code, unmodified and headless, over every kind of worker. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { ClaudeCode, hasClaude } from '../support/agent-commands.ts'
import { LANES, type Lane, type LaneName, MODEL, ScriptedModel } from '../support/agent-lanes.ts'
import { type BuiltGateway, startBuiltGateway, stopCommands } from '../support/built-command.ts'

const ECHO = 'mcp__everything__echo'
let lane: Lane | null = null

afterEach(async () => {
  await stopCommands()
  await lane?.close()
})

function startGateway({ plugins, worker }: Lane): Promise<BuiltGateway> {
  return startBuiltGateway({
    plugins: {
      auth: { apiKey: 'agent-key' },
      messages: {},
      'virtual-models': { models: { 'claude-*': { targets: [{ model: MODEL }] } } },
      ...plugins,
    },
    workers: [worker],
  })
}

test.skipIf(!hasClaude).each(Object.keys(LANES) as LaneName[])(
  'over %s: a deferred tool, a file edit, a resume after a gateway restart, compaction (no custom tools: the client has none)',
  { timeout: 400_000 },
  async (name) => {
    const model = new ScriptedModel('<summary>THE SUMMARY</summary>')
    const opened = await LANES[name](model)
    lane = opened
    const claude = new ClaudeCode()
    const file = join(claude.folder, 'note.txt')

    let gateway = await startGateway(opened)
    model.plays(
      { text: 'First the tool.', call: { name: 'ToolSearch', input: { query: `select:${ECHO}` } } },
      { call: { name: ECHO, input: { message: 'from-the-tool' } } },
      { call: { name: 'Write', input: { file_path: file, content: 'one\n' } } },
      { call: { name: 'Edit', input: { file_path: file, old_string: 'one', new_string: 'two' } } },
      { text: 'FIRST-ANSWER' },
    )
    const first = await claude.run(gateway.url, 'FIRST-PROMPT')
    expect(first.text, JSON.stringify(model.requests.at(-1))).toBe('FIRST-ANSWER')
    expect(readFileSync(file, 'utf8')).toBe('two\n')
    const main = model.requests.filter(({ tools }) => tools.length > 0)
    expect(main[0].tools).not.toContain(ECHO)
    expect(main[1].tools).toContain(ECHO)
    expect(main[2].text).toContain('Echo: from-the-tool')
    // The vendor's own format is relayed unchanged.
    if (name !== 'messages') expect(main[0].text).not.toContain('x-anthropic-billing-header')

    await gateway.command.stop()
    gateway = await startGateway(opened)
    model.plays({ text: 'SECOND-ANSWER' })
    const second = await claude.run(gateway.url, 'SECOND-PROMPT', first.session)
    expect(second.text).toBe('SECOND-ANSWER')
    for (const said of ['FIRST-PROMPT', 'from-the-tool', 'FIRST-ANSWER', 'SECOND-PROMPT'])
      expect(model.requests.at(-1)?.text).toContain(said)

    model.plays({ text: '<summary>THE SUMMARY</summary>' })
    const { session } = await claude.run(gateway.url, '/compact', second.session)
    model.plays({ text: 'THIRD-ANSWER' })
    const third = await claude.run(gateway.url, 'THIRD-PROMPT', session)
    expect(third.text).toBe('THIRD-ANSWER')
    const last = model.requests.findLast(({ text }) => text.includes('THIRD-PROMPT'))
    expect(last?.text).toContain('THE SUMMARY')
    expect(last?.text).not.toContain('from-the-tool')
  },
)
