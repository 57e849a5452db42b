import { Type } from 'typebox'
import { describe, expect, test } from 'vitest'
import { definePlugin, type Plugin } from './define-plugin.ts'
import { sortByDependency } from './graph.ts'

function plugin(name: string, dependencies: string[] = [], optionalDependencies: string[] = []): Plugin {
  return definePlugin({
    manifest: {
      name,
      version: '0.0.0',
      description: 'of a test',
      dependencies,
      optionalDependencies,
      config: Type.Object({}),
    },
    register: () => {},
  })
}

const orderOf = (...plugins: Plugin[]) => sortByDependency(plugins).map(({ manifest }) => manifest.name)

describe('plugins start', () => {
  test('after what they depend on, and otherwise in the order they came in', () => {
    expect(orderOf(plugin('c', ['a']), plugin('b'), plugin('a'))).toEqual(['a', 'c', 'b'])
    expect(orderOf(plugin('a'), plugin('b'), plugin('c'))).toEqual(['a', 'b', 'c'])
  })

  test('each once, however many depend on it', () => {
    expect(orderOf(plugin('d', ['b', 'c']), plugin('b', ['a']), plugin('c', ['a']), plugin('a'))).toEqual([
      'a',
      'b',
      'c',
      'd',
    ])
  })

  test('after optional ones that are enabled, and without those that are not', () => {
    expect(orderOf(plugin('b', [], ['a', 'nowhere']), plugin('a'))).toEqual(['a', 'b'])
  })
})

describe('the boot stops', () => {
  test('at a circle, and prints the way round', () => {
    expect(() => orderOf(plugin('a', ['b']), plugin('b', [], ['c']), plugin('c', ['a']))).toThrow(
      'plugins depend on each other in a circle: a → b → c → a',
    )
    expect(() => orderOf(plugin('a', ['a']))).toThrow('in a circle: a → a')
  })

  test('at a gap, and prints who asked for what is missing and how to enable it', () => {
    expect(() => orderOf(plugin('a', ['b']), plugin('b', ['store']))).toThrow(
      'plugin b needs plugin store, which is not enabled (a → b → store); add "store: {}" under plugins',
    )
  })
})
