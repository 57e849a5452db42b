/** `weir mcp`: checks tool servers without a running gateway. */
import type { Command } from 'commander'
import { repeatable } from '../../../cli/config-options.ts'

const EXAMPLES = `
Examples:
  weir mcp check https://mcp.example.com/mcp                      list its tools and call a read-only one
  weir mcp check https://mcp.example.com/mcp --token-env TOKEN    with a bearer token from the environment
  weir mcp check files --config weir.yaml --call read_file --arguments '{"path":"a.txt"}'`

export function defineMcp(command: Command): void {
  command.addHelpText('after', EXAMPLES)
  command
    .command('check <url-or-label>')
    .description(
      'Connect to a tool server, report its protocol and tools, which of them cannot be used and why, call one; exit code 1 if there are problems.',
    )
    .option('--config <file>', 'configuration with the server of that label, rules and limits')
    .option('--call <tool>', 'tool to call (default: a read-only one without required arguments)')
    .option('--arguments <json>', 'arguments of the call, a JSON object', '{}')
    .option('--token-env <variable>', 'environment variable that holds a bearer token')
    .addOption(repeatable('--header-env <name=VARIABLE>', 'header from an environment variable; repeatable'))
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (place, options) => (await import('./check.ts')).checkServer(place, options))
}
