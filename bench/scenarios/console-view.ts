/** What an operator waits for in the console with two thousand workers and a thousand requests per second, in Chromium. */
import { type Browser, launchBrowser, type Page } from '../../test/support/chromium.ts'
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { startFleetGateway } from '../support/fleet.ts'
import { callGateway } from '../support/gateway.ts'
import { runLoad } from '../support/load.ts'
import { startWorker } from '../support/subject.ts'

const WORKERS = 2_000
const LOAD = { connections: 32, rate: 1_000 }
const WARM_UP_SECONDS = 5
const NO_PROBES = { disable_health_check: true }
/** Longest time of all measurements of one round. */
const ROUND_SECONDS = 15

interface Waited {
  readonly firstViewMs: number
  /** In the order of the interactions. */
  readonly clicksMs: readonly number[]
}

/** What is clicked, and what shows that it has happened. */
const INTERACTIONS: readonly (readonly [name: string, clicked: string, shown: string])[] = [
  ['workers', 'nav a[href="#/workers"]', '[aria-label="Workers"] tr:nth-child(50)'],
  ['one worker', '[aria-label="Workers"] tbody tr:nth-child(3) button', 'main .details'],
  ['next workers', 'main .pager button:nth-child(2)', 'main .pager button:first-child:enabled'],
  ['requests', 'nav a[href="#/requests"]', '[aria-label="Requests"] tr:nth-child(50)'],
  ['one request', '[aria-label="Requests"] tbody tr:nth-child(2) button', 'main .timeline'],
  ['overview', 'nav a[href="#/overview"]', 'main canvas'],
]

/** From the click to the frame that shows its effect, milliseconds. */
function interact(page: Page, [, clicked, shown]: (typeof INTERACTIONS)[number]): Promise<number> {
  // Text, since the types of this program have no document.
  return page.evaluate<number>(`new Promise((resolve) => {
    const frame = () => {
      if (document.querySelector(${JSON.stringify(shown)}) === null) requestAnimationFrame(frame)
      else requestAnimationFrame(() => resolve(performance.now() - startedAtMs))
    }
    const startedAtMs = performance.now()
    document.querySelector(${JSON.stringify(clicked)}).click()
    frame()
  })`)
}

/** A fresh profile, so that nothing is cached. */
async function measure(browser: Browser, port: number): Promise<Waited> {
  const context = await browser.newContext({ viewport: { width: 1360, height: 860 } })
  try {
    const { headers } = await callGateway(port, 'POST', '/console/session')
    const [name, value] = (headers.get('set-cookie') ?? '').split(';', 1)[0].split('=', 2)
    await context.addCookies([{ name, value, domain: '127.0.0.1', path: '/' }])
    const page = await context.newPage()
    await page.goto(`http://127.0.0.1:${port}/console`, { waitUntil: 'commit' })
    await page.waitForSelector('main canvas')
    const firstViewMs = await page.evaluate(() => performance.now())
    const clicksMs: number[] = []
    for (const interaction of INTERACTIONS) clicksMs.push(await interact(page, interaction))
    return { firstViewMs, clicksMs }
  } finally {
    await context.close()
  }
}

async function run(options: RunOptions): Promise<Figure[]> {
  const worker = await startWorker('worker.ts', WORKERS)
  options.progress(`registering ${WORKERS} workers`)
  const plugins = { console: {}, debug: {} }
  const gateway = await startFleetGateway(worker.ports, NO_PROBES, { plugins })
  const browser = await launchBrowser()
  try {
    await runLoad('paced-load.ts', gateway, { ...LOAD, seconds: WARM_UP_SECONDS })
    const waited: Waited[] = []
    for (let round = 0; round < options.rounds; round++) {
      options.progress(`round ${round + 1}/${options.rounds}`)
      const load = runLoad('paced-load.ts', gateway, { ...LOAD, seconds: ROUND_SECONDS })
      waited.push(await measure(browser, gateway.port))
      await load
    }
    const note = `${WORKERS} workers, ${LOAD.rate} requests/s, Chromium on the same machine`
    return [
      {
        name: 'first view: from navigation to the charts of the overview',
        unit: 'ms',
        values: waited.map(({ firstViewMs }) => firstViewMs),
        target: 1_000,
        note,
      },
      ...INTERACTIONS.map(([name], place) => ({
        name: `click: ${name}, to the frame that shows it`,
        unit: 'ms',
        values: waited.map(({ clicksMs }) => clicksMs[place]),
        target: 100,
      })),
    ]
  } finally {
    await browser.close()
    await gateway.stop()
    await worker.child.stop()
  }
}

export const consoleView: Scenario = {
  name: 'console-view',
  question: 'how long does an operator wait in the console with 2,000 workers at 1,000 requests/s?',
  run,
}
