import { expect, test } from 'vitest'
import { UpstreamFailure } from '#kernel'
import { probeWorker } from './probe.ts'

const worker = { url: 'http://w', apiKey: null }
const failing = (code: string) => {
  const cause = Object.assign(new Error(code), { code })
  return () => Promise.reject(new UpstreamFailure('connect', code, false, { cause }))
}

test('a probe without a descriptor to be sent with says nothing of the worker; a refused one does', async () => {
  for (const code of ['EMFILE', 'ENFILE', 'EADDRNOTAVAIL'])
    expect(await probeWorker(failing(code), worker, '/health', 100)).toBeUndefined()
  expect(await probeWorker(failing('ECONNREFUSED'), worker, '/health', 100)).toBe('ECONNREFUSED')
})
