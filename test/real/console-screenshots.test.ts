/**
 * Takes screenshots of every page, in light, dark and narrow windows, with traffic. To look at, and for the guide:
 *
 *   WEIR_SCREENSHOTS=/tmp/shots npx vitest run test/real/console-screenshots.test.ts
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { GuestFolder } from '../fixtures/wasm/guest-build.ts'
import { hasNoBrowser, launchBrowser, openConsole } from '../support/browser.ts'
import { makeFolder, readyGateway, runCommand, startSim, stopCommands } from '../support/built-command.ts'
import { ADMIN_KEY, consoleConfig, PAGES, TENANT_KEY } from '../support/console-config.ts'

const folder = process.env.WEIR_SCREENSHOTS
/** Long enough for charts with a shape. */
const TRAFFIC_MS = 40_000
const LANES = 6

test.skipIf(hasNoBrowser || folder === undefined)(
  'screenshots of every page',
  { timeout: 300_000 },
  async () => {
    const guests = new GuestFolder()
    const speed = ['--ttft-ms', '40', '--itl-ms', '4']
    const engines = await Promise.all([
      startSim('--model', 'llama-3.3-70b', ...speed),
      startSim('--model', 'llama-3.3-70b', ...speed),
      startSim('--model', 'llama-3.3-70b', ...speed),
      startSim('--model', 'qwen3-32b', ...speed),
      startSim('--model', 'qwen3-32b', ...speed),
    ])
    const file = join(makeFolder(), 'weir.json')
    const config = await consoleConfig(
      engines.map(({ url }) => url),
      guests.path,
    )
    const { plugins } = config
    Object.assign(plugins.workers, { engineMetrics: true })
    writeFileSync(file, JSON.stringify(config))
    const gateway = await readyGateway(runCommand(['serve', '--config', file]))
    const admin = { authorization: `Bearer ${ADMIN_KEY}` }
    const control = async (method: string, path: string, body?: object) => {
      const response = await gateway.send(method, path, body, admin)
      expect(response.ok, `${method} ${path}: ${await response.clone().text()}`).toBe(true)
      return response.json()
    }

    const module = await guests.module('audit', ['OnRequest'], { do: 'log' })
    const { modules } = (await control('POST', '/wasm', { modules: [module] })) as {
      modules: { add_result: { Success: string } }[]
    }
    const next = { file_path: await guests.guest('audit'), trial: { kind: 'canary', percent: 30 } }
    await control('PUT', `/wasm/${modules[0].add_result.Success}`, next)
    const { key } = (await control('POST', '/keys', { tenant: 'team-b', name: 'batch jobs' })) as {
      key: string
    }
    await engines[4].command.stop()
    const { workers } = (await control('GET', '/workers')) as { workers: { id: string; url: string }[] }
    const drained = workers.find(({ url }) => url === engines[2].url)
    await control('PATCH', `/workers/${drained?.id}`, { drained: true })

    let isOver = false
    let requestId = ''
    const lane = async (number: number) => {
      for (let count = number; !isOver; count++) {
        const body = {
          model: count % 23 === 0 ? 'unknown-model' : count % 3 === 0 ? 'qwen3-32b' : 'llama-3.3-70b',
          stream: true,
          max_tokens: 20 + (count % 7) * 20,
          messages: [{ role: 'user', content: `Summarize report ${count} of lane ${number}.` }],
        }
        const authorization = `Bearer ${number % 3 === 0 ? key : TENANT_KEY}`
        const response = await gateway.send('POST', '/v1/chat/completions', body, { authorization })
        await response.text()
        if (response.ok) requestId = response.headers.get('x-request-id') ?? ''
      }
    }
    const lanes = Array.from({ length: LANES }, (_, number) => lane(number))
    const browser = await launchBrowser()
    try {
      const wide = await openConsole(browser, gateway.url)
      const narrow = await openConsole(browser, gateway.url, 390)
      await wide.page.screenshot({ path: join(folder as string, 'sign-in-light.png') })
      for (const view of [wide, narrow]) await view.signIn(ADMIN_KEY)
      await sleep(TRAFFIC_MS)
      const places: Readonly<Record<string, string>> = {
        workers: `workers?worker=${workers[0].id}`,
        requests: `requests?id=${requestId}`,
        modules: 'modules?module=audit',
      }
      for (const [name, title] of PAGES)
        for (const view of [wide, narrow]) {
          await view.visit(places[name] ?? name, title)
          await expect.poll(() => view.page.locator('.loading').count()).toBe(0)
          if (name === 'try') {
            await view.page.getByLabel('API key').fill(TENANT_KEY)
            await view.page.getByLabel('Prompt', { exact: true }).fill('What is a gateway for models?')
            await view.button('Send').click()
            await view.page.getByText(/\d+ in, [1-9]\d* out/).waitFor()
          }
          // Charts that count while the page is open.
          if (name === 'modules') await sleep(8_000)
          const shoot = (appearance: 'light' | 'dark', file: string) =>
            view.page
              .emulateMedia({ colorScheme: appearance })
              .then(() => sleep(500))
              .then(() => view.page.screenshot({ path: join(folder as string, file), fullPage: true }))
          if (view === narrow) await shoot('light', `${name}-narrow.png`)
          else for (const look of ['light', 'dark'] as const) await shoot(look, `${name}-${look}.png`)
        }
      await narrow.close()
      await wide.close()
    } finally {
      isOver = true
      await Promise.all(lanes)
      await browser.close()
      await stopCommands()
      guests.remove()
    }
  },
)
