/** CPU of the first requests of a process, compared with the same load once its code is compiled. */
import { type Figure, type RunOptions, ratios, type Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { cpuPerRequest, type LoadResult, runLoad } from '../support/load.ts'
import { startWorker } from '../support/subject.ts'

const LOAD = { connections: 32, bytes: 250, rate: 480, seconds: 4 }
/** Saturated, so that the compiler has seen every path often enough. */
const WARM_UP = { connections: 32, bytes: 250, rate: 0, seconds: 6 }

async function run({ rounds, progress }: RunOptions): Promise<Figure[]> {
  const worker = await startWorker()
  const first: LoadResult[] = []
  const warm: LoadResult[] = []
  try {
    for (let round = 0; round < rounds; round++) {
      progress(`round ${round + 1}/${rounds}`)
      const gateway = await startGateway({ workerPorts: worker.ports })
      try {
        first.push(await runLoad('paced-load.ts', gateway, LOAD))
        await runLoad('paced-load.ts', gateway, WARM_UP)
        warm.push(await runLoad('paced-load.ts', gateway, LOAD))
      } finally {
        await gateway.stop()
      }
    }
  } finally {
    await worker.child.stop()
  }
  const note = `${LOAD.rate} requests/s for ${LOAD.seconds} s, right after the start and after ${WARM_UP.seconds} s of saturation`
  return [
    { name: 'CPU per request, first seconds', unit: 'µs', values: cpuPerRequest(first) },
    { name: 'CPU per request, warm', unit: 'µs', values: cpuPerRequest(warm) },
    {
      name: 'first seconds / warm',
      unit: '×',
      values: ratios(cpuPerRequest(first), cpuPerRequest(warm)),
      target: 1.3,
      note,
    },
  ]
}

export const firstSeconds: Scenario = {
  name: 'first-seconds',
  question: 'what do the first requests of a process cost, compared with later ones?',
  run,
}
