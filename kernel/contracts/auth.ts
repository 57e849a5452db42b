/** The auth contract: who is calling, and may they use this class of route. */
import { token } from './token.ts'

/** Who may call: anyone, holders of a serving key, holders of a control-plane key. */
export type Access = 'public' | 'api' | 'admin'

/** A caller that passed the check. */
export interface Identity {
  /** Stable name for limits and stored records, such as `auth:team-a`; never a secret. `anonymous`: no key was asked for. */
  readonly tenant: string
  /** Null when the route is open because nothing is configured. */
  readonly role: 'admin' | 'user' | null
}

/** The headers that a check may read; undefined when absent. */
export interface Credentials {
  readonly authorization: string | undefined
  /** Vendor style credential; read only on routes that take it. */
  readonly apiKey: string | undefined
}

export interface AuthService {
  /**
   * Decides on one request; synchronous when it can.
   * @throws invalid_credential (401) or insufficient_role (403) from the auth error table
   */
  check(access: Exclude<Access, 'public'>, credentials: Credentials): Identity | Promise<Identity>
  /** True when the value of an Authorization header is one of the gateway's own keys, which must not leave it. */
  isGatewayKey(authorization: string): boolean
}

export const Auth = token<AuthService>('auth')
