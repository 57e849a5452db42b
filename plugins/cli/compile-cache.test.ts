import { expect, test } from 'vitest'
import { compileCacheFolder } from './compile-cache.ts'

test.each([
  ['the folder of the user', {}, '/home/op', '/home/op/.cache/weir/compiled'],
  ['where XDG says', { XDG_CACHE_HOME: '/var/cache/op' }, '/home/op', '/var/cache/op/weir/compiled'],
  ['nowhere without a home', {}, '', null],
  ['nowhere if Node has a configured folder', { NODE_COMPILE_CACHE: '/elsewhere' }, '/home/op', null],
  ['nowhere if Node has it disabled', { NODE_DISABLE_COMPILE_CACHE: '1' }, '/home/op', null],
])('compiled code is kept in %s', (_what, environment, home, folder) => {
  expect(compileCacheFolder(environment, home)).toBe(folder)
})
