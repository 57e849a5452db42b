/** The mcp section of the configuration file: tool servers, built-in tools made of them, who may use them, and limits. */
import { type Static, Type } from '#kernel'
import { limitsConfig } from './limits-config.ts'

const closed = { additionalProperties: false } as const
const names = (description: string) => Type.Array(Type.String({ minLength: 1 }), { default: [], description })
const secrets = (description: string) =>
  Type.Record(Type.String({ minLength: 1 }), Type.String({ secret: true }), { default: {}, description })

const oauthConfig = Type.Object(
  {
    clientId: Type.String({ minLength: 1, description: 'The gateway’s own account.' }),
    clientSecret: Type.Optional(
      Type.String({ minLength: 1, secret: true, description: 'Its secret; this or a private key.' }),
    ),
    privateKey: Type.Optional(
      Type.String({
        minLength: 1,
        secret: true,
        description: 'PEM (PKCS #8) with which assertions are signed.',
      }),
    ),
    algorithm: Type.String({ default: 'RS256', description: 'Of the private key, such as `ES256`.' }),
    issuer: Type.String({
      pattern: '^https?://',
      description: 'The authorization server; the secret goes to no other, whatever the tool server says.',
    }),
    scope: Type.Optional(Type.String({ description: 'Scopes to ask for, separated by spaces.' })),
  },
  { ...closed, description: 'OAuth client credentials.' },
)

const serverConfig = Type.Object(
  {
    label: Type.String({
      pattern: '^[A-Za-z][A-Za-z0-9_-]{0,63}$',
      description: 'Name by which requests select the server.',
    }),
    url: Type.Optional(Type.String({ pattern: '^https?://', description: 'For a server that speaks HTTP.' })),
    protocol: Type.Enum(['auto', 'streamable', 'sse'], {
      default: 'auto',
      description: '`auto`: streamable HTTP, and the older event stream where the server answers 404 or 405.',
    }),
    headers: secrets('Sent with each request, such as `authorization`.'),
    caFile: Type.Optional(
      Type.String({ description: 'PEM of authorities to trust in place of the system’s.' }),
    ),
    oauth: Type.Optional(oauthConfig),
    command: Type.Optional(
      Type.String({
        minLength: 1,
        description: 'For a program that speaks on its standard input and output.',
      }),
    ),
    args: Type.Array(Type.String(), { default: [], description: 'Arguments of the program.' }),
    env: secrets('Environment of the program, beside PATH, HOME, USER and the like.'),
    cwd: Type.Optional(Type.String({ description: 'Folder in which the program runs.' })),
    isInternal: Type.Boolean({
      default: false,
      description: 'Clients see nothing of it: no list, no calls, no errors. The model uses it all the same.',
    }),
    isShared: Type.Optional(
      Type.Boolean({
        description:
          'One session for all tenants. Default: true for programs, false for servers that speak HTTP.',
      }),
    ),
    tenants: names('Tenants that may use it, as `auth:team-a`; empty: all.'),
    allowedTools: Type.Optional(
      Type.Array(Type.String(), {
        description: 'Tools that exist for requests. Default: all of the server.',
      }),
    ),
    deniedTools: names('Tools that do not.'),
    approval: Type.Optional(
      Type.Enum(['never', 'always'], {
        description: 'When a request does not say whether calls need approval. Default: `defaultApproval`.',
      }),
    ),
  },
  closed,
)

const builtInConfig = Type.Object(
  {
    type: Type.Enum(['web_search', 'code_interpreter', 'file_search'], {
      description: 'What requests declare.',
    }),
    server: Type.String({ description: 'Label of the server that does the work.' }),
    tool: Type.String({ minLength: 1, description: 'Its tool.' }),
    arguments: Type.Record(Type.String(), Type.String(), {
      default: {},
      description:
        'Names of the tool’s arguments for those of the built-in (`query`, `code`), where they differ.',
    }),
    settings: Type.Record(Type.String(), Type.String(), {
      default: {},
      description:
        'Members of the declaration (`user_location`, `container`, …) that are passed on, and the arguments that take them.',
    }),
    fixed: Type.Record(Type.String(), Type.Unknown(), {
      default: {},
      description: 'Arguments that the tool always gets, whatever the model says.',
    }),
  },
  closed,
)

const clientServersConfig = Type.Object(
  {
    isAllowed: Type.Boolean({ default: true, description: 'Requests may name servers by URL.' }),
    hosts: names('Hosts that they may name, `*.example.com` for all below one; empty: any.'),
    deniedHosts: names('Hosts that they may not.'),
    allowsPrivate: Type.Boolean({
      default: false,
      description: 'Loopback, link-local and private addresses too. For closed networks and tests.',
    }),
    requiresHttps: Type.Boolean({ default: false, description: 'Plain HTTP is refused.' }),
    tenants: names('Tenants that may name servers; empty: all.'),
  },
  { ...closed, default: {} },
)

export const mcpConfig = Type.Object(
  {
    servers: Type.Array(serverConfig, { default: [], description: 'Servers that requests select by label.' }),
    clientServers: clientServersConfig,
    builtIns: Type.Array(builtInConfig, {
      default: [],
      description: 'Built-in tools; one that is not here is accepted in requests and does nothing.',
    }),
    isStrict: Type.Boolean({
      default: false,
      description: 'A built-in tool that is not mapped is an error instead.',
    }),
    defaultApproval: Type.Enum(['never', 'always'], {
      default: 'never',
      description: 'Whether calls wait for approval when the request does not say.',
    }),
    audit: Type.Enum(['off', 'calls', 'arguments'], {
      default: 'calls',
      description:
        'A log line for each call: who, which tool, how long, how it ended; arguments only when asked.',
    }),
    imagesToModel: Type.Boolean({
      default: false,
      description: 'Images that tools give are shown to the model as images, not as text.',
    }),
    limits: limitsConfig,
  },
  closed,
)

/** The section with every default filled in. */
export type McpConfig = Static<typeof mcpConfig>
export type ServerConfig = McpConfig['servers'][number]
export type BuiltInConfig = McpConfig['builtIns'][number]
