/** Real vocabularies and templates compared with the output of Python's tokenizers and transformers. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import { openFrom } from '../../../test/support/loaded-tokenizer.ts'
import { isThorough } from '../../../test/support/thorough.ts'
import { tokenizerFixture, tokenizerPart } from '../../../test/support/tokenizer-parts.ts'
import { ChatTemplates } from './chat-template.ts'
import type { MessageForm } from './chat-values.ts'
import { StoppingDecoder } from './id-decoder.ts'
import { TokenTable } from './token-table.ts'

type IdRow = [count: number, plain: string, special: string, text: string, shortText: string]
interface Chat {
  name: string
  messages: { content: unknown }[]
  tools?: unknown[]
  documents?: unknown[]
  add_generation_prompt?: boolean
  kwargs?: Record<string, unknown>
}

const read = (name: string) => JSON.parse(readFileSync(tokenizerFixture(name), 'utf8'))
const corpus = read('corpus.json') as string[]
const chats = read('chats.json') as Chat[]
const idRows = read('ids.json') as Record<string, IdRow[]>
const prompts = read('prompts.json') as Record<string, (string | null)[]>

const digest = (numbers: Iterable<number>) =>
  createHash('sha256')
    .update([...numbers].join(','))
    .digest('hex')
    .slice(0, 16)
const codePoints = (text: string) => [...text].map((letter) => letter.codePointAt(0) ?? 0)
const NOW = new Date(2026, 2, 5, 4, 7, 9)

function comparePrompts(name: string, templates: ChatTemplates): void {
  for (const [place, chat] of chats.entries()) {
    const expected = prompts[name][place]
    const prompt = {
      messages: chat.messages,
      tools: chat.tools,
      documents: chat.documents,
      addGenerationPrompt: chat.add_generation_prompt,
      templateKwargs: chat.kwargs,
    }
    // Parts become one string if the template requires it; Python has no such step.
    const isJoined = chat.name === 'parts' && templates.contentFormat === 'string'
    if (isJoined && expected !== null) expect(templates.render(prompt)).toContain('first \n second')
    if (isJoined) continue
    // A message of tool calls alone has an empty content, except for templates that require none.
    if (chat.messages.some(({ content }) => content === null) && formOf(templates).emptyContent === 'empty')
      continue
    if (expected !== null) expect(templates.render(prompt), chat.name).toBe(expected)
    else expect(() => templates.render(prompt), chat.name).toThrowError()
  }
}

function formOf(templates: ChatTemplates): MessageForm {
  // Compiles it; a template for tools may refuse the trials, which `check` does not allow of an only one.
  void templates.contentFormat
  return [...templates.reports.values()][0].form
}

/** One of each kind of vocabulary, of those that load quickly. */
const QUICK_FAMILIES = ['gpt2', 'llama2', 'mistral_nemo', 'qwen3']

describe.each(isThorough ? Object.keys(idRows) : QUICK_FAMILIES)('%s', (family) => {
  const source = tokenizerPart(family)
  let tokenizer: Awaited<ReturnType<typeof openFrom>>
  beforeAll(async () => {
    if (source === null) return
    tokenizer = await openFrom(source, true)
  }, 180_000)

  test.skipIf(source === null)('ids equal those of Python and decode to the same text', async () => {
    const { facts, encoder, encodeSpecial } = tokenizer
    const table = new TokenTable(facts.table)
    const decode = (ids: Iterable<number>, skipSpecialTokens: boolean) => {
      if (facts.rules === null) throw new Error('no decoder')
      const decoder = new StoppingDecoder(table, facts.rules, { skipSpecialTokens })
      let text = ''
      for (const id of ids) text += decoder.push(id)
      return text + decoder.end()
    }
    for (const [place, text] of corpus.entries()) {
      const [count, plain, special, kept, short] = idRows[family][place]
      const ids = await encoder.encode(text)
      expect([ids.length, digest(ids), digest(await encodeSpecial(text))], text).toEqual([
        count,
        plain,
        special,
      ])
      // Once more, from the cache.
      expect(digest(await encoder.encode(text))).toBe(plain)
      expect(digest(codePoints(decode(ids, false))), text).toBe(kept)
      expect(digest(codePoints(decode(ids, true))), text).toBe(short)
    }
    expect(encoder.usesSegments).toBe(true)
    expect(encoder.counts.segmentHits).toBeGreaterThan(0)
  })

  const names = Object.keys(prompts).filter((name) => name.startsWith(`${family}/`))
  test.skipIf(source === null).each(names)('prompts of %s equal those of transformers', (name) => {
    const { facts } = tokenizer
    const sources = new Map(facts.templates)
    const template = sources.get(name.split('/')[1]) ?? ''
    const one = new ChatTemplates(new Map([['default', template]]), facts.special, { now: () => NOW })
    comparePrompts(name, one)
  })
})

const PLAIN = { bos: '<s>', eos: '</s>', unk: null, pad: null, all: [] }
const plainNames = Object.keys(prompts).filter((name) => name.startsWith('templates/'))

test.each(plainNames)('prompts of %s equal those of transformers', (name) => {
  const template = readFileSync(tokenizerFixture(`${name}.jinja`), 'utf8')
  comparePrompts(name, new ChatTemplates(new Map([['default', template]]), PLAIN, { now: () => NOW }))
})

test('at least twelve real templates are compared', () => {
  expect(Object.keys(prompts).length).toBeGreaterThanOrEqual(12)
})

const CONTENT_FORMATS: readonly (readonly [template: string, format: 'string' | 'parts'])[] = [
  ['qwen3/default', 'string'],
  ['qwen2_5/default', 'string'],
  ['llama3_2/default', 'string'],
  ['llama3/default', 'string'],
  ['llama3_1/default', 'string'],
  ['deepseek_v3/default', 'string'],
  ['mistral_nemo/default', 'string'],
  ['command_r_plus/default', 'string'],
  ['command_r_plus/tool_use', 'string'],
  ['command_r_plus/rag', 'string'],
  ['gemma3/default', 'parts'],
  ['templates/smollm2', 'string'],
]

/** Null if the package with the template is not installed. */
function realTemplate(name: string): string | null {
  const [family, key] = name.split('/')
  if (family === 'templates') return readFileSync(tokenizerFixture(`${name}.jinja`), 'utf8')
  const source = tokenizerPart(family)
  if (source === null) return null
  const { chat_template: found } = JSON.parse(readFileSync(`${source}/tokenizer_config.json`, 'utf8')) as {
    chat_template: string | readonly { readonly name: string; readonly template: string }[]
  }
  if (typeof found === 'string') return found
  return found.find((one) => one.name === key)?.template ?? ''
}

describe.each(CONTENT_FORMATS)('%s', (name, format) => {
  const template = realTemplate(name)

  test.skipIf(template === null)('the content format is detected', () => {
    const templates = new ChatTemplates(new Map([['default', template ?? '']]), PLAIN)
    expect(templates.contentFormat).toBe(format)
  })
})
