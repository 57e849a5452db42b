/** The mcp section of the configuration file: tool servers, built-in tools, access rules and limits. */
import { integer, type Static, Type } from '#kernel'
import { reachSettings } from '#shared'

const ONE_HOUR_MS = 3_600_000
const ms = (value: number, description: string) =>
  integer({ default: value, min: 10, max: ONE_HOUR_MS }, `${description}, milliseconds.`)
const count = (value: number, max: number, description: string) =>
  integer({ default: value, min: 1, max }, description)

export const limitsConfig = Type.Object(
  {
    connectMs: ms(10_000, 'Timeout for connecting to a server and the handshake'),
    listMs: ms(30_000, 'Timeout for listing the tools of a server'),
    callMs: ms(120_000, 'Timeout for one tool call; each progress notification of the server restarts it'),
    maxCallMs: ms(900_000, 'Timeout for one tool call with any progress'),
    idleMs: ms(300_000, 'Idle time after which a connection is closed'),
    maxConnections: count(
      100,
      10_000,
      'Maximum number of connections to tool servers; the least recently used is closed first.',
    ),
    maxMessageBytes: count(
      4_194_304,
      1_073_741_824,
      'Maximum size of one response of a server, bytes; a server that exceeds it is disconnected.',
    ),
    maxOutputBytes: count(
      1_048_576,
      67_108_864,
      'Maximum size of tool output passed to the model, bytes; longer output is truncated and marked.',
    ),
    maxTools: count(512, 10_000, 'Maximum number of tools of one server; more are ignored.'),
    maxServersPerRequest: count(16, 1_000, 'Maximum number of servers in one request.'),
    maxIterations: count(32, 1_000, 'Maximum number of model turns in one request.'),
    maxToolCalls: count(128, 100_000, 'Maximum number of tool calls in one request.'),
    parallelCalls: count(8, 1_000, 'Maximum number of parallel calls of one model turn.'),
    maxCallsPerTenant: count(
      256,
      100_000,
      'Maximum number of parallel calls of one tenant; more fail immediately.',
    ),
  },
  { default: {}, additionalProperties: false },
)

const closed = { additionalProperties: false } as const
const names = (description: string) => Type.Array(Type.String({ minLength: 1 }), { default: [], description })
const secrets = (description: string) =>
  Type.Record(Type.String({ minLength: 1 }), Type.String({ secret: true }), { default: {}, description })

const oauthConfig = Type.Object(
  {
    clientId: Type.String({ minLength: 1, description: 'Client id of the gateway.' }),
    clientSecret: Type.Optional(
      Type.String({ minLength: 1, secret: true, description: 'Client secret; either this or privateKey.' }),
    ),
    privateKey: Type.Optional(
      Type.String({
        minLength: 1,
        secret: true,
        description: 'Private key that signs client assertions, PEM (PKCS #8).',
      }),
    ),
    algorithm: Type.String({
      default: 'RS256',
      description: 'Signature algorithm of the private key, such as `ES256`.',
    }),
    issuer: Type.String({
      pattern: '^https?://',
      description:
        'URL of the authorization server; credentials are sent to no other server. Its endpoints may have private addresses only on the host of this URL or of the tool server.',
    }),
    scope: Type.Optional(Type.String({ description: 'Requested scopes, separated by spaces.' })),
  },
  { ...closed, description: 'OAuth client credentials.' },
)

