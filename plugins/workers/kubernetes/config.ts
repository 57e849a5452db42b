/** The kubernetes section of the configuration file: which pods are workers, and what they serve. */
import { type SettingProblem, type Static, Type } from '#kernel'

const Selector = (description: string) =>
  Type.Record(Type.String({ minLength: 1 }), Type.String(), { default: {}, description })

export const kubernetesConfig = Type.Object(
  {
    selector: Selector('Labels of pods that serve whole requests.'),
    prefillSelector: Selector('Labels of prefill pods.'),
    decodeSelector: Selector('Labels of decode pods.'),
    namespace: Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
      default: null,
      description: 'Only pods of this namespace; null for all.',
    }),
    port: Type.Integer({
      minimum: 1,
      maximum: 65_535,
      default: 80,
      description: 'Port of workers whose pod names none.',
    }),
    scheme: Type.Union([Type.Literal('http'), Type.Literal('https'), Type.Literal('grpc')], {
      default: 'http',
      description: 'How workers are reached.',
    }),
    modelIdFrom: Type.Union([Type.String({ pattern: '^(namespace|label:.+|annotation:.+)$' }), Type.Null()], {
      default: null,
      description:
        'Where the model id of a worker stands: `namespace`, `label:KEY` or `annotation:KEY`; null asks the worker.',
    }),
    workerApiKey: Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
      default: null,
      secret: true,
      description: 'Key that the workers want.',
    }),
    kubeconfig: Type.Union([Type.String({ minLength: 1 }), Type.Null()], {
      default: null,
      description: 'Path of a kubeconfig file; null uses the service account of the pod that Weir runs in.',
    }),
    resyncSecs: Type.Integer({
      minimum: 1,
      maximum: 86_400,
      default: 60,
      description: 'Pods and workers are compared at least this often, in seconds.',
    }),
    coalesceMs: Type.Integer({
      minimum: 0,
      maximum: 3_600_000,
      default: 1_000,
      description: 'Changes within this time are acted on together, in milliseconds.',
    }),
  },
  { additionalProperties: false },
)

/** The section with every default filled in. */
export type KubernetesConfig = Static<typeof kubernetesConfig>

/** What a schema cannot say. */
export function* kubernetesProblems(config: KubernetesConfig): Generator<SettingProblem> {
  const isEmpty = (selector: Record<string, string>) => Object.keys(selector).length === 0
  if ([config.selector, config.prefillSelector, config.decodeSelector].every(isEmpty)) {
    const text =
      'needs a selector: set selector, or prefillSelector and decodeSelector, to the labels of your worker pods'
    yield { path: [], text }
  }
}
