/** The limits of the mcp section: times, sizes and numbers, all of which hold for each thread that serves requests. */
import { Type } from '#kernel'

const ONE_HOUR_MS = 3_600_000
const ms = (value: number, description: string) =>
  Type.Integer({
    default: value,
    minimum: 10,
    maximum: ONE_HOUR_MS,
    description: `${description}, milliseconds.`,
  })
const count = (value: number, maximum: number, description: string) =>
  Type.Integer({ default: value, minimum: 1, maximum, description })

export const limitsConfig = Type.Object(
  {
    connectMs: ms(10_000, 'To reach a server and agree on a protocol'),
    listMs: ms(30_000, 'To hear of all its tools'),
    callMs: ms(120_000, 'For one call of a tool'),
    idleMs: ms(300_000, 'Until an unused connection is closed'),
    maxConnections: count(100, 10_000, 'Connections to tool servers; those used longest ago give way.'),
    maxMessageBytes: count(
      4_194_304,
      1_073_741_824,
      'Bytes of one answer of a server; one that sends more is cut off.',
    ),
    maxOutputBytes: count(
      1_048_576,
      67_108_864,
      'Bytes of a tool’s output that the model gets; the rest is cut off, with a mark.',
    ),
    maxTools: count(512, 10_000, 'Tools of one server; the rest is left out.'),
    maxServersPerRequest: count(16, 1_000, 'Servers that one request may declare.'),
    maxIterations: count(32, 1_000, 'Model turns of one request.'),
    maxToolCalls: count(128, 100_000, 'Calls of one request.'),
    parallelCalls: count(8, 1_000, 'Calls of one model turn that run at once.'),
    maxCallsPerTenant: count(256, 100_000, 'Calls of one tenant that run at once; more fail at once.'),
  },
  { default: {}, additionalProperties: false },
)
