/** CPU time of the console's overview with two thousand workers and a thousand requests per second. */
import { type Figure, type RunOptions, ratios, type Scenario } from '../support/figure.ts'
import { type FleetGateway, startFleetGateway } from '../support/fleet.ts'
import { callGateway } from '../support/gateway.ts'
import { measureRounds, runLoad } from '../support/load.ts'
import { threadTimes } from '../support/process.ts'
import { startWorker } from '../support/subject.ts'

const WORKERS = 2_000
const LOAD = { connections: 32, rate: 1_000 }
const WARM_UP_SECONDS = 5
const NO_PROBES = { disable_health_check: true }

interface Used {
  /** Share of a core. */
  readonly control: number
  /** Share of a core, of all other threads. */
  readonly others: number
}

async function measure(gateway: FleetGateway, seconds: number): Promise<Used> {
  const before = threadTimes(gateway.pid)
  const startedAtMs = performance.now()
  await runLoad('paced-load.ts', gateway, { ...LOAD, seconds })
  const nanos = (performance.now() - startedAtMs) * 1_000_000
  let [control, others] = [0, 0]
  for (const [id, used] of threadTimes(gateway.pid)) {
    const delta = used - (before.get(id) ?? 0)
    // The main thread of a process has its id.
    if (id === gateway.pid) control += delta
    else others += delta
  }
  return { control: control / nanos, others: others / nanos }
}

/** With the overview open in a browser. */
async function withPage<T>({ port }: FleetGateway, run: () => Promise<T>): Promise<T> {
  const response = await callGateway(port, 'GET', '/console/live')
  if (response.status !== 200) throw new Error(`GET /console/live returned ${response.status}`)
  const reader = response.body?.getReader()
  const reading = (async () => {
    while (!(await reader?.read())?.done);
  })()
  try {
    return await run()
  } finally {
    await reader?.cancel()
    await reading
  }
}

async function run(options: RunOptions): Promise<Figure[]> {
  const { seconds } = options
  const worker = await startWorker('worker.ts', WORKERS)
  const started: FleetGateway[] = []
  try {
    const start = async (plugins: object) => {
      options.progress(`registering ${WORKERS} workers`)
      const gateway = await startFleetGateway(worker.ports, NO_PROBES, { plugins: { ...plugins } })
      started.push(gateway)
      await runLoad('paced-load.ts', gateway, { ...LOAD, seconds: WARM_UP_SECONDS })
      return gateway
    }
    const [without, withConsole] = [await start({}), await start({ console: {} })]
    const results = await measureRounds(
      [{ name: 'without' }, { name: 'closed' }, { name: 'open' }],
      options,
      ({ name }) => {
        if (name === 'without') return measure(without, seconds)
        if (name === 'closed') return measure(withConsole, seconds)
        return withPage(withConsole, () => measure(withConsole, seconds))
      },
    )
    const control = (name: string) => results(name).map((used) => used.control * 100)
    const others = (name: string) => results(name).map((used) => used.others)
    const added = (name: string) => control(name).map((share, round) => share - control('without')[round])
    const note = `${WORKERS} workers, ${LOAD.rate} requests/s, one data thread`
    return [
      { name: 'control, without the console', unit: '% of a core', values: control('without'), note },
      { name: 'control, added without a page', unit: '% of a core', values: added('closed'), target: 1 },
      { name: 'control, added by an open page', unit: '% of a core', values: added('open'), target: 1 },
      {
        name: 'other threads, open / without',
        unit: '×',
        values: ratios(others('open'), others('without')),
      },
    ]
  } finally {
    for (const gateway of started) await gateway.stop()
    await worker.child.stop()
  }
}

export const console2000: Scenario = {
  name: 'console-2000',
  question: 'what does the overview of the console cost with 2,000 workers at 1,000 requests/s?',
  run,
}
