/** A short run of each suite of `test/fuzz/run.ts`: hostile input does not harm the gateway. */
import { afterEach, expect, test } from 'vitest'
import { bodies } from '../fuzz/bodies.ts'
import { framing, VARIANTS } from '../fuzz/framing.ts'
import { grpc } from '../fuzz/grpc.ts'
import { runSuite } from '../fuzz/harness.ts'
import { modules } from '../fuzz/modules.ts'
import { sockets } from '../fuzz/sockets.ts'
import { templates } from '../fuzz/templates.ts'
import { workers } from '../fuzz/workers.ts'
import { stopCommands } from '../support/built-command.ts'

/** Fixed seed; `test/fuzz/run.ts` uses random ones. */
const SEED = 20_261_123

afterEach(() => stopCommands())

test.each([
  ['bodies', bodies, 300],
  ['workers', workers, 300],
  ['sockets', sockets, 100],
  ['framing', framing, VARIANTS.length],
  ['grpc', grpc, 120],
  ['templates', templates, 12],
  ['modules', modules, 30],
] as const)('%s', async (_name, suite, count) => {
  const report = await runSuite(suite, { count, seconds: 60, seed: SEED })
  // Latency is not checked here, because the machine may be loaded.
  const problems = report.problems.filter((problem) => !problem.includes('p99'))
  expect({ ...report, problems }).toMatchObject({ count, findings: [], problems: [] })
})
