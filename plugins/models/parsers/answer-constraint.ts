/** What an engine must be held to for a structured answer, and under which name each kind of engine takes it. */
import type { AnswerDemands, EngineConstraint, OutputConstraint } from '#kernel'
import { parsersErrors } from './errors.ts'
import { harmonyAnswerTag } from './structural-tags.ts'

/** The tool's demand or the request's own; two of them are refused. */
export function answerConstraint(demands: AnswerDemands, isHarmony: boolean): OutputConstraint | null {
  const { toolConstraint = null, constraint = null } = demands
  if (toolConstraint !== null && constraint !== null)
    throw parsersErrors.multiple_constraints('a demanded tool call', constraint.kind)
  if (constraint === null) return toolConstraint
  const schema = isHarmony ? schemaOf(constraint) : null
  return schema === null ? constraint : { kind: 'structural_tag', tag: harmonyAnswerTag(schema) }
}

/** Null for constraints that are no schema. */
function schemaOf(constraint: OutputConstraint): unknown {
  if (constraint.kind === 'json_object') return { type: 'object' }
  return constraint.kind === 'json_schema' ? constraint.schema : null
}

function textOf(constraint: OutputConstraint): string {
  switch (constraint.kind) {
    case 'regex':
      return constraint.pattern
    case 'ebnf':
      return constraint.grammar
    case 'structural_tag':
      return JSON.stringify(constraint.tag)
    default:
      return JSON.stringify(schemaOf(constraint))
  }
}

type Names = Readonly<Record<Exclude<OutputConstraint['kind'], 'json_object'>, string>>

/** By runtime: the field, or the kind of guide, that carries each constraint. */
const engineNames: ReadonlyMap<string, Names> = new Map([
  [
    'sglang',
    { json_schema: 'json_schema', regex: 'regex', ebnf: 'ebnf_grammar', structural_tag: 'structural_tag' },
  ],
  [
    'tokenspeed',
    { json_schema: 'json_schema', regex: 'regex', ebnf: 'ebnf_grammar', structural_tag: 'structural_tag' },
  ],
  ['vllm', { json_schema: 'json_schema', regex: 'regex', ebnf: 'grammar', structural_tag: 'structural_tag' }],
  [
    'trtllm',
    {
      json_schema: 'GUIDE_TYPE_JSON_SCHEMA',
      regex: 'GUIDE_TYPE_REGEX',
      ebnf: 'GUIDE_TYPE_EBNF_GRAMMAR',
      structural_tag: 'GUIDE_TYPE_STRUCTURAL_TAG',
    },
  ],
])

/** Null for engines that take no constraint of the kind. */
export function engineConstraint(runtime: string, constraint: OutputConstraint): EngineConstraint | null {
  const { kind } = constraint
  const name = engineNames.get(runtime)?.[kind === 'json_object' ? 'json_schema' : kind]
  return name === undefined ? null : { name, text: textOf(constraint) }
}
