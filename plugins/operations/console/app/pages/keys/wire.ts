/** What the page reads of the key routes; see the HTTP API reference. */
export interface Key {
  /** Null for keys of the configuration file without an id. */
  readonly id: string | null
  readonly source: 'file' | 'store'
  /** Of keys of the configuration file. */
  readonly setting?: string
  readonly name: string | null
  readonly tenant?: string
  readonly principal?: string
  readonly role?: 'admin' | 'user'
  readonly status: 'active' | 'expired'
  readonly expiresAt: string | null
  readonly models: readonly string[] | null
  readonly routes: readonly string[] | null
  /** First characters. */
  readonly hint?: string
  readonly createdAt?: string
}

export interface KeyList {
  readonly keys: readonly Key[]
  readonly next: string | null
}

/** Body of POST /keys. */
export interface NewKey {
  readonly name?: string
  readonly tenant?: string
  readonly principal?: string
  readonly role?: 'admin' | 'user'
  readonly expiresAt?: string
  readonly models?: readonly string[]
  readonly routes?: readonly string[]
}
