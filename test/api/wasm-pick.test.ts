/** Routing policies as modules: a module at OnPick picks the worker, otherwise the default policy does. */
import { describe, expect, test } from 'vitest'
import { openWasmFleet, type WasmFleet } from './wasm-fleet.ts'

const WORKERS = Array.from({ length: 3 }, (_, index) => ({
  spec: { labels: { team: ['red', 'blue', 'red'][index] } },
}))

async function open(
  guestConfig: Record<string, string>,
  config: Record<string, unknown> = {},
  more: Record<string, unknown> = {},
) {
  const fleet = await openWasmFleet(config, { kernel: { policy: 'wasm' }, workers: WORKERS })
  return { fleet, ...(await registerChooser(fleet, guestConfig, more)) }
}

async function registerChooser(fleet: WasmFleet, guestConfig: Record<string, string>, more: object) {
  return fleet.register({
    name: 'chooser',
    file_path: await fleet.folder.guest('chooser', 'picking'),
    module_type: 'Middleware',
    attach_points: [{ Middleware: 'OnPick' }],
    config: guestConfig,
    ...more,
  })
}

/** Number of requests per worker. */
const taken = (fleet: WasmFleet) => fleet.workers.map(({ requests }) => requests.length)

async function send(fleet: WasmFleet, times: number, headers: Record<string, string> = {}) {
  for (let i = 0; i < times; i++)
    expect((await fleet.chat({ model: 'test-model', messages: [] }, headers)).status).toBe(200)
  return taken(fleet)
}

const outcomes = async (fleet: WasmFleet, outcome: string) =>
  (await fleet.metrics()).get(
    `weir_wasm_executions_total{module="chooser",attach_point="OnPick",outcome="${outcome}"}`,
  ) ?? 0

test('a module picks the worker of every request', async () => {
  const { fleet } = await open({ do: '1' })
  expect(await send(fleet, 6)).toEqual([0, 6, 0])
  expect(await outcomes(fleet, 'pick')).toBe(6)
  const { modules } = await fleet.list()
  expect(modules[0].module_meta).toMatchObject({ access_count: 6, attach_points: [{ Middleware: 'OnPick' }] })
})

test('without a module, or if it makes no pick, the default policy picks', async () => {
  const bare = await openWasmFleet({}, { kernel: { policy: 'wasm' }, workers: WORKERS })
  expect((await send(bare, 6)).reduce((sum, count) => sum + count)).toBe(6)
  const { fleet } = await open({ do: 'none' })
  expect((await send(fleet, 6)).reduce((sum, count) => sum + count)).toBe(6)
  expect(await outcomes(fleet, 'continue')).toBe(6)
})

test.each([
  ['trap', 'error'],
  ['loop', 'fuel'],
  ['noise', 'bad_output'],
  ['3', 'bad_output'],
  ['-2', 'bad_output'],
  ['1.5', 'bad_output'],
])(
  'a choice that fails (%s) is the default policy’s, and after five the module is suspended',
  async (what, outcome) => {
    const { fleet } = await open({ do: what }, { inline: { fuel: 100_000 } })
    expect((await send(fleet, 10)).reduce((sum, count) => sum + count)).toBe(10)
    expect(await outcomes(fleet, outcome)).toBe(5)
    expect((await fleet.metrics()).get('weir_wasm_skipped_total{module="chooser",reason="suspended"}')).toBe(
      5,
    )
  },
)

test('of a large fleet the next workers in rotation are passed', async () => {
  const { fleet } = await open({ do: '0' }, { pick: { maxCandidates: 1 } })
  expect(await send(fleet, 9)).toEqual([3, 3, 3])
})

test('a module for other models does not run; the policy label of a worker enables it too', async () => {
  const { fleet } = await open({ do: '1' }, {}, { match: { models: ['other*'] } })
  await send(fleet, 3)
  expect(await outcomes(fleet, 'pick')).toBe(0)
  const labelled = await openWasmFleet(
    {},
    { workers: [{}, {}].map(() => ({ spec: { labels: { policy: 'wasm' } } })) },
  )
  const { status } = await labelled.register({
    name: 'chooser',
    file_path: await labelled.folder.guest('chooser', 'picking'),
    module_type: 'Middleware',
    attach_points: [{ Middleware: 'OnPick' }],
    config: { do: '1' },
  })
  expect([status, await send(labelled, 4)]).toEqual([200, [0, 4]])
})

test('matchers that a pick cannot evaluate are rejected at registration, and so are trials', async () => {
  for (const match of [{ routes: ['/v1/*'] }, { headers: { 'x-a': 'b' } }, { share: 0.5 }]) {
    const { status, results } = await open({ do: '1' }, {}, { match })
    expect([status, JSON.stringify(results)]).toEqual([
      400,
      expect.stringContaining('its match may have models'),
    ])
  }
  const { fleet, results } = await open({ do: '1' })
  const uuid = (results[0] as { Success: string }).Success
  const reply = await fetch(`${fleet.gateway.url}/wasm/${uuid}`, {
    method: 'PUT',
    body: JSON.stringify({ trial: { kind: 'canary', percent: 50 } }),
  })
  expect([reply.status, await reply.text()]).toEqual([
    400,
    expect.stringContaining('trial is not available for OnPick'),
  ])
})

test('a replaced module picks from the next request on', async () => {
  const { fleet, results } = await open({ do: '0' })
  expect(await send(fleet, 3)).toEqual([3, 0, 0])
  const reply = await fetch(`${fleet.gateway.url}/wasm/${(results[0] as { Success: string }).Success}`, {
    method: 'PUT',
    body: JSON.stringify({ config: { do: '2' } }),
  })
  expect(reply.status).toBe(200)
  expect(await send(fleet, 3)).toEqual([3, 0, 3])
})

describe('the target of a virtual model', () => {
  const targets = [
    { model: 'small', weight: 1 },
    { model: 'next', weight: 0 },
  ]
  const openVirtual = async (guestConfig: Record<string, string>, more: object = {}) => {
    const fleet = await openWasmFleet(
      {},
      {
        workers: [{ models: ['small'] }, { models: ['next'] }],
        plugins: { 'virtual-models': { models: { assistant: { targets, choose: 'module' } } } },
      },
    )
    await registerChooser(fleet, guestConfig, more)
    return fleet
  }
  const served = async (fleet: WasmFleet) =>
    (await fleet.chat({ model: 'assistant', messages: [] })).headers.get('x-weir-model')

  test('a module chooses it, also one of weight 0', async () => {
    const fleet = await openVirtual({ do: '1' }, { match: { models: ['assistant'] } })
    // The first request creates the instance.
    await served(fleet)
    await expect.poll(() => served(fleet)).toBe('next')
    expect(await served(fleet)).toBe('next')
  })

  test.each(['none', 'trap', '2', 'loop'])('the weights choose if the module does not (%s)', async (what) => {
    const fleet = await openVirtual({ do: what })
    for (let i = 0; i < 7; i++) expect(await served(fleet)).toBe('small')
    expect(await outcomes(fleet, what === 'none' ? 'continue' : 'pick')).toBe(what === 'none' ? 7 : 0)
  })

  test('a module for another model is not asked', async () => {
    const fleet = await openVirtual({ do: '1' }, { match: { models: ['other'] } })
    for (let i = 0; i < 4; i++) expect(await served(fleet)).toBe('small')
  })
})
