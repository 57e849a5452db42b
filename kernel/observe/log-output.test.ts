/** Log lines through a real pipe, from a process with several threads. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'

const LOG_MODULE = JSON.stringify(new URL('./log.ts', import.meta.url).href)
const THREADS = 3
const LINES = 2_000
const FLOOD_LINES = 20_000

/** Each thread writes its lines and exits at once. */
const PROGRAM = `
const { Worker } = require('node:worker_threads')
const body = \`import(${LOG_MODULE}).then(({ createAccessLogger, createLogger }) => {
  const thread = THREAD
  const log = createAccessLogger({ level: 'info', thread })
  for (let n = 0; n < ${LINES}; n += 1) log.info({ n, pad: 'x'.repeat(300) }, 'request')
  createLogger({ level: 'info', thread }).info({ n: -1 }, 'prompt')
  END
})\`
for (let i = 1; i <= ${THREADS}; i += 1) {
  new Worker(body.replace('THREAD', String(i)).replace('END', 'process.exit(0)'), { eval: true })
}
`

test('lines of several threads arrive complete, even if a thread exits right after', async () => {
  const child = spawn(process.execPath, ['--conditions=weir-source', '--no-warnings', '-e', PROGRAM], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  const [exitCode] = await once(child, 'close')
  expect(exitCode).toBe(0)
  const lines = Buffer.concat(chunks).toString().trimEnd().split('\n')
  const seen = new Set(lines.map((line) => JSON.parse(line)).map(({ thread, n }) => `${thread} ${n}`))
  expect(seen.size).toBe(THREADS * (LINES + 1))
})

/** More than the pipe and the buffer hold, before the event loop turns once. */
const FLOOD = `
import(${LOG_MODULE}).then(({ createAccessLogger }) => {
  let dropped = 0
  const log = createAccessLogger({ level: 'info', thread: 1, onDrop: () => { dropped += 1 } })
  for (let n = 0; n < ${FLOOD_LINES}; n += 1) log.info({ n, pad: 'x'.repeat(1_000) }, 'request')
  process.send(dropped, () => process.disconnect())
})
`

test('lines beyond the buffer are dropped and counted; all others arrive', async () => {
  const child = spawn(process.execPath, ['--conditions=weir-source', '--no-warnings', '-e', FLOOD], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const [dropped] = (await once(child, 'message')) as [number]
  let lines = 0
  child.stdout?.on('data', (chunk: Buffer) => {
    for (const byte of chunk) if (byte === 0x0a) lines += 1
  })
  const [exitCode] = await once(child, 'close')
  expect(exitCode).toBe(0)
  expect(dropped).toBeGreaterThan(0)
  expect(lines + dropped).toBe(FLOOD_LINES)
})

/** Logs more than the pipe holds while nothing reads, from the main thread and from another, and reports that it runs. */
const STALL = `
const { Worker, isMainThread } = require('node:worker_threads')
const body = \`import(${LOG_MODULE}).then(({ createLogger }) => {
  const log = createLogger({ level: 'info', thread: THREAD })
  for (let n = 0; n < 300; n += 1) log.info({ n, pad: 'x'.repeat(2_000) }, 'prompt')
  DONE
})\`
new Worker(body.replace('THREAD', '1').replace('DONE', "require('node:worker_threads').parentPort.postMessage(0); setTimeout(() => {}, 2_000)"), { eval: true })
  .once('message', () => process.send('worker'))
eval(body.replace('THREAD', '0').replace('DONE', "process.send('main')"))
process.once('message', () => process.disconnect())
`

test('a blocked reader blocks no thread; when it reads again, all queued lines arrive', async () => {
  const child = spawn(process.execPath, ['--conditions=weir-source', '--no-warnings', '-e', STALL], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const alive = new Set<unknown>()
  while (alive.size < 2) alive.add((await once(child, 'message'))[0])
  const chunks: Buffer[] = []
  child.stdout?.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.send('read')
  await once(child, 'close')
  const lines = Buffer.concat(chunks).toString().trimEnd().split('\n')
  const seen = new Set(lines.map((line) => JSON.parse(line)).map(({ thread, n }) => `${thread} ${n}`))
  expect([lines.length, seen.size]).toEqual([600, 600])
})

/** One line of each logger, from the main thread and from another. */
const SPEAK = `
const { Worker } = require('node:worker_threads')
const body = \`import(${LOG_MODULE}).then(({ createAccessLogger, createLogger }) => {
  createLogger({ level: 'info', thread: THREAD }).info({ a: 'b c' }, 'prompt')
  createAccessLogger({ level: 'info', thread: THREAD }).info({ a: 'b c' }, 'request')
})\`
new Worker(body.replaceAll('THREAD', '1'), { eval: true })
eval(body.replaceAll('THREAD', '0'))
`
const TERMINAL = '/usr/bin/script'
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminal colours
const COLOR = /\u001b\[\d+m/g

test.runIf(process.platform === 'linux' && existsSync(TERMINAL))(
  'at a terminal lines are for people, those of all threads',
  async () => {
    const command = '"$NODE" --conditions=weir-source --no-warnings -e "$PROGRAM"'
    const env = { ...process.env, NODE: process.execPath, PROGRAM: SPEAK }
    const child = spawn(TERMINAL, ['-qec', command, '/dev/null'], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const text = (await child.stdout.toArray()).join('')
    const lines = text.replaceAll(COLOR, '').trimEnd().split(/\r?\n/)
    expect(lines.map((line) => line.replace(/^[\d:.]+ /, '')).sort()).toEqual([
      'INFO  [0] prompt a="b c"',
      'INFO  [0] request a="b c"',
      'INFO  [1] prompt a="b c"',
      'INFO  [1] request a="b c"',
    ])
  },
)
