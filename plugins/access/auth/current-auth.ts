/** The Auth contract as others hold it: the keys behind it may be exchanged while the gateway runs. @hot */
import type { Access, AuthService, Credentials, Identity } from '#kernel'
import type { KeyAuth } from './check.ts'

export class CurrentAuth implements AuthService {
  #current: KeyAuth

  constructor(first: KeyAuth) {
    this.#current = first
  }

  /** Checks that begin from now on go by these keys. */
  use(next: KeyAuth): void {
    this.#current = next
  }

  check(access: Exclude<Access, 'public'>, credentials: Credentials): Identity | Promise<Identity> {
    return this.#current.check(access, credentials)
  }

  isGatewayKey(authorization: string): boolean {
    return this.#current.isGatewayKey(authorization)
  }
}
