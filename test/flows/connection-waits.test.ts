/** How long a connection may be silent in front of a request. The server library's own waits are 8 to 12 s. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { startBuiltGateway, stopCommands } from '../support/built-command.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) close()
  await stopCommands()
})

const STOCK_MOST_MS = 12_000
/** Without settings. */
const HEAD_DEFAULT_MS = 60_000
const IDLE_DEFAULT_MS = 75_000
const HEAD = 'GET /liveness HTTP/1.1\r\nHost: a\r\n'
const ENDED = 'closed without a word'

async function open(kernel: Record<string, unknown>): Promise<() => Promise<Socket>> {
  const gateway = await startBuiltGateway({ kernel, workers: [] })
  return async () => {
    const socket = connect(gateway.port, '127.0.0.1')
    closers.push(() => socket.destroy())
    await once(socket, 'connect')
    return socket
  }
}

describe.runIf(process.platform === 'linux' && process.arch === 'x64')('on Linux on x64', () => {
  test('a silent connection and half a head are waited for', async () => {
    const connection = await open({ threads: 2 })
    const [kept, half, silent] = await Promise.all([connection(), connection(), connection()])
    kept.write(`${HEAD}\r\n`)
    expect(await answerOf(kept)).toBe('200')
    half.write(HEAD)
    const answers = [kept, half, silent].map(answerOf)
    await pause(STOCK_MOST_MS + 1_000)
    for (const socket of [kept, silent]) socket.write(HEAD)
    for (const socket of [kept, half, silent]) socket.write('\r\n')
    expect(await Promise.all(answers)).toEqual(['200', '200', '200'])
  })

  test('and closed after headMs and idleMs, however the head drips', async () => {
    const connection = await open({ threads: 0, http: { headMs: 8_000, idleMs: 16_000 } })
    const [kept, dripping, silent] = await Promise.all([connection(), connection(), connection()])
    const startedAtMs = performance.now()
    const timesMs = [dripping, silent].map(async (socket) => {
      expect(await answerOf(socket)).toBe(ENDED)
      return performance.now() - startedAtMs
    })
    dripping.write(HEAD)
    const drip = setInterval(() => dripping.write('X: y\r\n'), 1_000)
    closers.push(() => clearInterval(drip))
    dripping.on('error', () => {})
    kept.write(`${HEAD}\r\n`)
    expect(await answerOf(kept)).toBe('200')
    const idle = answerOf(kept)
    for (const tookMs of await Promise.all(timesMs)) {
      expect(tookMs).toBeGreaterThan(7_500)
      expect(tookMs).toBeLessThan(HEAD_DEFAULT_MS)
    }
    expect(await Promise.race([idle, 'open'])).toBe('open')
    kept.write(HEAD)
    expect(await idle).toBe(ENDED)
    expect(performance.now() - startedAtMs).toBeGreaterThan(15_500)
    expect(performance.now() - startedAtMs).toBeLessThan(IDLE_DEFAULT_MS)
  })
})

/** The status. */
async function answerOf(socket: Socket): Promise<string> {
  const ended = once(socket, 'close').then(() => ENDED)
  const answered = once(socket, 'data').then(([bytes]) => String(bytes).slice(9, 12))
  answered.catch(() => {})
  return Promise.race([answered, ended])
}
