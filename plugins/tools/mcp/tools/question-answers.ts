/** Answers of clients to questions of tool servers: checked before the turn, converted when the call runs. */
import type { ApprovalAnswer, ServerQuestion } from '#kernel'
import type { QuestionAnswer } from '../connection/call-tool.ts'
import { mcpErrors } from '../errors.ts'
import { checkArguments, describeProblem, parseArguments } from './check-arguments.ts'
import { readSchema } from './tool-schema.ts'

/** @throws invalid_elicitation_answer (400) if the answer does not match the schema of the question */
export function toQuestionAnswer(
  { approvalId, isApproved, reason = '' }: ApprovalAnswer,
  { key, params, requestState }: ServerQuestion,
): QuestionAnswer {
  if (!isApproved) return { key, requestState, response: { action: 'decline' } }
  // A question with a URL has no schema: the server learns the answer from the page.
  if (params.requestedSchema === undefined) return { key, requestState, response: { action: 'accept' } }
  const refuse = (problem: string) =>
    mcpErrors.invalid_elicitation_answer.with({ param: 'input' }, approvalId, problem)
  const content = parseArguments(reason)
  if (typeof content === 'string') throw refuse(content)
  const schema = readSchema(params.requestedSchema)
  const problem = typeof schema === 'string' ? null : checkArguments(schema, content, reason)
  if (problem !== null) throw refuse(`does not match the requested schema: ${describeProblem(problem)}`)
  return { key, requestState, response: { action: 'accept', content } }
}
