/** Names of scenarios as an operator types them. */
import { expect, test } from 'vitest'
import { chooseScenarios } from './choose-scenarios.ts'

const all = ['boot', 'relay-json', 'relay-json-100k', 'wasm-none', 'wasm-headers'].map((name) => ({
  name,
  question: '',
  run: async () => [],
}))
const chosen = (...names: string[]) => chooseScenarios(all, names).map(({ name }) => name)

test('a beginning stands for the whole group', () => {
  expect(chosen('wasm')).toEqual(['wasm-none', 'wasm-headers'])
  expect(chosen('wasm-h')).toEqual(['wasm-headers'])
})

test('a whole name stands for itself alone', () => {
  expect(chosen('relay-json')).toEqual(['relay-json'])
})

test('several names are run once each, in the order of the list', () => {
  expect(chosen('wasm', 'boot', 'wasm-none')).toEqual(['boot', 'wasm-none', 'wasm-headers'])
  expect(chosen()).toHaveLength(5)
})

test('a name that stands for nothing is told, with those there are', () => {
  expect(() => chosen('relai')).toThrow('no scenario is called relai; there are boot, relay-json')
})
