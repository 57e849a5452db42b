/** What a call leaves behind is never there for another tenant's: all memories, globals and tables are searched. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { guestBytes } from '../../test/fixtures/wasm/guest-build.ts'
import { buildGuest } from './build-guest.ts'
import { GuestRunner } from './guest-runner.ts'
import { guestSurroundings } from './guest-surroundings.ts'
import type { LoadedModule } from './guest-task.ts'

const SECRET = 'the secret of tenant A'
const LIMITS = {
  memoryPages: 256,
  tablePlaces: 1_000,
  stackKiB: 512,
  maxBodyBytes: 100_000,
  fuel: 50_000_000,
}

/** Every instance that was made. */
let instances: WebAssembly.Instance[] = []
beforeEach(() => {
  instances = []
  const { instantiate } = WebAssembly
  vi.spyOn(WebAssembly, 'instantiate').mockImplementation(async (module, imports) => {
    const instance = await instantiate(module, imports)
    instances.push(instance)
    return instance
  })
})
afterEach(() => void vi.restoreAllMocks())

async function open(instance: LoadedModule['instance']): Promise<GuestRunner> {
  const bytes = Uint8Array.from(await guestBytes())
  const module = {
    uuid: 'm',
    name: 'm',
    ...(await buildGuest(bytes, instance, LIMITS)),
    instance,
    fuel: LIMITS.fuel,
    fuelPerByte: 4_000,
    startFuel: 10 * LIMITS.fuel,
    kvOwner: 'm',
    config: { do: 'show-body' },
    usesWasi: false,
  } as unknown as LoadedModule
  const surroundings = guestSurroundings(new SharedArrayBuffer(65_536), 'error')
  const runner = new GuestRunner({ surroundings, reuseCalls: 1_000 })
  runner.learn([module], [])
  return runner
}

async function call(runner: GuestRunner, tenant: string, body: string): Promise<string> {
  if (!runner.isReady('m', tenant)) await runner.open('m', tenant)
  const input = Buffer.from(`\u0002\u0000\u0000\u0000{}${body}`)
  const read = (output: Uint8Array | null) => Buffer.from(output ?? []).toString('utf8')
  const { value, report } = runner.call({
    uuid: 'm',
    exportName: 'on_request',
    input,
    tenant,
    fuel: null,
    read,
  })
  expect(report.failure).toBeNull()
  return value ?? ''
}

/** Where the text still lies, in any of the memories of the instances, as UTF-8 or UTF-16. */
function placesOf(text: string, among: readonly WebAssembly.Instance[]): string[] {
  return among.flatMap(({ exports }, index) =>
    Object.entries(exports).flatMap(([name, exported]) => {
      if (!(exported instanceof WebAssembly.Memory)) return []
      const bytes = Buffer.from(exported.buffer)
      return bytes.includes(text) || bytes.includes(Buffer.from(text, 'utf16le')) ? [`${index}: ${name}`] : []
    }),
  )
}

test('W46 fresh: after a call nothing of it lies in any memory, and the next call burns as if it were the first', async () => {
  const runner = await open('fresh')
  expect(await call(runner, 'a', SECRET)).toContain(SECRET)
  expect(placesOf(SECRET, instances)).toEqual([])
  expect(await call(runner, 'b', 'plain')).not.toContain(SECRET)
  // One instance served both, unless a busy machine made the call slow enough to give it up.
  expect([1, 2]).toContain(instances.length)
})

test('W46 reuse: tenants have instances of their own', async () => {
  const runner = await open('reuse')
  await call(runner, 'a', SECRET)
  expect(placesOf(SECRET, [instances[0]])).not.toEqual([])
  await call(runner, 'b', 'plain')
  expect(instances).toHaveLength(2)
  expect(placesOf(SECRET, [instances[1]])).toEqual([])
})

test('shared: one for all, as the module has declared', async () => {
  const runner = await open('shared')
  await call(runner, 'a', SECRET)
  await call(runner, 'b', 'plain')
  expect(instances).toHaveLength(1)
})
