/** A small server that speaks Gemini's API, for the test. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Json } from './gemini-request.ts'

export interface FakeGemini {
  readonly url: string
  /** Bodies of requests so far, with path and key. */
  readonly received: { path: string; key: string; authorization: string | undefined; body: Json }[]
  /** Parts of the answers to come, one list per chunk of a stream. */
  answers: Json[][][]
  finishReason: string
  /** Response to the next request: an error. */
  error: { status: number; message: string } | null
  stop(): Promise<void>
}

const USAGE = { promptTokenCount: 11, candidatesTokenCount: 5, thoughtsTokenCount: 3, totalTokenCount: 19 }

export async function startFakeGemini(): Promise<FakeGemini> {
  const fake = { received: [], answers: [], finishReason: 'STOP', error: null } as Pick<
    FakeGemini,
    'received' | 'answers' | 'finishReason' | 'error'
  >
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString('utf8')
    const path = request.url ?? ''
    const json = (status: number, body: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }
    if (!path.includes('enerateContent')) return json(404, { error: { code: 404, message: 'not found' } })
    fake.received.push({
      path,
      key: String(request.headers['x-goog-api-key']),
      authorization: request.headers.authorization,
      body: JSON.parse(text),
    })
    if (fake.error !== null) {
      const { status, message } = fake.error
      fake.error = null
      return json(status, { error: { code: status, message, status: 'INVALID_ARGUMENT' } })
    }
    const lists = fake.answers.shift() ?? [[{ text: 'Hello.' }]]
    const toResponse = (parts: Json[], isLast: boolean) => ({
      candidates: [
        { index: 0, content: { role: 'model', parts }, ...(isLast && { finishReason: fake.finishReason }) },
      ],
      usageMetadata: USAGE,
      modelVersion: 'gemini-test',
      responseId: 'r1',
    })
    if (!path.includes(':stream')) return json(200, toResponse(lists.flat(), true))
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const [index, parts] of lists.entries())
      response.write(`data: ${JSON.stringify(toResponse(parts, index === lists.length - 1))}\r\n\r\n`)
    response.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return Object.assign(fake, {
    url: `http://127.0.0.1:${port}`,
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  })
}
