/** Memory of a gateway in front of a vendor: a conversation of 64 MiB, and a client that reads slowly. */
import { createHash } from 'node:crypto'
import { bulkSha256 } from '../support/bulk-stream.ts'
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { configurations } from '../support/gateway-config.ts'
import { runLoad } from '../support/load.ts'
import { wait } from '../support/process.ts'
import { BYTES_PER_MS, readSlowly, sampleGrowth } from '../support/slow-read.ts'
import { BENCH_KEY, type Subject, startWorker } from '../support/subject.ts'

const BODY_BYTES = 64 * 1_048_576
const IMAGE_BYTES = 3_000_000
const SAMPLE_MS = 10

/** The history of an agent with tool results and images, just below the body limit. */
function largeBody(): Buffer {
  const image = Buffer.alloc(IMAGE_BYTES, 'image').toString('base64')
  const turns: object[] = []
  let bytes = 4_096
  for (let index = 0; bytes + image.length + 40_000 < BODY_BYTES; index++) {
    const id = `toolu_${index}`
    const content = [
      { type: 'text', text: `line ${index}\n`.repeat(2_000) },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: image } },
    ]
    const turn = [
      { role: 'assistant', content: [{ type: 'tool_use', id, name: 'look', input: { index } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content }] },
    ]
    bytes += JSON.stringify(turn).length
    turns.push(...turn)
  }
  const messages = [{ role: 'user', content: 'x'.repeat(BODY_BYTES - bytes) }, ...turns]
  return Buffer.from(JSON.stringify({ model: 'bench', max_tokens: 64, messages }))
}

/** @returns the memory growth in bytes, and the hash of the body that the worker received */
async function sendLarge(gateway: Subject, body: Buffer): Promise<{ growth: number; sha256: string }> {
  const growth = sampleGrowth(gateway.pid, SAMPLE_MS)
  const response = await fetch(`http://127.0.0.1:${gateway.port}/v1/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${BENCH_KEY}`, 'content-type': 'application/json' },
    body,
  })
  const text = await response.text()
  const { sha256 } = JSON.parse(text) as { sha256?: string }
  if (sha256 === undefined) throw new Error(`not relayed: ${text.slice(0, 300)}`)
  return { growth: growth(), sha256 }
}

async function run({ rounds, progress }: RunOptions): Promise<Figure[]> {
  const worker = await startWorker()
  const body = largeBody()
  const sha256 = createHash('sha256').update(body).digest('hex')
  const bodies: number[] = []
  const slow: number[] = []
  const differences: number[] = []
  try {
    for (let round = 0; round < rounds; round++) {
      progress(`round ${round + 1}/${rounds}`)
      const gateway = await startGateway({ workerPorts: [], ...configurations.vendorAt(worker.port) })
      try {
        await wait(1_000)
        await runLoad('sse-load.ts', gateway, { streams: 8, seconds: 1, exact: 1, messages: 1 })
        await wait(500)
        const read = await readSlowly(gateway, bulkSha256(), { messages: 1 })
        slow.push(read.growth / 1_000_000)
        const sent = await sendLarge(gateway, body)
        bodies.push(sent.growth / body.length)
        differences.push((read.isIdentical ? 0 : 1) + (sent.sha256 === sha256 ? 0 : 1))
      } finally {
        await gateway.stop()
      }
    }
  } finally {
    await worker.child.stop()
  }
  return [
    {
      name: 'memory growth / size of a request',
      unit: '×',
      values: bodies,
      target: 1.1,
      note: `${(body.length / 1_048_576).toFixed(1)} MiB of tool results and images, relayed; highest sample minus the value before`,
    },
    {
      name: 'memory growth, slow reader',
      unit: 'MB',
      values: slow,
      target: 10,
      note: `64 MiB read at ${(BYTES_PER_MS / 1_000).toFixed(0)} MB/s`,
    },
    { name: 'bodies and streams that differ by hash', unit: '', values: differences, target: 0 },
  ]
}

export const messagesLarge: Scenario = {
  name: 'messages-large',
  question:
    'does a gateway hold a conversation of 64 MiB once, and no more of a stream than its client reads?',
  run,
}
