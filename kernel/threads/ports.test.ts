import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { freePort } from '../../test/support/free-port.ts'
import { assertPortFree, holdFreePort, tryPort } from './ports.ts'

const HOST = '127.0.0.1'

test('a free port passes and is free afterwards', async () => {
  const port = await freePort()
  await assertPortFree(HOST, port, '--port')
  await assertPortFree(HOST, port, '--port')
})

test('a held port is left to listeners that share it, and free after the release', async () => {
  const held = await holdFreePort(HOST)
  expect(await tryPort(HOST, held.port)).toMatchObject({ code: 'EADDRINUSE' })
  const thread = createServer().listen({ host: HOST, port: held.port, exclusive: true, reusePort: true })
  await once(thread, 'listening')
  await held.release()
  expect(await tryPort(HOST, held.port)).toMatchObject({ code: 'EADDRINUSE' })
  thread.close()
  await once(thread, 'close')
  expect(await tryPort(HOST, held.port)).toBeNull()
})

test('a port in use is reported with the setting that changes it', async () => {
  const server = createServer().listen(0, HOST)
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  await expect(assertPortFree(HOST, port, '--port')).rejects.toMatchObject({
    name: 'BootError',
    message: `port ${port} of ${HOST} is taken by another program; choose another one with --port, or 0 for any free one`,
  })
  server.close()
  await once(server, 'close')
})

test('an address of another machine is reported as such', async () => {
  await expect(assertPortFree('192.0.2.1', 4000, '--port')).rejects.toThrow(
    '192.0.2.1 is not an address of this machine',
  )
})

test('port 0 is any port, which is always free', async () => {
  await assertPortFree('192.0.2.1', 0, '--port')
})
