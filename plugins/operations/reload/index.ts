/** The reload plugin: plans and applies a changed configuration at runtime over HTTP. */
import {
  adminErrorFormat,
  definePlugin,
  defineValidator,
  type Host,
  type RouteDefinition,
  type Static,
  Type,
} from '#kernel'

const MAX_TEXT_CHARS = 1_048_576

const paths = (description: string) => Type.Array(Type.String(), { description })

const AppliedChanges = Type.Object({
  applied: paths('Paths of changed settings that were applied.'),
  needs_restart: paths('Paths of changed settings that require a restart.'),
})

const PlanRequest = Type.Object(
  {
    text: Type.Union([Type.String({ maxLength: MAX_TEXT_CHARS }), Type.Null()], {
      default: null,
      description: 'YAML or JSON of a configuration; null plans a reload of the file of the gateway.',
    }),
  },
  { additionalProperties: false },
)
const planRequest = defineValidator(PlanRequest)

const Plan = Type.Object({
  applied: paths('Paths of changed settings that a reload would apply.'),
  needs_restart: paths('Paths of changed settings that require a restart.'),
  effects: paths('What plugins would do, such as draining a worker.'),
  file: Type.Union([Type.String(), Type.Null()], {
    description: 'The file that a reload reads, on the machine of the gateway; null without one.',
  }),
  is_installed: Type.Boolean({ description: 'True if the configuration is the content of that file.' }),
})

const ConfigView = Type.Object({
  file: Type.Union([Type.String(), Type.Null()], {
    description: 'Path of the file, on the machine of the gateway; null without one.',
  }),
  values: Type.Array(
    Type.Object({
      path: Type.String({ description: 'Such as `kernel.port`.' }),
      value: Type.Unknown({ description: 'Effective value; secrets are `***`.' }),
      source: Type.String({ description: '`file`, `flag`, `environment` or `default`.' }),
    }),
  ),
})

/** Bodies as the command line reads them. */
export type AppliedChangesWire = Static<typeof AppliedChanges>
export type PlanWire = Static<typeof Plan>

const unavailable = {
  description: 'The gateway was started without a source from which to reload its configuration.',
}

export default definePlugin({
  manifest: {
    name: 'reload',
    version: '0.1.0',
    description:
      'Shows, plans and applies the configuration over HTTP, for `weir config`; SIGHUP works without this plugin.',
    config: Type.Object({}, { additionalProperties: false }),
  },
  register(host) {
    for (const route of reloadRoutes(host)) host.route(route)
  },
})

function reloadRoutes(host: Host): readonly RouteDefinition[] {
  const base = { access: 'admin', errors: adminErrorFormat } as const
  return [
    {
      ...base,
      method: 'GET',
      path: '/config',
      handler: async (ctx) => ctx.json(200, await host.showConfig()),
      docs: {
        summary: 'Show the effective configuration, with masked secrets and the source of each value',
        tag: 'Configuration',
        responses: { 200: { description: 'The configuration.', schema: ConfigView }, 409: unavailable },
      },
    },
    {
      ...base,
      method: 'POST',
      path: '/config/apply',
      handler: async (ctx) => {
        const { applied, needsRestart } = await host.reload()
        ctx.json(200, { applied, needs_restart: needsRestart })
      },
      docs: {
        summary: 'Reload the configuration, like SIGHUP',
        tag: 'Configuration',
        responses: {
          200: { description: 'Changed settings. Requests are not interrupted.', schema: AppliedChanges },
          400: { description: 'The configuration is invalid; nothing was changed.' },
          409: unavailable,
        },
      },
    },
    {
      ...base,
      method: 'POST',
      path: '/config/plan',
      handler: async (ctx) => {
        const plan = await host.planReload(ctx.body(planRequest).text)
        const { applied, needsRestart, effects, isInstalled } = plan
        ctx.json(200, {
          applied,
          needs_restart: needsRestart,
          effects,
          file: plan.file,
          is_installed: isInstalled,
        })
      },
      docs: {
        summary: 'Show what a reload of a configuration would change',
        tag: 'Configuration',
        body: PlanRequest,
        responses: {
          200: { description: 'The changes; none was made.', schema: Plan },
          400: { description: 'The configuration is invalid.' },
          409: unavailable,
        },
      },
    },
  ]
}
