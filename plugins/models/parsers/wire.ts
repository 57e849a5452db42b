/** What goes in and out of the parse routes. */
import { Type } from '#kernel'

export const FunctionCallRequest = Type.Object({
  text: Type.String(),
  tool_call_parser: Type.String({ description: 'Exact name of a format, such as `qwen`.' }),
  tools: Type.Array(
    Type.Object({
      type: Type.Optional(Type.String()),
      function: Type.Object({
        name: Type.String(),
        description: Type.Optional(Type.Union([Type.String(), Type.Null()])),
        parameters: Type.Optional(Type.Unknown()),
        strict: Type.Optional(Type.Union([Type.Boolean(), Type.Null()])),
      }),
    }),
  ),
})

export const FunctionCallReply = Type.Object({
  remaining_text: Type.String(),
  tool_calls: Type.Array(
    Type.Object({ function: Type.Object({ name: Type.String(), arguments: Type.String() }) }),
  ),
  success: Type.Boolean(),
})

export const ReasoningRequest = Type.Object({
  text: Type.String(),
  reasoning_parser: Type.String({ description: 'Exact name of a format, such as `qwen3`.' }),
  in_reasoning: Type.Optional(
    Type.Boolean({ description: 'The prompt ended inside of reasoning. Default: as the format says.' }),
  ),
})

export const ReasoningReply = Type.Object({
  normal_text: Type.String(),
  reasoning_text: Type.String(),
  success: Type.Boolean(),
})

/** Other than elsewhere the error is a plain string. */
export const ParseFailure = Type.Object({ error: Type.String(), success: Type.Boolean() })
