import { expect, test } from 'vitest'
import { startGateway } from '../../test/support/gateway.ts'
import { catalog } from '../catalog.ts'
import { loadConfig } from '../cli/configuration/load.ts'
import { schemasOfCatalog } from '../cli/plugin-schemas.ts'
import { repeatRequests } from './repeat-requests.ts'
import { warmUp } from './warm-up.ts'

test('every format is served', async () => {
  const formats = { chat: {}, messages: {}, responses: {} }
  const text = JSON.stringify({ plugins: { ...formats, 'http-workers': {}, workers: {}, history: false } })
  await warmUp(await loadConfig({ text, env: {}, pluginSchemas: schemasOfCatalog(catalog) }))
})

test('a request that always fails is reported with its response', async () => {
  const gateway = await startGateway()
  try {
    const request = ['/v1/chat/completions', { model: 'none', messages: [] }] as const
    await expect(repeatRequests(gateway.port, [request], 50)).rejects.toThrow(
      /^\/v1\/chat\/completions failed: HTTP\/1\.1 [45]/,
    )
  } finally {
    await gateway.stop()
  }
})

test('a connection that is not opened in time ends the warm-up', async () => {
  const gateway = await startGateway()
  try {
    const request = ['/v1/chat/completions', { model: 'none', messages: [] }] as const
    const repeated = repeatRequests(gateway.port, [request], 50, 100)
    // Blocks the thread beyond the limit, so that the connections expire before they are seen to be open.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150)
    await expect(repeated).rejects.toThrow('no response to a warm-up request')
  } finally {
    await gateway.stop()
  }
})
