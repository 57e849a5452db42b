/**
 * The real server of llama.cpp: what clients get of it directly and through the gateway. Skipped where test/real/engines/setup.sh has not been run.
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type BuiltGateway, makeFolder, startBuiltGateway, stopCommands } from '../support/built-command.ts'
import { endChildren, endsWithTest } from '../support/child-processes.ts'
import { freePort } from '../support/free-port.ts'
import { DIFFERENCES } from './engines/differences.ts'
import { factsOf, MATRIX } from './engines/matrix.ts'

const FOLDER = fileURLToPath(new URL('engines/', import.meta.url))
const INSTALLED = `${FOLDER}.engines`
const LIMIT_MS = 900_000

const MODEL = 'smollm2'

function commandOf(port: number, model: string, keys: readonly string[] = []): readonly string[] {
  const script = `${FOLDER}serve_llamacpp.py`
  return [`${INSTALLED}/llamacpp/bin/python`, script, `${INSTALLED}/model.gguf`, String(port), model, ...keys]
}

const isInstalled = existsSync(`${INSTALLED}/model.gguf`)
if (!isInstalled)
  console.info('real engines are not tested: test/real/engines/setup.sh has not been run here')

afterEach(async () => {
  await stopCommands()
  await endChildren()
})

async function start(command: readonly string[], port: number, path = '/health') {
  const env = { ...process.env, HF_HUB_OFFLINE: '1', MLX_DISABLE_COMPILE: '1' }
  const child = endsWithTest(spawn(command[0], command.slice(1), { stdio: 'ignore', env }))
  const url = `http://127.0.0.1:${port}`
  await vi.waitFor(async () => expect((await fetch(url + path)).status).toBe(200), 120_000)
  return { url, child }
}

function startGateway(url: string, worker: object = {}): Promise<BuiltGateway> {
  return startBuiltGateway({
    plugins: { messages: {}, responses: {}, storage: { dir: makeFolder() }, workers: { health: {} } },
    workers: [{ url, ...worker }],
  })
}

describe.runIf(isInstalled)('llama.cpp', () => {
  test(
    'every difference between the engine and the gateway is explained',
    async () => {
      const port = await freePort()
      const engine = await start(commandOf(port, MODEL), port)
      const gateway = await startGateway(engine.url)
      const differing: string[] = []
      for (const request of MATRIX) {
        const direct = await factsOf(engine.url, MODEL, request)
        const relayed = await factsOf(gateway.url, MODEL, request)
        if (direct === relayed) continue
        differing.push(request.name)
        const reason = DIFFERENCES[request.name] ?? 'not explained'
        console.info(`${request.name}: ${reason}\n  direct:  ${direct}\n  gateway: ${relayed}`)
      }
      expect(differing.sort()).toEqual(Object.keys(DIFFERENCES).sort())
    },
    LIMIT_MS,
  )

  test(
    'a restart with another model is noticed',
    async () => {
      const port = await freePort()
      const first = await start(commandOf(port, 'old'), port)
      const gateway = await startGateway(first.url)
      const request = MATRIX[0]
      expect(await factsOf(gateway.url, 'old', request)).toMatch(/^200/)
      const ended = new Promise((resolve) => first.child.once('close', resolve))
      first.child.kill('SIGKILL')
      await ended
      // Detected under traffic.
      const traffic = setInterval(() => void factsOf(gateway.url, 'old', request).catch(() => {}), 200)
      await start(commandOf(port, 'new'), port)
      const startedAtMs = performance.now()
      await vi.waitFor(async () => expect(await factsOf(gateway.url, 'new', request)).toMatch(/^200/), {
        timeout: 30_000,
        interval: 100,
      })
      clearInterval(traffic)
      const tookMs = performance.now() - startedAtMs
      console.info(`llamacpp, restart with another model: ${Math.round(tookMs)} ms`)
      expect(tookMs).toBeLessThan(10_000)
    },
    LIMIT_MS,
  )

  test(
    'a wrong key is warned of at the registration, and a right one serves',
    async () => {
      const port = await freePort()
      const engine = await start(commandOf(port, MODEL, ['right-key']), port)
      const wrong = await startGateway(engine.url, { api_key: 'wrong-key' })
      await wrong.command.line(/worker rejects its api_key/)
      expect(await factsOf(wrong.url, MODEL, MATRIX[0])).toMatch(/^502 /)
      const right = await startGateway(engine.url, { api_key: 'right-key' })
      await vi.waitFor(
        async () => expect(await factsOf(right.url, MODEL, MATRIX[0])).toMatch(/^200 /),
        30_000,
      )
    },
    LIMIT_MS,
  )
})
