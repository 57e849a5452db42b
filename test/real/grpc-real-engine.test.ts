/** The example of a real engine over gRPC: its script says what its README promises. Skipped where it is not installed. */
import { execFile, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Client, credentials } from '@grpc/grpc-js'
import { afterEach, describe, expect, test } from 'vitest'
import { decodeGetServerInfoResponse, MlxEngine } from '../../proto/gen/mlx-engine.ts'
import { endChildren, endsWithTest } from '../support/child-processes.ts'
import { freePort } from '../support/free-port.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const EXAMPLE = join(ROOT, 'examples/real-engine-grpc')
const LIMIT_MS = 600_000

const isInstalled = existsSync(join(EXAMPLE, '.venv/model/config.json'))
if (!isInstalled)
  console.info('real-engine-grpc is not tested: examples/real-engine-grpc/setup.sh has not been run here')

afterEach(endChildren)

/** Generations that the engine works at. */
function activeRequests(client: Client): Promise<number> {
  const plain = (bytes: Buffer) => bytes
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(MlxEngine.GetServerInfo, plain, plain, Buffer.alloc(0), (error, reply) => {
      if (error !== null || reply === undefined) reject(error ?? new Error('no reply'))
      else resolve(decodeGetServerInfoResponse(reply).activeRequests)
    })
  })
}

async function startGateway(enginePort: number): Promise<string> {
  const config = join(mkdtempSync(join(tmpdir(), 'weir-real-engine-')), 'weir.yaml')
  // A worker of a flag would have the engine's name for the model, which is its folder.
  const written = readFileSync(join(EXAMPLE, 'weir.yaml'), 'utf8')
  writeFileSync(config, written.replace('127.0.0.1:9200', `127.0.0.1:${enginePort}`))
  const ports = ['--port', '0', '--metrics-port', '0', '--grace-ms', '0']
  const child = spawn(
    process.execPath,
    [join(ROOT, 'dist/plugins/cli.js'), 'serve', '--config', config, ...ports],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  endsWithTest(child)
  for await (const line of createInterface({ input: child.stderr })) {
    const url = line.match(/^ {2}API\s+(http\S+)/)?.[1]
    if (url === undefined) continue
    child.stderr.resume()
    return url
  }
  throw new Error('the gateway did not start')
}

describe.runIf(isInstalled)('a real engine over gRPC', () => {
  test(
    'chat, stream, a stop, tools, and an answer that is given up',
    async () => {
      const enginePort = await freePort()
      const env = { ...process.env, ENGINE_PORT: String(enginePort) }
      const engine = spawn(join(EXAMPLE, 'serve.sh'), { env, stdio: ['ignore', 'ignore', 'pipe'] })
      endsWithTest(engine)
      let log = ''
      engine.stderr.on('data', (bytes) => {
        log += String(bytes)
      })
      const url = await startGateway(enginePort)
      await expect
        .poll(async () => (await fetch(`${url}/readiness`)).status, { timeout: LIMIT_MS, interval: 500 })
        .toBe(200)
      const { stdout } = await run(process.execPath, [join(EXAMPLE, 'ask.mjs')], {
        env: { ...process.env, WEIR_URL: `${url}/v1`, TOKENS: '6' },
        timeout: LIMIT_MS,
      })
      expect(stdout).toMatch(/^whole: \S.*\n?.*completion_tokens: 6/m)
      expect(stdout).toContain('streamed: the same')
      expect(stdout).toContain('stop string: 400 engine_lacks_parameter')
      expect(stdout).toMatch(/^stop id: /m)
      expect(stdout).toMatch(/^tools: /m)
      expect(stdout).toContain('given up after a token')
      expect(stdout).toContain('embeddings: 501 unsupported_backend')
      // What was given up would have gone on for two thousand tokens, which takes minutes.
      const client = new Client(`127.0.0.1:${enginePort}`, credentials.createInsecure())
      await expect.poll(() => activeRequests(client), { interval: 200 }).toBe(0)
      client.close()
      expect(log).not.toMatch(/Traceback/)
    },
    LIMIT_MS,
  )
})
