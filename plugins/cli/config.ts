/** `weir config`: checks and shows a configuration without a gateway, and changes that of a running one. */
import type { Command } from 'commander'
import { addConfigOptions, loadFromOptions } from './config-options.ts'
import { addLiveCommands } from './live-config.ts'

const EXAMPLES = `
Examples:
  weir config check weir.yaml
  weir config show weir.yaml --port 8080
  weir config show --json | jq .kernel
  weir config plan weir.yaml --gateway http://127.0.0.1:30000
  weir config apply weir.yaml
  weir config schema > weir.schema.json`

export async function defineConfig(command: Command, args: readonly string[]): Promise<void> {
  command.addHelpText('after', EXAMPLES)
  command
    .command('check <file>')
    .description(
      'Report every problem of a file, including files that it names and ports in use; exit code 0 if the gateway would start, otherwise 2.',
    )
    .action(async (file: string, _options: unknown, self: Command) => {
      const { checkFile } = await import('./check-file.ts')
      await checkFile(self, file)
    })

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

async function showConfig(command: Command, file: string | undefined, asJson: boolean): Promise<void> {
  const [{ maskSecrets }, { renderYaml }, { schemasOf }] = await Promise.all([
    import('./configuration/mask.ts'),
    import('./configuration/config-source.ts'),
    import('./plugin-schemas.ts'),
  ])
  const config = await loadFromOptions(command, file)
  const shown = maskSecrets(config, await schemasOf(config))
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
