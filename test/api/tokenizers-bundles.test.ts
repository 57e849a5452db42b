/** Tokenizers fetched from workers: fetched, checked and loaded automatically. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ENGINE_NAMES } from '../support/scripted-engine.ts'
import { type ZipEntry, zipArchive } from '../support/zip-archive.ts'
import { shareGrpcFleets, until } from './grpc-fleet.ts'

const sample = (name: string) =>
  readFileSync(new URL(`../../plugins/models/tokenizers/sample/${name}`, import.meta.url))
const FILES: readonly ZipEntry[] = [
  { name: 'tokenizer.json', content: sample('tokenizer.json') },
  { name: 'tokenizer_config.json', content: sample('tokenizer_config.json') },
  { name: 'chat_template.jinja', content: '{% for m in messages %}<{{ m.content }}>{% endfor %}' },
  { name: 'generation_config.json', content: '{"eos_token_id": [3, 7]}' },
]

function chunks(archive: Buffer, sha256 = createHash('sha256').update(archive).digest('hex')) {
  const parts = []
  for (let at = 0; at < archive.length; at += 65_536) parts.push({ data: archive.subarray(at, at + 65_536) })
  return [...parts.slice(0, -1), { ...parts.at(-1), sha256 }]
}

const openShared = shareGrpcFleets()
const modelInfo = { tokenizerPath: '/not/here' }
const SERVING = ENGINE_NAMES.map((runtime) => ({
  runtime,
  model: `of ${runtime}`,
  modelInfo,
  tokenizer: chunks(zipArchive(FILES)),
}))

test.each(ENGINE_NAMES)(
  'the tokenizer that a %s engine serves is loaded, with its template and end tokens',
  async (runtime) => {
    const model = `of ${runtime}`
    const { engines, post, ids } = await openShared({ engines: SERVING })
    const engine = engines[ENGINE_NAMES.indexOf(runtime)]
    await until(async () => (await post('/v1/tokenize', { model, prompt: 'x' })).status === 200, 60_000)
    engine.answer([[5]])
    const messages = [{ role: 'user', content: 'hello there' }]
    expect((await post('/v1/chat/completions', { model, messages })).status).toBe(200)
    const { request } = await engine.received()
    const { tokenized } = request as unknown as { tokenized: Record<string, number[]> }
    expect(tokenized.inputIds ?? tokenized.inputTokenIds).toEqual(await ids('<hello there>'))
    // The end tokens of generation_config.json replace the one of the tokenizer's own settings.
    const [before, behind] = [await ids('one'), await ids(' two')]
    for (const end of [3, 7]) {
      engine.answer([...before, end, ...behind].map((id) => [id]))
      const reply = await post('/v1/chat/completions', { model, messages })
      expect(await reply.json()).toMatchObject({ choices: [{ message: { content: 'one' } }] })
    }
  },
  120_000,
)

const BROKEN: readonly (readonly [what: string, tokenizer: readonly object[]])[] = [
  ['a wrong digest', chunks(zipArchive(FILES), '0'.repeat(64))],
  ['no digest', chunks(zipArchive(FILES), '')],
  ['a file outside the bundle', chunks(zipArchive([...FILES, { name: '../evil.json', content: 'x' }]))],
  [
    'too many files',
    chunks(zipArchive(Array.from({ length: 51 }, (_, i) => ({ name: `${i}.jinja`, content: '' })))),
  ],
  ['no vocabulary', chunks(zipArchive(FILES.slice(1)))],
]

// In one gateway, which tries them at once: it pauses between attempts.
test.each(BROKEN)(
  'a bundle with %s is not loaded, and the gateway keeps serving',
  async (what) => {
    const { get, ids } = await openShared({
      engines: BROKEN.map(([model, tokenizer]) => ({ model, modelInfo, tokenizer })),
    })
    const path = `/v1/tokenizers/${encodeURIComponent(what)}/status`
    const status = async () => (await (await get(path)).json()) as { status: string; message: string }
    await until(async () => (await status()).status === 'failed', 60_000)
    expect((await status()).message).toContain('worker')
    expect((await ids('still here')).length).toBeGreaterThan(0)
  },
  180_000,
)
