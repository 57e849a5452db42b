import { expect, test } from 'vitest'
import type { KernelConfig, WorkerEntry } from '#kernel'
import { wantsLoads } from './load-demand.ts'

type Config = Parameters<typeof wantsLoads>[0]

function config(policies: Partial<Config>, cacheAware = {}): Config {
  const thresholds = { balanceTokenUsageThreshold: 1, overloadTokenUsageThreshold: 1, ...cacheAware }
  return {
    policy: 'round_robin',
    policies: { cacheAware: thresholds } as KernelConfig['policies'],
    ...policies,
  }
}
const labelled = (policy: string) => [{ labels: { policy } } as unknown as WorkerEntry]

test.each([
  ['least_load as default', config({ policy: 'least_load' }), [], true],
  ['power_of_two for decode', config({ decodePolicy: 'power_of_two' }), [], true],
  ['least_load for prefill', config({ prefillPolicy: 'least_load' }), [], true],
  ['a label in any spelling', config({}), labelled('PowerOfTwo'), true],
  ['round_robin', config({}), labelled('random'), false],
  ['cache_aware with no threshold', config({ policy: 'cache_aware' }), [], false],
  [
    'cache_aware with a balance threshold',
    config({ policy: 'cache_aware' }, { balanceTokenUsageThreshold: 0.2 }),
    [],
    true,
  ],
  [
    'cache_aware with an overload threshold',
    config({ policy: 'cache_aware' }, { overloadTokenUsageThreshold: 0.9 }),
    [],
    true,
  ],
  ['a threshold that no policy in use reads', config({}, { overloadTokenUsageThreshold: 0.9 }), [], false],
])(
  '%s: engines are asked for their load only where somebody reads it',
  (_, kernelConfig, entries, wanted) => {
    expect(wantsLoads(kernelConfig, entries)).toBe(wanted)
  },
)
