/** Tokenizers fetched from workers: fetched, checked and loaded automatically. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type ZipEntry, zipArchive } from '../support/zip-archive.ts'
import { openGrpcFleet, until } from './grpc-fleet.ts'

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

const open = (tokenizer: readonly object[], runtime: 'sglang' | 'vllm' | 'mlx' | 'trtllm' | 'tokenspeed') =>
  openGrpcFleet({
    engines: [{ runtime, model: 'theirs', modelInfo: { tokenizerPath: '/not/here' }, tokenizer }],
  })

test.each(['sglang', 'vllm', 'mlx', 'trtllm', 'tokenspeed'] as const)(
  'the tokenizer that a %s engine serves is loaded, with its template and end tokens',
  async (runtime) => {
    const { engine, post, ids } = await open(chunks(zipArchive(FILES)), runtime)
    await until(
      async () => (await post('/v1/tokenize', { model: 'theirs', prompt: 'x' })).status === 200,
      60_000,
    )
    engine.answer([[5]])
    const messages = [{ role: 'user', content: 'hello there' }]
    expect((await post('/v1/chat/completions', { model: 'theirs', messages })).status).toBe(200)
    const { request } = await engine.received()
    const { tokenized } = request as unknown as { tokenized: Record<string, number[]> }
    expect(tokenized.inputIds ?? tokenized.inputTokenIds).toEqual(await ids('<hello there>'))
    // The end tokens of generation_config.json replace the one of the tokenizer's own settings.
    const [before, behind] = [await ids('one'), await ids(' two')]
    for (const end of [3, 7]) {
      engine.answer([...before, end, ...behind].map((id) => [id]))
      const reply = await post('/v1/chat/completions', { model: 'theirs', messages })
      expect(await reply.json()).toMatchObject({ choices: [{ message: { content: 'one' } }] })
    }
  },
  120_000,
)

test.each<[string, readonly object[]]>([
  ['a wrong digest', chunks(zipArchive(FILES), '0'.repeat(64))],
  ['no digest', chunks(zipArchive(FILES), '')],
  ['a file outside the bundle', chunks(zipArchive([...FILES, { name: '../evil.json', content: 'x' }]))],
  [
    'too many files',
    chunks(zipArchive(Array.from({ length: 51 }, (_, i) => ({ name: `${i}.jinja`, content: '' })))),
  ],
  ['no vocabulary', chunks(zipArchive(FILES.slice(1)))],
])(
  'a bundle with %s is not loaded, and the gateway keeps serving',
  async (_what, tokenizer) => {
    const { get, ids } = await open(tokenizer, 'sglang')
    const status = async () =>
      (await (await get('/v1/tokenizers/theirs/status')).json()) as { status: string; message: string }
    await until(async () => (await status()).status === 'failed', 60_000)
    expect((await status()).message).toContain('worker')
    expect((await ids('still here')).length).toBeGreaterThan(0)
  },
  180_000,
)
