/** Tool servers of the Python and Go SDKs, with each first request that they know. Skipped where `test/real/mcp-servers/setup.sh` has not been run. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { ANYWHERE } from '#shared'
import { ServerConnection } from '../../plugins/tools/mcp/connection/server-connection.ts'
import type { ServerTarget } from '../../plugins/tools/mcp/connection/server-target.ts'
import { freePort } from '../support/free-port.ts'
import { testConfig, testLog } from '../support/mcp/run-turn.ts'
import { outgoingHttp } from '../support/outgoing-http.ts'

const HERE = join(import.meta.dirname, 'mcp-servers')
const PYTHON = [join(HERE, '.servers/python/bin/python'), join(HERE, 'server.py')] as const
const GO = [join(HERE, '.servers/go-server')] as const
const isInstalled = existsSync(GO[0])
if (!isInstalled)
  console.info('the servers are missing: test/real/mcp-servers/setup.sh has not been run here')

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

type Handshake = ServerTarget['handshake']

/** Starts a server over HTTP. @returns once it accepts connections */
async function serve(
  [command, ...args]: readonly string[],
  handshake: Handshake,
  ...more: string[]
): Promise<ServerTarget> {
  const port = await freePort()
  const child: ChildProcess = spawn(command, [...args, String(port), ...more], { stdio: 'ignore' })
  ends.push(() => child.kill('SIGKILL'))
  const isUp = () =>
    new Promise<void>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => resolve()).on('error', reject)
      socket.on('connect', () => socket.destroy())
    })
  await vi.waitFor(isUp, { timeout: 60_000, interval: 50 })
  const url = new URL(`http://127.0.0.1:${port}/mcp`)
  return { kind: 'http', url, protocol: 'auto', handshake, headers: new Map(), rules: ANYWHERE }
}

async function start([command, ...args]: readonly string[], handshake: Handshake): Promise<ServerTarget> {
  return { kind: 'stdio', command, args: [...args, 'stdio'], env: {}, handshake }
}

test.skipIf(!isInstalled).each([
  ['Python over HTTP', '2026-07-28', () => serve(PYTHON, 'auto')],
  ['Python over HTTP, older handshake', '2025-11-25', () => serve(PYTHON, 'initialize')],
  ['Python as a program', '2026-07-28', () => start(PYTHON, 'auto')],
  ['Python as a program, older handshake', '2025-11-25', () => start(PYTHON, 'initialize')],
  ['Go over HTTP, stateless', '2026-07-28', () => serve(GO, 'auto', 'stateless')],
  ['Go over HTTP, with sessions', '2025-11-25', () => serve(GO, 'auto', 'sessions')],
  ['Go as a program', '2026-07-28', () => start(GO, 'auto')],
  ['Go as a program, older handshake', '2025-11-25', () => start(GO, 'initialize')],
] as const)(
  '%s speaks %s',
  async (_, version, open) => {
    const { limits } = testConfig()
    const connection = await ServerConnection.open(await open(), limits, testLog(), outgoingHttp)
    ends.push(() => connection.close())
    expect(connection.protocolVersion).toBe(version)
    expect((await connection.tools()).map(({ name }) => name)).toEqual(['look'])
    const limit = () => ({ signal: new AbortController().signal, timeoutMs: 20_000 })
    expect((await connection.call('look', { city: 'Bern' }, limit())).text).toBe('rain in Bern')
    const unknown = await connection.call('absent', {}, limit()).catch(({ message }) => ({ text: message }))
    expect(unknown.text).toMatch(/unknown tool/i)
  },
  90_000,
)
