/**
 * Real engines: what clients get of them directly and through the gateway. Those are skipped that test/real/engines/setup.sh has
 * not installed.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type BuiltGateway, makeFolder, startBuiltGateway, stopCommands } from '../support/built-command.ts'
import { endChildren, endsWithTest } from '../support/child-processes.ts'
import { freePort } from '../support/free-port.ts'
import { DIFFERENCES } from './engines/differences.ts'
import { ENGINES, environmentOf, isInstalled, llamacpp, type RealEngine } from './engines/engines.ts'
import { factsOf, MATRIX } from './engines/matrix.ts'

const LIMIT_MS = 1_800_000
const MODEL = llamacpp.model

const installed = ENGINES.filter(isInstalled)
if (installed.length < ENGINES.length)
  console.info('not all real engines are tested: test/real/engines/setup.sh has not been run here for all')

afterEach(async () => {
  await stopCommands()
  await endChildren()
})

async function start(engine: RealEngine, port: number, model = engine.model, keys: readonly string[] = []) {
  const [program, ...args] = engine.command(port, model, keys)
  const child = endsWithTest(spawn(program, args, { stdio: 'ignore', env: environmentOf(engine) }))
  const url = `http://127.0.0.1:${port}`
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`${program} ended with code ${code} before it served`)
  })
  const serves = vi.waitFor(async () => expect((await fetch(`${url}/health`)).status).toBe(200), {
    timeout: 300_000,
    interval: 50,
  })
  await Promise.race([serves, ended])
  ended.catch(() => {})
  return { url, child }
}

function startGateway(...workers: readonly Record<string, string>[]): Promise<BuiltGateway> {
  return startBuiltGateway({
    plugins: { messages: {}, responses: {}, storage: { dir: makeFolder() }, workers: { health: {} } },
    workers,
  })
}

describe.each(installed)('$name', (engine) => {
  test(
    'every difference between the engine and the gateway is explained',
    async () => {
      const port = await freePort()
      const gateway = await startGateway()
      const body = JSON.stringify({ url: `http://127.0.0.1:${port}`, ...engine.worker })
      expect((await fetch(`${gateway.url}/workers`, { method: 'POST', body })).status).toBe(202)
      const { url } = await start(engine, port)
      const startedAtMs = performance.now()
      await vi.waitFor(async () => expect((await fetch(`${gateway.url}/readiness`)).status).toBe(200), {
        timeout: 60_000,
        interval: 20,
      })
      const registeredMs = performance.now() - startedAtMs
      console.info(`${engine.name}, registration after its start: ${Math.round(registeredMs)} ms`)
      expect(registeredMs).toBeLessThan(20_000)
      const explained = DIFFERENCES[engine.name]
      const differing: string[] = []
      for (const request of MATRIX) {
        if (engine.without?.test(request.name) === true) continue
        const direct = await factsOf(url, engine.model, request)
        const relayed = await factsOf(gateway.url, engine.model, request)
        if (direct === relayed) continue
        differing.push(request.name)
        const reason = explained[request.name] ?? 'not explained'
        console.info(
          `${engine.name}, ${request.name}: ${reason}\n  direct:  ${direct}\n  gateway: ${relayed}`,
        )
      }
      expect(differing.sort()).toEqual(Object.keys(explained).sort())
    },
    LIMIT_MS,
  )
})

describe.runIf(isInstalled(llamacpp))('llama.cpp', () => {
  test(
    'a restart with another model is noticed',
    async () => {
      const port = await freePort()
      const first = await start(llamacpp, port, 'old')
      const gateway = await startGateway({ url: first.url })
      const request = MATRIX[0]
      expect(await factsOf(gateway.url, 'old', request)).toMatch(/^200/)
      const ended = new Promise((resolve) => first.child.once('close', resolve))
      first.child.kill('SIGKILL')
      await ended
      // Detected under traffic.
      const traffic = setInterval(() => void factsOf(gateway.url, 'old', request).catch(() => {}), 200)
      await start(llamacpp, port, 'new')
      const startedAtMs = performance.now()
      await vi.waitFor(async () => expect(await factsOf(gateway.url, 'new', request)).toMatch(/^200/), {
        timeout: 30_000,
        interval: 100,
      })
      clearInterval(traffic)
      const tookMs = performance.now() - startedAtMs
      console.info(`llamacpp, restart with another model: ${Math.round(tookMs)} ms`)
      expect(tookMs).toBeLessThan(20_000)
    },
    LIMIT_MS,
  )

  test(
    'a wrong key is warned of at the registration, and a right one serves',
    async () => {
      const port = await freePort()
      const engine = await start(llamacpp, port, MODEL, ['right-key'])
      const wrong = await startGateway({ url: engine.url, api_key: 'wrong-key' })
      await wrong.command.line(/worker rejects its api_key/)
      expect(await factsOf(wrong.url, MODEL, MATRIX[0])).toMatch(/^502 /)
      const right = await startGateway({ url: engine.url, api_key: 'right-key' })
      await vi.waitFor(
        async () => expect(await factsOf(right.url, MODEL, MATRIX[0])).toMatch(/^200 /),
        30_000,
      )
    },
    LIMIT_MS,
  )
})
