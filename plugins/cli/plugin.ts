/** `weir plugin`: defines the subcommands for authors of plugins. */
import type { Command } from 'commander'

const EXAMPLES = `
Examples:
  weir plugin new greeting                     a plugin with a route, a hook, a configuration and a test
  cd greeting && npm test
  npx weir serve --config weir.yaml --watch    takes changes while it runs

Guide: docs/guide/plugins.md.`

export function definePlugin(command: Command): void {
  command.addHelpText('after', EXAMPLES)
  command
    .command('new <name>')
    .description('Create a plugin in TypeScript, with a test that runs.')
    .option('--dir <folder>', 'target folder (default: the name)')
    .action(async (name: string, options: { dir?: string }) =>
      (await import('./plugin-new.ts')).createPlugin(name, options.dir ?? name),
    )
}
