/** The parsers plugin: parses reasoning and tool calls in model output of engines that return text or tokens. */
import { definePlugin, OutputParsers } from '#kernel'
import { parserProblems } from './choose-formats.ts'
import { parsersConfig } from './config.ts'
import { OutputParsersOf } from './output-parsers.ts'
import { functionCallRoute, reasoningRoute } from './routes.ts'

export default definePlugin({
  manifest: {
    name: 'parsers',
    version: '0.1.0',
    description:
      'Parses tool calls and reasoning in model output; POST /parse/function_call and /parse/reasoning.',
    provides: [OutputParsers],
    config: parsersConfig,
  },
  check: parserProblems,
  register(host, config) {
    const limits = { maxCalls: config.maxCalls, maxArgumentChars: config.maxArgumentKb * 1_024 }
    host.provide(
      OutputParsers,
      new OutputParsersOf({
        toolParser: config.toolParser,
        reasoningParser: config.reasoningParser,
        limits,
        onChoice: (model, chosen) =>
          host.log.info({ model: model.slice(0, 200), ...chosen }, 'output formats selected'),
        onTemplate: (model, reason) =>
          host.log.warn(
            { model: model.slice(0, 200), reason: reason.slice(0, 500) },
            'response template not usable, format selected by model',
          ),
        onUnknown: (kind, name, model) =>
          host.log.warn(
            { model: model.slice(0, 200), kind, parser: name.slice(0, 200) },
            'worker names an unknown parser, format selected by model',
          ),
      }),
    )
    host.route(functionCallRoute(limits))
    host.route(reasoningRoute(config.maxReasoningKb * 1_024))
  },
})
