/** The configuration of a running gateway: its file, read again for reloads. */
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { ShownConfig } from '#kernel'
import type { LoadedConfig } from '../../../kernel/config/loaded-config.ts'
import type { ConfigChange, ConfigSource } from '../../../kernel/config/reload.ts'
import { isObject } from '../../../kernel/wire/is-object.ts'
import { schemasOf } from '../plugin-schemas.ts'
import { changeConfig } from './config-change.ts'
import { ConfigError, type ConfigProblem } from './config-error.ts'
import { parseSource } from './config-source.ts'
import { findPluginFile } from './find-plugin-file.ts'
import { showConfig } from './shown-config.ts'

/** Name of a text that is not the configuration file, for messages. */
export const PLANNED_NAME = 'configuration'

/** Text instead of the content of the configuration file. */
export interface GivenText {
  readonly text: string
  /** For messages. */
  readonly name: string
}

/** Loads and checks the configuration, from its file if no text is given. */
export type LoadConfig = (given?: GivenText) => Promise<LoadedConfig>

export class FileSource implements ConfigSource {
  readonly #file: string | null
  readonly #load: LoadConfig

  /** @param file null if the gateway was started without one */
  constructor(file: string | null, load: LoadConfig) {
    this.#file = file
    this.#load = load
  }

  async readChange(
    running: LoadedConfig,
    reloads: ReadonlyMap<string, readonly string[]>,
    text?: string,
  ): Promise<ConfigChange> {
    if (text !== undefined) rejectNewPluginFiles(text, running)
    const given = text === undefined ? undefined : { text, name: PLANNED_NAME }
    return changeConfig(running, await this.#load(given), reloads)
  }

  async show(running: LoadedConfig): Promise<ShownConfig> {
    return showConfig(running, await schemasOf(running))
  }

  isInstalled(text: string): boolean {
    return this.#read() === text
  }

  /** Null if there is no file or it cannot be read, which the loader reports. */
  #read(): string | null {
    try {
      return this.#file === null ? null : readFileSync(this.#file, 'utf8')
    } catch {
      return null
    }
  }
}

/**
 * A planned text comes from a request, which must not make the gateway import a file that its operator has not configured.
 * @throws ConfigError
 */
function rejectNewPluginFiles(text: string, running: LoadedConfig): void {
  const { value, problems, locate } = parseSource(text, PLANNED_NAME)
  if (problems.length > 0) throw new ConfigError(problems)
  const sections = isObject(value) && isObject(value.plugins) ? Object.entries(value.plugins) : []
  const baseDir = running.file === null ? process.cwd() : dirname(running.file)
  const found: ConfigProblem[] = []
  for (const [name, section] of sections) {
    if (!isObject(section) || (section.$path === undefined && section.$package === undefined)) continue
    if (isRunning(name, section, running, baseDir)) continue
    found.push({
      path: `plugins.${name}`,
      text: 'is a plugin file that the gateway has not loaded, so it cannot be planned: check it with weir config check on the machine of the gateway; it needs a restart',
      where: locate(['plugins', name]),
    })
  }
  if (found.length > 0) throw new ConfigError(found)
}

function isRunning(
  name: string,
  section: Record<string, unknown>,
  { plugins }: LoadedConfig,
  baseDir: string,
): boolean {
  try {
    return Object.hasOwn(plugins, name) && findPluginFile(section, baseDir) === plugins[name].$path
  } catch {
    return false
  }
}
