/**
 * Access decided by a service of your own, in place of plugin `auth`: each new credential is sent to it, and its answer names the
 * tenant, for limits, budgets and stored records. Decisions are kept for a short time.
 */
import { createHash } from 'node:crypto'
import {
  Auth,
  type AuthService,
  type Credentials,
  defineErrors,
  definePlugin,
  type Identity,
  isObject,
  Type,
} from 'weir-gateway'

const errors = defineErrors('external-auth', {
  credential_missing: {
    kind: 'unauthorized',
    source: 'client',
    text: () => 'the request has no credential; send `Authorization: Bearer <key>`',
  },
  credential_rejected: { kind: 'unauthorized', source: 'client', text: () => 'the credential is not valid' },
  admin_required: { kind: 'forbidden', source: 'client', text: () => 'this route requires an administrator' },
  auth_service_unavailable: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'access cannot be checked at the moment; try again shortly',
  },
})

/** Decisions in memory, per thread. */
const MAX_DECISIONS = 10_000

interface Decision {
  /** Null if the service rejects the credential. */
  readonly identity: Identity | null
  readonly expiresAtMs: number
}

/** @throws auth_service_unavailable for an answer that names no tenant */
function toIdentity(answer: unknown): Identity {
  if (!isObject(answer) || typeof answer.tenant !== 'string' || answer.tenant === '')
    throw errors.auth_service_unavailable()
  const { tenant, role, models } = answer
  return {
    tenant,
    role: role === 'admin' ? 'admin' : 'user',
    ...(Array.isArray(models) && { models: new Set(models.filter((one) => typeof one === 'string')) }),
  }
}

class ExternalAuth implements AuthService {
  readonly #ask: (credential: string) => Promise<Identity | null>
  readonly #ttlMs: number
  readonly #decisions = new Map<string, Decision>()

  /** @param ask resolves with null if the credential is rejected */
  constructor(ask: (credential: string) => Promise<Identity | null>, ttlMs: number) {
    this.#ask = ask
    this.#ttlMs = ttlMs
  }

  check(access: 'api' | 'admin', credentials: Credentials): Identity | Promise<Identity> {
    const credential = credentialOf(credentials)
    if (credential === null) throw errors.credential_missing()
    const name = digestOf(credential)
    const known = this.#known(name)
    if (known !== null) return admit(known.identity, access)
    return this.#ask(credential).then(
      (identity) => {
        this.#remember(name, identity)
        return admit(identity, access)
      },
      (cause: unknown) => {
        throw errors.auth_service_unavailable.with({ cause })
      },
    )
  }

  recheck(identity: Identity): Identity {
    return identity
  }

  ownerOf(credentials: Credentials): Identity | null {
    const credential = credentialOf(credentials)
    return credential === null ? null : (this.#known(digestOf(credential))?.identity ?? null)
  }

  /** No credential of a client is sent to workers. */
  isGatewayKey(): boolean {
    return true
  }

  #known(name: string): Decision | null {
    const decision = this.#decisions.get(name)
    return decision !== undefined && decision.expiresAtMs > Date.now() ? decision : null
  }

  #remember(name: string, identity: Identity | null): void {
    this.#decisions.delete(name)
    this.#decisions.set(name, { identity, expiresAtMs: Date.now() + this.#ttlMs })
    if (this.#decisions.size <= MAX_DECISIONS) return
    const [oldest] = this.#decisions.keys()
    this.#decisions.delete(oldest)
  }
}

/** @throws credential_rejected, admin_required */
function admit(identity: Identity | null, access: 'api' | 'admin'): Identity {
  if (identity === null) throw errors.credential_rejected()
  if (access === 'admin' && identity.role !== 'admin') throw errors.admin_required()
  return identity
}

function credentialOf({ authorization, apiKey }: Credentials): string | null {
  const bearer = authorization === undefined ? undefined : /^bearer (.+)$/i.exec(authorization)?.[1].trim()
  return bearer ?? apiKey ?? null
}

/** Credentials are not kept in memory. */
function digestOf(credential: string): string {
  return createHash('sha256').update(credential).digest('base64')
}

export default definePlugin({
  manifest: {
    name: 'external-auth',
    version: '0.1.0',
    description: 'Access decided by an external service.',
    provides: [Auth],
    config: Type.Object(
      {
        url: Type.String({
          minLength: 1,
          description: 'Gets POST {"credential"}; answers {"tenant", "role"?, "models"?} or 401.',
        }),
        ttlSecs: Type.Integer({ minimum: 0, default: 30, description: 'Lifetime of a decision, seconds.' }),
        timeoutMs: Type.Integer({
          minimum: 1,
          default: 2000,
          description: 'Limit of a call to the service, milliseconds.',
        }),
      },
      { additionalProperties: false },
    ),
  },
  register(host, { url, ttlSecs, timeoutMs }) {
    const ask = async (credential: string): Promise<Identity | null> => {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ credential }),
        signal: AbortSignal.timeout(timeoutMs),
      })
      if (response.status === 401 || response.status === 403) return null
      if (!response.ok) throw new Error(`the service answered with status ${response.status}`)
      return toIdentity(await response.json())
    }
    host.provide(Auth, new ExternalAuth(ask, ttlSecs * 1000))
  },
})
