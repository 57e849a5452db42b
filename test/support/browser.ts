/** The console in a browser, for tests. */
import axe from 'axe-core'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { expect } from 'vitest'
import { chromiumPath } from './chromium.ts'

export { launchBrowser } from './chromium.ts'

/** Whether tests with a browser are skipped, because none is installed. */
export const hasNoBrowser = chromiumPath === undefined && process.env.WEIR_TEST_REQUIRE_SERVICES !== '1'
if (hasNoBrowser)
  console.warn('skipped: tests with a browser, since chromium is not on PATH: apt-get install chromium')

export type Appearance = 'light' | 'dark'

/** A page of the console in a fresh profile. Everything that the browser complains about is kept. */
export class ConsolePage {
  readonly page: Page
  readonly url: string
  readonly #context: BrowserContext
  /** Exceptions, violations of the content security policy, and dialogs that a script has opened. */
  readonly #complaints: string[] = []

  /** Use `openConsole`. */
  constructor(page: Page, url: string) {
    this.page = page
    this.url = url
    this.#context = page.context()
    page.on('pageerror', (error) => this.#complaints.push(error.message))
    page.on('console', (message) => {
      if (/Content.Security.Policy/i.test(message.text())) this.#complaints.push(message.text())
    })
    page.on('dialog', (dialog) => {
      this.#complaints.push(`dialog: ${dialog.message()}`)
      dialog.dismiss()
    })
  }

  async signIn(key: string): Promise<void> {
    await this.page.getByLabel('Control-plane key or token').fill(key)
    await this.page.getByRole('button', { name: 'Sign in' }).click()
    await this.page.getByRole('navigation', { name: 'Pages' }).waitFor()
  }

  /** @param place name of the page with its filters, such as `workers?state=ready` */
  async visit(place: string, title: string): Promise<void> {
    await this.page.goto(`${this.url}/console#/${place}`)
    await this.page.getByRole('heading', { level: 1, name: title }).waitFor()
  }

  row(text: string | RegExp) {
    return this.page.locator('tbody tr').filter({ hasText: text })
  }

  button(name: string) {
    return this.page.getByRole('button', { name, exact: true })
  }

  /** Opens the dialog of the button, and confirms it with the button of the same name. */
  async confirm(name: string): Promise<void> {
    await this.button(name).first().click()
    const submit = this.page.getByRole('dialog').getByRole('button', { name, exact: true })
    await submit.click()
    await submit.waitFor({ state: 'detached' })
  }

  /** Fails for findings of axe-core that are serious or critical. */
  async expectAccessible(appearance: Appearance): Promise<void> {
    await this.page.emulateMedia({ colorScheme: appearance })
    // Evaluated by the debugger, which the policy of the page does not restrict.
    await this.page.evaluate(axe.source)
    const findings = await this.page.evaluate(async () => {
      const { violations } = await (
        globalThis as unknown as { axe: { run(): Promise<{ violations: Finding[] }> } }
      ).axe.run()
      return violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.map(({ html }) => html) }))
    })
    const serious = findings.filter(({ impact }) => impact === 'serious' || impact === 'critical')
    expect(serious, `${this.page.url()}, ${appearance}`).toEqual([])
  }

  /** Fails if the browser has complained, or the page is wider than the window. */
  async close(): Promise<void> {
    await this.#context.close()
    expect(this.#complaints).toEqual([])
  }
}

interface Finding {
  readonly id: string
  readonly impact: string | null
  readonly nodes: readonly { readonly html: string }[]
}

/** @param url of the gateway @param width of the window, pixels */
export async function openConsole(browser: Browser, url: string, width = 1360): Promise<ConsolePage> {
  const context = await browser.newContext({ viewport: { width, height: 860 } })
  const page = await context.newPage()
  page.setDefaultTimeout(30_000)
  const opened = new ConsolePage(page, url)
  await page.goto(`${url}/console`)
  return opened
}
