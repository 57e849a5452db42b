/** The life of plugins on one thread: registration, steps with their timeouts, and shutdown. */

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Logger } from '../contracts/log.ts'
import type { RouteDefinition } from '../contracts/request.ts'
import { token } from '../contracts/token.ts'
import { Type } from '../contracts/type.ts'
import { apiErrorFormat } from '../errors/error-formats.ts'
import { ControlLink } from '../threads/control-link.ts'
import { Declarations, PluginMistakes } from './declarations.ts'
import {
  definePlugin,
  type Host,
  type Plugin,
  type PluginLifecycle,
  type PluginManifest,
} from './define-plugin.ts'
import type { HostParts } from './plugin-host.ts'
import { PluginSet } from './plugin-set.ts'
import { Services } from './services.ts'

const STEP_MS = 1_000

let logged: object[] = []
const log: Logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: (fields) => void logged.push(fields),
  child: () => log,
}

beforeEach(() => {
  logged = []
  vi.useFakeTimers()
})
afterEach(() => vi.useRealTimers())

function plugin(
  name: string,
  register: (host: Host) => PluginLifecycle | void,
  services: Partial<PluginManifest> = {},
): Plugin {
  return definePlugin({
    manifest: { name, version: '0.0.0', description: 'of a test', ...services, config: Type.Object({}) },
    register,
  })
}

/** Registers plugins with only the parts that registering uses. */
function open(...plugins: Plugin[]): PluginSet {
  const set = new PluginSet(plugins, STEP_MS, log)
  const parts = {
    declarations: new Declarations(),
    services: new Services([]),
    link: new ControlLink({ log }),
    log,
  } as unknown as HostParts
  set.register(parts, () => ({}))
  return set
}

const route = (path: string): RouteDefinition => ({
  method: 'GET',
  path,
  access: 'public',
  errors: apiErrorFormat,
  handler: () => {},
  docs: { summary: 'own', tag: 'test', responses: {} },
})

const never = () => new Promise<void>(() => {})
function careless(): never {
  throw new Error('no disk')
}

describe('registering', () => {
  test('an exception of a plugin is reported with plugin and step', () => {
    expect(() => open(plugin('a', careless))).toThrow('plugin a failed in register: no disk')
  })

  test('an asynchronous register is rejected', () => {
    expect(() => open(plugin('a', (async () => {}) as never))).toThrow(
      'plugin a failed in register: register must be synchronous; move asynchronous work to start',
    )
  })

  test('a route declared by two plugins names both, whatever the names of parameters', () => {
    const first = plugin('a', (host) => host.route(route('/items/:id')))
    expect(() =>
      open(
        first,
        plugin('b', (host) => host.route(route('/items/:name'))),
      ),
    ).toThrow('plugin b declares GET /items/:name, which plugin a declares too')
    open(
      first,
      plugin('b', (host) => host.route(route('/items'))),
    )
  })

  test('all errors are reported at once, except consequential ones', () => {
    const Clock = token<string>('clock')
    const Watch = token<string>('watch')
    const wrong = (host: Host) => {
      host.hook('onReqest' as 'onRequest', () => {}).update({})
      host.route({ ...route('/x'), access: 'amdin' as 'admin' })
      host.socket({ path: '/s' } as never)
    }
    const set = () =>
      open(
        plugin('a', careless, { provides: [Clock] }),
        plugin('b', (host) => void host.use(Clock), { uses: [Clock], provides: [Watch] }),
        plugin('c', (host) => void host.use(Watch), { uses: [Watch] }),
        plugin('d', wrong),
        plugin('e', careless),
      )
    expect(set).toThrow(PluginMistakes)
    expect(set).toThrow(
      /^plugin a failed in register: no disk\nplugin d declares the hook onReqest, .+\nplugin d declares GET \/x without .+\nplugin d declares the socket route \/s without .+\nplugin e failed in register: no disk$/,
    )
  })

  describe('a service', () => {
    const Clock = token<string>('clock')
    const provider = (name: string) =>
      plugin(name, (host) => host.provide(Clock, 'noon'), { provides: [Clock] })

    test('provided by two plugins is rejected with both names', () => {
      expect(() => open(provider('a'), provider('b'))).toThrow(
        'plugins a and b both provide the service clock; enable one of them',
      )
    })

    test('is available to plugins whose manifest lists it', () => {
      const seen: unknown[] = []
      const user = plugin('b', (host) => void seen.push(host.use(Clock), host.find(Clock)), { uses: [Clock] })
      const taker = plugin('c', (host) => void seen.push(host.find(Clock)), { usesOptionally: [Clock] })
      open(provider('a'), user, taker)
      open(taker)
      expect(seen).toEqual(['noon', 'noon', 'noon', undefined])
    })

    test('missing in the manifest is rejected, whether provided or used', () => {
      expect(() => open(plugin('a', (host) => host.provide(Clock, '')))).toThrow(
        'plugin a provides the service clock; list it under provides in its manifest',
      )
      const use = (host: Host) => void host.use(Clock)
      const find = (host: Host) => void host.find(Clock)
      expect(() => open(provider('a'), plugin('b', use))).toThrow(
        'plugin b uses the service clock; list it under uses',
      )
      expect(() => open(provider('a'), plugin('b', use, { usesOptionally: [Clock] }))).toThrow('under uses')
      expect(() => open(provider('a'), plugin('b', find))).toThrow('under uses or usesOptionally')
    })

    test('not provided on this thread is reported with its user', () => {
      const user = plugin('b', (host) => void host.use(Clock), { uses: [Clock] })
      expect(() =>
        open(
          plugin('a', () => {}, { provides: [Clock] }),
          user,
        ),
      ).toThrow('plugin b uses the service clock, which its provider has not provided on this thread')
    })
  })

  test.each([
    ['a route', (host: Host) => host.route(route('/late'))],
    ['a hook', (host: Host) => host.hook('onDone', () => {})],
    ['a request slot', (host: Host) => void host.slot()],
  ])('%s is refused afterwards', async (what, declare) => {
    const set = open(plugin('a', (host) => ({ start: () => declare(host) })))
    await expect(set.start()).rejects.toThrow(
      `plugin a failed in start: plugin a may declare ${what} only in register`,
    )
  })
})

