import { describe, expect, test } from 'vitest'
import { token } from './contracts/token.ts'
import { Type } from './contracts/type.ts'
import { missingServices, sortPlugins } from './load-plugins.ts'
import { definePlugin, type Plugin, type PluginManifest } from './plugin/define-plugin.ts'

const Store = token<object>('store')
const Clock = token<string>('clock')

function plugin(name: string, terms: Partial<PluginManifest> = {}): Plugin {
  return definePlugin({
    manifest: { name, version: '0.0.0', description: 'of a test', ...terms, config: Type.Object({}) },
    register: () => {},
  })
}

const orderOf = (...plugins: Plugin[]) => sortPlugins(plugins).map(({ manifest }) => manifest.name)
const needing = (name: string, ...dependencies: string[]) => plugin(name, { dependencies })

describe('plugins start', () => {
  test('after the providers of services they use, otherwise in configuration order', () => {
    const user = plugin('a', { uses: [Store], usesOptionally: [Clock] })
    expect(
      orderOf(user, plugin('b'), plugin('disk', { provides: [Store] }), plugin('sun', { provides: [Clock] })),
    ).toEqual(['disk', 'sun', 'a', 'b'])
    expect(orderOf(user, plugin('disk', { provides: [Store] }))).toEqual(['disk', 'a'])
    expect(orderOf(plugin('self', { provides: [Store], uses: [Store] }))).toEqual(['self'])
  })

  test('after plugins they depend on, each once', () => {
    expect(orderOf(needing('c', 'a'), plugin('b'), plugin('a'))).toEqual(['a', 'c', 'b'])
    expect(orderOf(needing('d', 'b', 'c'), needing('b', 'a'), needing('c', 'a'), plugin('a'))).toEqual([
      'a',
      'b',
      'c',
      'd',
    ])
  })

  test('after enabled optional dependencies, and without disabled ones', () => {
    expect(orderOf(plugin('b', { optionalDependencies: ['a', 'nowhere'] }), plugin('a'))).toEqual(['a', 'b'])
  })
})

describe('the start fails', () => {
  test('for a cycle, through services or names, with its path', () => {
    expect(() =>
      orderOf(
        plugin('a', { uses: [Store] }),
        plugin('b', { provides: [Store], optionalDependencies: ['c'] }),
        needing('c', 'a'),
      ),
    ).toThrow('plugins depend on each other in a cycle: a → b → c → a')
    expect(() => orderOf(needing('a', 'a'))).toThrow('in a cycle: a → a')
  })

  test('for a missing plugin, with the dependency path and how to enable it', () => {
    expect(() => orderOf(needing('a', 'b'), needing('b', 'store'))).toThrow(
      'plugin b needs plugin store, which is not enabled (a → b → store); add "store: {}" under plugins',
    )
  })

  test('for two providers of one service, with both names', () => {
    const two = [plugin('disk', { provides: [Store] }), plugin('memory', { provides: [Clock, Store] })]
    expect(() => orderOf(...two)).toThrow(
      'plugins disk and memory both provide the service store; enable one of them',
    )
  })
})

test('a service without a provider is reported with its users; optional ones are not', () => {
  const plugins = [plugin('a', { uses: [Store], usesOptionally: [Clock] }), plugin('b', { uses: [Store] })]
  expect(missingServices(plugins)).toEqual([
    { plugin: 'a', service: 'store' },
    { plugin: 'b', service: 'store' },
  ])
  expect(missingServices([...plugins, plugin('disk', { provides: [Store] })])).toEqual([])
})
