/** What is added to replies of workers that speak the format: an id, and an envelope where they have none. */
import { GatewayError, headerOf, type IncomingResponse, type RequestContext } from '#kernel'
import { messagesErrorFormat } from '../error-format.ts'

const JSON_TYPE = 'application/json'
const MAX_SAID = 500

export function completeReply(ctx: RequestContext, response: IncomingResponse): void {
  const { headers, status, body } = response
  // What a service remembers its clients by is between it and the gateway.
  removeHeader(headers, 'set-cookie')
  if (headerOf(headers, 'request-id') === undefined) headers.push('request-id', ctx.requestId)
  if (status < 400 || body === null) return
  const type = headerOf(headers, 'content-type')
  if (type?.includes('json') === true) return
  const said = body.toString('utf8', 0, MAX_SAID).trim()
  const error = new GatewayError(
    {
      code: 'worker_refused',
      kind: 'bad_gateway',
      source: 'worker',
      isRetryable: false,
      message: said === '' ? `the worker answered with status ${status}` : said,
    },
    { status },
  )
  setHeader(headers, 'content-type', JSON_TYPE)
  response.body = Buffer.from(JSON.stringify(messagesErrorFormat.body(error, ctx)))
}

function setHeader(headers: string[], name: string, value: string): void {
  removeHeader(headers, name)
  headers.push(name, value)
}

function removeHeader(headers: string[], name: string): void {
  for (let at = headers.length - 2; at >= 0; at -= 2) if (headers[at] === name) headers.splice(at, 2)
}
