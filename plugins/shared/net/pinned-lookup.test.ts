import { createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { pinnedLookup } from './pinned-lookup.ts'

const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

async function listen(address: string, port: number) {
  const server = createServer((_, response) => response.end(address))
  await new Promise<void>((resolve) => server.listen(port, address, resolve))
  ends.push(() => server.close())
  return (server.address() as AddressInfo).port
}

test('a host whose address changes between resolutions is reached at checked addresses only', async () => {
  const port = await listen('127.0.0.1', 0)
  await listen('127.0.0.2', port)
  let resolutions = 0
  const lookup = pinnedLookup(
    (address) => {
      if (address !== '127.0.0.2') throw new Error('forbidden')
    },
    (_, done) => done(null, [{ address: resolutions++ % 2 === 0 ? '127.0.0.2' : '127.0.0.1', family: 4 }]),
  )
  const fetchOnce = () =>
    new Promise<string>((resolve) => {
      get({ host: 'changing.test', port, lookup, agent: false }, (response) =>
        response.on('data', (chunk) => resolve(String(chunk))),
      ).on('error', (error) => resolve(error.message))
    })
  const results: string[] = []
  for (let i = 0; i < 6; i++) results.push(await fetchOnce())
  expect(results).toEqual(['127.0.0.2', 'forbidden', '127.0.0.2', 'forbidden', '127.0.0.2', 'forbidden'])
  expect(resolutions).toBe(6)
})
