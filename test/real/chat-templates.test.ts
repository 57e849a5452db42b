/**
 * Prompts of the public chat templates that llama.cpp and vLLM ship equal those of transformers, byte for byte: rendered from the
 * same messages, and through a gateway, a gRPC engine and the messages that vLLM gives to a template. Skipped where
 * `test/real/templates/setup.sh` has not been run.
 */
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { keepSourceTexts, sourceText } from '#shared'
import { ChatTemplates } from '../../plugins/models/tokenizers/chat-template.ts'
import { openGrpcFleet, until } from '../api/grpc-fleet.ts'
import type { EngineRequest } from '../api/messages-grpc-fleet.ts'

const HERE = join(import.meta.dirname, 'templates')
const FOLDER = join(HERE, '.templates')
const isInstalled = existsSync(join(FOLDER, 'vllm_hf.py'))
if (!isInstalled)
  console.info(
    'transformers and the templates are missing: test/real/templates/setup.sh has not been run here',
  )

const LIMIT_MS = 900_000
const SPECIAL = { bos: '<s>', eos: '</s>', unk: null, pad: null, all: [] }
/** A prompt, or null where the template refuses the conversation. */
type Prompt = string | null
type PromptsByTemplate = ReadonlyMap<string, readonly Prompt[]>

/** Chat bodies with a name in place of the model. */
const lines = readFileSync(join(HERE, 'conversations.jsonl'), 'utf8').trim().split('\n')
const names = lines.map((line) => (JSON.parse(line) as { name: string }).name)

const templateNames = () => readdirSync(FOLDER).filter((name) => name.endsWith('.jinja'))
const sourceOf = (template: string) => readFileSync(join(FOLDER, template), 'utf8')

function ownPrompt(templates: ChatTemplates, line: string): Prompt {
  const conversation = JSON.parse(line) as Record<string, never> & { tools?: readonly object[] }
  keepSourceTexts(Buffer.from(line), conversation, ['tools', '*'])
  const { messages, tools, documents, reasoning_effort, add_generation_prompt, continue_final_message } =
    conversation
  try {
    return templates.render({
      messages,
      documents,
      templateKwargs: {
        ...(conversation.chat_template_kwargs as object),
        ...(reasoning_effort !== undefined && { reasoning_effort }),
      },
      ...(tools !== undefined && { tools: tools.map(sourceText) }),
      addGenerationPrompt: add_generation_prompt ?? true,
      continueFinalMessage: continue_final_message ?? false,
    })
  } catch {
    return null
  }
}

/** Prompts of transformers, one list per task. */
function judge(tasks: readonly { readonly template: string; readonly form: unknown }[], now: Date) {
  const time = now.toLocaleString('sv').replace(' ', 'T')
  return new Promise<PromptsByTemplate>((resolve, reject) => {
    const child = execFile(
      join(FOLDER, 'python/bin/python'),
      [join(HERE, 'judge.py'), FOLDER, time],
      { maxBuffer: 1 << 28, timeout: 600_000 },
      (error, output) => {
        if (error !== null) return reject(error)
        const prompts = output.trim().split('\n')
        resolve(new Map(prompts.map((list, at) => [tasks[at].template, JSON.parse(list) as Prompt[]])))
      },
    )
    child.stdin?.end(tasks.map((task) => `${JSON.stringify(task)}\n`).join(''))
  })
}

function kindOf(own: Prompt, expected: Prompt): string {
  if (own === expected) return own === null ? 'both refuse' : 'same'
  if (own === null) return 'only Weir refuses'
  return expected === null ? 'only the judge refuses' : 'differs'
}

/** The time of day, which one template shows. */
const withoutTime = (prompt: Prompt | undefined): Prompt => prompt?.replace(/\d\d:\d\d:\d\d/g, '') ?? null

/** Prints the table. @returns the unequal ones, sorted */
function compare(own: PromptsByTemplate, expected: PromptsByTemplate): string[] {
  const counts: Record<string, number> = {}
  const unequal: string[] = []
  for (const [template, prompts] of own)
    for (const [place, prompt] of prompts.entries()) {
      const kind = kindOf(withoutTime(prompt), withoutTime(expected.get(template)?.[place]))
      counts[kind] = (counts[kind] ?? 0) + 1
      if (kind !== 'same' && kind !== 'both refuse')
        unequal.push(`${kind}: ${template.replace(/^.*_/, '')}, ${names[place]}`)
    }
  console.table(counts)
  return unequal.sort()
}

