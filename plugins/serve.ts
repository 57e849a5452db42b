/** What each data thread runs. */
import { serve } from '../kernel/serve.ts'
import { catalog } from './catalog.ts'

await serve({
  catalog,
  entry: import.meta.url,
  warmUp: async (config) => (await import('./serve/warm-up.ts')).warmUp(config),
})