describe('a step', () => {
  test.each(['start', 'ready'] as const)(
    '%s that does not end in time names plugin, step and limit',
    async (step) => {
      const set = open(plugin('slow', () => ({ [step]: never })))
      const run = async () => {
        await set.start()
        await set.ready()
      }
      const failed = expect(run()).rejects.toThrow(
        `plugin slow failed in ${step}: it did not finish within 1000 ms`,
      )
      await vi.advanceTimersByTimeAsync(STEP_MS)
      await failed
    },
  )

  test('leaves no timer behind', async () => {
    const set = open(plugin('a', () => ({ start: async () => {} })))
    await set.start()
    await set.stop()
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('start and shutdown', () => {
  const noting = (name: string, calls: string[], steps: PluginLifecycle = {}) =>
    plugin(name, () => ({
      start: () => void calls.push(`${name} start`),
      ready: () => void calls.push(`${name} ready`),
      drain: (limitMs) => void calls.push(`${name} drain ${limitMs}`),
      stop: () => void calls.push(`${name} stop`),
      ...steps,
    }))

  test('run in order, and in reverse order', async () => {
    const calls: string[] = []
    const set = open(noting('a', calls), noting('b', calls))
    await set.start()
    await set.ready()
    await set.drain(500)
    await set.stop()
    await set.stop()
    expect(calls).toEqual([
      'a start',
      'b start',
      'a ready',
      'b ready',
      'b drain 500',
      'a drain 500',
      'b stop',
      'a stop',
    ])
  })

  test('a failed start stops the plugins that had started, itself included, and no others', async () => {
    const calls: string[] = []
    const set = open(noting('a', calls), noting('b', calls, { start: careless }), noting('c', calls))
    await expect(set.start()).rejects.toThrow('plugin b failed in start: no disk')
    expect(calls).toEqual(['a start', 'b stop', 'a stop'])
  })

  test('a failure of one plugin during shutdown is logged and does not affect others', async () => {
    const calls: string[] = []
    const set = open(noting('a', calls), noting('b', calls, { drain: never, stop: careless }))
    await set.start()
    const drained = set.drain(500)
    await vi.advanceTimersByTimeAsync(500)
    await drained
    await set.stop()
    expect(calls).toEqual(['a start', 'b start', 'a drain 500', 'a stop'])
    expect(logged).toMatchObject([
      { plugin: 'b', step: 'drain' },
      { plugin: 'b', step: 'stop' },
    ])
  })
})
