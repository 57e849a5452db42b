/** The constraint for a structured answer, and its name in each kind of engine. */
import type { AnswerDemands, EngineConstraint, OutputConstraint } from '#kernel'
import { parsersErrors } from './errors.ts'
import { harmonyAnswerTag } from './structural-tags.ts'

/** The constraint of the tool choice or of the request. @throws multiple_constraints (400) for both */
export function answerConstraint(demands: AnswerDemands, isHarmony: boolean): OutputConstraint | null {
  const { toolConstraint = null, constraint = null } = demands
  if (toolConstraint !== null && constraint !== null)
    throw parsersErrors.multiple_constraints('tool_choice', constraint.kind)
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
