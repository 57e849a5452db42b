/** Modules of the configuration and settings of policies that change with SIGHUP, under load: no request is lost. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { GuestFolder } from '../fixtures/wasm/guest-build.ts'
import { makeFolder, runCommand, stopCommands } from '../support/built-command.ts'
import { jsonAnswer, type ScriptedWorker, startScriptedWorker } from '../support/scripted-worker.ts'

const CHAT = 'POST /v1/chat/completions'
const ROUNDS = 6
const folder = new GuestFolder()
let worker: ScriptedWorker
afterEach(async () => {
  await stopCommands()
  await worker.close()
  folder.remove()
})

/** A module that sets x-mark to its own name. */
const marking = (mark: string) =>
  folder.module(mark, ['OnRequest'], {
    head: JSON.stringify({ action: 'modify', headers_set: [['x-mark', mark]] }),
  })

test('modules are added, changed and removed by SIGHUP over two threads: every request is served, by the old or the new version', async () => {
  worker = await startScriptedWorker({ models: ['m'] })
  worker.script(CHAT, (request) => jsonAnswer({ mark: request.header('x-mark') ?? 'none', choices: [] }))
  const modules = await Promise.all(['one', 'two'].map(marking))
  const file = join(makeFolder(), 'weir.json')
  const marks = ['none', 'one', 'two']
  const write = (round: number) => {
    const config = {
      kernel: {
        port: 0,
        threads: 2,
        warmUp: false,
        log: { access: false },
        policy: 'manual',
        upstream: { forwardHeaders: ['x-mark'] },
      },
      plugins: {
        auth: {},
        'http-workers': {},
        policies: { manual: { assignmentMode: round % 2 === 0 ? 'random' : 'min_group' } },
        chat: {},
        wasm: { timeoutMs: 20_000, modules: round % 3 === 0 ? [] : [modules[(round % 3) - 1]] },
        workers: {
          workers: [{ url: worker.url, models: [{ id: 'm' }], runtime_type: 'sglang' }],
          health: { disable_health_check: true },
        },
      },
    }
    writeFileSync(file, JSON.stringify(config))
  }
  write(0)
  const command = runCommand(['serve', '--config', file])
  const [, url] = await command.line(/^ {2}API\s+(http\S+)/)
  const send = async () => {
    const body = JSON.stringify({ model: 'm', messages: [] })
    const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', body })
    const { mark } = (await response.json()) as { mark?: string }
    return `${response.status} ${mark}`
  }
  await expect.poll(send).toBe('200 none')

  let isOver = false
  let count = 0
  const unexpected: string[] = []
  let allowed: readonly string[] = marks
  const load = Array.from({ length: 8 }, async () => {
    while (!isOver) {
      const seen = await send().catch((error: Error) => String(error.cause))
      count++
      if (!allowed.some((mark) => seen === `200 ${mark}`)) unexpected.push(seen)
    }
  })
  for (let round = 1; round <= ROUNDS; round++) {
    write(round)
    command.signal('SIGHUP')
    const mark = marks[round % 3]
    // Both threads have the change when many requests over fresh connections agree.
    await expect
      .poll(async () => new Set(await Promise.all(Array.from({ length: 16 }, send))))
      .toEqual(new Set([`200 ${mark}`]))
  }
  allowed = [marks[ROUNDS % 3]]
  isOver = true
  await Promise.all(load)
  expect(unexpected).toEqual([])
  expect(count).toBeGreaterThan(ROUNDS * 8)
  expect(command.lines.filter((line) => line.includes('"level":"error"'))).toEqual([])
  const taken = command.lines.filter((line) => line.includes('plugins.wasm.modules'))
  expect(taken.length).toBeGreaterThan(0)
  expect(command.lines.some((line) => line.includes('plugins.policies.manual.assignmentMode'))).toBe(true)
  expect((await command.stop()).code).toBe(0)
})
