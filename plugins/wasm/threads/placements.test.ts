import { expect, test } from 'vitest'
import type { LoadedModule } from './guest-task.ts'
import { Placements } from './placements.ts'

const module = (placement: LoadedModule['placement']) => ({ uuid: placement, placement }) as LoadedModule

test('a module with placement auto moves to the serving thread once its calls have been cheap', () => {
  const placements = new Placements(1_000)
  const auto = module('auto')
  expect(placements.isInline(auto)).toBe(false)
  for (let i = 0; i < 16; i++) placements.measured(auto, 400)
  expect(placements.isInline(auto)).toBe(true)
  placements.measured(auto, 600)
  expect(placements.isInline(auto)).toBe(false)
})

test('a module that exceeds the inline budget must be cheap for longer each time', () => {
  const placements = new Placements(1_000)
  const auto = module('auto')
  const callsUntilInline = () => {
    let calls = 0
    for (; !placements.isInline(auto); calls++) placements.measured(auto, 1)
    return calls
  }
  expect(callsUntilInline()).toBe(16)
  placements.exceeded(auto)
  expect(callsUntilInline()).toBe(128)
  for (let i = 0; i < 9; i++) placements.exceeded(auto)
  expect(callsUntilInline()).toBe(8_192)
})

test('a module that is no longer registered starts from the beginning', () => {
  const placements = new Placements(1_000)
  const auto = module('auto')
  for (let i = 0; i < 16; i++) placements.measured(auto, 400)
  placements.update([auto])
  expect(placements.isInline(auto)).toBe(true)
  placements.update([])
  expect(placements.isInline(auto)).toBe(false)
})

test('placements pool and inline do not change', () => {
  const placements = new Placements(1_000)
  for (let i = 0; i < 100; i++) placements.measured(module('pool'), 1)
  placements.exceeded(module('inline'))
  expect([placements.isInline(module('pool')), placements.isInline(module('inline'))]).toEqual([false, true])
})
