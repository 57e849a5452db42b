/** Resolves client addresses behind trusted proxies. */
import { token } from './token.ts'
import type { HeaderList } from './transport.ts'

export interface ClientAddressing {
  /** Header in which proxies send the client address; lower case. */
  readonly header: string
  /** @param peer remote address of the connection @param headers request headers, including every line of `header` */
  addressOf(peer: string, headers: HeaderList): string
}

/** Without it, the client address is that of the connection. */
export const ClientAddresses = token<ClientAddressing>('client-addresses')
