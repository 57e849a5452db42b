/** Checks a plugin's section against the schema of its manifest, as for `register`. */
import type { TSchema } from '#kernel'
import { deepFreeze } from '../../../kernel/config/deep-freeze.ts'
import { type PluginSection, withoutSource } from '../../../kernel/config/plugin-source.ts'
import { checkSection } from './check-section.ts'
import { ProblemList } from './problem-list.ts'

/**
 * The section with defaults filled in, without `$path` and `$package`, frozen.
 *
 * @param name key of the section under `plugins`
 * @throws ConfigError with every problem of the section
 */
export function resolvePluginConfig(
  name: string,
  schema: TSchema,
  section: PluginSection,
): Readonly<Record<string, unknown>> {
  const { value, findings } = checkSection(schema, withoutSource(section), ['plugins', name])
  const problems = new ProblemList(null, [])
  for (const finding of findings) problems.add(finding)
  problems.throwIfAny()
  return deepFreeze(value)
}
