/**
 * Prints the files of the built gateway that one relayed chat executes, and compares them with the walk in
 * `docs/architecture.md`: each file named there must be executed.
 */
import { readFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { configurations } from './support/gateway-config.ts'
import { chatBody, REQUEST_HEADERS } from './support/request-bytes.ts'
import { BENCH_KEY, startWorker } from './support/subject.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const WALK = '## A relayed chat request'

const { startGateway } = (await import(
  `${ROOT}dist/plugins/testing.js`
)) as typeof import('../plugins/testing.ts')

/** Files named in the section of that title. */
function walk(title: string): Set<string> {
  const text = readFileSync(`${ROOT}docs/architecture.md`, 'utf8')
  const section = text.slice(text.indexOf(title)).split('\n## ')[0]
  return new Set([...section.matchAll(/\]\(\.\.\/([\w/.-]+\.ts)\)/g)].map(([, path]) => path))
}

/** Source files of which a function was called while `run` ran. */
async function executedFiles(run: () => Promise<void>): Promise<string[]> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  // Discards the counts so far.
  await session.post('Profiler.takePreciseCoverage')
  await run()
  const { result } = await session.post('Profiler.takePreciseCoverage')
  session.disconnect()
  return result
    .filter(
      ({ url, functions }) => url.includes('/dist/') && functions.some(({ ranges }) => ranges[0].count > 0),
    )
    .map(({ url }) => relative(`${ROOT}dist`, fileURLToPath(url)).replace(/\.js$/, '.ts'))
    .filter((path) => !path.startsWith('..'))
    .sort()
}

async function main(): Promise<void> {
  const worker = await startWorker()
  const base = { port: 0, apiKey: BENCH_KEY, workerPorts: worker.ports }
  const { plugins } = configurations.gatewayConfig(base, {}) as { plugins: Record<string, unknown> }
  const gateway = await startGateway({ plugins })
  const body = chatBody({ stream: process.argv.includes('--stream'), bodyBytes: 250 })
  const chat = async () => {
    const request = { method: 'POST', headers: REQUEST_HEADERS, body }
    const response = await fetch(`${gateway.url}/v1/chat/completions`, request)
    if (!response.ok) throw new Error(`status ${response.status}: ${await response.text()}`)
    await response.text()
  }
  // The first request opens connections and creates metrics.
  await chat()
  const files = await executedFiles(chat)
  await gateway.stop()
  await worker.child.stop()
  const named = walk(WALK)
  for (const file of files) console.log(named.has(file) ? `* ${file}` : `  ${file}`)
  console.log(`${files.length} files; * are named in docs/architecture.md`)
  const missing = [...named].filter((file) => !files.includes(file))
  for (const file of missing) console.error(`docs/architecture.md names ${file}, which was not executed`)
  if (missing.length > 0) process.exitCode = 1
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))
await main()