const serverConfig = Type.Object(
  {
    label: Type.String({
      pattern: '^[A-Za-z][A-Za-z0-9_-]{0,63}$',
      description: 'Name by which requests select the server.',
    }),
    url: Type.Optional(Type.String({ pattern: '^https?://', description: 'URL of an HTTP server.' })),
    protocol: Type.Enum(['auto', 'streamable', 'sse'], {
      default: 'auto',
      description: '`auto`: streamable HTTP, or the older SSE transport if the server responds 404 or 405.',
    }),
    handshake: Type.Enum(['auto', 'discover', 'initialize'], {
      default: 'auto',
      description:
        'First request to the server: `discover` since protocol 2026-07-28, `initialize` before; `auto` finds out.',
    }),
    headers: secrets('Headers of each request, such as `authorization`.'),
    caFile: Type.Optional(
      Type.String({
        reads: 'use',
        description: 'PEM file of certificate authorities that replace those of the system.',
      }),
    ),
    oauth: Type.Optional(oauthConfig),
    tokenFile: Type.Optional(
      Type.String({
        minLength: 1,
        reads: 'use',
        description:
          'File with a bearer token, which is read again for each request: for tokens that another program renews.',
      }),
    ),
    command: Type.Optional(
      Type.String({
        minLength: 1,
        description: 'Program that serves on standard input and output.',
      }),
    ),
    args: Type.Array(Type.String(), {
      default: [],
      // Programs often take their key as an argument.
      secret: true,
      description: 'Arguments of the program.',
    }),
    env: secrets('Environment variables of the program, in addition to PATH, HOME, USER and similar.'),
    cwd: Type.Optional(Type.String({ description: 'Working directory of the program.' })),
    isInternal: Type.Boolean({
      default: false,
      description:
        'Hides the server from clients: its tools, calls and errors are not reported. The model can use it.',
    }),
    isShared: Type.Optional(
      Type.Boolean({
        description: 'Use one session for all tenants. Default: true for programs, false for HTTP servers.',
      }),
    ),
    tenants: names('Tenants that may use the server, such as `auth:team-a`; empty allows all.'),
    allowedTools: Type.Optional(
      Type.Array(Type.String(), {
        description: 'Tools that requests can use. Default: all tools of the server.',
      }),
    ),
    deniedTools: names('Tools that requests cannot use.'),
    approval: Type.Optional(
      Type.Enum(['never', 'always'], {
        description: 'Approval of calls if the request does not set it. Default: `defaultApproval`.',
      }),
    ),
  },
  closed,
)

const builtInConfig = Type.Object(
  {
    type: Type.Enum(['web_search', 'code_interpreter', 'file_search'], {
      description: 'Type of the tool in requests.',
    }),
    server: Type.String({ description: 'Label of the server that provides the tool.' }),
    tool: Type.String({ minLength: 1, description: 'Name of the tool on the server.' }),
    arguments: Type.Record(Type.String(), Type.String(), {
      default: {},
      description:
        'Argument names of the tool by argument names of the built-in tool (`query`, `code`), where they differ.',
    }),
    settings: Type.Record(Type.String(), Type.String(), {
      default: {},
      description:
        'Argument names by member of the declaration (`user_location`, `container`, …) that is passed on.',
    }),
    fixed: Type.Record(Type.String(), Type.Unknown(), {
      default: {},
      secret: true,
      description: 'Arguments with fixed values, which the model cannot set.',
    }),
  },
  closed,
)

const clientServersConfig = Type.Object(
  {
    isAllowed: Type.Boolean({ default: true, description: 'Whether requests may name servers by URL.' }),
    ...reachSettings,
  },
  { ...closed, default: {} },
)

export const mcpConfig = Type.Object(
  {
    servers: Type.Array(serverConfig, {
      default: [],
      description: 'Tool servers that requests select by label.',
    }),
    clientServers: clientServersConfig,
    builtIns: Type.Array(builtInConfig, {
      default: [],
      description: 'Built-in tools; a tool that is not configured is accepted in requests and ignored.',
    }),
    isStrict: Type.Boolean({
      default: false,
      description: 'Reject requests with a built-in tool that is not configured.',
    }),
    defaultApproval: Type.Enum(['never', 'always'], {
      default: 'never',
      description: 'Approval of calls if neither the request nor the server sets it.',
    }),
    audit: Type.Enum(['off', 'calls', 'arguments'], {
      default: 'calls',
      description: 'Log each call with tenant, tool, duration and outcome; `arguments` adds the arguments.',
    }),
    limits: limitsConfig,
  },
  closed,
)

/** The section with every default filled in. */
export type McpConfig = Static<typeof mcpConfig>
export type ServerConfig = McpConfig['servers'][number]
export type BuiltInConfig = McpConfig['builtIns'][number]
