/** `weir config`: checks and shows a configuration without a gateway, and changes that of a running one. */
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { BootError } from '../../kernel/errors/boot-error.ts'
import { GatewayError } from '../../kernel/errors/gateway-error.ts'
import { TlsFileError } from '../../kernel/http/tls-files.ts'
import { PluginMistakes } from '../../kernel/plugin/plugin-errors.ts'
import { addConfigOptions, loadFromOptions } from './config-options.ts'
import { ConfigError, type ConfigProblem } from './configuration/config-error.ts'
import { parseSource } from './configuration/config-source.ts'
import { addLiveCommands } from './live-config.ts'

const EXAMPLES = `
Examples:
  weir config check weir.yaml
  weir config show weir.yaml --port 8080
  weir config show --json | jq .kernel
  weir config plan weir.yaml --gateway http://127.0.0.1:30000
  weir config apply weir.yaml
  weir config rollback
  weir config schema > weir.schema.json`

export async function defineConfig(command: Command, args: readonly string[]): Promise<void> {
  command.addHelpText('after', EXAMPLES)
  command
    .command('check <file>')
    .description('Report every problem of a file; exit code 0 if there is none, otherwise 2.')
    .action((file: string, _options: unknown, self: Command) => checkFile(self, file))

  const show = command
    .command('show [file]')
    .description(
      'Print the effective configuration: file, environment, flags and defaults; secrets are masked.',
    )
  await addConfigOptions(show, args)
  show
    .option('--json', 'print JSON instead of YAML')
    .action((file: string | undefined, options: { json?: boolean }) =>
      showConfig(show, file, options.json === true),
    )

  addLiveCommands(command)

  command
    .command('schema')
    .description('Print the JSON Schema of the file, for editors.')
    .action(() => showSchema())
}

async function checkFile(command: Command, file: string): Promise<void> {
  const config = await loadFromOptions(command, file)
  const { dryBoot } = await import('./dry-boot.ts')
  await dryBoot(config).catch((error: unknown) => {
    if (!(error instanceof BootError || error instanceof GatewayError)) throw error
    // Exit code 2, as for other errors in the file.
    throw new ConfigError(problemsOfBoot(error, file))
  })
  for (const notice of config.notices) console.error(`weir: note: ${notice}`)
  const names = Object.keys(config.plugins)
  console.log(`${file} is valid; plugins enabled: ${names.length === 0 ? 'none' : names.join(', ')}`)
}

/** Adds the position at which the plugin is enabled. */
function problemsOfBoot(error: Error, file: string): ConfigProblem[] {
  const { locate } = parseSource(readFileSync(file, 'utf8'), file)
  const place = error instanceof TlsFileError ? locate(error.setting.split('.')) : null
  if (!(error instanceof PluginMistakes)) return [{ path: '', text: error.message, where: place ?? file }]
  return error.mistakes.map(({ plugin, text }) => ({
    path: '',
    text,
    where: locate(['plugins', plugin]) ?? file,
  }))
}

async function showConfig(command: Command, file: string | undefined, asJson: boolean): Promise<void> {
  const [{ maskSecrets }, { renderYaml }, { pluginSchemas }] = await Promise.all([
    import('./configuration/mask.ts'),
    import('./configuration/config-source.ts'),
    import('./plugin-schemas.ts'),
  ])
  const config = await loadFromOptions(command, file)
  const schemas = await Promise.all(
    Object.entries(config.plugins).map(async ([name, section]) => [
      name,
      (await pluginSchemas.find(name, section)).config,
    ]),
  )
  const shown = maskSecrets(config, Object.fromEntries(schemas))
  process.stdout.write(asJson ? `${JSON.stringify(shown, null, 2)}\n` : renderYaml(shown))
}

async function showSchema(): Promise<void> {
  const [{ KernelConfigSchema }, { pluginSchemas }] = await Promise.all([
    import('../../kernel/config/kernel-config.ts'),
    import('./plugin-schemas.ts'),
  ])
  const sections = await Promise.all(
    pluginSchemas.names.map(async (name) => {
      const { config: schema } = await pluginSchemas.find(name, {})
      return [name, { anyOf: [schema, { type: 'null' }, { const: false }] }]
    }),
  )
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Weir configuration',
    type: 'object',
    properties: {
      kernel: KernelConfigSchema,
      plugins: { type: 'object', properties: Object.fromEntries(sections) },
    },
    additionalProperties: false,
  }
  console.log(JSON.stringify(schema, null, 2))
}
