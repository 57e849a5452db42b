/** `weir plugin new`: creates the project of a plugin. */
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { installedFile } from '../../kernel/installation.ts'
import { gatewayDependency } from './gateway-dependency.ts'
import { CliError } from './output.ts'

const EXAMPLES = `
Examples:
  weir plugin new greeting                     a plugin with a route, a hook, a configuration and a test
  cd greeting && npm test
  npx --no-install weir serve --config weir.yaml --watch    takes changes while it runs

Guide: docs/guide/plugins.md.`

const NAME = /^[a-z][a-z0-9-]{0,63}$/
const TEMPLATE = fileURLToPath(installedFile('plugins/cli/plugin-template'))
/** Files that the package of the gateway leaves out under their own name. */
const RENAMED: Readonly<Record<string, string>> = { gitignore: '.gitignore', 'test.ts': 'plugin.test.ts' }

export function definePlugin(command: Command): void {
  command.addHelpText('after', EXAMPLES)
  command
    .command('new <name>')
    .description('Create a plugin in TypeScript, with a test that runs.')
    .option('--dir <folder>', 'target folder (default: the name)')
    .action((name: string, options: { dir?: string }) => createPlugin(name, options.dir ?? name))
}

/** @throws CliError for an invalid name or a folder that is not empty; overwrites nothing */
async function createPlugin(name: string, folder: string): Promise<void> {
  if (!NAME.test(name))
    throw new CliError(`${name} is not a valid plugin name\n  use lower-case letters, digits and hyphens`)
  const directory = resolve(folder)
  if (existsSync(directory) && (await readdir(directory)).length > 0)
    throw new CliError(`${directory} is not empty\n  choose a folder that does not exist yet`)
  await mkdir(directory, { recursive: true })
  const files = new Map([['package.json', manifest(directory, name)]])
  // npm leaves .gitignore out of packages.
  for (const file of await readdir(TEMPLATE))
    files.set(RENAMED[file] ?? file, await readFile(join(TEMPLATE, file), 'utf8'))
  for (const [file, text] of files) await writeFile(join(directory, file), text.replaceAll('{{name}}', name))
  const place = relative('.', directory) || '.'
  console.log(`created the plugin ${name} in ${directory}:
${[...files.keys()]
  .sort()
  .map((file) => `  ${file}`)
  .join('\n')}

next:
  cd ${place}
  npm test
  npx --no-install weir serve --config weir.yaml --watch`)
}

function manifest(directory: string, name: string): string {
  const content = {
    name,
    version: '0.1.0',
    private: true,
    type: 'module',
    scripts: {
      start: 'weir serve --config weir.yaml --watch',
      check: 'weir config check weir.yaml',
      test: 'node --test',
    },
    devDependencies: gatewayDependency(directory),
  }
  return `${JSON.stringify(content, null, 2)}\n`
}
