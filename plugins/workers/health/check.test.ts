import { expect, test } from 'vitest'
import { defineValidator, type KernelConfig } from '#kernel'
import { healthConfig } from './config.ts'
import plugin from './index.ts'

test.each([
  [{ probe: { port: 30_000 } }, ['probe.port must differ from kernel.port (got 30000)']],
  [{ probe: { port: 30_001 } }, []],
  [{ probe: { port: 0 } }, []],
  [
    { probe: { host: 'localhost:1', port: 0 } },
    ['probe.host must be an address without a port; set the port separately'],
  ],
  [{}, []],
])('%j beside an API at 30000: %j', (section, problems) => {
  const config = defineValidator(healthConfig).parse(section)
  const found = [...(plugin.check?.(config, { port: 30_000 } as KernelConfig) ?? [])]
  expect(found.map(({ path, text }) => `${path.join('.')} ${text}`)).toEqual(problems)
})
