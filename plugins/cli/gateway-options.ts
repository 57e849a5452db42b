/** The options of every command that talks to a running gateway, and the client that they make. */
import { type Command, Option } from 'commander'
import { GatewayClient } from './gateway-client.ts'

const DEFAULT_GATEWAY = 'http://127.0.0.1:30000'

export function withGateway(command: Command): Command {
  return command
    .addOption(new Option('--gateway <url>', 'the gateway').env('WEIR_GATEWAY').default(DEFAULT_GATEWAY))
    .addOption(new Option('--api-key <key>', 'key for administration').env('WEIR_ADMIN_KEY'))
    .option('--json', 'print JSON')
}

export function clientOf(command: Command): GatewayClient {
  const { gateway, apiKey } = command.opts<{ gateway: string; apiKey?: string }>()
  return new GatewayClient({ url: gateway, apiKey })
}