test.skipIf(!isInstalled)(
  'prompts of public templates equal those of transformers',
  async () => {
    const now = new Date(2026, 2, 5, 14, 7, 9)
    const tasks: { template: string; form: unknown }[] = []
    const own = new Map<string, readonly Prompt[]>()
    for (const template of templateNames()) {
      const options = { now: () => now }
      const templates = new ChatTemplates(new Map([['default', sourceOf(template)]]), SPECIAL, options)
      // Compiles the template. `check` would reject those that refuse every conversation.
      expect(templates.contentFormat).toMatch(/string|parts/)
      tasks.push({ template, form: templates.reports.get('default')?.form })
      own.set(
        template,
        lines.map((line) => ownPrompt(templates, line)),
      )
    }
    expect(own.size).toBeGreaterThan(100)
    expect(compare(own, await judge(tasks, now))).toEqual([])
  },
  LIMIT_MS,
)

/** Prompts of all conversations, read from the requests that the engine received. */
async function promptsThroughGateway(templates: readonly string[]): Promise<PromptsByTemplate> {
  const source = mkdtempSync(join(tmpdir(), 'weir-templates-'))
  cpSync(join(HERE, '../../../plugins/models/tokenizers/sample'), source, { recursive: true })
  writeFileSync(
    join(source, 'tokenizer_config.json'),
    JSON.stringify({ bos_token: '<s>', eos_token: '</s>' }),
  )
  // Neutral ids: no format is chosen by the name of a model.
  const models = templates.map((template, at) => ({ template, id: `m${at}` }))
  const load = models.map(({ template, id }) => ({
    name: id,
    source,
    chatTemplatePath: join(FOLDER, template),
  }))
  const { engine, gateway, get } = await openGrpcFleet({
    engines: [{ spec: { models: models.map(({ id }) => ({ id })) } }],
    plugins: {
      parsers: {},
      tokenizers: { maxTokenizers: 1_000, load: [{ name: 'test-model', source: 'weir:sample' }, ...load] },
    },
  })
  await until(async () => (await get('/readiness')).status === 200, 120_000)
  rmSync(source, { recursive: true })
  engine.answer([[1]])
  const prompts = new Map<string, readonly Prompt[]>()
  for (const { template, id } of models) {
    const found: Prompt[] = []
    for (const [place, line] of lines.entries()) {
      engine.calls.length = 0
      const reply = await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: line.replace(/^\{"name":"[^"]*"/, `{"model":"${id}"`),
      })
      const said = await reply.text()
      expect([200, 400], `${template}, ${names[place]}: ${said}`).toContain(reply.status)
      const request = engine.calls.at(0)?.request as unknown as EngineRequest | undefined
      found.push(request?.tokenized.originalText ?? null)
    }
    prompts.set(template, found)
  }
  return prompts
}

/** Templates that refuse everything are not loaded, and prompts of Harmony models are not written by their template. */
function servesChats(source: string): boolean {
  try {
    new ChatTemplates(new Map([['default', source]]), SPECIAL).check()
  } catch {
    return false
  }
  return !source.includes('<|channel|>analysis')
}

/** Where the gateway does not follow vLLM. */
const DIFFERENCES = [
  // The template shows the calls only if the content is none, and vLLM passes an empty text: its prompt lacks the calls.
  'differs: deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja, call absent content',
  'differs: deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja, call null content',
  'differs: deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja, parallel calls',
  // vLLM keeps the role, of which the template shows only the last message: its prompt lacks the instructions.
  'differs: deepseek-ai-DeepSeek-V3.2.jinja, developer',
  // The template takes parts, which vLLM does not notice.
  'differs: Kimi-K2-Instruct.jinja, text parts',
  'differs: Kimi-K2-Thinking.jinja, text parts',
  'differs: Kimi-K3.jinja, text parts',
].sort()

test.skipIf(!isInstalled)(
  'prompts that gRPC engines receive equal those of vLLM',
  async () => {
    const templates = templateNames().filter((name) => servesChats(sourceOf(name)))
    const now = new Date()
    const own = await promptsThroughGateway(templates)
    const expected = await judge(
      templates.map((template) => ({ template, form: 'vllm' })),
      now,
    )
    // Several system messages and users in a row are joined for templates that refuse them. An empty user message is no valid chat.
    const unequal = compare(own, expected).filter((text) => !/^only the judge|, empty$/.test(text))
    expect(unequal).toEqual(DIFFERENCES)
  },
  LIMIT_MS,
)
