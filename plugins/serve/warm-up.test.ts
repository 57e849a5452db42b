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
