/**
 * Prints the source files that one relayed chat executes. They must be those of the walk in
 * `docs/architecture.md`.
 */
import { readFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { fileURLToPath } from 'node:url'
import { startGateway } from 'weir-gateway/testing'
import { configurations } from './support/gateway-config.ts'
import { chatBody, REQUEST_HEADERS } from './support/request-bytes.ts'
import { BENCH_KEY, startWorker } from './support/subject.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SOURCES = new URL('../', import.meta.url).href
const RUNS = 3
const WALK = '## A relayed chat request'

/** Files that the steps of the section name. */
function walk(): Set<string> {
  const text = readFileSync(`${ROOT}docs/architecture.md`, 'utf8')
  const section = text.slice(text.indexOf(WALK)).split('\n## ')[0]
  const steps = section.split('\n').filter((line) => /^\d+\. /.test(line))
  return new Set([...steps.join().matchAll(/\]\(\.\.\/([\w/.-]+\.ts)\)/g)].map(([, path]) => path))
}

/** Source files of which a function was called in each run: timers run between some of them. */
async function executedFiles(run: () => Promise<void>): Promise<string[]> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  let files: readonly string[] | null = null
  for (let index = 0; index < RUNS; index++) {
    // Discards the counts so far.
    await session.post('Profiler.takePreciseCoverage')
    await run()
    const { result } = await session.post('Profiler.takePreciseCoverage')
    const called = result
      .filter(({ functions }) => functions.some(({ ranges }) => ranges[0].count > 0))
      .filter(({ url }) => url.startsWith(SOURCES))
      .map(({ url }) => url.slice(SOURCES.length))
      .filter((file) => /^(kernel|plugins)\//.test(file))
    files = files === null ? called : files.filter((file) => called.includes(file))
  }
  session.disconnect()
  return (files ?? []).toSorted()
}

async function main(): Promise<void> {
  const worker = await startWorker()
  const base = { port: 0, apiKey: BENCH_KEY, workerPorts: worker.ports }
  const { plugins } = configurations.gatewayConfig(base, {}) as { plugins: Record<string, unknown> }
  const gateway = await startGateway({ plugins })
  const body = chatBody({ stream: false, bodyBytes: 250 })
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
  const named = walk()
  for (const file of files) console.log(file)
  console.log(`${files.length} files`)
  const complain = (text: string) => {
    console.error(`docs/architecture.md: ${text}`)
    process.exitCode = 1
  }
  for (const file of files) if (!named.delete(file)) complain(`the walk lacks ${file}`)
  for (const file of named) complain(`${file} is in the walk and was not executed`)
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))
await main()
