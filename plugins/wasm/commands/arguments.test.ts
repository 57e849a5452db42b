import { expect, test } from 'vitest'
import { readMatch } from './arguments.ts'

test('repeated members add up, headers by name', () => {
  expect(readMatch()).toBeNull()
  const pairs = ['models=demo, gpt-*', 'models=other', 'routes=/v1/*', 'header:X-Team=red=1', 'header:b=c*']
  expect(readMatch([...pairs, 'tenants=auth:a', 'share=0.25'])).toEqual({
    models: ['demo', 'gpt-*', 'other'],
    routes: ['/v1/*'],
    headers: { 'X-Team': 'red=1', b: 'c*' },
    tenants: ['auth:a'],
    share: 0.25,
  })
})

test.each([
  ['models', 'member=value'],
  ['models=', 'member=value'],
  ['=x', 'member=value'],
  ['modls=x', '--match has no member modls'],
  ['share=2', 'between 0 and 1'],
  ['share=some', 'between 0 and 1'],
])('%s is rejected: %s', (pair, message) => {
  expect(() => readMatch([pair])).toThrow(message)
})
