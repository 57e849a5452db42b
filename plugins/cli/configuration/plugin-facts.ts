/** What the loader reads in manifests, and how it finds them. */
import type { TSchema } from '#kernel'
import type { PluginSection } from '../../../kernel/config/plugin-source.ts'

/** What the loader reads in a plugin's manifest. */
export interface PluginFacts {
  readonly name: string
  readonly config: TSchema
  /** Policies that it registers. */
  readonly policies?: readonly string[]
}

/** How the loader learns what a plugin may be told. */
export interface PluginSchemas {
  /** Plugins that exist without a package or a file, for suggestions. */
  readonly names: readonly string[]
  /** A plugin's own name and the schema of its section. @throws when the plugin cannot be imported */
  find(name: string, section: PluginSection): Promise<PluginFacts>
}
