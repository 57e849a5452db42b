/** A stopped gateway can be collected: tests start many in one process, and each has tens of megabytes. */
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { apiErrorFormat } from '#kernel'
import { messageSocket } from '#shared'
import { startGateway } from '../support/gateway.ts'
import { plugin } from '../support/hooked-gateway.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** @returns a reference to an object that the handlers of a stopped gateway refer to */
async function runGateway(): Promise<WeakRef<object>> {
  const data = { text: 'x' }
  const own = plugin('held', (host) => {
    const shared = { path: '/held', access: 'public', errors: apiErrorFormat } as const
    host.route({
      ...shared,
      method: 'POST',
      handler: (ctx) => ctx.json(200, data),
      docs: { summary: 'of a test', tag: 'test', responses: {} },
    })
    host.socket(messageSocket({ ...shared, path: '/held/socket', onMessage: (ctx) => ctx.json(200, data) }))
  })
  const gateway = await startGateway({ own: [own] })
  expect(await (await gateway.post('/held', {})).json()).toEqual(data)
  await gateway.stop()
  return new WeakRef(data)
}

test('nothing refers to a stopped gateway', async () => {
  const data = await runGateway()
  const isCollected = async () => {
    await sleep(10)
    collectGarbage()
    return data.deref() === undefined
  }
  await expect.poll(isCollected).toBe(true)
})
