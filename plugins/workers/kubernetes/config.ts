/** The kubernetes section of the configuration file. */
import { type SettingProblem, type Static, Type } from '#kernel'

const Selector = (description: string) =>
  Type.Record(Type.String({ minLength: 1 }), Type.String(), { default: {}, description })

export const kubernetesConfig = Type.Object(
  {
    selector: Selector('Labels of pods that are regular workers.'),
    prefillSelector: Selector('Labels of pods that are prefill workers.'),
    decodeSelector: Selector('Labels of pods that are decode workers.'),
    namespace: Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
      default: null,
      description: 'Namespace of the pods; null for all namespaces.',
    }),
    port: Type.Integer({
      minimum: 1,
      maximum: 65_535,
      default: 80,
      description: 'Port of workers whose pod has no port annotation.',
    }),
    scheme: Type.Union([Type.Literal('http'), Type.Literal('https'), Type.Literal('grpc')], {
      default: 'http',
      description: 'URL scheme of the workers.',
    }),
    modelIdFrom: Type.Union([Type.String({ pattern: '^(namespace|label:.+|annotation:.+)$' }), Type.Null()], {
      default: null,
      description:
        'Source of the model id of a worker: `namespace`, `label:KEY` or `annotation:KEY`; null discovers it.',
    }),
    workerApiKey: Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
      default: null,
      secret: true,
      description: 'API key of the workers.',
    }),
    kubeconfig: Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
      default: null,
      reads: 'start',
      description: 'Path of a kubeconfig file; null uses the service account of the pod that Weir runs in.',
    }),
    ignorePodReadiness: Type.Boolean({
      default: false,
      description:
        'true: every running pod is a worker. false: a pod that is not ready is none, so that its readiness probe decides about requests.',
    }),
    resyncSecs: Type.Integer({
      minimum: 1,
      maximum: 86_400,
      default: 60,
      description: 'Longest interval between comparisons of pods and workers, seconds.',
    }),
    coalesceMs: Type.Integer({
      minimum: 0,
      maximum: 3_600_000,
      default: 200,
      description: 'Pod changes within this time are handled together, milliseconds.',
    }),
  },
  { additionalProperties: false },
)

/** The section with every default filled in. */
export type KubernetesConfig = Static<typeof kubernetesConfig>

/** Checks that the schema cannot express. */
export function* kubernetesProblems(config: KubernetesConfig): Generator<SettingProblem> {
  const isEmpty = (selector: Record<string, string>) => Object.keys(selector).length === 0
  if ([config.selector, config.prefillSelector, config.decodeSelector].every(isEmpty)) {
    const text =
      'needs a selector: set selector, or prefillSelector and decodeSelector, to the labels of your worker pods'
    yield { path: [], text }
  }
}
