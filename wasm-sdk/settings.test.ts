/** Which settings a module takes, and what is said of those that it does not. */
import { expect, test } from 'vitest'
import { type Settings, settingProblem } from './settings.ts'

const settings: Settings = {
  limit: { type: 'integer', minimum: 1, maximum: 100, required: true },
  ratio: { type: 'number' },
  strict: { type: 'boolean' },
  mode: { values: ['fast', 'slow'] },
  teams: { type: 'list', values: ['red', 'blue'] },
  note: {},
}

test.each([
  [{ limit: '1' }, null],
  [{ limit: '100', ratio: '-1.5', strict: 'true', mode: 'slow', teams: 'red, blue,', note: 'ü, "x"' }, null],
  [{}, 'config.limit is required'],
  [{ limit: '0' }, 'config.limit must be >= 1'],
  [{ limit: '101' }, 'config.limit must be <= 100'],
  [{ limit: '1e2' }, 'config.limit must be an integer'],
  [{ limit: ' 1' }, 'config.limit must be an integer'],
  [{ limit: '1', ratio: 'NaN' }, 'config.ratio must be a number'],
  [{ limit: '1', strict: 'yes' }, 'config.strict must be true or false'],
  [{ limit: '1', mode: 'Fast' }, 'config.mode must be one of fast, slow'],
  [{ limit: '1', teams: 'red,green' }, 'config.teams must be one of red, blue'],
  [
    { limit: '1', limits: '2' },
    'config.limits is not a setting of the module; known: limit, ratio, strict, mode, teams, note',
  ],
  [
    { limit: '1', toString: 'x' },
    'config.toString is not a setting of the module; known: limit, ratio, strict, mode, teams, note',
  ],
])('%j', (config, problem) => {
  expect(settingProblem(settings, config as Record<string, string>)).toBe(problem)
})

test('a value that may be secret is not shown', () => {
  expect(settingProblem({ key: { type: 'integer' } }, { key: 'hunter2' })).not.toContain('hunter2')
})
