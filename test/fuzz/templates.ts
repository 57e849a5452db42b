/** Generated chat templates: each is written to a file, registered with a tokenizer, rendered by requests, and removed. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../support/built-command.ts'
import { startByteWorker } from './byte-worker.ts'
import { type Outcome, type Suite, startFuzzed, type Target } from './harness.ts'
import { HttpLane, isInternal } from './http-lane.ts'
import { type Draw, mutate, pickOf } from './mutate.ts'

interface Parts {
  readonly names: readonly string[]
  readonly filters: readonly string[]
  readonly calls: readonly string[]
  readonly broken: readonly string[]
}

const PARTS: Parts = JSON.parse(readFileSync(new URL('./seeds/template-parts.json', import.meta.url), 'utf8'))
const LANES = 4
const MESSAGES = [
  { role: 'user', content: 'hi' },
  { role: 'assistant', content: [{ type: 'text', text: 'grüß' }] },
  { role: 'user', content: 'x'.repeat(300) },
]

export const templates: Suite = { lanes: LANES, count: 200, start }

async function start(): Promise<Target> {
  const folder = makeFolder()
  const worker = await startByteWorker()
  const gateway = await startFuzzed({
    // Many templates run into this limit: those of the default would be most of the time of a run.
    plugins: {
      tokenizers: { roots: [folder], rendering: { maxSteps: 500_000 } },
      responses: {},
      messages: {},
    },
    // One model per lane, because its tokenizer has the name of the model.
    workers: [
      {
        url: worker.url,
        models: Array.from({ length: LANES }, (_, lane) => ({ id: `m${lane}` })),
        runtime_type: 'sglang',
      },
    ],
  })
  const lanes = Array.from({ length: LANES }, () => new HttpLane(gateway.port))
  const run = async (lane: number, template: Buffer): Promise<Outcome> => {
    const call = (start: string, body?: object) =>
      lanes[lane].send(
        `${start} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n`,
        Buffer.from(JSON.stringify(body) ?? ''),
      )
    const file = join(folder, `${lane}.jinja`)
    writeFileSync(file, template)
    const added = await call('POST /v1/tokenizers', {
      name: `m${lane}`,
      source: 'weir:sample',
      chat_template_path: file,
    })
    if (added.status !== 202) return { ending: 'fault', fault: `registration: ${added.status} ${added.body}` }
    const { id } = JSON.parse(added.body) as { id: string }
    let status = 'pending'
    for (const endsAtMs = performance.now() + 30_000; status === 'pending' || status === 'processing'; ) {
      if (performance.now() > endsAtMs) return { ending: 'fault', fault: 'not loaded within 30 s' }
      await new Promise((resolve) => setTimeout(resolve, 10))
      status = (JSON.parse((await call(`GET /v1/tokenizers/${id}/status`)).body) as { status: string }).status
    }
    rmSync(file)
    let ending = status
    if (status === 'completed') {
      const counted = await call('POST /v1/messages/count_tokens', { model: `m${lane}`, messages: MESSAGES })
      ending = counted.ending === 'whole' ? `rendered ${counted.status}` : counted.ending
      if (counted.ending === 'silent' || counted.ending === 'malformed' || isInternal(counted))
        return { ending, fault: `${counted.head}${counted.body}` }
    }
    // A failed tokenizer is not listed.
    const removed = await call(`DELETE /v1/tokenizers/${id}`)
    return {
      ending,
      fault: [200, 404].includes(removed.status) ? undefined : `removal: ${removed.status} ${removed.body}`,
    }
  }
  return {
    gateway,
    make: (draw) => {
      const text = Buffer.from(makeTemplate(draw))
      return { label: 'template', parts: [draw(8) === 0 ? mutate(text, [text], draw) : text] }
    },
    run: ({ parts: [template] }, lane) => run(lane, template),
    close: () => {
      for (const lane of lanes) lane.close()
      worker.close()
    },
  }
}

function makeExpression(draw: Draw, depth: number): string {
  if (depth > 4 || draw(3) === 0) return pickOf(draw(2) === 0 ? PARTS.names : PARTS.calls, draw)
  const one = () => makeExpression(draw, depth + 1)
  switch (draw(6)) {
    case 0:
      return `${one()} | ${pickOf(PARTS.filters, draw)}`
    case 1:
      return `(${one()} ${pickOf(['+', '*', '~', '-', '%', '**', '//', 'in', '==', '<', 'and', 'not in'], draw)} ${one()})`
    case 2:
      return `(${one()})[${one()}]`
    case 3:
      return `(${one()} if ${one()} else ${one()})`
    case 4:
      return `[${one()}, ${one()}]`
    default:
      return `${pickOf(PARTS.names, draw)}.${pickOf(['items()', 'keys()', 'strip()', 'pop()', 'format(x)', 'constructor', 'content', 'startswith("a")', 'split()'], draw)}`
  }
}

/** One of eight cannot be parsed; the others have values for the names, so that most are rendered beyond their start. */
function makeTemplate(draw: Draw): string {
  const defined =
    draw(4) === 0
      ? ''
      : "{% set x = 'ab' %}{% set ns = namespace(a='a') %}{% macro m(a) %}{{ a }}{% endmacro %}"
  const block = makeBlock(draw, 0)
  // A template that refuses the trials is not loaded: most begin to work with the request.
  if (draw(8) > 0)
    return draw(4) === 0
      ? defined + block
      : `{% if messages[0].content == 'hi' %}${defined}${block}{% endif %}`
  const nested = `{{ ${'('.repeat(2_000)}1${')'.repeat(2_000)} }}`
  const broken = pickOf([...PARTS.broken, nested], draw).repeat(pickOf([1, 1, 50], draw))
  return draw(2) === 0 ? defined + broken + block : defined + block + broken
}

function makeBlock(draw: Draw, depth: number): string {
  const body = () => (depth > 5 ? 'x' : makeBlock(draw, depth + 1))
  const value = () => makeExpression(draw, 0)
  const blocks = [
    () => `{{ ${value()} }}`,
    () => `{%- set x = ${value()} -%}${body()}`,
    () =>
      `{% set ns = namespace(a='a') %}{% for i in range(64) %}{% set ns.a = ns.a ~ ns.a %}{% endfor %}${body()}`,
    () =>
      `{% for message in ${draw(2) === 0 ? 'messages' : value()} %}${body()}{% ${pickOf(['endfor', 'endfor', 'else %}x{% endfor', 'break %}{% endfor'], draw)} %}`,
    () => `{% for a in range(99999) %}{% for b in range(99999) %}${body()}{% endfor %}{% endfor %}`,
    () => `{% if ${value()} %}${body()}{% elif ${value()} %}x{% else %}${body()}{% endif %}`,
    () => `{% macro m(a, b=${value()}) %}${body()}{{ m(a) }}{% endmacro %}{{ m(1) }}`,
    () =>
      `{% filter ${pickOf(PARTS.filters, draw)} %}${body()}{% endfilter %}{% generation %}${body()}{% endgeneration %}`,
  ]
  return pickOf(blocks, draw)() + (draw(2) === 0 && depth < 3 ? makeBlock(draw, depth + 1) : '')
}
