/** `weir config plan` and `apply` against a running gateway. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { makeFolder, readyGateway, runCommand, startSim, stopCommands } from '../support/built-command.ts'

afterEach(stopCommands)

interface Options {
  readonly urls?: readonly string[]
  readonly level?: string
  readonly maxBodyBytes?: number
}

function write(file: string, { urls = [], level = 'warn', maxBodyBytes = 1_000_000 }: Options): string {
  const text = `kernel:
  port: 0
  threads: 1
  log: { level: ${level} }
  http: { maxBodyBytes: ${maxBodyBytes} }
plugins:
  auth: { apiKey: { $env: WEIR_API_KEY } }
  health: {}
  metrics: { port: 0 }
  reload: {}
  storage: { dir: ${join(file, '../data')} }
  workers: { urls: ${JSON.stringify(urls)}, health: { disable_health_check: true } }
`
  writeFileSync(file, text)
  return text
}

async function start(file: string) {
  const gateway = await readyGateway(
    runCommand(['serve', '--config', file], { WEIR_API_KEY: 'the-gateway-key' }),
  )
  const config = async (...args: string[]) => {
    const all = ['config', ...args, '--gateway', gateway.url, '--api-key', 'the-gateway-key']
    return runCommand(all).ended
  }
  return { gateway, config }
}

test('a plan names what a reload applies, what it drains and what needs a restart, and changes nothing', async () => {
  const [kept, removed] = [await startSim('--model', 'kept'), await startSim('--model', 'removed')]
  const file = join(makeFolder(), 'weir.yaml')
  const text = write(file, { urls: [kept.url, removed.url] })
  const { gateway, config } = await start(file)
  const key = { authorization: 'Bearer the-gateway-key' }
  await expect.poll(async () => Object.keys(await gateway.loads(key)).length).toBe(2)

  const other = join(makeFolder(), 'new.yaml')
  const fresh = 'http://127.0.0.1:9'
  write(other, { urls: [kept.url, fresh], level: 'error', maxBodyBytes: 2_000_000 })
  const { code, stdout } = await config('plan', other, '--json')
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toEqual({
    applied: ['kernel.log.level', 'plugins.workers.urls'],
    needs_restart: ['kernel.http', 'plugins.storage.dir'],
    effects: [
      `plugin workers drains and removes worker ${removed.url} (requests in flight: 0)`,
      `plugin workers registers worker ${fresh}`,
    ],
    file,
    is_installed: false,
  })
  expect((await config('plan')).stdout).toBe('nothing changes\n')
  expect(await gateway.loads(key)).toHaveProperty([removed.url])

  const apply = await config('apply', other)
  expect(apply).toMatchObject({ code: 1, stderr: expect.stringContaining(`differs from ${other}`) })
  expect(readFileSync(file, 'utf8')).toBe(text)
})

test('problems of a planned file have its name and position; plugin files of a request are not imported', async () => {
  const file = join(makeFolder(), 'weir.yaml')
  write(file, {})
  const { config } = await start(file)
  const other = join(makeFolder(), 'new.yaml')
  writeFileSync(other, 'kernel:\n  port: high\n  policy: unknown\nplugins: { health: {} }\n')
  const { code, stderr } = await config('plan', other)
  expect(code).toBe(1)
  expect(stderr).toContain(`${other}:2:3: kernel.port must be an integer`)
  expect(stderr).toContain(`${other}:3:3: kernel.policy must be one of`)

  const mark = join(makeFolder(), 'imported')
  const plugin = join(makeFolder(), 'plugin.mjs')
  writeFileSync(
    plugin,
    `import { writeFileSync } from 'node:fs'\nwriteFileSync(${JSON.stringify(mark)}, '')\n`,
  )
  writeFileSync(other, `plugins:\n  mine: { $path: ${plugin} }\n`)
  expect((await config('plan', other)).stderr).toContain(`${other}:2:3: plugins.mine is a plugin file`)
  expect(existsSync(mark)).toBe(false)
})
