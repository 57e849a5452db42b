/** A rejected upload whose client sends the rest of the body: the rest is discarded without being buffered. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { startBuiltGateway, stopCommands } from '../support/built-command.ts'

afterEach(stopCommands)

const MIB = 1_048_576
const UPLOAD = 200 * MIB
const CHUNK = Buffer.alloc(65_536, ' ')

const residentBytes = (pid: number) =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]) * 1_024

test.each([
  ['413: larger than the limit', 413, ''],
  ['401: without a key', 401, ''],
  ['401: with a wrong key', 401, 'authorization: Bearer wrong\r\n'],
])('%s', async (_reason, status, header) => {
  const gateway = await startBuiltGateway({
    kernel: { threads: 1 },
    plugins: status === 401 ? { auth: { apiKey: 'key', auditLog: false } } : {},
  })
  const pid = gateway.command.pid as number
  const before = residentBytes(pid)
  const socket = connect(gateway.port, '127.0.0.1').on('error', () => {})
  const closed = new Promise((resolve) => socket.once('close', resolve))
  let response = ''
  socket.on('data', (data) => {
    response += data
  })
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n${header}content-type: application/json\r\ncontent-length: ${UPLOAD}\r\n\r\n`,
  )
  let peak = before
  for (let sent = 0; sent < UPLOAD && !socket.destroyed; sent += CHUNK.length) {
    if (!socket.write(CHUNK)) await Promise.race([once(socket, 'drain'), closed])
    if (sent % MIB === 0) peak = Math.max(peak, residentBytes(pid))
  }
  if (response === '') await once(socket, 'data')
  expect(response).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  expect((peak - before) / MIB).toBeLessThan(24)
  socket.destroy()
})
