/** Entry of the pages of the console. */
import { render } from 'preact'
import 'uplot/dist/uPlot.min.css'
import './style.css'
import { startSession } from './data/session.ts'
import { Shell } from './shell/shell.tsx'

startSession()
render(<Shell />, document.getElementById('app') as HTMLElement)
