/** The command line reference: the help texts of every command. */
import type { Command } from 'commander'
import { toPage } from './tables.ts'

/** @param open builds the command tree with the named command loaded */
export async function cliPage(open: (args: readonly string[]) => Promise<Command>): Promise<string> {
  const root = await open([])
  const sections = [sectionOf('weir', root)]
  for (const name of root.commands.map((command) => command.name())) {
    const program = await open([name])
    const command = program.commands.find((one) => one.name() === name)
    if (command !== undefined) sections.push(...sectionsOf(`weir ${name}`, command))
  }
  return toPage(
    'CLI reference',
    'Every command with its options. Guide: [quick start](../guide/quick-start.md).',
    ...sections,
  )
}

function sectionsOf(path: string, command: Command): string[] {
  const nested = command.commands.flatMap((one) => sectionsOf(`${path} ${one.name()}`, one))
  return [sectionOf(path, command), ...nested]
}

function sectionOf(path: string, command: Command): string {
  command.configureHelp({ helpWidth: 120 })
  return `## ${path}\n\n\`\`\`text\n${command.helpInformation().trimEnd()}\n\`\`\``
}
