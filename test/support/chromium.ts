/** Debian's Chromium, driven by playwright-core. */
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Browser, chromium } from 'playwright-core'

export type { Browser, Page } from 'playwright-core'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome']

/** Undefined if none is on PATH. */
export const chromiumPath = NAMES.flatMap((name) =>
  (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, name)),
).find(existsSync)

export function launchBrowser(): Promise<Browser> {
  // Chromium has no sandbox for root, as in containers.
  return chromium.launch({ executablePath: chromiumPath ?? 'chromium', args: ['--no-sandbox'] })
}
