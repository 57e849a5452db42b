/** The Auth contract with keys that can be replaced at runtime. @hot */
import type { Access, AuthService, Credentials, Identity } from '#kernel'
import type { KeyAuth } from './check.ts'

export class CurrentAuth implements AuthService {
  #current: KeyAuth

  constructor(first: KeyAuth) {
    this.#current = first
  }

  /** Later checks use these keys. */
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
