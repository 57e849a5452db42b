/** A local registry of the OCI distribution specification, as far as single images are pushed and pulled, with token authorization. */
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

const USER = `Basic ${Buffer.from('ann:secret-word').toString('base64')}`
const TOKEN = 'a-token'

export interface LocalRegistry {
  readonly host: string
  readonly origin: string
  /** Method and path of each request. */
  readonly requests: string[]
  /** By digest or `repository:tag`. */
  readonly content: Map<string, Buffer>
  /** Requests get no response anymore. */
  close(): void
}

/** @param options.isOpen without authorization */
export async function openRegistry({ isOpen = false } = {}): Promise<LocalRegistry> {
  const content = new Map<string, Buffer>()
  const requests: string[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      requests.push(`${request.method} ${request.url}`)
      answer(request, Buffer.concat(chunks), response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const origin = `http://${host}`
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  onTestFinished(close)

  function answer({ method, url = '', headers }: IncomingMessage, body: Buffer, response: ServerResponse) {
    const { pathname, searchParams } = new URL(url, origin)
    const end = (status: number, bytes: Buffer | string = '', more: Record<string, string> = {}) =>
      response.writeHead(status, more).end(bytes)
    if (pathname === '/token') {
      const isKnown =
        headers.authorization === USER && searchParams.get('scope') === 'repository:team/module:pull'
      return isKnown ? end(200, JSON.stringify({ token: TOKEN })) : end(401)
    }
    if (!isOpen && headers.authorization !== `Bearer ${TOKEN}`) {
      const challenge = `Bearer realm="${origin}/token",service="local",scope="repository:team/module:pull"`
      return end(401, '', { 'www-authenticate': challenge })
    }
    if (method === 'POST') return end(202, '', { location: '/upload/1?state=a' })
    const digest = `sha256:${createHash('sha256').update(body).digest('hex')}`
    if (method === 'PUT' && pathname === '/upload/1') {
      if (searchParams.get('digest') !== digest || searchParams.get('state') !== 'a') return end(400)
      content.set(digest, body)
      return end(201)
    }
    const [, repository, kind, name] = pathname.match(/^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/) ?? []
    const key = kind === 'manifests' && !name.startsWith('sha256:') ? `${repository}:${name}` : name
    if (method === 'PUT' && kind === 'manifests') {
      content.set(key, body)
      content.set(digest, body)
      return end(201)
    }
    const found = content.get(key)
    return found === undefined ? end(404) : end(200, method === 'HEAD' ? '' : found)
  }
  return { host, origin, requests, content, close }
}
