/** What an engine must be held to for a structured answer, and under which name each kind of engine takes it. @source parsers facts 4.3 */
import type { AnswerDemands, OutputConstraint } from '#kernel'
import { parsersErrors } from './errors.ts'
import { harmonyAnswerTag } from './structural-tags.ts'

/** One of the tool's demand, the response format, a grammar or a pattern; two of them are refused. */
export function answerConstraint(demands: AnswerDemands, isHarmony: boolean): OutputConstraint | null {
  const { toolConstraint, jsonSchema, ebnf, regex } = demands
  const given: (readonly [string, OutputConstraint])[] = []
  if (toolConstraint != null) given.push(['a demanded tool call', toolConstraint])
  if (jsonSchema != null) given.push(['response_format', schemaConstraint(jsonSchema, isHarmony)])
  if (ebnf != null) given.push(['ebnf', { kind: 'ebnf', text: ebnf }])
  if (regex != null) given.push(['regex', { kind: 'regex', text: regex }])
  if (given.length > 1) throw parsersErrors.multiple_constraints(given[0][0], given[1][0])
  return given.length === 0 ? null : given[0][1]
}

function schemaConstraint(schema: unknown, isHarmony: boolean): OutputConstraint {
  if (isHarmony) return { kind: 'structural_tag', text: JSON.stringify(harmonyAnswerTag(schema)) }
  return { kind: 'json_schema', text: JSON.stringify(schema) }
}

type Names = Readonly<Record<OutputConstraint['kind'], string>>

/** By runtime: the field, or the kind of guide, that carries each constraint. @source grpc facts 2.3 */
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
export function engineConstraintName(runtime: string, kind: OutputConstraint['kind']): string | null {
  return engineNames.get(runtime)?.[kind] ?? null
}
