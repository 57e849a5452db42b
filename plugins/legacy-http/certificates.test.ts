import { appendFileSync, copyFileSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import type { Logger } from '#kernel'
import { TestAuthority } from '../../test/support/certificates.ts'
import { Certificates } from './certificates.ts'

const folder = mkdtempSync(join(tmpdir(), 'weir-second-port-'))
const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
let authority: TestAuthority
let server: Server | null = null

beforeAll(() => {
  authority = new TestAuthority()
})
afterAll(() => {
  authority.remove()
  rmSync(folder, { recursive: true })
})
afterEach(() => {
  server?.close()
  vi.useRealTimers()
})

function shown(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({
      socket: connect(port, '127.0.0.1'),
      ca: authority.ca,
      servername: 'localhost',
    })
    socket.on('secureConnect', () => {
      resolve(String(socket.getPeerCertificate().subject.CN))
      socket.destroy()
    })
    socket.on('error', reject)
  })
}

test('renewed files hold within ten seconds; what does not fit leaves the former certificate', async () => {
  const [one, two] = [authority.issue('one'), authority.issue('two')]
  const install = (cert: { certFile: string }, key: { keyFile: string }) => {
    copyFileSync(cert.certFile, certFile)
    copyFileSync(key.keyFile, keyFile)
  }
  install(one, one)
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const said: string[] = []
  const note = (...args: unknown[]) => void said.push(String(args.at(-1)))
  let tls = { certFile, keyFile }
  const certificates = new Certificates(() => tls, { info: note, warn: note } as unknown as Logger)
  server = createServer(certificates.options)
  certificates.renew(server)
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  expect(await shown(port)).toBe('one')

  vi.advanceTimersByTime(10_000)
  expect(said).toEqual([])

  install(two, one)
  vi.advanceTimersByTime(20_000)
  expect(said).toEqual(['the files of kernel.tls cannot be used; the former certificate is shown'])
  expect(await shown(port)).toBe('one')

  install(two, two)
  vi.advanceTimersByTime(10_000)
  expect(said.at(-1)).toBe('the certificate was renewed')
  expect(await shown(port)).toBe('two')

  // A reload has named others.
  tls = authority.issue('three')
  vi.advanceTimersByTime(10_000)
  expect(await shown(port)).toBe('three')

  certificates.close()
  appendFileSync(certFile, 'no longer looked at')
  vi.advanceTimersByTime(60_000)
  expect(said).toHaveLength(3)
})

test('files that are away are told of once for each time they go', async () => {
  const one = authority.issue('one')
  copyFileSync(one.certFile, certFile)
  copyFileSync(one.keyFile, keyFile)
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const said: string[] = []
  const note = (...args: unknown[]) => void said.push(String(args.at(-1)))
  const log = { info: note, warn: note } as unknown as Logger
  const certificates = new Certificates(() => ({ certFile, keyFile }), log)
  const renewed = vi.fn()
  certificates.renew({ setSecureContext: renewed })
  const away = `${certFile}.away`
  for (const times of [1, 2]) {
    renameSync(certFile, away)
    vi.advanceTimersByTime(60_000)
    expect(said).toHaveLength(times)
    renameSync(away, certFile)
    vi.advanceTimersByTime(20_000)
    expect(said).toHaveLength(times)
  }
  expect(renewed).not.toHaveBeenCalled()
  certificates.close()
})
