/** The pages of the console in a real browser, with traffic through the built gateway to simulated engines. */
import { readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { GuestFolder } from '../fixtures/wasm/guest-build.ts'
import { type ConsolePage, hasNoBrowser, launchBrowser, openConsole } from '../support/browser.ts'
import {
  type BuiltGateway,
  makeFolder,
  type RunningCommand,
  readyGateway,
  runCommand,
  startSim,
  stopCommands,
} from '../support/built-command.ts'
import { ADMIN_KEY, consoleConfig, PAGES, TENANT_KEY, VIEWER_KEY } from '../support/console-config.ts'
import { freePort } from '../support/free-port.ts'

describe.skipIf(hasNoBrowser)('console', () => {
  let browser: Browser
  let engine: { url: string; command: RunningCommand }
  let gateway: BuiltGateway
  let configFile: string
  const guests = new GuestFolder()
  const opened: ConsolePage[] = []

  beforeAll(async () => {
    browser = await launchBrowser()
    engine = await startSim('--model', 'sim-1', '--ttft-ms', '5', '--itl-ms', '1')
    configFile = join(makeFolder(), 'weir.json')
    writeFileSync(configFile, JSON.stringify(await consoleConfig([engine.url], guests.path)))
    gateway = await startGateway()
  })
  afterEach(async () => {
    for (const page of opened.splice(0)) await page.close()
  })
  afterAll(async () => {
    await browser?.close()
    await stopCommands()
    guests.remove()
  })

  const startGateway = () => readyGateway(runCommand(['serve', '--config', configFile]))

  async function open(width?: number): Promise<ConsolePage> {
    const page = await openConsole(browser, gateway.url, width)
    opened.push(page)
    return page
  }

  async function openAs(key: string, width?: number): Promise<ConsolePage> {
    const page = await open(width)
    await page.signIn(key)
    return page
  }

  const chat = (model = 'sim-1', content = 'Hello', key = TENANT_KEY) =>
    gateway.send(
      'POST',
      '/v1/chat/completions',
      { model, max_tokens: 8, messages: [{ role: 'user', content }] },
      { authorization: `Bearer ${key}` },
    )

  test('signs in with a key of the control plane, and out', async () => {
    const view = await open()
    await view.page.getByLabel('Control-plane key or token').fill('wrong')
    await view.button('Sign in').click()
    await view.page.getByRole('alert').waitFor()
    await view.expectAccessible('light')
    await view.signIn(ADMIN_KEY)
    // The title follows the page's first frame.
    await expect.poll(() => view.page.title()).toContain('Overview')
    // Neither key nor cookie can be read by scripts.
    expect(
      await view.page.evaluate('document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage })'),
    ).toBe('{}')
    await view.button('Sign out').click()
    await view.button('Sign in').waitFor()
    await view.page.reload()
    await view.button('Sign in').waitFor()
    expect(await view.page.context().cookies()).toEqual([])
  })

  test('shows what the gateway does, live', async () => {
    const view = await openAs(ADMIN_KEY)
    await view.visit('overview', 'Overview')
    await expect
      .poll(
        async () => {
          await Promise.all([chat(), chat(), chat()])
          return view.page.locator('.figure', { hasText: 'Requests' }).first().locator('dd').textContent()
        },
        { timeout: 30_000 },
      )
      .toMatch(/[1-9].*\/s/)
    await view.page.getByText('Time to first token').waitFor()
    expect(await view.page.locator('canvas').count()).toBeGreaterThanOrEqual(7)
  })

  test('shows a worker that dies and returns', async () => {
    const port = await freePort()
    const start = () => runCommand(['sim', '--port', String(port), '--model', 'sim-2'])
    let other = start()
    await other.line(/simulated engine listening/)
    const view = await openAs(ADMIN_KEY)
    await view.visit('workers', 'Workers')
    await view.button('Add worker').click()
    const dialog = view.page.getByRole('dialog')
    await dialog.getByLabel('URL').fill(`http://127.0.0.1:${port}`)
    await dialog.getByRole('button', { name: 'Show what is discovered' }).click()
    await dialog.getByText('sim-2').waitFor()
    await dialog.getByRole('button', { name: 'Add', exact: true }).click()
    const row = view.row(String(port))
    await row.getByText('ready', { exact: true }).waitFor()
    await other.stop()
    await row.getByText('not ready').waitFor()
    other = start()
    await row.getByText('ready', { exact: true }).waitFor()

    await row.getByRole('button').click()
    await view.button('Change priority').click()
    await view.page.getByLabel('Priority', { exact: true }).fill('60')
    await view.button('Change').click()
    await expect.poll(() => row.textContent()).toContain('60')
    await view.confirm('Drain')
    await row.getByText('drained', { exact: true }).waitFor()
    expect((await chat('sim-2')).status).toBe(503)
    await view.confirm('End the drain')
    await row.getByText('ready', { exact: true }).waitFor()
    expect((await chat('sim-2')).status).toBe(200)
    await view.page.getByRole('button', { name: /sim-2/ }).click()
    await view.row(engine.url).waitFor({ state: 'detached' })
    await view.confirm('Drain and remove')
    await row.waitFor({ state: 'detached' })
    await other.stop()
  })

  test('shows past requests with their timeline, and names of clients as text', async () => {
    const hostile = '<img src=x onerror=alert(1)>'
    const failed = await chat(hostile)
    expect(failed.ok).toBe(false)
    const requestId = (await chat()).headers.get('x-request-id') as string
    const view = await openAs(ADMIN_KEY)
    await view.visit('requests', 'Requests')
    await view.row(hostile).waitFor()
    expect(await view.page.locator('tbody img').count()).toBe(0)
    await view.page.getByLabel('Status').selectOption('4xx')
    await view.row(requestId).waitFor({ state: 'detached' })
    await view.row(hostile).waitFor()
    await view.page.getByLabel('Request id').fill(requestId)
    await view.button('Show').click()
    await view.page.getByRole('heading', { name: `Request ${requestId}` }).waitFor()
    await view.page.locator('.timeline').getByText(engine.url).first().waitFor()
    await view.page.getByLabel('Request id').fill('unknown-id')
    await view.button('Show').click()
    await view.page.getByRole('alert').waitFor()
  })

  test('uploads a module, promotes a canary and rolls back', async () => {
    const [first, second] = [await guests.guest('first'), await guests.guest('second')]
    const view = await openAs(ADMIN_KEY)
    await view.visit('modules', 'Modules')
    await view.button('Register module').click()
    const dialog = view.page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('guest')
    await dialog.getByLabel('Module file').setInputFiles({
      name: 'picture.wasm',
      mimeType: 'application/wasm',
      buffer: Buffer.from('PNG'),
    })
    await dialog.getByRole('button', { name: 'Register' }).click()
    await dialog.getByRole('alert').getByText('must be a WebAssembly module').waitFor()
    await dialog.getByLabel('Module file').setInputFiles(first)
    await dialog.getByRole('button', { name: 'Register' }).click()
    await view.row('guest').getByText('active').waitFor()
    await view.row('guest').getByRole('button').click()

    await view.button('New version').click()
    await dialog.getByRole('button', { name: 'Path or URL' }).click()
    await dialog.getByLabel('File', { exact: true }).fill('/nowhere.wasm')
    await dialog.getByRole('button', { name: 'Start' }).click()
    await dialog.getByRole('alert').waitFor()
    await dialog.getByLabel('File', { exact: true }).fill(second)
    await dialog.getByLabel('Requests, %').fill('50')
    await dialog.getByRole('button', { name: 'Start' }).click()
    await view.row('guest').getByText('canary').first().waitFor()
    for (let i = 0; i < 20; i++) await chat('sim-1', `Hello ${i}`)
    const calls = view.page.getByLabel('Calls by version').locator('tbody tr')
    await expect
      .poll(async () => (await calls.allTextContents()).join(' '))
      .toMatch(/current[1-9].*canary[1-9]/)
    expect(await view.page.locator('.chart').filter({ hasText: 'canary' }).count()).toBe(3)

    await view.confirm('Promote the canary')
    const current = view.page.getByLabel('Versions').locator('tr.selected')
    await expect.poll(() => current.textContent()).toContain(second)
    await view.confirm('Roll back')
    await expect.poll(() => current.textContent()).toContain(`upload://${basename(first)}`)
    await view.confirm('Remove')
    await view.page.getByText('No modules').waitFor()
  })

  test('shows the log lines of a module', async () => {
    const talker = await guests.module('talker', ['OnRequest'], { do: 'log' })
    const admin = { authorization: `Bearer ${ADMIN_KEY}` }
    expect((await gateway.send('POST', '/wasm', { modules: [talker] }, admin)).status).toBe(200)
    const requestId = (await chat()).headers.get('x-request-id') as string
    const view = await openAs(ADMIN_KEY)
    await view.visit('modules?module=talker', 'Modules')
    const line = view.page.getByLabel('Log', { exact: true }).locator('tr', { hasText: requestId })
    await line.filter({ hasText: 'a warning, ä' }).waitFor()
    await line.filter({ hasText: 'an error line' }).getByRole('link').click()
    await view.page.getByRole('heading', { name: `Request ${requestId}` }).waitFor()
    await view.visit('modules?module=talker', 'Modules')
    await view.confirm('Remove')
    await view.page.getByText('No modules').waitFor()
  })

  test('streams a prompt in every format, with its events and the same request as code', async () => {
    const view = await openAs(ADMIN_KEY)
    await view.visit('try', 'Try it')
    await view.page.getByLabel('API key').fill(TENANT_KEY)
    for (const [format, event, code] of [
      ['Chat', 'chat.completion.chunk', '/v1/chat/completions'],
      ['Responses', 'response.output_text.delta', '/v1/responses'],
      ['Messages', 'content_block_delta', '/v1/messages'],
    ]) {
      await view.button(format).click()
      await view.page.getByLabel('Prompt', { exact: true }).fill(`Hello ${format}, it's me`)
      await view.button('Send').click()
      await view.page.locator('.events').getByText(event).nth(3).waitFor()
      await expect.poll(() => view.page.locator('.answer').textContent()).toMatch(/\w+ \w+/)
      await view.page.getByText(/\d+ in, [1-9]\d* out/).waitFor()
      expect(await view.page.locator('pre').textContent()).toContain(code)
    }
    expect(await view.page.locator('pre').textContent()).toContain("it'\\''s me")
    for (const [language, text] of [
      ['Python', 'client.messages.create('],
      ['TypeScript', "import Anthropic from '@anthropic-ai/sdk'"],
    ]) {
      await view.button(language).click()
      await expect.poll(() => view.page.locator('pre').textContent()).toContain(text)
    }
    expect(await view.page.locator('pre').textContent()).not.toContain(TENANT_KEY)
    await view.page.getByLabel('API key').fill('wrong')
    await view.button('Send').click()
    await view.page.locator('.panel').getByRole('alert').waitFor()
  })

  test('creates, rotates and revokes a key, and shows its usage and budget', async () => {
    const view = await openAs(ADMIN_KEY)
    await view.visit('keys', 'Keys')
    await view.button('Create key').click()
    const dialog = view.page.getByRole('dialog')
    await dialog.getByLabel('Tenant', { exact: true }).fill('team-b')
    await dialog.getByLabel('Description').fill('made by the test')
    await dialog.getByRole('button', { name: 'Create' }).click()
    const secret = view.page.locator('.secret')
    const key = (await secret.textContent()) as string
    await view.button('Done').click()
    expect((await chat('sim-1', 'Hello', key)).status).toBe(200)
    await view.confirm('Rotate')
    const next = (await secret.textContent()) as string
    await view.button('Done').click()
    expect((await chat('sim-1', 'Hello', key)).status).toBe(401)
    expect((await chat('sim-1', 'Hello', next)).status).toBe(200)
    await view.confirm('Revoke')
    await view.row('made by the test').waitFor({ state: 'detached' })
    expect((await chat('sim-1', 'Hello', next)).status).toBe(401)

    await view.visit('usage', 'Usage')
    await view.page.getByLabel('Usage', { exact: true }).getByText('auth:team-b').waitFor()
    const saved = view.page.waitForEvent('download')
    await view.button('Download CSV').click()
    expect(readFileSync(await (await saved).path(), 'utf8')).toMatch(/^tenant,model,requests.*\r\nauth:/)
    await view.page.getByLabel('Budgets').getByText('auth:team-b').waitFor()

    // Grouped by key and day: the two keys of the tenant have a row each.
    for (const [group, isOn] of [
      ['key', true],
      ['day', true],
      ['model', false],
    ] as const)
      await view.page.getByRole('checkbox', { name: group }).setChecked(isOn)
    const day = new Date().toISOString().slice(0, 10)
    const table = view.page.getByLabel('Usage', { exact: true })
    const rows = table.locator('tbody tr', { hasText: 'auth:team-b' }).filter({ hasText: day })
    await expect.poll(() => rows.count()).toBe(2)
    const cells = await rows.evaluateAll((found) =>
      found.map((row) => [...row.querySelectorAll('td')].map(({ textContent }) => textContent)),
    )
    expect(await table.locator('thead th').allTextContents()).toEqual(
      expect.arrayContaining(['Day', 'Tenant', 'Key', 'Requests']),
    )
    // Day, tenant, key, requests.
    expect(new Set(cells.map((row) => row[2])).size).toBe(2)
    for (const row of cells) expect([row[0], row[1], row[3]]).toEqual([day, 'auth:team-b', '1'])
    await view.page.getByRole('checkbox', { name: 'tenant' }).setChecked(false)
    await view.page.getByRole('checkbox', { name: 'key' }).setChecked(false)
    await expect.poll(() => table.locator('thead th').first().textContent()).toBe('Day')
    await expect.poll(() => table.locator('tbody tr').count()).toBe(1)
  })

  test('shows the gateways of the mesh', async () => {
    const view = await openAs(ADMIN_KEY)
    await view.visit('mesh', 'Mesh')
    await view.row('Alive').waitFor()
    await view.page.getByText('All living gateways have the same configuration.').waitFor()
  })

  test('shows the masked configuration, and what has changed in the file', async () => {
    const view = await openAs(ADMIN_KEY)
    await view.visit('configuration', 'Configuration')
    await view.page.getByLabel('Setting', { exact: true }).fill('auth')
    await view.row('plugins.auth').first().waitFor()
    expect(await view.page.locator('body').textContent()).not.toContain(ADMIN_KEY)
    const before = readFileSync(configFile, 'utf8')
    writeFileSync(configFile, before.replace('"level":"warn"', '"level":"error"'))
    await view.button('Compare with the file').click()
    await view.page.getByText('kernel.log.level').waitFor()
    writeFileSync(configFile, before)
    await view.button('Compare with the file').click()
    await view.page.getByText('The gateway runs with the content of the file.').waitFor()
  })

  test('an operator without the role admin sees everything and changes nothing', async () => {
    const view = await openAs(VIEWER_KEY)
    await view.page.getByText('read only').waitFor()
    for (const [name, title] of PAGES) {
      await view.visit(name, title)
      for (const action of [
        'Add worker',
        'Register module',
        'Create key',
        'Rotate',
        'Revoke',
        'Compare with the file',
      ])
        expect(await view.button(action).count(), `${action} on ${title}`).toBe(0)
    }
  })

  test('every page is accessible, and fits a narrow window', async () => {
    await chat()
    const view = await openAs(ADMIN_KEY)
    const narrow = await openAs(ADMIN_KEY, 390)
    for (const [name, title] of PAGES) {
      await view.visit(name, title)
      await expect.poll(() => view.page.locator('.loading').count()).toBe(0)
      await view.expectAccessible('light')
      await view.expectAccessible('dark')
      await narrow.visit(name, title)
      const overflow = 'document.documentElement.scrollWidth - window.innerWidth'
      expect(await narrow.page.evaluate(overflow), `overflow of ${title}`).toBeLessThanOrEqual(0)
    }
  })

  test('works with the keyboard alone', async () => {
    const view = await open()
    await view.page.getByLabel('Control-plane key or token').focus()
    await view.page.keyboard.type(ADMIN_KEY)
    await view.page.keyboard.press('Enter')
    await view.page.getByRole('navigation', { name: 'Pages' }).waitFor()
    await view.page.getByRole('link', { name: 'Workers', exact: true }).focus()
    await view.page.keyboard.press('Enter')
    await view.row(engine.url).getByRole('button').focus()
    await view.page.keyboard.press('Enter')
    await view.button('Change priority').focus()
    await view.page.keyboard.press('Enter')
    await view.page.getByRole('dialog').waitFor()
    await view.page.keyboard.press('Escape')
    await view.page.getByRole('dialog').waitFor({ state: 'detached' })
  })

  // The last one: it ends the gateway.
  test('continues after a restart of the gateway', async () => {
    const view = await openAs(ADMIN_KEY)
    await view.visit('workers', 'Workers')
    await gateway.command.stop()
    await view.page.getByText('The gateway does not respond').waitFor()
    gateway = await startGateway()
    await view.page.getByText('The session has ended. Sign in again.').waitFor()
    await view.signIn(ADMIN_KEY)
    await view.row(engine.url).waitFor()
    expect(view.page.url()).toContain('#/workers')
  })
})
