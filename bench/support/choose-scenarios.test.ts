/** Scenario names on the command line. */
import { expect, test } from 'vitest'
import { chooseScenarios } from './choose-scenarios.ts'

const all = ['boot', 'relay-json', 'relay-json-100k', 'wasm-none', 'wasm-headers'].map((name) => ({
  name,
  question: '',
  run: async () => [],
}))
const chosen = (...names: string[]) => chooseScenarios(all, names).map(({ name }) => name)

test('a prefix selects the whole group', () => {
  expect(chosen('wasm')).toEqual(['wasm-none', 'wasm-headers'])
  expect(chosen('wasm-h')).toEqual(['wasm-headers'])
})

test('a full name selects only that scenario', () => {
  expect(chosen('relay-json')).toEqual(['relay-json'])
})

test('several names are run once each, in the order of the list', () => {
  expect(chosen('wasm', 'boot', 'wasm-none')).toEqual(['boot', 'wasm-none', 'wasm-headers'])
  expect(chosen()).toHaveLength(5)
})

test('an unknown name is an error that lists the available names', () => {
  expect(() => chosen('relai')).toThrow('no scenario matches "relai" (available: boot, relay-json')
})
