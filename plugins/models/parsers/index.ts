/** The parsers plugin: reads reasoning and tool calls out of model output, for engines that give text or tokens. */
import { definePlugin, OutputParsers } from '#kernel'
import { parserProblems } from './check-names.ts'
import { parsersConfig } from './config.ts'
import { OutputParsersOf } from './output-parsers.ts'
import { functionCallRoute, reasoningRoute } from './routes.ts'

export default definePlugin({
  manifest: {
    name: 'parsers',
    version: '0.1.0',
    description: 'Tool calls and reasoning of model output; POST /parse/function_call and /parse/reasoning.',
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
          host.log.info({ model: model.slice(0, 200), ...chosen }, 'output formats of a model'),
        onTemplate: (model, reason) =>
          host.log.warn(
            { model: model.slice(0, 200), reason: reason.slice(0, 500) },
            'the response template of a model cannot be used: the format is chosen by the model',
          ),
        onUnknown: (kind, name, model) =>
          host.log.warn(
            { model: model.slice(0, 200), kind, parser: name.slice(0, 200) },
            'a worker names a parser that is not there: the format is chosen by the model',
          ),
      }),
    )
    host.route(functionCallRoute(limits))
    host.route(reasoningRoute(config.maxReasoningKb * 1_024))
  },
})
