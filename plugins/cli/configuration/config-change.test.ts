import { expect, test } from 'vitest'
import type { LoadedConfig } from '../../../kernel/config/loaded-config.ts'
import { changeConfig } from './config-change.ts'

const config = (kernel: object, plugins: object): LoadedConfig =>
  ({ kernel, plugins, file: '/weir.yaml', secretPaths: [], notices: [] }) as unknown as LoadedConfig
const reloads = new Map([['auth', ['apiKey', 'more.deep']]])

test('reloadable changes are applied, others are reported and not applied', () => {
  const running = config(
    { port: 1, log: { level: 'info', access: true }, policy: 'random' },
    { auth: { apiKey: 'a', more: { deep: [1], other: 1 } }, chat: { validate: 'off' }, gone: {} },
  )
  const wanted = config(
    { port: 2, log: { level: 'debug', access: true } },
    { auth: { apiKey: 'b', more: { deep: [2], other: 2 } }, chat: { validate: 'full' }, fresh: {} },
  )
  const change = changeConfig(running, wanted, reloads)
  expect(change.applied).toEqual([
    'kernel.log.level',
    'kernel.policy',
    'plugins.auth.apiKey',
    'plugins.auth.more.deep',
  ])
  expect(change.needsRestart).toEqual([
    'kernel.port',
    'plugins.auth.more',
    'plugins.chat.validate',
    'plugins.fresh',
    'plugins.gone',
  ])
  expect(change.plugins).toEqual(['auth'])
  expect(change.next.kernel).toEqual({ port: 1, log: { level: 'debug', access: true } })
  expect(change.next.plugins).toEqual({
    auth: { apiKey: 'b', more: { deep: [2], other: 1 } },
    chat: { validate: 'off' },
    gone: {},
  })
  expect(Object.isFrozen(change.next.plugins.auth)).toBe(true)
})

test('an equal configuration changes nothing', () => {
  const same = config({ port: 1 }, { auth: { apiKey: 'a' } })
  expect(changeConfig(same, structuredClone(same), reloads)).toMatchObject({ applied: [], needsRestart: [] })
})

test('adding or removing a section needs a restart, other changes are applied', () => {
  const tls = { certFile: 'a.pem', keyFile: 'b.pem' }
  const having = config({ tls }, { auth: { apiKey: 'a', more: { deep: [1] } } })
  const lacking = config({}, { auth: { apiKey: 'b' } })
  for (const [running, wanted] of [
    [having, lacking],
    [lacking, having],
  ]) {
    const change = changeConfig(running, wanted, reloads)
    expect(change.applied).toEqual(['plugins.auth.apiKey'])
    expect(change.needsRestart).toEqual(['kernel.tls', 'plugins.auth.more'])
    expect(change.next.kernel).toEqual(running.kernel)
    expect(change.next.plugins.auth).toEqual({ ...running.plugins.auth, apiKey: wanted.plugins.auth.apiKey })
  }
})
