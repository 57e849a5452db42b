/** The workers section with all defaults. */
import { defineValidator } from '../../kernel/schema/validate.ts'
import { type WorkersConfig, workersConfig } from '../../plugins/workers/registry/config.ts'

export function defaultConfig(): WorkersConfig {
  return defineValidator(workersConfig).parse({})
}
