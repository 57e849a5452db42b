/** Routes of the session: sign in, show, sign out. */
import {
  adminErrorFormat,
  defineCommand,
  type Host,
  type Identity,
  type RequestContext,
  type RouteDefinition,
  readVersion,
  Type,
} from '#kernel'
import type { Session } from './session-cookie.ts'
import { type ConsoleSessions, SESSION_HEADERS } from './sessions.ts'
import type { SignInLimit } from './sign-in-limit.ts'

const BeginSignIn = defineCommand<string, void>('console.begin-sign-in')
const EndSignIn = defineCommand<string, void>('console.end-sign-in')
const EndSession = defineCommand<Pick<Session, 'id' | 'expiresAtMs'>, void>('console.end-session')
const ReadGateway = defineCommand<null, string>('console.gateway')

const NOT_STORED = ['cache-control', 'no-store']

/** Pages by the route that they need. */
const FEATURES: Readonly<Record<string, string>> = {
  chat: '/v1/chat/completions',
  debug: '/debug/requests/:request_id',
  keys: '/keys',
  limits: '/limits',
  live: '/console/live',
  mesh: '/ha/status',
  messages: '/v1/messages',
  reload: '/config/apply',
  responses: '/v1/responses',
  usage: '/usage',
  wasm: '/wasm',
  workers: '/workers',
}

const Nullable = <T extends Parameters<typeof Type.Union>[0][number]>(type: T) =>
  Type.Union([type, Type.Null()])

const Principal = Type.Object({
  owner: Type.String({ description: 'Owner of the key or token, such as `auth:ops`.' }),
  role: Nullable(
    Type.String({ description: '`admin`; `user` may only read. Null if no credential is configured.' }),
  ),
})
const expires_at = Type.String({ description: 'End of the session, ISO 8601.' })
const SignedIn = Type.Object({ principal: Principal, expires_at })
const SessionView = Type.Object({
  is_required: Type.Boolean({ description: 'Whether the control plane needs a credential.' }),
  principal: Nullable(Principal),
  expires_at: Nullable(expires_at),
  version: Nullable(Type.String({ description: 'Version of the gateway; null without a session.' })),
  gateway: Nullable(Type.String({ description: 'Name of the gateway; null without a session.' })),
  features: Type.Array(Type.String(), { description: 'Pages whose routes exist; empty without a session.' }),
})

/**
 * Handles the commands of `sessionRoutes`; on control.
 *
 * @param end ends a session on every thread
 * @param name of the gateway
 */
export function handleSessionCommands(
  host: Host,
  limit: SignInLimit,
  end: (session: Pick<Session, 'id' | 'expiresAtMs'>) => Promise<void>,
  name: () => string,
): void {
  host.onCommand(EndSession, end)
  host.onCommand(BeginSignIn, (address) => limit.begin(address))
  host.onCommand(EndSignIn, (address) => limit.succeeded(address))
  host.onCommand(ReadGateway, name)
}

export function sessionRoutes(host: Host, sessions: ConsoleSessions): readonly RouteDefinition[] {
  const base = {
    path: '/console/session',
    // Not `admin`: keys of operators who may only read are accepted, and the page asks before the sign-in.
    access: 'public',
    errors: adminErrorFormat,
    headers: SESSION_HEADERS,
    readsBody: false,
  } as const
  const tag = 'Console'
  return [
    {
      ...base,
      method: 'POST',
      handler: (ctx) => signIn(ctx, host, sessions),
      docs: {
        summary: 'Sign in: exchange the credential in `authorization` for a session cookie',
        tag,
        responses: {
          200: { description: 'The session, with its cookie.', schema: SignedIn },
          400: { description: 'The credential is too long for a cookie.' },
          401: { description: 'The credential is missing or wrong.' },
          403: { description: 'The credential does not open the control plane.' },
          429: { description: 'Too many failed sign-ins from this address.' },
        },
      },
    },
    {
      ...base,
      method: 'GET',
      handler: async (ctx) => ctx.json(200, await showSession(ctx, host, sessions), NOT_STORED),
      docs: {
        summary: 'Show the session, and whether one is needed',
        tag,
        responses: { 200: { description: 'The session.', schema: SessionView } },
      },
    },
    {
      ...base,
      method: 'DELETE',
      handler: (ctx) => signOut(ctx, host, sessions),
      docs: {
        summary: 'Sign out: end the session, copies of its cookie included',
        tag,
        responses: {
          204: { description: 'The session has ended on this gateway.' },
          403: { description: 'The request comes from another page.' },
        },
      },
    },
  ]
}

async function signIn(ctx: RequestContext, host: Host, sessions: ConsoleSessions): Promise<void> {
  const { clientAddress } = ctx
  const authorization = ctx.header('authorization') ?? ''
  await host.command(BeginSignIn, clientAddress)
  let identity: Identity
  try {
    identity = await sessions.check('GET', authorization)
  } catch (error) {
    host.log.info({ audit: true, client: clientAddress, outcome: 'denied' }, 'console sign-in')
    throw error
  }
  const { expiresAtMs, cookie } = sessions.open(ctx, authorization)
  await host.command(EndSignIn, clientAddress)
  const principal = toPrincipal(identity)
  host.log.info(
    { audit: true, ...principal, key_id: identity.keyId, client: clientAddress, outcome: 'success' },
    'console sign-in',
  )
  ctx.json(200, { principal, expires_at: new Date(expiresAtMs).toISOString() }, [
    'set-cookie',
    cookie,
    ...NOT_STORED,
  ])
}

async function signOut(ctx: RequestContext, host: Host, sessions: ConsoleSessions): Promise<void> {
  const cookie = sessions.close(ctx)
  const session = sessions.read(ctx)
  if (session !== null) await host.command(EndSession, { id: session.id, expiresAtMs: session.expiresAtMs })
  ctx.send(204, null, '', ['set-cookie', cookie, ...NOT_STORED])
}

async function showSession(ctx: RequestContext, host: Host, sessions: ConsoleSessions) {
  const is_required = sessions.isRequired
  const session = sessions.read(ctx)
  let principal = null
  try {
    const identity = await sessions.identify(ctx)
    if (identity !== null) principal = toPrincipal(identity)
  } catch {
    // A session whose key has ended, or a request of another page, is none.
  }
  const isShown = principal !== null || !is_required
  return {
    is_required,
    principal,
    expires_at: principal === null || session === null ? null : new Date(session.expiresAtMs).toISOString(),
    version: isShown ? readVersion() : null,
    gateway: isShown ? await host.command(ReadGateway, null) : null,
    features: isShown ? featuresOf(host) : [],
  }
}

function toPrincipal({ tenant, role }: Identity) {
  return { owner: tenant, role }
}

function featuresOf(host: Host): string[] {
  const paths = new Set(host.routes().map(({ path }) => path))
  return Object.keys(FEATURES).filter((name) => paths.has(FEATURES[name]))
}
