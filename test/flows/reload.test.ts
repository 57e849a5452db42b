/** A reload of the real command under load, by signal and by `weir config apply`: no request is lost. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { makeFolder, runCommand, stopCommands } from '../support/built-command.ts'
import { jsonAnswer, type ScriptedWorker, startScriptedWorker } from '../support/scripted-worker.ts'

const CHAT = 'POST /v1/chat/completions'
const KEYS = ['one', 'two', 'three', 'four']
const workers: ScriptedWorker[] = []

afterEach(async () => {
  await stopCommands()
  for (const worker of workers.splice(0)) await worker.close()
})

test('workers, keys and the log level change ten times under load over two threads: every request is served', async () => {
  for (let i = 0; i < 3; i++) {
    const worker = await startScriptedWorker({ models: ['m'] })
    worker.script(CHAT, jsonAnswer({ object: 'chat.completion', choices: [] }))
    workers.push(worker)
  }
  const file = join(makeFolder(), 'weir.json')
  const write = (round: number) => {
    const chosen = [workers[0], workers[1 + (round % 2)]]
    const config = {
      kernel: {
        port: 0,
        threads: 2,
        warmUp: false,
        log: { level: round % 2 === 0 ? 'info' : 'debug', access: false },
        policy: round % 2 === 0 ? 'random' : 'least_load',
        ...(round === 10 && { http: { maxBodyBytes: 1_000 } }),
      },
      plugins: {
        auth: {
          apiKey: 'admin',
          tenantKeys: KEYS.map((key) => `${key}:key-${key}-${key === 'four' ? round : ''}`),
        },
        health: {},
        metrics: { port: 0 },
        'http-workers': {},
        policies: {},
        chat: {},
        reload: {},
        workers: {
          workers: chosen.map(({ url }) => ({ url, models: [{ id: 'm' }], runtime_type: 'sglang' })),
          health: { disable_health_check: true, drain_settle_secs: 1 },
        },
      },
    }
    writeFileSync(file, JSON.stringify(config))
  }
  write(0)
  const command = runCommand(['serve', '--config', file])
  const [, url] = await command.line(/^ {2}API\s+(http\S+)/)
  const send = async (key: string) => {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: 'm', messages: [] }),
    })
    await response.arrayBuffer()
    return response.status
  }
  await expect.poll(() => send('key-one-')).toBe(200)

  let isOver = false
  const statuses = new Map<number | string, number>()
  const load = Array.from({ length: 16 }, async (_, place) => {
    while (!isOver) {
      const status = await send(`key-${KEYS[place % 3]}-`).catch((error: Error) => String(error.cause))
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  })
  for (let round = 1; round <= 9; round++) {
    write(round)
    command.signal('SIGHUP')
    await expect.poll(() => send(`key-four-${round}`)).toBe(200)
    await expect.poll(() => send(`key-four-${round - 1}`)).toBe(401)
  }
  write(10)
  const applied = await runCommand(['config', 'apply', file, '--gateway', url], { WEIR_ADMIN_KEY: 'admin' })
    .ended
  expect(applied.stdout).toContain('applied: kernel.log.level, kernel.policy, plugins.auth.tenantKeys')
  expect(applied.stdout).toContain('needs a restart: kernel.http')
  isOver = true
  await Promise.all(load)
  expect([...statuses.keys()]).toEqual([200])
  expect(statuses.get(200)).toBeGreaterThan(200)
  expect((await command.stop()).code).toBe(0)
})

test('the log level changes on every thread, up and down', async () => {
  const file = join(makeFolder(), 'weir.json')
  const write = (level: string) => {
    const kernel = { port: 0, threads: 1, log: { level } }
    writeFileSync(
      file,
      JSON.stringify({ kernel, plugins: { auth: {}, health: {}, metrics: { port: 0 }, reload: {} } }),
    )
  }
  write('error')
  const command = runCommand(['serve', '--config', file])
  const [, url] = await command.line(/^ {2}API\s+(http\S+)/)
  const take = async (level: string) => {
    write(level)
    const response = await fetch(`${url}/config/apply`, { method: 'POST' })
    expect(await response.json()).toMatchObject({ applied: ['kernel.log.level'] })
  }
  const logEvents = async (signal: NodeJS.Signals, path: string) => {
    await fetch(`${url}${path}`)
    command.signal(signal)
    // The event loop handles signals last, so a round trip to control ensures that this one was handled.
    await (await fetch(`${url}/config/apply`, { method: 'POST' })).arrayBuffer()
  }
  await logEvents('SIGUSR1', '/before')
  await take('info')
  await logEvents('SIGUSR2', '/during')
  await command.line(/"signal":"SIGUSR2"/)
  await command.line(/"thread":1.*"path":"\/during"/)
  const count = command.lines.length
  await take('error')
  await logEvents('SIGUSR2', '/after')
  await take('info')
  await logEvents('SIGUSR1', '/at-last')
  await command.line(/"signal":"SIGUSR1"/)
  await command.line(/"path":"\/at-last"/)
  expect(command.lines.join('\n')).not.toMatch(/\/before|\/after/)
  expect(command.lines.slice(count).filter((line) => line.includes('SIGUSR2'))).toEqual([])
  expect(command.lines.filter((line) => line.includes('SIGUSR1'))).toHaveLength(1)
})

test('an invalid file is logged once, with the position of the error, and changes nothing', async () => {
  const file = join(makeFolder(), 'weir.yaml')
  const write = (level: string) =>
    writeFileSync(
      file,
      `kernel:\n  port: 0\n  log: { level: ${level} }\nplugins: { health: {}, metrics: { port: 0 } }\n`,
    )
  write('info')
  const command = runCommand(['serve', '--config', file])
  const [, url] = await command.line(/^ {2}API\s+(http\S+)/)
  write('loud')
  command.signal('SIGHUP')
  const [line] = await command.line(/^.*the previous one stays in effect.*$/)
  const { err } = JSON.parse(line) as { err: { message: string } }
  expect(err.message).toMatch(/^the configuration was not applied: \S*weir\.yaml:\d+:\d+: kernel\.log\.level/)
  expect(err.message.split('kernel.log.level')).toHaveLength(2)
  expect((await fetch(`${url}/liveness`)).status).toBe(200)
})
