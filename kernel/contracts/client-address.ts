/** The contract of who a client is where proxies of the operator stand in front of the gateway. */
import { token } from './token.ts'
import type { HeaderList } from './transport.ts'

export interface ClientAddressing {
  /** In which proxies name their clients; lower case. */
  readonly header: string
  /** @param peer the connection's other end @param headers that one among them, each line of it */
  addressOf(peer: string, headers: HeaderList): string
}

/** Without it, clients are who opens the connections. */
export const ClientAddresses = token<ClientAddressing>('client-addresses')
