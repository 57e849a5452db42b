/** A module with an endless loop: when its request ends, and how it affects other requests. */
import { type Figure, median, type RunOptions, ratios, type Scenario } from '../support/figure.ts'
import { type Guests, withGuests } from '../support/guests.ts'
import { Burst } from '../support/latency-probe.ts'
import { runLoad } from '../support/load.ts'
import { wait } from '../support/process.ts'
import { startWasmGateway } from '../support/wasm-gateway.ts'

type Placement = 'pool' | 'inline'
const PLACEMENTS: readonly Placement[] = ['pool', 'inline']

const DEADLINE_MS = 250
const OTHERS_PER_SECOND = 500
/** The load client opens its connections before the loop starts. */
const HEAD_START_MS = 600

/** Number of looping requests, and of the others. */
const MANY = 40
const COOL_OFF_MS = 500
const WARM_UP_BURSTS = 5

function run({ rounds, progress }: RunOptions): Promise<Figure[]> {
  return withGuests(['loop'], progress, async (guests, worker) => {
    const options = { rounds, progress }
    const single = {
      pool: await measureSingle('pool', guests, worker.port, options),
      inline: await measureSingle('inline', guests, worker.port, options),
    }
    const bursts = []
    for (const placement of PLACEMENTS)
      bursts.push(...(await measureBursts(placement, guests, worker.port, options)))
    return [
      {
        name: 'end of the looping request',
        unit: 'ms',
        values: single.pool.endedMs,
        target: DEADLINE_MS + 150,
        note: `the module may run for ${DEADLINE_MS} ms; it fails open, so the request then completes`,
      },
      ...PLACEMENTS.flatMap((placement): Figure[] => [
        { name: `p99 of the others before, ${placement}`, unit: 'ms', values: single[placement].aloneP99Ms },
        {
          name: `p99 of the others, ${placement}`,
          unit: 'ms',
          values: single[placement].othersP99Ms,
          target: placement === 'inline' ? 5 : 50,
          note: `${OTHERS_PER_SECOND} requests/s through the same module, while one request loops`,
        },
      ]),
      ...bursts,
    ]
  })
}

/** One looping request during a second of other requests. */
async function measureSingle(
  placement: Placement,
  guests: Guests,
  workerPort: number,
  { rounds, progress }: Pick<RunOptions, 'rounds' | 'progress'>,
): Promise<{ endedMs: number[]; aloneP99Ms: number[]; othersP99Ms: number[] }> {
  const use = { guest: 'loop', point: 'OnRequest', instance: 'reuse', placement } as const
  const modules = [{ ...use, timeoutMs: DEADLINE_MS }]
  // While one thread loops, the other continues; a single thread would block all requests until the deadline.
  const gateway = await startWasmGateway({ workerPort, guests, modules, poolThreads: 2 })
  const load = { connections: 32, rate: OTHERS_PER_SECOND, seconds: 1 }
  const burst = new Burst(gateway.port)
  const found = { endedMs: [] as number[], aloneP99Ms: [] as number[], othersP99Ms: [] as number[] }
  try {
    await runLoad('paced-load.ts', gateway, { ...load, seconds: 2 })
    for (let round = 0; round < rounds; round++) {
      progress(`one loop, ${placement}, round ${round + 1}/${rounds}`)
      found.aloneP99Ms.push((await runLoad('paced-load.ts', gateway, load)).report.p99Micros / 1_000)
      const others = runLoad('paced-load.ts', gateway, load)
      await wait(HEAD_START_MS)
      found.endedMs.push((await burst.send(1, LOOPING))[0])
      found.othersP99Ms.push((await others).report.p99Micros / 1_000)
      // By then the terminated thread is replaced.
      await wait(1_000)
    }
    const { failed } = await gateway.calls()
    if (failed < rounds) throw new Error(`${rounds} requests should have looped, ${failed} did`)
  } finally {
    burst.end()
    await gateway.stop()
  }
  return found
}

const LOOPING = { 'x-bench-loop': '1' }

/** Ends the suspension of the module with a successful call. */
async function useAgain(burst: Burst): Promise<void> {
  await wait(2 * COOL_OFF_MS)
  await burst.send(1)
}

/** Harmless requests alone, and with as many looping ones, through one module that is suspended meanwhile. */
async function measureBursts(
  placement: Placement,
  guests: Guests,
  workerPort: number,
  { rounds, progress }: Pick<RunOptions, 'rounds' | 'progress'>,
): Promise<Figure[]> {
  const use = { guest: 'loop', point: 'OnRequest', instance: 'reuse', placement } as const
  const modules = [{ ...use, timeoutMs: DEADLINE_MS }]
  const options = { workerPort, guests, modules, poolThreads: 2, coolOffMs: COOL_OFF_MS }
  const gateway = await startWasmGateway(options)
  const burst = new Burst(gateway.port)
  const aloneMs: number[] = []
  const besideHarmlessMs: number[] = []
  const besideMs: number[] = []
  const failures: number[] = []
  const pacedRatios: number[] = []
  const paced = async () =>
    (await runLoad('paced-load.ts', gateway, { connections: MANY, rate: OTHERS_PER_SECOND, seconds: 1 }))
      .report
  try {
    for (let i = 0; i < WARM_UP_BURSTS; i++) await burst.send(2 * MANY)
    for (let round = 0; round < rounds; round++) {
      progress(`${MANY} beside ${MANY}, ${placement}, round ${round + 1}/${rounds}`)
      aloneMs.push(median(await burst.send(MANY)))
      const harmless = burst.send(MANY)
      besideHarmlessMs.push(median(await burst.send(MANY)))
      await harmless
      const before = await gateway.calls()
      const looping = burst.send(MANY, LOOPING)
      besideMs.push(median(await burst.send(MANY)))
      await looping
      failures.push((await gateway.calls()).failed - before.failed)
      await useAgain(burst)
      const quiet = await paced()
      const others = paced()
      await wait(HEAD_START_MS)
      await burst.send(MANY, LOOPING)
      pacedRatios.push((await others).p50Micros / quiet.p50Micros)
      await useAgain(burst)
    }
  } finally {
    burst.end()
    await gateway.stop()
  }
  return [
    { name: `p50 of ${MANY} alone, ${placement}`, unit: 'ms', values: aloneMs },
    { name: `p50 of ${MANY} beside ${MANY} harmless, ${placement}`, unit: 'ms', values: besideHarmlessMs },
    { name: `p50 of ${MANY} beside ${MANY} that loop, ${placement}`, unit: 'ms', values: besideMs },
    {
      name: `beside / alone, at once, ${placement}`,
      unit: 'x',
      values: ratios(besideMs, aloneMs),
      target: 2,
      note: 'all sent at one moment, the looping ones first; this also includes the cost of twice as many requests',
    },
    {
      name: `beside those that loop / beside harmless, ${placement}`,
      unit: 'x',
      values: ratios(besideMs, besideHarmlessMs),
      target: 2,
      note: 'the effect of the loops: 80 requests were sent at one moment in both',
    },
    {
      name: `beside / alone, ${OTHERS_PER_SECOND}/s, ${placement}`,
      unit: 'x',
      values: pacedRatios,
      target: 2,
      note: `p50 of a second of harmless requests on ${MANY} connections, with ${MANY} looping ones`,
    },
    { name: `failed calls until suspended, ${placement}`, unit: '', values: failures },
  ]
}

export const wasmLoop: Scenario = {
  name: 'wasm-loop',
  question: 'does a module with an endless loop delay other requests?',
  run,
}
