/** A data thread that starts while the configuration changes. */

import { once } from 'node:events'
import { connect } from 'node:tls'
import { MessageChannel } from 'node:worker_threads'
import { afterEach, expect, test, vi } from 'vitest'
import { createCounters } from '../../kernel/balance/counters.ts'
import { GatewayThread } from '../../kernel/boot.ts'
import type { LoadedConfig } from '../../kernel/config/loaded-config.ts'
import { Type } from '../../kernel/contracts/type.ts'
import { createLogger } from '../../kernel/observe/log.ts'
import { definePlugin } from '../../kernel/plugin/define-plugin.ts'
import { RunningConfig } from '../../kernel/plugin/kernel-commands.ts'
import { ControlLink } from '../../kernel/threads/control-link.ts'
import { DataLink } from '../../kernel/threads/data-link.ts'
import type { LinkUpMessage } from '../../kernel/threads/messages.ts'
import { SharedMemory } from '../../kernel/threads/shared-memory.ts'
import { loadConfig } from '../../plugins/cli/configuration/load.ts'
import { TestAuthority } from '../support/certificates.ts'
import { freePort } from '../support/free-port.ts'

const log = createLogger({ level: 'silent', thread: 1 })
const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

const manifest = { name: 'keys', version: '0.0.0', description: 'of a test', reloads: ['key'] }
const section = Type.Object({ key: Type.String() })
/** Its section never changes. */
const reloaded = vi.fn()
const same = definePlugin({
  manifest: { name: 'same', version: '0.0.0', description: 'of a test', config: Type.Object({}) },
  register: () => ({ reload: reloaded }),
})
const read = (key: string, kernel: object = {}): Promise<LoadedConfig> =>
  loadConfig({
    text: JSON.stringify({ kernel: { threads: 1, ...kernel }, plugins: { keys: { key }, same: {} } }),
    env: {},
    pluginSchemas: {
      names: ['keys', 'same'],
      find: async (name) => (name === 'keys' ? { ...manifest, config: section } : same.manifest),
    },
  })

/** Plugin `keys` records its settings, and blocks each step until released. */
async function begin(control: ControlLink, config: LoadedConfig) {
  const given: string[] = []
  const steps: (() => void)[] = []
  const step = (what: string) => {
    given.push(what)
    return new Promise<void>((resolve) => void steps.push(resolve))
  }
  const keys = definePlugin({
    manifest: { ...manifest, config: section },
    register: (_host, { key }) => ({
      start: () => step(`start ${key}`),
      reload: (next) => step(`reload ${next.key}`),
    }),
  })
  const { port1, port2 } = new MessageChannel()
  const replicas = control.published()
  const attachment = control.attach((message) => port1.postMessage(message))
  port1.on('message', (message: LinkUpMessage) => attachment.receive(message))
  closers.push(() => port1.close())
  const link = new DataLink({ port: port2, index: 1, replicas, log })
  const open = () => {
    const counters = createCounters(config.kernel.limits.maxWorkers, 1)
    const parts = { config, link, counters, shared: new SharedMemory(), log }
    const thread = new GatewayThread(parts, [keys, same])
    closers.push(() => thread.stop())
    return thread
  }
  return { given, steps, open }
}

const publish = (control: ControlLink, config: LoadedConfig) =>
  control.publish(RunningConfig.name, { config, plugins: ['keys'] })

test('reloads before or during the start of a thread are applied before it listens', async () => {
  const control = new ControlLink({ log })
  const { given, steps, open } = await begin(control, await read('first'))
  await publish(control, await read('second'))
  const thread = open()
  const started = vi.fn()
  void thread.start().then(started)
  await vi.waitFor(() => expect(given).toEqual(['start first']))
  await publish(control, await read('third'))
  steps[0]()
  await vi.waitFor(() => expect(given).toEqual(['start first', 'reload third']))
  expect(started).not.toHaveBeenCalled()
  steps[1]()
  await vi.waitFor(() => expect(started).toHaveBeenCalled())
  expect(reloaded).not.toHaveBeenCalled()
})

test('a thread that started with the latest configuration reloads nothing', async () => {
  const control = new ControlLink({ log })
  await publish(control, await read('second'))
  const { given, steps, open } = await begin(control, await read('second'))
  const started = open().start()
  await vi.waitFor(() => expect(given).toEqual(['start second']))
  steps[0]()
  await started
  expect(given).toEqual(['start second'])
})

test('reloads of a thread run one after another, and count as published once applied', async () => {
  const control = new ControlLink({ log })
  const { given, steps, open } = await begin(control, await read('first'))
  const started = open().start()
  await vi.waitFor(() => expect(steps).toHaveLength(1))
  steps[0]()
  await started
  const published: string[] = []
  const second = publish(control, await read('second')).then(() => published.push('second'))
  const third = publish(control, await read('third')).then(() => published.push('third'))
  await vi.waitFor(() => expect(given).toEqual(['start first', 'reload second']))
  expect(published).toEqual([])
  steps[1]()
  await second
  await vi.waitFor(() => expect(given).toEqual(['start first', 'reload second', 'reload third']))
  expect(published).toEqual(['second'])
  steps[2]()
  await third
})

test('a thread uses certificates that were renewed during its start', async () => {
  const authority = new TestAuthority()
  closers.push(() => authority.remove())
  const tls = (name: string) => {
    const { certFile, keyFile } = authority.issue(name)
    return { tls: { certFile, keyFile } }
  }
  const control = new ControlLink({ log })
  const { steps, open } = await begin(control, await read('first', tls('former')))
  await publish(control, await read('first', tls('latter')))
  const thread = open()
  const started = thread.start()
  await vi.waitFor(() => expect(steps).toHaveLength(1))
  steps[0]()
  await started
  const port = await thread.listen(await freePort())
  const socket = connect({ host: '127.0.0.1', port, ca: authority.ca })
  closers.push(() => socket.destroy())
  await once(socket, 'secureConnect')
  expect(socket.getPeerCertificate().subject.CN).toBe('latter')
})
