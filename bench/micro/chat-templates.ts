/**
 * Time of rendering chat templates: the sample's, or every public template with every conversation of the comparison with
 * transformers if `test/real/templates/setup.sh` has been run; and how long templates last that never end, until they are
 * stopped. Run `node --conditions=weir-source bench/micro/chat-templates.ts`.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { ChatPrompt } from '#kernel'
import { ChatTemplates } from '../../plugins/models/tokenizers/chat-template.ts'
import type { Figure } from '../support/figure.ts'
import { renderTable } from '../support/report.ts'

/** Renderings of each pair, of which the fastest counts: the first ones are not compiled yet. */
const ROUNDS = 3

const SPECIAL = { bos: '<s>', eos: '</s>', unk: null, pad: null, all: [] }
const open = (source: string) => new ChatTemplates(new Map([['default', source]]), SPECIAL)

/** Null if the template refuses the prompt. */
function timeOf(templates: ChatTemplates, prompt: ChatPrompt): number | null {
  const startMs = performance.now()
  try {
    templates.render(prompt)
  } catch {
    return null
  }
  return performance.now() - startMs
}

/** A line of the file. */
interface Conversation extends Pick<ChatPrompt, 'messages' | 'tools'> {
  readonly chat_template_kwargs?: ChatPrompt['templateKwargs']
}

const here = (path: string) => new URL(path, import.meta.url)
const folder = here('../../test/real/templates/.templates/')
const sources = existsSync(folder)
  ? readdirSync(folder)
      .filter((name) => name.endsWith('.jinja'))
      .map((name) => readFileSync(new URL(name, folder), 'utf8'))
  : [readFileSync(here('../../plugins/models/tokenizers/sample/chat_template.jinja'), 'utf8')]
const conversations = readFileSync(here('../../test/real/templates/conversations.jsonl'), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Conversation)

const times: number[] = []
for (const source of sources) {
  const templates = open(source)
  for (const { messages, tools, chat_template_kwargs: templateKwargs } of conversations) {
    const rounds = Array.from({ length: ROUNDS }, () =>
      timeOf(templates, { messages, tools, templateKwargs }),
    )
    if (rounds[0] !== null) times.push(Math.min(...rounds.map(Number)))
  }
}
times.sort((a, b) => a - b)
const figure = (name: string, ms: number, target: number): Figure => ({
  name,
  unit: 'ms',
  values: [ms],
  target,
})
const figures = [
  figure('median', times[times.length >> 1], 0.24),
  figure('99 of 100', times[Math.floor(times.length * 0.99)], 10),
  figure('longest', times.at(-1) ?? 0, 50),
]

const DEEP = '{% set d = namespace(v=["x"]) %}{% for i in range(60) %}{% set d.v = [d.v, d.v] %}{% endfor %}'
const ENDLESS: readonly (readonly [string, string])[] = [
  ['nested loops', '{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}'],
  ['recursion', '{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}'],
  ['printing', `${DEEP}{{ d.v }}`],
  ['JSON', `${DEEP}{{ d.v | tojson }}`],
]
for (const [name, body] of ENDLESS) {
  const templates = open(`{% if messages[0].content == 'go' %}${body}{% endif %}`)
  // Compiles it, and renders the trials.
  templates.render({ messages: [{ role: 'user', content: 'hi' }] })
  // Of this thread, because other processes would count in half a second of the clock.
  const start = process.threadCpuUsage()
  timeOf(templates, { messages: [{ role: 'user', content: 'go' }] })
  const { user, system } = process.threadCpuUsage(start)
  figures.push(figure(`stopped, CPU: ${name}`, (user + system) / 1_000, 1_000))
}
const question = `How long do ${times.length} prompts of ${sources.length} templates take, and templates that never end?`
console.log(renderTable({ scenario: 'chat-templates', question, figures }))
