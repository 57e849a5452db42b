import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { ServiceManager } from './run-gateway.ts'

const { PATH } = process.env
const folder = mkdtempSync(join(tmpdir(), 'weir-service-'))
afterEach(() => {
  process.env.PATH = PATH
})

test('without a service manager nothing is started', async () => {
  process.env.PATH = folder
  expect(await new ServiceManager({}).notify('ready')).toBeNull()
  expect(await new ServiceManager({ NOTIFY_SOCKET: '' }).notify('ready')).toBeNull()
})

test('the state is sent over the socket, which child processes do not inherit', async () => {
  const told = join(folder, 'told')
  writeFileSync(join(folder, 'systemd-notify'), `#!/bin/sh\necho "$NOTIFY_SOCKET $*" >> ${told}\n`, {
    mode: 0o700,
  })
  process.env.PATH = `${folder}:${PATH}`
  const env: NodeJS.ProcessEnv = { NOTIFY_SOCKET: '/run/notify' }
  const manager = new ServiceManager(env)
  expect(env).toEqual({})
  expect(await manager.notify('ready')).toBeNull()
  expect(await manager.notify('stopping')).toBeNull()
  expect(readFileSync(told, 'utf8')).toBe('/run/notify READY=1\n/run/notify STOPPING=1\n')
})

test('a missing systemd program is reported and not fatal', async () => {
  rmSync(join(folder, 'systemd-notify'))
  process.env.PATH = folder
  expect(await new ServiceManager({ NOTIFY_SOCKET: '/run/notify' }).notify('ready')).toContain(
    'systemd-notify',
  )
  rmSync(folder, { recursive: true })
})
