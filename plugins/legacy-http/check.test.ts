/** What the section may not say beside the kernel's. */
import { expect, test } from 'vitest'
import { defineValidator, type KernelConfig } from '#kernel'
import { legacyHttpConfig } from './config.ts'
import plugin from './index.ts'

const config = defineValidator(legacyHttpConfig).parse({ port: 30_080 })
const problemsWith = (kernel: Partial<KernelConfig>) =>
  Array.from(
    plugin.check?.(config, kernel as KernelConfig) ?? [],
    ({ path, text }) => `${path.join('.')}: ${text}`,
  )

test.each([
  [{ port: 0 }, ': hands requests on to kernel.port'],
  [{ port: 30_080 }, 'port: must differ from kernel.port, got 30080'],
  [
    { port: 30_000, tls: { certFile: 'c', keyFile: 'k', clientCaFile: 'a' } },
    ': cannot hand on certificates of clients',
  ],
])('a kernel with %j is refused', (kernel, problem) => {
  expect(problemsWith(kernel)).toEqual([expect.stringContaining(problem)])
})

test('another one is not', () => {
  expect(problemsWith({ port: 30_000, tls: { certFile: 'c', keyFile: 'k' } })).toEqual([])
})
