/** A gateway with every page of the console. */
import { makeFolder } from './built-command.ts'
import { freePort } from './free-port.ts'

export const ADMIN_KEY = 'admin-key-of-the-test'
export const VIEWER_KEY = 'viewer-key-of-the-test'
export const TENANT_KEY = 'tenant-key-of-the-test'

/** In the order of the navigation. */
export const PAGES: readonly (readonly [name: string, title: string])[] = [
  ['overview', 'Overview'],
  ['workers', 'Workers'],
  ['requests', 'Requests'],
  ['modules', 'Modules'],
  ['try', 'Try it'],
  ['usage', 'Usage'],
  ['keys', 'Keys'],
  ['mesh', 'Mesh'],
  ['configuration', 'Configuration'],
]

/** Configuration with every plugin whose routes the pages read. @param guestFolder folder of modules */
export async function consoleConfig(urls: readonly string[], guestFolder: string) {
  return {
    kernel: { threads: 2, port: await freePort(), warmUp: false, log: { level: 'warn' } },
    plugins: {
      auth: {
        auditLog: false,
        tenantKeys: [`team-a:${TENANT_KEY}`],
        controlPlaneKeys: [`ops:Operator:admin:${ADMIN_KEY}`, `viewer:Viewer:user:${VIEWER_KEY}`],
      },
      chat: {},
      console: {},
      debug: {},
      health: {},
      'http-workers': {},
      keys: {},
      limits: {},
      mesh: { name: 'gateway-1' },
      messages: {},
      metrics: { port: 0 },
      policies: {},
      reload: {},
      responses: {},
      storage: { dir: makeFolder() },
      usage: {
        prices: [{ model: '*', input: 1, output: 2 }],
        budgets: [{ tenant: '*', period: 'day', cost: 20 }],
      },
      wasm: { roots: [guestFolder], allowUploads: true },
      workers: {
        urls,
        health: { check_interval_secs: 1, failure_threshold: 1, success_threshold: 1 },
      },
    },
  }
}
