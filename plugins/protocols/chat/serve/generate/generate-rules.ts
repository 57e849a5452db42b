/** The rules between fields of a native generation request; single fields are the schema's business. */
import { ruleErrors } from '../../errors.ts'
import type { GenerateRequest } from '../../wire/generate.ts'

/** @throws a rule error (400) named after the broken rule. */
export function checkGenerateRules({ text, input_ids, sampling_params: sampling }: GenerateRequest): void {
  if ((text == null) === (input_ids == null)) throw ruleErrors.text_or_input_ids_required()
  if (sampling == null) return
  const { min_new_tokens: least, max_new_tokens: most, json_schema, regex, ebnf } = sampling
  if (least != null && most != null && least > most) {
    throw ruleErrors.min_tokens_exceeds_max.with({ param: 'sampling_params.min_new_tokens' })
  }
  const constraints = [json_schema, regex, ebnf].filter((value) => value != null)
  if (constraints.length > 1) throw ruleErrors.multiple_constraints.with({ param: 'sampling_params' })
}
