/** Whether other machines can use a gateway without a secret. */
import type { LoadedConfig } from '../../kernel/config/loaded-config.ts'
import { isLoopback } from '../../kernel/http/cors.ts'
import type { AuthConfig } from '../access/auth/config.ts'
import { hasCredentials } from '../access/auth/keys.ts'

/** Published with the examples. */
const DEMO_KEY = 'weir-demo-key'

/** Warning if the gateway is reachable from other machines without a secret; null otherwise. */
export function exposureWarning({ kernel, plugins }: LoadedConfig): string | null {
  const { host, auth } = kernel
  if (isLoopback(host)) return null
  const reach = `${host} is reachable from other machines`
  if (auth === 'off') return `kernel.auth is off and ${reach}: requests need no key`
  if (plugins.auth === undefined) return null
  const section = plugins.auth as unknown as AuthConfig
  const published = settingWithDemoKey(section)
  if (published !== null)
    return `plugins.auth.${published} is the published key of the examples and ${reach}: set a key of your own`
  if (hasCredentials(section) || plugins.keys !== undefined) return null
  return `no key is configured and ${reach}: requests need no key. Set WEIR_API_KEY`
}

function settingWithDemoKey({ apiKey, tenantKeys, controlPlaneKeys, keys }: AuthConfig): string | null {
  const isDemo = (entry: string) => entry.endsWith(`:${DEMO_KEY}`)
  if (apiKey === DEMO_KEY) return 'apiKey'
  if (tenantKeys.some(isDemo)) return 'tenantKeys'
  if (controlPlaneKeys.some(isDemo)) return 'controlPlaneKeys'
  return keys.some(({ key }) => key === DEMO_KEY) ? 'keys' : null
}
