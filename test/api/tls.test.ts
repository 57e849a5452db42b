/** TLS on the listener, certificate renewal under load, client certificates, and workers behind a private authority. */
import { X509Certificate } from 'node:crypto'
import { copyFileSync, readFileSync } from 'node:fs'
import { type Agent, createServer, request as openRequest } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Certificate, TestAuthority } from '../support/certificates.ts'
import { freePort } from '../support/free-port.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { type ScriptedWorker, sseAnswer, startScriptedWorker } from '../support/scripted-worker.ts'

const CHAT = 'POST /v1/chat/completions'
let authority: TestAuthority
const open: (() => unknown)[] = []

beforeAll(() => {
  authority = new TestAuthority()
})
afterAll(() => authority.remove())
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close()
})

interface ResponseJson {
  readonly status: number
  readonly text: string
  /** Common name of the gateway's certificate. */
  readonly shown: string
}

function send(
  gateway: TestGateway,
  path: string,
  { body, client, agent }: { body?: object; client?: Certificate; agent?: Agent } = {},
): Promise<ResponseJson> {
  return new Promise((resolve, reject) => {
    const options = { ca: authority.ca, agent: agent ?? false, cert: client?.cert, key: client?.key }
    const request = openRequest(
      `${gateway.url}${path}`,
      { ...options, method: body === undefined ? 'GET' : 'POST' },
      (reply) => {
        const shown = (reply.socket as TLSSocket).getPeerCertificate().subject.CN as string
        let text = ''
        reply.setEncoding('utf8').on('data', (part) => {
          text += part
        })
        reply.on('end', () => resolve({ status: reply.statusCode ?? 0, text, shown }))
        reply.on('error', reject)
      },
    )
    request.on('error', reject)
    request.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

async function start(kernel: Record<string, unknown>, more: Record<string, unknown> = {}, url?: string) {
  const workers = url === undefined ? [] : [{ url, models: [{ id: 'm' }], runtime_type: 'sglang' }]
  const gateway = await startGateway({
    kernel,
    plugins: {
      auth: {},
      health: {},
      chat: {},
      reload: {},
      workers: { workers, health: { disable_health_check: true } },
      ...more,
    },
  })
  open.push(() => gateway.stop())
  return gateway
}

async function startWorker(): Promise<ScriptedWorker> {
  const worker = await startScriptedWorker({ models: ['m'] })
  open.push(() => worker.close())
  return worker
}

test('a reload renews certificates: open streams continue, new connections use the new one, no established connection fails', async () => {
  const [certFile, keyFile] = [join(authority.folder, 'live.pem'), join(authority.folder, 'live.key')]
  const use = (one: Certificate) => {
    copyFileSync(one.certFile, certFile)
    copyFileSync(one.keyFile, keyFile)
  }
  use(authority.issue('first'))
  const worker = await startWorker()
  const held = Promise.withResolvers<void>()
  worker.script(CHAT, sseAnswer(['{"n":1}', { until: held.promise }, '{"n":2}', '[DONE]']))
  const gateway = await start({ tls: { certFile, keyFile } }, {}, worker.url)
  expect(gateway.url).toMatch(/^https:/)
  await expect.poll(async () => (await send(gateway, '/readiness')).status).toBe(200)
  const stream = send(gateway, '/v1/chat/completions', { body: { model: 'm', stream: true, messages: [] } })
  await worker.received(CHAT, 1)

  let isOver = false
  const seen = new Map<string, number>()
  const load = Array.from({ length: 4 }, async () => {
    while (!isOver) {
      const key = await send(gateway, '/liveness').then(
        ({ status, shown }) => `${status} ${shown}`,
        (error: NodeJS.ErrnoException) => `${error.syscall} ${error.code}`,
      )
      seen.set(key, (seen.get(key) ?? 0) + 1)
    }
  })
  await expect.poll(() => seen.get('200 first') ?? 0).toBeGreaterThan(5)
  use(authority.issue('second'))
  expect(await send(gateway, '/config/apply', { body: {} })).toMatchObject({ status: 200 })
  await expect.poll(() => seen.get('200 second') ?? 0).toBeGreaterThan(5)
  isOver = true
  await Promise.all(load)
  // Connections accepted in the turn in which the old listener closed, before any request was sent.
  expect(seen.get('connect ECONNRESET') ?? 0).toBeLessThanOrEqual(load.length)
  seen.delete('connect ECONNRESET')
  expect([...seen.keys()].sort()).toEqual(['200 first', '200 second'])
  expect((await send(gateway, '/liveness')).shown).toBe('second')
  held.resolve()
  const { text, shown } = await stream
  expect(shown).toBe('first')
  expect(text).toContain('[DONE]')
})

test('with a client authority, only clients with its certificate are accepted; probes have a plain port', async () => {
  const server = authority.issue('server')
  const other = new TestAuthority('Other')
  open.push(() => other.remove())
  const tls = { certFile: server.certFile, keyFile: server.keyFile, clientCaFile: authority.caFile }
  const probe = { host: '127.0.0.1', port: await freePort() }
  const gateway = await start({ tls }, { health: { probe } })
  expect((await send(gateway, '/liveness', { client: authority.issue('client') })).status).toBe(200)
  expect(await send(gateway, '/liveness')).toMatchObject({ status: 403 })
  expect((await send(gateway, '/nowhere')).text).toContain('client_certificate_required')
  await expect(send(gateway, '/liveness', { client: other.issue('unknown') })).rejects.toThrow()
  const probed = await fetch(`http://127.0.0.1:${probe.port}/liveness`)
  expect(probed.status).toBe(200)
  expect((await fetch(`http://127.0.0.1:${probe.port}/readiness`)).status).toBe(503)
  expect((await fetch(`http://127.0.0.1:${probe.port}/workers`)).status).toBe(404)

  const page = await (await fetch(gateway.metricsUrl as string)).text()
  const expiries = page.matchAll(/^weir_tls_certificate_expiry_timestamp_seconds\{setting="(.+)"\} (\d+)$/gm)
  const expected = [server.certFile, authority.caFile].map(
    (file) => new X509Certificate(readFileSync(file)).validToDate.getTime() / 1000,
  )
  expect([...expiries].map(([, setting, secs]) => [setting, Number(secs)])).toEqual([
    ['kernel.tls.certFile', expected[0]],
    ['kernel.tls.clientCaFile', expected[1]],
  ])
})

test('unusable files prevent the start, with the setting', async () => {
  const [one, another] = [authority.issue('one'), authority.issue('another')]
  await expect(start({ tls: { certFile: '/nowhere.pem', keyFile: one.keyFile } })).rejects.toThrow(
    /kernel\.tls\.certFile cannot be read/,
  )
  await expect(start({ tls: { certFile: one.certFile, keyFile: another.keyFile } })).rejects.toThrow(
    /kernel\.tls has a certificate and a key that cannot be used/,
  )
  const { certFile, keyFile } = one
  await expect(start({ tls: { certFile, keyFile, clientCaFile: keyFile } })).rejects.toThrow(
    /kernel\.tls\.clientCaFile must begin with a PEM certificate/,
  )
  await expect(start({ caFile: one.keyFile })).rejects.toThrow(/kernel\.caFile must contain PEM certificates/)
})

test('a worker behind a private authority is reachable once the authority is trusted', async () => {
  const secret = new TestAuthority('Private')
  open.push(() => secret.remove())
  const { cert, key } = secret.issue('worker')
  const server = createServer({ cert, key }, (request, reply) => {
    request.resume()
    reply.end(JSON.stringify({ object: 'chat.completion', choices: [] }))
  }).listen(0, '127.0.0.1')
  open.push(() => server.close())
  server.unref()
  await new Promise((resolve) => server.once('listening', resolve))
  const url = `https://localhost:${(server.address() as AddressInfo).port}`
  const chat = async (gateway: TestGateway) =>
    (
      await fetch(`${gateway.url}/v1/chat/completions`, {
        method: 'POST',
        body: JSON.stringify({ model: 'm', messages: [] }),
      })
    ).status
  const kernel = { retry: { maxAttempts: 1 } }
  expect(await chat(await start(kernel, {}, url))).not.toBe(200)
  const trusting = await start({ ...kernel, caFile: secret.caFile }, {}, url)
  await expect.poll(() => chat(trusting)).toBe(200)
})
