/**
 * Prompts of the public chat templates that llama.cpp and vLLM ship equal those of transformers, byte for byte. Skipped where
 * `test/real/templates/setup.sh` has not been run.
 */
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { keepSourceTexts, sourceText } from '#shared'
import { ChatTemplates } from '../../plugins/models/tokenizers/chat-template.ts'

const HERE = join(import.meta.dirname, 'templates')
const FOLDER = join(HERE, '.templates')
const isInstalled = existsSync(join(FOLDER, 'python/bin/python'))
if (!isInstalled)
  console.info(
    'transformers and the templates are missing: test/real/templates/setup.sh has not been run here',
  )

const SPECIAL = { bos: '<s>', eos: '</s>', unk: null, pad: null, all: [] }
const now = () => new Date(2026, 2, 5, 14, 7, 9)
/** A prompt, or null where the template refuses the conversation. */
type Prompt = string | null

const lines = readFileSync(join(HERE, 'conversations.jsonl'), 'utf8').trim().split('\n')

function ownPrompt(templates: ChatTemplates, line: string): Prompt {
  const conversation = JSON.parse(line) as Record<string, never> & { tools?: readonly object[] }
  keepSourceTexts(Buffer.from(line), conversation, ['tools', '*'])
  const { name, messages, tools, documents, add_generation_prompt, continue_final_message, ...rest } =
    conversation
  try {
    return templates.render({
      messages,
      documents,
      templateKwargs: rest,
      ...(tools !== undefined && { tools: tools.map(sourceText) }),
      addGenerationPrompt: add_generation_prompt ?? true,
      continueFinalMessage: continue_final_message ?? false,
    })
  } catch {
    return null
  }
}

/** Prompts by template. */
function judge(tasks: readonly object[]): Promise<Map<string, readonly Prompt[]>> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      join(FOLDER, 'python/bin/python'),
      [join(HERE, 'judge.py'), FOLDER],
      { maxBuffer: 1 << 28, timeout: 600_000 },
      (error, output) => {
        if (error !== null) return reject(error)
        const found = output
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line) as { template: string; prompts: Prompt[] })
        resolve(new Map(found.map(({ template, prompts }) => [template, prompts])))
      },
    )
    child.stdin?.end(tasks.map((task) => `${JSON.stringify(task)}\n`).join(''))
  })
}

function kindOf(own: Prompt, expected: Prompt): string {
  if (own === expected) return own === null ? 'both refuse' : 'same'
  if (own === null) return 'only Weir refuses'
  return expected === null ? 'only transformers refuses' : 'differs'
}

test.skipIf(!isInstalled)(
  'prompts of public templates equal those of transformers',
  async () => {
    const tasks: { template: string; form: unknown }[] = []
    const own = new Map<string, readonly Prompt[]>()
    const timesMs: number[] = []
    for (const template of readdirSync(FOLDER).filter((name) => name.endsWith('.jinja'))) {
      const source = readFileSync(join(FOLDER, template), 'utf8')
      const templates = new ChatTemplates(new Map([['default', source]]), SPECIAL, { now })
      // Compiles the template. `check` would reject those that refuse every conversation.
      expect(templates.contentFormat).toMatch(/string|parts/)
      tasks.push({ template, form: templates.reports.get('default')?.form })
      own.set(
        template,
        lines.map((line) => {
          const startMs = performance.now()
          const prompt = ownPrompt(templates, line)
          timesMs.push(performance.now() - startMs)
          return prompt
        }),
      )
    }
    const expected = await judge(tasks)
    const counts: Record<string, number> = {}
    const unequal: string[] = []
    for (const [template, prompts] of own)
      for (const [place, prompt] of prompts.entries()) {
        const kind = kindOf(prompt, expected.get(template)?.[place] ?? null)
        counts[kind] = (counts[kind] ?? 0) + 1
        if (kind !== 'same' && kind !== 'both refuse')
          unequal.push(`${kind}: ${template}, ${JSON.parse(lines[place]).name}`)
      }
    timesMs.sort((a, b) => a - b)
    console.table(counts)
    console.info(
      `rendering: median ${timesMs[timesMs.length >> 1].toFixed(3)} ms, longest ${timesMs.at(-1)?.toFixed(1)} ms`,
    )
    expect(own.size).toBeGreaterThan(100)
    expect(unequal).toEqual([])
  },
  900_000,
)
